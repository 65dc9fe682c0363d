#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cutaway::reproduce {

enum class Status : uint8_t { pass, fail, skip };
const char* status_text(Status s);  // "PASS", "FAIL", "SKIP"

// One statement of a paper, held against what was measured.
struct Statement {
  std::string id, text;
  Status status = Status::skip;
  std::string measured;  // as people read it, with spread: "7.8 ± 1.2"; of a skip the reason
  double value = NAN;    // the number that was compared
  std::string bound;     // "≥ 3"
  std::vector<uint64_t> seeds = {};
  std::string note = {};  // for the report: what came of a failure, what the number means
};

// A statement that holds when value ≥ bound, or value ≤ bound; NaN never holds. `measured` empty:
// the value with three digits.
struct Measured {
  std::string id, text;
  double value = NAN, bound = 0;
  std::string measured = {};
  std::vector<uint64_t> seeds = {};
  std::string note = {};
};
Statement at_least(const Measured& m);
Statement at_most(const Measured& m);

// "0.91 ± 0.03" (mean and sample standard deviation), and the middle of a list (of an even one the
// mean of both middle values; NaN for nothing).
std::string mean_spread(const std::vector<double>& values);
double median(std::vector<double> values);

// What a study works with: options to read, and where its findings go.
class Run {
 public:
  struct Options {
    bool full = false;    // else quick: within two minutes on two cores
    uint64_t seed = 1;    // the first of the seeds
    std::string folder;   // for report.html and plots/; empty: nothing is written
    std::string command;  // how to run it again, for the report
    std::function<void(const Statement&)> on_statement;
    std::function<void(const std::string&)> on_progress;
  };
  explicit Run(Options options) : options_(std::move(options)) {}

  bool full() const { return options_.full; }
  uint64_t seed() const { return options_.seed; }
  const std::string& folder() const { return options_.folder; }
  // n seeds from the first one on.
  std::vector<uint64_t> seeds(int n) const;

  void add(Statement s);
  // Reports that a statement was not tried, and why.
  void skip(const std::string& id, const std::string& text, const std::string& reason);
  // Keeps a picture for the report and writes plots/<name>.svg.
  void picture(const std::string& name, const std::string& caption, const std::string& svg);
  // A paragraph of the report.
  void remark(const std::string& text) { remarks_.push_back(text); }
  // A line about work in progress.
  void progress(const std::string& text) const;

  const std::vector<Statement>& statements() const { return statements_; }
  int count(Status s) const;
  // {"slug", "mode", "statements": [{"id", "text", "status", "measured", "value", "bound",
  // "seeds", "note"}]}.
  std::string json(const std::string& slug) const;
  // Writes report.html, self-contained.
  void write_report(const struct Study& study, double seconds) const;

 private:
  struct Picture {
    std::string name, caption, svg;
  };
  Options options_;
  std::vector<Statement> statements_;
  std::vector<Picture> pictures_;
  std::vector<std::string> remarks_;
};

// A paper: its statements in order, one function each, called by `run`.
struct Study {
  const char* slug;   // "grokking"
  const char* title;  // one line
  const char* full;   // how long --full takes, "9 min"
  void (*run)(Run&);
};
// All studies (models/reproduce/studies.cpp lists them).
const std::vector<Study>& studies();
// Raises ValueError naming the known ones.
const Study& study(const std::string& slug);

}  // namespace cutaway::reproduce
