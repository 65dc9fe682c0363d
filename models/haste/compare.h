#pragma once
#include <functional>
#include <string>
#include <vector>

#include <cutaway/models/haste/options.h>

namespace cutaway::haste {

// A layer or an ablation: what it changes in the options of a run.
struct Setting {
  std::string name;
  std::function<void(RunOptions&)> change;
};
// The layers of section 6 and their ablations by name: haste, random, freq, static, no-head,
// threshold, bf16, ffi, spartex (FFI over all features with meta-labels), block, bottleneck, dense.
const std::vector<Setting>& known_settings();
// One of them. Raises ValueError listing the names.
const Setting& setting_of(const std::string& name);

// One setting over several seeds: metrics of the best epoch in percent; NaN where a run diverged.
struct Measured {
  std::string name;
  std::vector<double> p1, p3, p5, psp1, psp3, psp5, tail1, tail5;
  std::vector<double> samples_per_second;  // of training steps on one thread
  int64_t tail_bytes = 0;                  // tensors of the tail and their momentum
};

// Trains every setting with every seed, a run on each thread. `progress` is called after each run
// with a line about it, from one thread at a time; `stop` is asked after every step and ends all,
// which raises ValueError. Raises what open_set() and check_options() raise.
std::vector<Measured> compare_settings(
    const RunOptions& base, const std::vector<Setting>& settings,
    const std::vector<uint64_t>& seeds,
    const std::function<void(int64_t done, int64_t all, const std::string& about)>& progress = {},
    const std::function<bool()>& stop = {});

// Mean ± deviation of every column as a Markdown table, and every value as CSV.
std::string compare_table(const std::vector<Measured>& rows);
std::string compare_csv(const std::vector<Measured>& rows, const std::vector<uint64_t>& seeds);

}  // namespace cutaway::haste
