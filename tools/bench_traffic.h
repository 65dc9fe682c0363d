#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cutaway::tools {

// What a kernel moved, counted by the emulator.
struct TrafficRow {
  std::string name, size;
  int64_t bytes = 0;        // sectors of 32 bytes, read and written
  int64_t least_bytes = 0;  // each input once, each result once
  int64_t conflicts = 0;    // of banks of shared memory
  int64_t launches = 0;
};

// The kernels behind elementwise ops, softmax, layer norm and AdamW, forward and backward. Takes
// seconds.
std::vector<TrafficRow> measure_traffic();

}  // namespace cutaway::tools
