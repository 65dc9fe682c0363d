#include <cutaway/core/alloc/pool.h>

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <cutaway/core/alloc/heap.h>
#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/core/text.h>
#include <cutaway/core/trace.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUTAWAY_POOLING 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CUTAWAY_POOLING 0
#endif
#ifndef CUTAWAY_POOLING
#define CUTAWAY_POOLING 1
#endif

namespace cutaway {
namespace {

// The sanitizer must see every block as it was asked for: no pooling and no rounding then.
constexpr bool kPooling = CUTAWAY_POOLING;
constexpr int64_t kSmall = 32768;
constexpr int64_t kSlab = 262144;
constexpr int64_t kListed = 65536;  // larger blocks are listed one by one in reports
constexpr int64_t kMost = int64_t(1) << 46;
constexpr int kClasses = 16 + 20;  // steps of 64 up to 1 KB, then four a doubling

constexpr int class_of(int64_t bytes) {
  if (bytes <= 1024) return int((bytes + 63) / 64) - (bytes > 0);
  // 2^doubling < bytes ≤ 2^(doubling + 1), in four steps
  const int doubling = std::bit_width(uint64_t(bytes - 1)) - 1;
  return 16 + (doubling - 10) * 4 + int((bytes - 1 - (int64_t(1) << doubling)) >> (doubling - 2));
}
constexpr int64_t class_bytes(int c) {
  if (c < 16) return (c + 1) * 64;
  const int64_t base = int64_t(1024) << ((c - 16) / 4);
  return base + base / 4 * ((c - 16) % 4 + 1);
}
static_assert(class_of(kSmall) == kClasses - 1 && class_bytes(kClasses - 1) == kSmall);

// A thread takes this many blocks of a class from the shared list at once, and gives so many back
// when it holds more than four times as many: memory freed by another thread than the one that
// allocated it finds its way back.
constexpr int batch_of(int cls) {
  return int(std::clamp<int64_t>(kSmall / class_bytes(cls), 2, 128));
}

struct FreeBlock {
  FreeBlock* next;
};

struct Bin {
  FreeBlock* list = nullptr;
  int32_t count = 0;
};

// Free lists of one thread. The counters are read by memory_stats().
struct ThreadCache {
  Bin bins[kClasses];
  std::atomic<int64_t> live{0};
  std::atomic<int64_t> allocations{0};
  ThreadCache* next = nullptr;

  void count(int64_t bytes, int64_t requests) {
    live.store(live.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    allocations.store(allocations.load(std::memory_order_relaxed) + requests,
                      std::memory_order_relaxed);
  }
};

// Memory and swap of the machine in bytes. The system promises more than it has; a request beyond
// this is an error at once, instead of the end of the process at some later write.
int64_t machine_memory() {
  static const int64_t bytes = [] {
    struct sysinfo s {};
    if (sysinfo(&s) != 0 || s.totalram == 0) return int64_t(1) << 34;
    return int64_t((uint64_t(s.totalram) + s.totalswap) * s.mem_unit);
  }();
  return bytes;
}

struct Central {
  std::mutex mutex;
  FreeBlock* lists[kClasses] = {};
  char* slab = nullptr;
  int64_t slab_left = 0;
  Heap heap{2 * machine_memory()};
  HeapBlock* live_large = nullptr;
  int64_t live_large_bytes = 0;
  int64_t slab_bytes = 0;
  int64_t peak = 0;
  int64_t limit = 0;
  int64_t cache_limit = machine_memory() / 4;
  int64_t large_allocations = 0;
  int64_t from_system = 0;
  ThreadCache* threads = nullptr;
  int64_t other_live = 0;  // small bytes of threads that ended
  int64_t other_allocations = 0;

