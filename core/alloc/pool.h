#pragma once
#include <cstdint>
#include <string>

namespace cutaway {

// Small objects (tensor headers, graph nodes, small storages) from per-thread free lists by size
// class. Requests above 32 KB are cut from one heap (heap.h). 64-byte aligned. Raises MemoryError,
// also for negative sizes and for more than the machine has.
void* pool_allocate(int64_t bytes);
// Takes back a block of pool_allocate(bytes), on any thread.
void pool_free(void* p, int64_t bytes) noexcept;

// Counters of host memory, in bytes unless said otherwise.
struct MemoryStats {
  int64_t live = 0;          // handed out and not returned, as rounded up to blocks
  int64_t cached = 0;        // kept for reuse
  int64_t peak = 0;          // highest live, counting large blocks exactly and small ones by slab
  int64_t allocations = 0;   // requests so far (count)
  int64_t from_system = 0;   // times the cache did not suffice and the system was asked, so far
  int64_t largest_free = 0;  // most cached bytes in one block
};
MemoryStats memory_stats();
void reset_peak_memory();
// Upper bound on live + cached large blocks; 0 removes it. The cache is trimmed before a request
// fails. Raises ValueError for a negative bound.
void set_memory_limit(int64_t bytes);
// Upper bound on cached large blocks; what is freed beyond it goes back to the system. At first a
// quarter of the machine's memory. Raises ValueError for a negative bound.
void set_memory_cache_limit(int64_t bytes);
// Gives cached large blocks back to the system; returns how many bytes.
int64_t trim_memory();
// {"live":…, "cached":…, "peak":…, "blocks":[{"bytes":…, "op":…, "module":…}, …]}, the blocks
// being the live ones above 64 KB.
std::string memory_snapshot_json();

}  // namespace cutaway
