#pragma once

// The families of CUDA kernels, one a line: cuda/kernels/<family>.cuh. Each is compiled once by the
// host compiler for the emulator and, when there is a CUDA compiler, once for the GPU; it defines
// register_<family>_kernels() in the namespace cutaway::cuda::CUTAWAY_TARGET (emu or gpu). Read by
// cmake/Cuda.cmake as well: keep the form X(name).
#define CUTAWAY_CUDA_FAMILIES(X) \
  X(attention)                   \
  X(attention_half)              \
  X(conv)                        \
  X(extreme)                     \
  X(group_shared)                \
  X(group_shared_half)           \
  X(index)                       \
  X(index_reduce)                \
  X(loss)                        \
  X(lstm)                        \
  X(magnitude)                   \
  X(matmul)                      \
  X(norm)                        \
  X(optim)                       \
  X(pointwise_activation)        \
  X(pointwise_arithmetic)        \
  X(pointwise_compare)           \
  X(pointwise_copy)              \
  X(pointwise_float)             \
  X(pointwise_special)           \
  X(pool)                        \
  X(random)                      \
  X(rearrange)                   \
  X(rearrange_sum)               \
  X(reduce)                      \
  X(resize)                      \
  X(row_norm)                    \
  X(rows)                        \
  X(scan)                        \
  X(sort)