  void note_peak() { peak = std::max(peak, live_large_bytes + slab_bytes); }
  int64_t small_live() const {
    int64_t sum = other_live;
    for (ThreadCache* t = threads; t; t = t->next) sum += t->live.load(std::memory_order_relaxed);
    return sum;
  }
};
// Never destroyed: tensors in static variables may be freed after any static destructor.
Central& central() {
  static Central* c = new Central;
  return *c;
}

constinit thread_local ThreadCache* cache = nullptr;
constinit thread_local bool cache_dead = false;

void push(FreeBlock*& list, void* p) {
  auto* b = static_cast<FreeBlock*>(p);
  b->next = list;
  list = b;
}

// Gives `n` blocks of a bin to the shared list.
void give_back(Central& c, ThreadCache& t, int cls, int n) {
  Bin& bin = t.bins[cls];
  for (; n > 0 && bin.list; --n, --bin.count) {
    FreeBlock* b = bin.list;
    bin.list = b->next;
    push(c.lists[cls], b);
  }
}

// At the end of a thread its lists go to the shared ones.
struct CacheOwner {
  ~CacheOwner() {
    if (!cache) return;
    Central& c = central();
    std::lock_guard lock(c.mutex);
    for (int i = 0; i < kClasses; ++i) give_back(c, *cache, i, cache->bins[i].count);
    c.other_live += cache->live.load();
    c.other_allocations += cache->allocations.load();
    ThreadCache** link = &c.threads;
    while (*link != cache) link = &(*link)->next;
    *link = cache->next;
    delete cache;
    cache = nullptr;
    cache_dead = true;
  }
};

// Null when the thread is ending, or when there is no memory: the shared lists serve then.
ThreadCache* make_cache() noexcept {
  if (cache_dead) return nullptr;
  thread_local CacheOwner owner;
  (void)&owner;
  cache = new (std::nothrow) ThreadCache;
  if (!cache) return nullptr;
  Central& c = central();
  std::lock_guard lock(c.mutex);
  cache->next = c.threads;
  c.threads = cache;
  return cache;
}

// Live large blocks by op and module, largest sum first.
std::vector<std::pair<int64_t, std::string>> holders(const Central& c) {
  std::map<std::string, int64_t> by_name;
  for (const HeapBlock* b = c.live_large; b; b = b->next) {
    if (b->bytes <= kListed) continue;
    std::string name = b->op ? b->op : "(outside ops)";
    if (b->module) name += " in " + module_path(b->module);
    by_name[name] += b->bytes;
  }
  std::vector<std::pair<int64_t, std::string>> list;
  for (const auto& [name, bytes] : by_name) list.emplace_back(bytes, name);
  std::sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.first > b.first; });
  return list;
}

[[noreturn, gnu::cold]] void throw_out_of_memory(const Central& c, int64_t bytes) {
  std::string text =
      fmt::format("out of memory; got a request for {} ({})", bytes, bytes_text(bytes));
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("\n    {:<20} {}", name, value);
  };
  row("limit", c.limit ? bytes_text(c.limit) : "none");
  row("machine", bytes_text(machine_memory()));
  row("live", bytes_text(c.live_large_bytes + c.small_live()));
  row("cached", bytes_text(c.heap.cached() + c.slab_bytes - c.small_live()));
  row("largest free block", bytes_text(c.heap.largest_free()));
  const auto list = holders(c);
  for (size_t i = 0; i < list.size() && i < 5; ++i)
    row(i ? "" : "held by", bytes_text(list[i].first) + "  " + list[i].second);
  const char* op = context().op;
  throw MemoryError(op ? op : "allocate", text,
                    "use a smaller batch, checkpoint(), or free tensors that are still referenced");
}

// Under the sanitizer each block is one of the system's.
HeapBlock* system_block(int64_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, size_t(bytes) + sizeof(HeapBlock)) != 0) return nullptr;
  HeapBlock* b = new (p) HeapBlock{};
  b->bytes = bytes;
  return b;
}

