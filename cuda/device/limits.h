#pragma once
#include <cstdint>

#include <cutaway/cuda/device/language.h>

#if !defined(__CUDACC__)
#include <cutaway/cuda/emu/limits.h>
#endif

namespace cutaway::cuda::CUTAWAY_TARGET {

// Bytes of shared memory that a block may have on this device.
#if defined(__CUDACC__)
inline int64_t shared_memory_of_block() {
  static const int64_t bytes = [] {
    int device = 0, value = 0;
    const bool known = cudaGetDevice(&device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                              device) == cudaSuccess;
    return known ? value : 48 * 1024;
  }();
  return bytes;
}
#else
inline int64_t shared_memory_of_block() { return kShared; }
#endif
// The same for the dynamic part, where a kernel has little else.
inline int64_t dynamic_shared_memory() { return shared_memory_of_block() - 2 * 1024; }

}  // namespace cutaway::cuda::CUTAWAY_TARGET
