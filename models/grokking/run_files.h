#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/models/grokking/plots.h>

namespace cutaway::grokking {

// Writes folder/checkpoints/<name>.safetensors.
void save_network(const Network& network, const std::string& folder, const std::string& name);
// Writes log.csv, stages.json, checkpoints/final.safetensors, plots/*.svg and report.html.
void write_run(const RunResult& run, const std::string& folder);

// What a checkpoint has learnt: text for people, and pictures by name.
struct Inspection {
  std::string folder, text;
  std::vector<std::pair<std::string, std::string>> pictures;
};
// A run folder (its final checkpoint) or a .safetensors file in its checkpoints/. Raises IoError.
Inspection inspect(const std::string& path);

// One prompt of a sweep: the epochs at which its seeds were solved, and what τ is calibrated on.
struct SweepRow {
  struct Seed {
    uint64_t seed = 0;
    Stages stages;
    double violation = NAN;  // mean, at t_gen
    double accuracy = 0;     // the best on test inputs
  };
  std::string name;
  std::vector<Seed> seeds;
  std::vector<double> t_gen;  // the limit where never
  int solved = 0;
  double steps_per_second = 0;  // mean
  void add(const RunResult& run);
};
// Tables with median t_gen, its speed-up over the first row, and the violations at t_gen.
std::string sweep_text(const std::vector<SweepRow>& rows);
std::string sweep_csv(const std::vector<SweepRow>& rows);
std::string sweep_plot(const std::vector<SweepRow>& rows, const std::string& task);

}  // namespace cutaway::grokking