HeapBlock* take_large(Central& c, int64_t bytes) {
  const int64_t limit = c.limit ? std::min(c.limit, machine_memory()) : machine_memory();
  if (c.live_large_bytes + bytes > limit) throw_out_of_memory(c, bytes);
  const int64_t growth = kPooling ? c.heap.growth(bytes) : bytes;
  c.from_system += growth > 0;
  if (c.live_large_bytes + c.heap.cached() + growth > limit) c.heap.release();
  HeapBlock* b = kPooling ? c.heap.take(bytes) : system_block(bytes);
  if (!b) throw_out_of_memory(c, bytes);
  return b;
}

void* allocate_large(int64_t bytes) {
  Central& c = central();
  std::unique_lock lock(c.mutex);
  HeapBlock* b = take_large(c, bytes);
  b->op = context().op;
  b->module = context().module;
  b->prev = nullptr;
  b->next = c.live_large;
  if (c.live_large) c.live_large->prev = b;
  c.live_large = b;
  c.live_large_bytes += b->bytes;
  ++c.large_allocations;
  c.note_peak();
  if (trace::enabled() && bytes > kSmall) [[unlikely]] {
    const int64_t live = c.live_large_bytes, kept = c.heap.cached();
    lock.unlock();
    trace::memory(b->bytes, live, kept);
  }
  return b + 1;
}

void free_large(void* p) noexcept {
  HeapBlock* b = static_cast<HeapBlock*>(p) - 1;
  const int64_t bytes = b->bytes;
  Central& c = central();
  std::unique_lock lock(c.mutex);
  if (b->prev) b->prev->next = b->next;
  if (b->next) b->next->prev = b->prev;
  if (c.live_large == b) c.live_large = b->next;
  c.live_large_bytes -= bytes;
  if (kPooling) {
    c.heap.give(b, c.heap.cached() + bytes <= c.cache_limit);
  } else {
    std::free(b);
  }
  if (trace::enabled() && bytes > kSmall) [[unlikely]] {
    const int64_t live = c.live_large_bytes, kept = c.heap.cached();
    lock.unlock();
    trace::memory(-bytes, live, kept);
  }
}

// A slab with room for a block of the class; what is left of the old one goes to the shared lists.
void renew_slab(Central& c, int cls) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, kSlab) != 0) {
    c.heap.release();
    if (posix_memalign(&p, 64, kSlab) != 0) throw_out_of_memory(c, class_bytes(cls));
  }
  for (int i = cls; c.slab_left >= class_bytes(0);) {
    while (class_bytes(i) > c.slab_left) --i;
    push(c.lists[i], c.slab);
    c.slab += class_bytes(i);
    c.slab_left -= class_bytes(i);
  }
  c.slab = static_cast<char*>(p);
  c.slab_left = kSlab;
  c.slab_bytes += kSlab;
  ++c.from_system;
  c.note_peak();
}

// One block of a class from the shared list or the slab; null when both are empty.
void* take_shared(Central& c, int cls) {
  if (FreeBlock* b = c.lists[cls]) {
    c.lists[cls] = b->next;
    return b;
  }
  if (c.slab_left < class_bytes(cls)) return nullptr;
  void* p = c.slab;
  c.slab += class_bytes(cls);
  c.slab_left -= class_bytes(cls);
  return p;
}

// The way of pool_allocate when the thread has no block of the class.
[[gnu::noinline]] void* allocate_slow(int64_t bytes) {
  if (bytes < 0 || bytes > kMost) {
    Central& c = central();
    std::lock_guard lock(c.mutex);
    throw_out_of_memory(c, bytes);
  }
  if (bytes > kSmall || !kPooling) return allocate_large(bytes);
  ThreadCache* t = cache ? cache : make_cache();
  const int cls = class_of(bytes);
  Central& c = central();
  std::lock_guard lock(c.mutex);
  void* p = take_shared(c, cls);
  if (!p) {
    renew_slab(c, cls);
    p = take_shared(c, cls);
  }
  if (!t) {
    c.other_live += class_bytes(cls);
    ++c.other_allocations;
    return p;
  }
  t->count(class_bytes(cls), 1);
  Bin& bin = t->bins[cls];
  for (const int batch = batch_of(cls); bin.count + 1 < batch; ++bin.count) {
    void* more = take_shared(c, cls);
    if (!more) break;
    push(bin.list, more);
  }
  return p;
}

