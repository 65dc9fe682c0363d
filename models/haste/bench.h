#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cutaway::haste {

struct BenchOptions {
  int64_t features = 768, labels = 65536, fan_in = 64, group = 32, batch = 128;
  std::vector<int> threads = {1, 2};
  int64_t chunk = 2048;  // of a whole step: labels whose logits exist at a time
  bool steps = true;     // whole steps of training, too
  int repeats = 5;       // rounds; each runs every kernel once, and medians are reported
};

// One kernel in one pass on one number of threads.
struct BenchRow {
  std::string kernel;  // group-shared, ffi, block, dense (own), dense (BLAS), bottleneck
  std::string pass;    // forward, dh, dW, backward (dh + dW), step (a whole step of OutputLayer)
  int threads = 1;
  double milliseconds = 0;  // median
  double gflops = 0;
  int64_t bytes = 0;  // operands read once, results written once
  double floor = 0;   // share of the time that arithmetic or memory alone would take
  // How many times faster; dense: the faster of the two, for steps the bottleneck layer.
  double over_ffi = 0, over_dense = 0;
};

// Times the kernels of group-shared layers beside per-label indices, blocks of features and the
// dense product F → L with the same FLOPs, all on transposed features. Kernels take turns, so that
// all meet the same machine. The floor is the larger of FLOPs over the speed of a product in cache
// and bytes over the speed of a copy, both measured in the same run. Raises ValueError for sizes
// below 1 and fan_in above features.
std::vector<BenchRow> bench_output_kernels(const BenchOptions& options);

// Every G of {16, 32, 64} with every F of {16, 32, 64, 128, 256}: rows with their sizes.
struct SweepRow {
  int64_t group = 0, fan_in = 0;
  BenchRow row;
};
// No whole steps. Calls `progress` with the settings done and all before each.
std::vector<SweepRow> sweep_output_kernels(
    const BenchOptions& options, const std::function<void(int done, int all)>& progress = {});

// Tables for people and for programs, and GFLOP/s against F as SVG, a line for each G and pass.
std::string bench_table(const std::vector<BenchRow>& rows);
std::string sweep_csv(const std::vector<SweepRow>& rows);
std::string sweep_json(const std::vector<SweepRow>& rows);
std::string sweep_svg(const std::vector<SweepRow>& rows, const std::string& pass);

}  // namespace cutaway::haste
