#pragma once
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cutaway::train {

// The folder of one run: config.json, metrics.csv, events, checkpoint/, plots/, report.html. Held
// by a lock while a process works in it.
class RunFolder {
 public:
  // A new folder. Raises IoError, before any work, when it is a file, is not writable, is in use,
  // or already holds a run.
  static RunFolder create(const std::string& path);
  // An existing run, to go on with.
  static RunFolder reopen(const std::string& path);
  RunFolder(RunFolder&& other) noexcept;
  ~RunFolder();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit RunFolder(std::string path);
  void lock();
  std::string path_;
  int lock_fd_ = -1;
};

// The first free one of runs/<stem>-1, runs/<stem>-2, …
std::string next_run_path(const std::string& stem);

// metrics.csv: one row an event, written whole and flushed, numbers in the C locale whatever the
// program's locale is.
struct MetricRow {
  int64_t step = 0, epoch = 0;
  std::string split;  // "train" or "test"
  double loss = 0, accuracy = 0, lr = 0;
  double rate = 0, seconds = 0;  // examples per second, time since the start: the only columns that
                                 // depend on the clock
};
// A text file to which rows are added, each flushed.
class RowFile {
 public:
  // Of a file that is there the lines for which keep(line) is true stay, in order. A partial line
  // at the end goes.
  RowFile(const std::string& path, const std::string& header,
          const std::function<bool(std::string_view)>& keep);
  void add(const std::string& line);  // with its end

 private:
  std::string path_;
  std::ofstream out_;
};

class MetricsFile {
 public:
  // Opens for appending with the first `keep` rows: what a killed run wrote after its checkpoint
  // goes.
  MetricsFile(const std::string& path, int64_t keep);
  void add(const MetricRow& row);
  const std::vector<MetricRow>& rows() const { return rows_; }

 private:
  std::vector<MetricRow> rows_;  // filled while the file is opened
  RowFile file_;
};

}  // namespace cutaway::train
