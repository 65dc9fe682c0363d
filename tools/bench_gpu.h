#pragma once
#include <functional>
#include <string>
#include <vector>

#include <cutaway/core/device.h>
#include <cutaway/core/dtype.h>

namespace cutaway::tools {

// One line of the table of `cutaway bench gpu`.
struct GpuRow {
  std::string name;
  double milliseconds = 0;  // median
  double rate = 0;          // in `unit`
  std::string unit;         // GB/s, TFLOP/s, steps/s
  double share = 0;         // of the rate of `of`; 0 when there is nothing to compare with
  std::string of;
};

// How often and in which sizes to measure.
struct GpuPlan {
  Device device;
  bool small = false;
  int rounds = 11, warm_up = 3;
  void (*report)(const GpuRow&) = nullptr;

  int64_t size(int64_t full, int64_t tiny) const { return small ? tiny : full; }
};

// Median milliseconds of one call; the device is waited for around `batch` calls at a time.
double median_ms(const GpuPlan& plan, int batch, const std::function<void()>& run);

// Group-shared output layers of 65 536 labels (H 768, F 64, B 128, G 32), forward and backward,
// beside the kernel that goes label by label, the library's products of the same size (the map from
// a bottleneck of width F), and its products with the expanded sparse matrix.
void bench_group_shared(const GpuPlan& plan, DType dtype);

// Bandwidth of elementwise and row ops beside that of a copy, products and attention beside the
// bare kernel, group-shared layers, training steps of GPT-2 small and ResNet-50. `small` takes
// sizes that only try the code, on any device. Calls report(row) as rows are measured. Raises
// DeviceError without the device.
void run_gpu_bench(Device device, bool small, void (*report)(const GpuRow&));

}  // namespace cutaway::tools
