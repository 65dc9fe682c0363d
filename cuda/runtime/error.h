#pragma once
#include <cuda_runtime_api.h>

namespace cutaway::cuda::gpu {

// Raises CudaError in the name of `op` unless the call succeeded.
[[noreturn]] void throw_cuda(const char* op, cudaError_t status);
inline void check(const char* op, cudaError_t status) {
  if (status != cudaSuccess) [[unlikely]]
    throw_cuda(op, status);
}

}  // namespace cutaway::cuda::gpu