// The way of pool_free when the thread has no cache or its bin is full.
[[gnu::noinline]] void free_slow(void* p, int cls) noexcept {
  ThreadCache* t = cache;
  Central& c = central();
  std::lock_guard lock(c.mutex);
  push(c.lists[cls], p);
  if (!t) {
    c.other_live -= class_bytes(cls);
    return;
  }
  t->count(-class_bytes(cls), 0);
  give_back(c, *t, cls, 2 * batch_of(cls));
}

void set_bound(const char* name, int64_t Central::*bound, int64_t bytes) {
  if (bytes < 0) throw ValueError(name, fmt::format("needs bytes ≥ 0; got {}", bytes));
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.*bound = bytes;
  const bool over_limit = c.limit && c.live_large_bytes + c.heap.cached() > c.limit;
  if (over_limit || c.heap.cached() > c.cache_limit) c.heap.release();
}

}  // namespace

void* pool_allocate(int64_t bytes) {
  if (!kPooling || uint64_t(bytes) > uint64_t(kSmall) || !cache) [[unlikely]]
    return allocate_slow(bytes);
  ThreadCache* t = cache;
  const int cls = class_of(bytes);
  Bin& bin = t->bins[cls];
  FreeBlock* b = bin.list;
  if (!b) [[unlikely]]
    return allocate_slow(bytes);
  bin.list = b->next;
  --bin.count;
  t->count(class_bytes(cls), 1);
  return b;
}

void pool_free(void* p, int64_t bytes) noexcept {
  if (bytes > kSmall || !kPooling) [[unlikely]]
    return free_large(p);
  ThreadCache* t = cache;
  const int cls = class_of(bytes);
  if (!t || t->bins[cls].count >= 4 * batch_of(cls)) [[unlikely]]
    return free_slow(p, cls);
  Bin& bin = t->bins[cls];
  push(bin.list, p);
  ++bin.count;
  t->count(-class_bytes(cls), 0);
}

MemoryStats memory_stats() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  MemoryStats s;
  const int64_t small = c.small_live();
  s.allocations = c.large_allocations + c.other_allocations;
  for (ThreadCache* t = c.threads; t; t = t->next)
    s.allocations += t->allocations.load(std::memory_order_relaxed);
  s.live = c.live_large_bytes + small;
  s.cached = c.heap.cached() + c.slab_bytes - small;
  s.peak = c.peak;
  s.largest_free = c.heap.largest_free();
  s.from_system = c.from_system;
  return s;
}

void reset_peak_memory() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  c.peak = c.live_large_bytes + c.slab_bytes;
}

void set_memory_limit(int64_t bytes) { set_bound("set_memory_limit", &Central::limit, bytes); }
void set_memory_cache_limit(int64_t bytes) {
  set_bound("set_memory_cache_limit", &Central::cache_limit, bytes);
}

int64_t trim_memory() {
  Central& c = central();
  std::lock_guard lock(c.mutex);
  return c.heap.release();
}

std::string memory_snapshot_json() {
  const MemoryStats s = memory_stats();
  Central& c = central();
  std::lock_guard lock(c.mutex);
  std::string json =
      fmt::format("{{\"live\":{},\"cached\":{},\"peak\":{},\"blocks\":[", s.live, s.cached, s.peak);
  bool first = true;
  for (HeapBlock* b = c.live_large; b; b = b->next) {
    if (b->bytes <= kListed) continue;
    json += fmt::format("{}{{\"bytes\":{},\"op\":{},\"module\":{}}}", first ? "" : ",", b->bytes,
                        json_quoted(b->op ? b->op : ""), json_quoted(module_path(b->module)));
    first = false;
  }
  return json + "]}";
}

}  // namespace cutaway
