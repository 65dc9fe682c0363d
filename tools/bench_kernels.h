#pragma once
#include <string>
#include <vector>

#include <cutaway/core/device.h>

namespace cutaway::tools {

// One step of a kernel ladder (cuda/ladder.h), run and checked.
struct LadderResult {
  std::string ladder, step, idea;
  double error = 0;         // largest difference from the CPU's result, relative to its largest
  double milliseconds = 0;  // median; on a GPU only
  int64_t bytes = 0;        // global memory traffic in sectors; on the emulator only
  int64_t least_bytes = 0;  // inputs read once, results written once
  int64_t conflicts = 0;    // bank conflicts; on the emulator only
  double lane_use = 0;      // emulator only
  double flops = 0;         // of the problem
};

// Runs every step of the ladders whose names contain `filter` on cuda or emu. Raises DeviceError
// when the device is not there, ValueError when no ladder is named so. On cuda, `small` takes the
// small problems of the emulator and measures no time.
std::vector<LadderResult> run_ladders(DeviceKind device, const std::string& filter,
                                      bool small = false);

}  // namespace cutaway::tools
