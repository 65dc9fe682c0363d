#pragma once
#include <cstdint>

#include <cutaway/cuda/launch_config.h>

// Streams of the GPU in use. Types of the CUDA headers are not needed here.
namespace cutaway::cuda::gpu {

// The cudaStream_t that kernels of the calling thread go to.
void* current_stream();
// Before a launch: allows dynamic shared memory above 48 KB. After it: raises CudaError naming the
// kernel when the launch was refused.
void begin_launch(const Launch& launch, const void* kernel);
void end_launch(const Launch& launch);

}  // namespace cutaway::cuda::gpu
