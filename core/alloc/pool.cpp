#include <cutaway/core/alloc/pool.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>

#if defined(__SANITIZE_ADDRESS__)
#define CUTAWAY_POOLING 0  // let the sanitizer see every block
#else
#define CUTAWAY_POOLING 1
#endif

namespace cutaway {
namespace {

constexpr int64_t kSmall = 32768;
constexpr int64_t kSlab = 262144;
constexpr int kClasses = 16 + 20;  // steps of 64 up to 1 KB, then four a doubling

int class_of(int64_t bytes) {
  if (bytes <= 1024) return int((bytes + 63) / 64) - (bytes > 0);
  const int doubling = std::bit_width(uint64_t(bytes - 1)) - 1;  // 2^doubling < bytes ≤ 2^(doubling+1)
  const int64_t base = int64_t(1) << doubling;
  return 16 + (doubling - 10) * 4 + int((bytes - base - 1) / (base / 4));
}
int64_t class_bytes(int c) {
  if (c < 16) return (c + 1) * 64;
  const int64_t base = int64_t(1024) << ((c - 16) / 4);
  return base + base / 4 * ((c - 16) % 4 + 1);
}

struct FreeBlock {
  FreeBlock* next;
};

// Header in front of a large block.
struct alignas(64) LargeBlock {
  int64_t bytes;  // usable, behind the header
  LargeBlock* prev;
  LargeBlock* next;
  const char* op;
  const ModuleScope* module;
};

struct ThreadCache;

struct Central {
  std::mutex mutex;
  FreeBlock* lists[kClasses] = {};
  char* slab = nullptr;
  int64_t slab_left = 0;
  std::multimap<int64_t, LargeBlock*> free_large;
  LargeBlock* live_large = nullptr;
  int64_t live_large_bytes = 0;
  int64_t cached_large_bytes = 0;
  int64_t slab_bytes = 0;
  int64_t peak = 0;
  int64_t limit = 0;
  int64_t large_allocations = 0;
  std::vector<ThreadCache*> threads;
  int64_t gone_live = 0;         // small bytes of threads that ended
  int64_t gone_allocations = 0;
};
// Never destroyed: tensors in static variables may be freed after any static destructor.
Central& central() {
  static Central* c = new Central;
  return *c;
}

struct ThreadCache {
  FreeBlock* lists[kClasses] = {};
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> allocations{0};
};
thread_local ThreadCache* cache = nullptr;
thread_local bool cache_dead = false;

struct CacheOwner {
  ~CacheOwner() {
    if (!cache) return;
    Central& c = central();
    std::lock_guard lock(c.mutex);
    for (int i = 0; i < kClasses; ++i) {
      while (FreeBlock* b = cache->lists[i]) {
        cache->lists[i] = b->next;
        b->next = c.lists[i];
        c.lists[i] = b;
      }
    }
    c.gone_live += cache->live.load();
    c.gone_allocations += cache->allocations.load();
    std::erase(c.threads, cache);
    delete cache;
    cache = nullptr;
    cache_dead = true;
  }
};

ThreadCache* make_cache() {
  if (cache_dead) return nullptr;
  thread_local CacheOwner owner;
  (void)&owner;
  cache = new ThreadCache;
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.threads.push_back(cache);
  return cache;
}

[[noreturn, gnu::cold]] void throw_out_of_memory(Central& c, int64_t bytes) {
  struct Holder {
    int64_t bytes;
    std::string name;
  };
  std::map<std::string, int64_t> by_name;
  for (LargeBlock* b = c.live_large; b; b = b->next) {
    std::string name = b->op ? b->op : "(outside ops)";
    if (b->module) name += " in " + module_path(b->module);
    by_name[name] += b->bytes;
  }
  std::vector<Holder> holders;
  for (const auto& [name, n] : by_name) holders.push_back({n, name});
  std::sort(holders.begin(), holders.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
  const int64_t largest = c.free_large.empty() ? 0 : c.free_large.rbegin()->first;
  std::string text = fmt::format(
      "out of memory; got a request for {} bytes\n    limit {}\n    live {}\n    cached {}\n    "
      "largest free block {}",
      bytes, c.limit ? fmt::format("{}", c.limit) : "none", c.live_large_bytes, c.cached_large_bytes,
      largest);
  for (size_t i = 0; i < holders.size() && i < 5; ++i) {
    text += fmt::format("\n    held by {}: {}", holders[i].name, holders[i].bytes);
  }
  const char* op = context().op;
  throw MemoryError(op ? op : "allocate", text,
                    "use a smaller batch, checkpoint(), or free tensors that are still referenced");
}

int64_t trim_locked(Central& c) {
  const int64_t freed = c.cached_large_bytes;
  for (auto& [bytes, block] : c.free_large) std::free(block);
  c.free_large.clear();
  c.cached_large_bytes = 0;
  return freed;
}

// A block for at least `bytes` from the cache (less than twice the request) or the system.
LargeBlock* take_large(Central& c, int64_t bytes) {
  auto it = c.free_large.lower_bound(bytes);
  if (it != c.free_large.end() && it->first < 2 * bytes) {
    LargeBlock* b = it->second;
    c.free_large.erase(it);
    c.cached_large_bytes -= b->bytes;
    return b;
  }
  const int64_t rounded = (bytes + 4095) / 4096 * 4096;
  if (c.limit && c.live_large_bytes + c.cached_large_bytes + rounded > c.limit) trim_locked(c);
  if (c.limit && c.live_large_bytes + rounded > c.limit) throw_out_of_memory(c, bytes);
  void* p = nullptr;
  if (posix_memalign(&p, 64, size_t(rounded) + sizeof(LargeBlock)) != 0) {
    trim_locked(c);
    if (posix_memalign(&p, 64, size_t(rounded) + sizeof(LargeBlock)) != 0) throw_out_of_memory(c, bytes);
  }
  LargeBlock* b = new (p) LargeBlock;
  b->bytes = rounded;
  return b;
}

void* allocate_large(int64_t bytes) {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  LargeBlock* b = take_large(c, bytes);
  b->op = context().op;
  b->module = context().module;
  b->prev = nullptr;
  b->next = c.live_large;
  if (c.live_large) c.live_large->prev = b;
  c.live_large = b;
  c.live_large_bytes += b->bytes;
  ++c.large_allocations;
  c.peak = std::max(c.peak, c.live_large_bytes + c.slab_bytes);
  return b + 1;
}

void free_large(void* p) noexcept {
  LargeBlock* b = static_cast<LargeBlock*>(p) - 1;
  Central& c = central();
  std::lock_guard lock(c.mutex);
  if (b->prev) b->prev->next = b->next;
  if (b->next) b->next->prev = b->prev;
  if (c.live_large == b) c.live_large = b->next;
  c.live_large_bytes -= b->bytes;
  if (!CUTAWAY_POOLING) {
    std::free(b);
    return;
  }
  c.cached_large_bytes += b->bytes;
  c.free_large.emplace(b->bytes, b);
}

// Refills one class of a thread's cache from the central list or the slab; returns one block.
void* refill(ThreadCache* t, int cls) {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  const int64_t bytes = class_bytes(cls);
  if (FreeBlock* b = c.lists[cls]) {
    c.lists[cls] = b->next;
    return b;
  }
  if (c.slab_left < bytes) {
    void* p = nullptr;
    if (posix_memalign(&p, 64, kSlab) != 0) throw_out_of_memory(c, bytes);
    c.slab = static_cast<char*>(p);
    c.slab_left = kSlab;
    c.slab_bytes += kSlab;
    c.peak = std::max(c.peak, c.live_large_bytes + c.slab_bytes);
  }
  // A few at once, so that the lock is rare.
  const int64_t most = std::min<int64_t>(8, c.slab_left / bytes);
  char* first = c.slab;
  for (int64_t i = 1; i < most && t; ++i) {
    auto* b = reinterpret_cast<FreeBlock*>(c.slab + i * bytes);
    b->next = t->lists[cls];
    t->lists[cls] = b;
  }
  const int64_t used = t ? most : 1;
  c.slab += used * bytes;
  c.slab_left -= used * bytes;
  return first;
}

}  // namespace

void* pool_allocate(int64_t bytes) {
  if (bytes > kSmall || !CUTAWAY_POOLING) {
    if (bytes < 0 || bytes > (int64_t(1) << 46)) {
      Central& c = central();
      std::lock_guard lock(c.mutex);
      throw_out_of_memory(c, bytes);
    }
    return allocate_large(bytes);
  }
  ThreadCache* t = cache ? cache : make_cache();
  const int cls = class_of(bytes);
  if (t) [[likely]] {
    t->live.store(t->live.load(std::memory_order_relaxed) + class_bytes(cls), std::memory_order_relaxed);
    t->allocations.store(t->allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (FreeBlock* b = t->lists[cls]) [[likely]] {
      t->lists[cls] = b->next;
      return b;
    }
  }
  return refill(t, cls);
}

void pool_free(void* p, int64_t bytes) noexcept {
  if (bytes > kSmall || !CUTAWAY_POOLING) return free_large(p);
  ThreadCache* t = cache ? cache : make_cache();
  const int cls = class_of(bytes);
  auto* b = static_cast<FreeBlock*>(p);
  if (t) [[likely]] {
    t->live.store(t->live.load(std::memory_order_relaxed) - class_bytes(cls), std::memory_order_relaxed);
    b->next = t->lists[cls];
    t->lists[cls] = b;
    return;
  }
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.gone_live -= class_bytes(cls);
  b->next = c.lists[cls];
  c.lists[cls] = b;
}

MemoryStats memory_stats() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  MemoryStats s;
  int64_t small = c.gone_live;
  s.allocations = c.large_allocations + c.gone_allocations;
  for (ThreadCache* t : c.threads) {
    small += t->live.load(std::memory_order_relaxed);
    s.allocations += t->allocations.load(std::memory_order_relaxed);
  }
  s.live = c.live_large_bytes + small;
  s.cached = c.cached_large_bytes + c.slab_bytes - small;
  s.peak = c.peak;
  s.largest_free = c.free_large.empty() ? 0 : c.free_large.rbegin()->first;
  return s;
}

void reset_peak_memory() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.peak = c.live_large_bytes + c.slab_bytes;
}

void set_memory_limit(int64_t bytes) {
  if (bytes < 0) throw ValueError("set_memory_limit", fmt::format("needs bytes ≥ 0; got {}", bytes));
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.limit = bytes;
}

int64_t trim_memory() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  return trim_locked(c);
}

std::string memory_snapshot_json() {
  const MemoryStats s = memory_stats();
  Central& c = central();
  std::lock_guard lock(c.mutex);
  std::string json = fmt::format("{{\"live\":{},\"cached\":{},\"peak\":{},\"blocks\":[", s.live, s.cached, s.peak);
  bool first = true;
  for (LargeBlock* b = c.live_large; b; b = b->next) {
    if (b->bytes <= 65536) continue;
    json += fmt::format("{}{{\"bytes\":{},\"op\":\"{}\",\"module\":\"{}\"}}", first ? "" : ",", b->bytes,
                        b->op ? b->op : "", b->module ? module_path(b->module) : "");
    first = false;
  }
  return json + "]}";
}

}  // namespace cutaway
