#pragma once
#include <cutaway/cuda/device/language.h>

#if defined(__CUDACC__)
#include <cstdio>

#include <cutaway/cuda/runtime/graph.h>
#endif

// What checks of values do while a graph is recorded, when no value can be read on the host.
namespace cutaway::cuda::CUTAWAY_TARGET {

#if defined(__CUDACC__)
// Ends the program's work on the GPU, after a line that says why: the next synchronisation raises
// CudaError.
DEVICE void stop_device(const char* what, int64_t position, int64_t value) {
  printf("%s: %lld at position %lld\n", what, static_cast<long long>(value),
         static_cast<long long>(position));
  __trap();
}
#else
inline void stop_device(const char* what, int64_t position, int64_t value,
                        const std::source_location& at = std::source_location::current()) {
  fail(
      FaultKind::out_of_bounds, at,
      std::string(what) + ": " + std::to_string(value) + " at position " + std::to_string(position),
      "check values before a step is recorded");
}
#endif

}  // namespace cutaway::cuda::CUTAWAY_TARGET
