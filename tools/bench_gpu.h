#pragma once
#include <string>
#include <vector>

#include <cutaway/core/device.h>

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

// Bandwidth of elementwise and row ops beside that of a copy, products and attention beside the
// bare kernel, training steps of GPT-2 small and ResNet-50. `small` takes sizes that only try the
// code, on any device. Calls report(row) as rows are measured. Raises DeviceError without the
// device.
void run_gpu_bench(Device device, bool small, void (*report)(const GpuRow&));

}  // namespace cutaway::tools
