#pragma once
#include <cutaway/core/error.h>

#include <source_location>

namespace cutaway::cuda::emu {

// What a kernel did wrong.
enum class FaultKind {
  out_of_bounds,      // outside of a buffer, or through a null pointer
  uninitialized,      // a read of memory that nothing has written
  misaligned,         // an access wider than its address allows
  race,               // two threads meet at an address, one writes, nothing orders them
  divergent_barrier,  // threads of a block wait at different barriers, or some never come
  divergent_warp,     // lanes named in a mask do not come to the warp operation
  bad_mask,           // a mask without the calling lane; a shuffle from a lane that takes no part
  undeclared_sync,    // a barrier or warp operation in a kernel launched with Sync::none
  bad_launch,         // sizes beyond the limits of the hardware
  pending_copy,       // an asynchronous copy that nobody waits for, or its target used too early
};
const char* name_of(FaultKind kind);
// "softmax.cuh:41"
std::string line_of(const std::source_location& at);

// A fault with the line of the kernel where it shows.
struct KernelFault : DeviceError {
  KernelFault(const char* kernel, FaultKind kind, const std::source_location& at,
              const std::string& what, const char* hint, int other = 0);
  FaultKind kind;
  std::string file;  // as the compiler was given it
  int line;
  int other_line;  // of a race: the earlier access
};

}  // namespace cutaway::cuda::emu
