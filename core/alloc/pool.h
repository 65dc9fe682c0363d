#pragma once
#include <cstdint>
#include <string>

namespace cutaway {

// Small objects (tensor headers, graph nodes, small storages) from per-thread free lists by size class.
// Requests above 32 KB go to the large-block cache. 64-byte aligned. Raises MemoryError.
void* pool_allocate(int64_t bytes);
void pool_free(void* p, int64_t bytes) noexcept;

// Counters of host memory, in bytes unless said otherwise.
struct MemoryStats {
  int64_t live = 0;         // handed out and not returned
  int64_t cached = 0;       // kept for reuse
  int64_t peak = 0;         // highest live, counting large blocks exactly and small ones by slab
  int64_t allocations = 0;  // requests so far (count)
  int64_t largest_free = 0; // largest cached block
};
MemoryStats memory_stats();
void reset_peak_memory();
// Upper bound on live + cached large blocks; 0 removes it. The cache is trimmed before a request fails.
void set_memory_limit(int64_t bytes);
// Gives cached large blocks back to the system; returns how many bytes.
int64_t trim_memory();
// {"live":…, "cached":…, "blocks":[{"bytes":…, "op":…, "module":…}, …]} for blocks above 64 KB.
std::string memory_snapshot_json();

}  // namespace cutaway
