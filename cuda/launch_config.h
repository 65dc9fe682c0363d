#pragma once
#include <cstdint>
#include <source_location>

namespace cutaway::cuda {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// Whether threads of a kernel meet. The emulator runs kernels whose threads never do as a plain
// loop, and raises a fault when they try; a GPU does not ask.
enum class Sync : uint8_t {
  none,   // no barrier, no warp operation
  block,  // anything
};

struct Launch {
  const char* name = "kernel";  // for messages, traces and counters
  Dim3 grid;                    // blocks; x up to 2^31-1, y and z up to 65535
  Dim3 block;                   // threads; 1024 at most in all
  int64_t shared = 0;           // bytes of dynamic shared memory
  Sync sync = Sync::block;
  std::source_location at = std::source_location::current();
};

}  // namespace cutaway::cuda
