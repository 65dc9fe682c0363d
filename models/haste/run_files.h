#pragma once
#include <string>
#include <vector>

#include <cutaway/models/haste/train.h>
#include <cutaway/models/train/run_folder.h>

namespace cutaway::haste {

// metrics.csv: a row an epoch, flushed, numbers in the C locale. Opened with the rows of epochs up
// to `keep`: what a killed run wrote after its checkpoint goes.
class MetricsCsv {
 public:
  MetricsCsv(const std::string& path, int64_t keep);
  void add(const EpochRow& row);
  const std::vector<EpochRow>& rows() const { return rows_; }

 private:
  std::vector<EpochRow> rows_;  // filled while the file is opened
  train::RowFile file_;
};

// The result as lines of text: P@k and PSP@k, bands, deciles, bytes of every tensor.
std::string metrics_text(const Metrics& metrics);
std::string memory_text(const std::vector<std::pair<std::string, int64_t>>& memory);

// Writes plots/*.svg and report.html of a run.
void write_report(const std::string& folder, const RunResult& result, const Prepared& prepared,
                  const std::vector<EpochRow>& rows);

// Names of labels, one a line, and back.
void save_names(const std::vector<std::string>& names, const std::string& path);
std::vector<std::string> load_names(const std::string& path);

}  // namespace cutaway::haste
