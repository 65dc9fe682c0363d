#pragma once
#include <cstdint>
#include <source_location>

#include <cutaway/cuda/emu/fault.h>
#include <cutaway/cuda/emu/pointer.h>
#include <cutaway/cuda/launch_config.h>

// A running block: what kernels see of it, and how their threads wait for each other.
namespace cutaway::cuda::emu {

// The calling thread's place in the grid.
struct Coordinates {
  Dim3 thread, block, block_size, grid_size;
};
extern thread_local Coordinates coordinates;

// Something the lanes of a warp do together. When all live lanes of the mask have arrived,
// `complete` sees the part of each (null for lanes that take no part or have ended).
struct WarpOperation {
  const char* name;
  void (*complete)(void* const* parts, uint32_t mask);
  bool orders_memory;  // as __syncwarp
};
// Suspends the calling lane until the operation is complete.
void join_warp(const WarpOperation& operation, uint32_t mask, void* part,
               const std::source_location& at);

enum class Vote : uint8_t { none, count, any, all };
// Suspends the calling thread until all live threads of the block have arrived; the result of the
// vote over their predicates.
int join_block(Vote vote, bool predicate, const std::source_location& at);

// The region of a device buffer that holds `address`; kNowhere if there is none.
const Region* global_region(const void* address, bool writes);
// Shared memory of the block, the same for all threads that come to this line. Not initialised.
const Region* shared_region(int64_t bytes, int64_t align, const std::source_location& at);
const Region* dynamic_shared_region(const std::source_location& at);

// Asynchronous copies of the calling thread: what `start` notes is copied by the `wait` that leaves
// at most `pending` later groups.
void start_copy(const Region* to, void* target, const Region* from, const void* source, int bytes,
                const std::source_location& at);
void commit_copies();
void wait_copies(int pending);

int lane_index();

// Raises a fault at a line of the running kernel, from inside it.
[[noreturn]] void fail(FaultKind kind, const std::source_location& at, const std::string& what,
                       const char* hint);

// Runs `body` once for each thread of the grid; raises KernelFault.
void run_grid(const Launch& launch, void (*body)(void*), void* data);

}  // namespace cutaway::cuda::emu
