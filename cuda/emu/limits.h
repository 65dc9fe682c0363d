#pragma once
#include <cstdint>

#include <cutaway/cuda/emu/options.h>
#include <cutaway/cuda/launch_config.h>

namespace cutaway::cuda::emu {

// What a block may have on compute capability 9.0.
inline constexpr int64_t kStaticShared = 48 * 1024, kShared = 227 * 1024;  // bytes
inline constexpr unsigned kMaxThreads = 1024;

// Raises KernelFault for a launch that hardware would refuse.
void check_limits(const Launch& launch);
// The block whose turn comes at `position` of `blocks`; each comes once.
int64_t block_at(int64_t position, int64_t blocks, const Options& options);

}  // namespace cutaway::cuda::emu
