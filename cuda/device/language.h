#pragma once

// What kernel files (cuda/kernels/*.cuh) are written in. They are compiled twice, by nvcc into
// cutaway::cuda::gpu and by the host compiler into cutaway::cuda::emu, the emulator; see
// cuda/emu/language.h for the list of words and docs/cuda.md for how to write a kernel.
#if defined(__CUDACC__)
#ifndef CUTAWAY_TARGET
#define CUTAWAY_TARGET gpu
#endif
#include <cutaway/cuda/device/language_cuda.h>
#else
#ifndef CUTAWAY_TARGET
#define CUTAWAY_TARGET emu
#endif
#include <cutaway/cuda/emu/language.h>
#endif

#include <cutaway/core/device.h>
#include <cutaway/cuda/launch_config.h>

namespace cutaway::cuda::CUTAWAY_TARGET {

#if defined(__CUDACC__)
inline constexpr DeviceKind kDevice = DeviceKind::cuda;

// Runs a kernel on the current stream. Raises CudaError.
template <class... P, class... A>
void launch(const Launch& l, void (*kernel)(P...), const A&... args) {
  begin_launch(l, reinterpret_cast<const void*>(kernel));
  kernel<<<dim3(l.grid.x, l.grid.y, l.grid.z), dim3(l.block.x, l.block.y, l.block.z),
           static_cast<size_t>(l.shared), static_cast<cudaStream_t>(current_stream())>>>(args...);
  end_launch(l);
}
#else
inline constexpr DeviceKind kDevice = DeviceKind::emu;

// Runs a kernel to its end, or adds it to the graph that is being recorded. Raises KernelFault.
template <class... P, class... A>
void launch(const Launch& l, void (*kernel)(P...), const A&... args) {
  if (recording()) return record([=] { launch(l, kernel, args...); });
  auto call = [&] { kernel(args...); };
  using Call = decltype(call);
  run_grid(
      l, [](void* c) { (*static_cast<Call*>(c))(); }, &call);
}
#endif

// Blocks of `threads` threads that cover n items.
DEVICE_HOST int64_t blocks_for(int64_t n, int64_t threads) { return (n + threads - 1) / threads; }

}  // namespace cutaway::cuda::CUTAWAY_TARGET
