#include <cutaway/cuda/emu/memory.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/cuda/emu/arena.h>
#include <cutaway/cuda/emu/graph.h>
#include <cutaway/cuda/emu/options.h>
#include <cutaway/cuda/emu/shadow.h>

namespace cutaway::cuda::emu {
namespace {

constexpr unsigned char kPoison = 0xff, kZone = 0xa5;
constexpr size_t kQuarantineBlocks = 64;
constexpr int64_t kQuarantineBytes = int64_t(4) << 20;

struct Entry {
  int64_t bytes = 0;
  int64_t number = 0;
  const char* op = nullptr;
  bool freed = false;
  std::unique_ptr<Shadow> shadow;
};

int64_t physical_memory() {
  return int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
}
int64_t available_memory() {
  return int64_t(sysconf(_SC_AVPHYS_PAGES)) * int64_t(sysconf(_SC_PAGESIZE));
}

// First byte of [p, p + n) that is not `value`, or -1.
int64_t first_other(const char* p, int64_t n, unsigned char value) {
  for (int64_t i = 0; i < n; ++i) {
    if (static_cast<unsigned char>(p[i]) != value) return i;
  }
  return -1;
}

int64_t piece_bytes(int64_t bytes) {
  return kRedZone + (bytes + Arena::kStep - 1) / Arena::kStep * Arena::kStep + kRedZone;
}

class Memory {
 public:
  Memory() {
    const char* wanted = std::getenv("CUTAWAY_EMU_GUARD");
    guard_ = wanted && std::strcmp(wanted, "1") == 0;
    arena_.reserve(physical_memory() / 2);
    protect(false);
  }

  void* allocate(int64_t bytes) {
    std::lock_guard lock(mutex_);
    char* piece = nullptr;
    const int64_t most = std::min(arena_.capacity(), available_memory());
    if (bytes >= 0 && bytes < most - 3 * kRedZone) {
      piece = arena_.take(piece_bytes(bytes));
      while (!piece && !quarantine_.empty()) {
        evict();
        piece = arena_.take(piece_bytes(bytes));
      }
    }
    if (!piece) throw_full(bytes);
    char* data = piece + kRedZone;
    try {
      blocks_.emplace(data, Entry{bytes, ++stats_.allocations, context().op, false,
                                  options().check ? std::make_unique<Shadow>(bytes) : nullptr});
    } catch (...) {
      arena_.give(piece, piece_bytes(bytes));
      throw;
    }
    open();
    fill_zones(data, bytes);
    std::memset(data, kPoison, size_t(bytes));
    close();
    stats_.live += bytes;
    stats_.peak = std::max(stats_.peak, stats_.live);
    ++stats_.blocks;
    return data;
  }

  void release(void* data) noexcept {
    if (!data) return;
    std::lock_guard lock(mutex_);
    try {
      const auto at = blocks_.find(static_cast<char*>(data));
      if (at == blocks_.end() || at->second.freed) {
        record(at == blocks_.end() ? "a pointer that is no block was freed"
                                   : name(*at) + " was freed twice");
        return;
      }
      open();
      record(zone_fault(*at));
      fill_zones(static_cast<char*>(data), at->second.bytes);  // said once
      std::memset(data, kPoison, size_t(at->second.bytes));
      close();
      at->second.freed = true;
      stats_.live -= at->second.bytes;
      --stats_.blocks;
      quarantined_ += at->second.bytes;
      quarantine_.push_back(at->first);
      while (quarantine_.size() > kQuarantineBlocks || quarantined_ > kQuarantineBytes) evict();
    } catch (const std::exception&) {
      // No memory for the books: the block stays where it is.
    }
  }

  Block find(const void* p) {
    std::lock_guard lock(mutex_);
    const auto at = locate(p);
    if (at == blocks_.end()) return {};
    return {at->first, at->second.bytes, at->second.freed, at->second.shadow.get()};
  }

  std::string name_of(const void* p) {
    std::lock_guard lock(mutex_);
    const auto at = locate(p);
    return at == blocks_.end() ? "no block of the device" : name(*at);
  }

  void check() {
    std::lock_guard lock(mutex_);
    open();
    for (const auto& block : blocks_) {
      record(zone_fault(block));
      if (block.second.freed) record(use_fault(block));
    }
    close();
    raise_locked();
  }

  void raise() {
    if (!__atomic_load_n(&any_fault_, __ATOMIC_ACQUIRE)) return;
    std::lock_guard lock(mutex_);
    raise_locked();
  }

  Stats stats() {
    std::lock_guard lock(mutex_);
    Stats s = stats_;
    s.capacity = arena_.capacity();
    return s;
  }

  void set_guard(bool on) {
    std::lock_guard lock(access_mutex_);
    guard_ = on;
    mprotect_used(!on || open_ > 0);
  }
  bool guard() {
    std::lock_guard lock(access_mutex_);
    return guard_;
  }

  void open() {
    std::lock_guard lock(access_mutex_);
    if (open_++ == 0 && guard_) mprotect_used(true);
  }
  void close() {
    std::lock_guard lock(access_mutex_);
    if (--open_ == 0 && guard_) mprotect_used(false);
  }

 private:
  using Blocks = std::map<char*, Entry>;

  static std::string name(const Blocks::value_type& block) {
    const Entry& e = block.second;
    return "block #" + std::to_string(e.number) + ", " + std::to_string(e.bytes) + " bytes" +
           (e.op ? std::string(", allocated by ") + e.op : "") + (e.freed ? ", freed" : "");
  }

  [[noreturn, gnu::cold]] void throw_full(int64_t bytes) const {
    throw MemoryError("emu", "no room for " + std::to_string(bytes) + " bytes; " +
                                 std::to_string(stats_.live) + " bytes in " +
                                 std::to_string(stats_.blocks) + " blocks are in use of " +
                                 std::to_string(arena_.capacity()));
  }

  Blocks::iterator locate(const void* p) {
    char* at = static_cast<char*>(const_cast<void*>(p));
    auto next = blocks_.upper_bound(at);
    if (next == blocks_.begin()) return blocks_.end();
    --next;
    return at <= next->first + next->second.bytes ? next : blocks_.end();
  }

  static void fill_zones(char* data, int64_t bytes) {
    std::memset(data - kRedZone, kZone, size_t(kRedZone));
    std::memset(data + bytes, kZone, size_t(piece_bytes(bytes) - kRedZone - bytes));
  }
  // What is wrong with the red zones of a block, or nothing.
  static std::string zone_fault(const Blocks::value_type& block) {
    const auto& [data, entry] = block;
    const int64_t before = first_other(data - kRedZone, kRedZone, kZone);
    if (before >= 0) {
      return name(block) + ": something wrote " + std::to_string(kRedZone - before) +
             " bytes before its begin";
    }
    const int64_t behind = piece_bytes(entry.bytes) - kRedZone - entry.bytes;
    const int64_t after = first_other(data + entry.bytes, behind, kZone);
    if (after < 0) return {};
    return name(block) + ": something wrote " + std::to_string(after) + " bytes behind its end";
  }
  static std::string use_fault(const Blocks::value_type& block) {
    const int64_t at = first_other(block.first, block.second.bytes, kPoison);
    if (at < 0) return {};
    return name(block) + ": something wrote to byte " + std::to_string(at) + " after it was freed";
  }

  // Ends the quarantine of the oldest freed block.
  void evict() {
    const auto at = blocks_.find(quarantine_.front());
    open();
    record(zone_fault(*at));
    record(use_fault(*at));
    close();
    quarantine_.pop_front();
    quarantined_ -= at->second.bytes;
    arena_.give(at->first - kRedZone, piece_bytes(at->second.bytes));
    blocks_.erase(at);
  }

  void record(const std::string& fault) {
    if (fault.empty() || !fault_.empty()) return;
    fault_ = fault;
    __atomic_store_n(&any_fault_, true, __ATOMIC_RELEASE);
  }
  void raise_locked() {
    if (fault_.empty()) return;
    const std::string fault = std::exchange(fault_, {});
    __atomic_store_n(&any_fault_, false, __ATOMIC_RELEASE);
    throw DeviceError("emu", fault, "a kernel or copy before this call wrote out of bounds");
  }

  void protect(bool accessible) {
    if (guard_) mprotect_used(accessible);
  }
  // The whole pages handed out so far; a page that was never handed out needs no guard.
  void mprotect_used(bool accessible) {
    const int64_t page = int64_t(sysconf(_SC_PAGESIZE));
    const int64_t used = arena_.used_end() - arena_.begin();
    const int64_t bytes = std::min(arena_.capacity(), (used + page - 1) / page * page);
    if (bytes == 0) return;
    mprotect(arena_.begin(), size_t(bytes), accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::mutex mutex_;  // of all but the last three members
  Arena arena_;
  Blocks blocks_;
  std::deque<char*> quarantine_;  // oldest first
  int64_t quarantined_ = 0;       // bytes
  Stats stats_;
  std::string fault_;  // the first one since the last report
  bool any_fault_ = false;
  std::mutex access_mutex_;
  int64_t open_ = 0;
  bool guard_ = false;
};

// Never destroyed: tensors may outlive every static object.
Memory& memory() {
  alignas(Memory) static unsigned char place[sizeof(Memory)];
  static Memory* const m = new (place) Memory;
  return *m;
}

}  // namespace

void* allocate(int64_t bytes) {
  void* block = memory().allocate(bytes);
  if (recording()) note_graph_block(block);
  return block;
}
void release(void* data) noexcept {
  try {
    if (data && keep_for_graph(data)) return;
  } catch (const std::exception&) {
    return;  // no memory for the books of a graph: the block stays where it is
  }
  memory().release(data);
}
Block find_block(const void* p) { return memory().find(p); }
std::string block_name(const void* p) { return memory().name_of(p); }

void require_range(const char* op, const void* p, int64_t bytes) {
  const Block b = find_block(p);
  const char* at = static_cast<const char*>(p);
  if (b.begin && !b.freed && bytes >= 0 && bytes <= b.begin + b.bytes - at) return;
  throw DeviceError(op, "needs " + std::to_string(bytes) + " bytes in one live block of emu; got " +
                            (b.begin ? std::to_string(at - b.begin) + " bytes into " : "") +
                            block_name(p));
}

void copy_in(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  require_range("copy_from_host", to, bytes);
  if (recording()) {
    const auto* begin = static_cast<const char*>(from);
    return record([to, kept = std::vector<char>(begin, begin + bytes)] {
      copy_in(to, kept.data(), int64_t(kept.size()));
    });
  }
  const Block b = find_block(to);
  const Access access;
  std::memcpy(to, from, size_t(bytes));
  if (b.shadow) b.shadow->set_written(static_cast<char*>(to) - b.begin, bytes);
}
void copy_out(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  refuse_recording("a copy to the host");
  require_range("copy_to_host", from, bytes);
  const Access access;
  std::memcpy(to, from, size_t(bytes));
}
void copy_within(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  require_range("copy", to, bytes);
  require_range("copy", from, bytes);
  if (recording()) return record([=] { copy_within(to, from, bytes); });
  const Block target = find_block(to), source = find_block(from);
  const Access access;
  std::memmove(to, from, size_t(bytes));
  if (!target.shadow) return;
  const int64_t at = static_cast<char*>(to) - target.begin;
  if (source.shadow) {
    target.shadow->copy_written(at, *source.shadow, static_cast<const char*>(from) - source.begin,
                                bytes);
  } else {
    target.shadow->set_written(at, bytes);
  }
}

void check_red_zones() { memory().check(); }
void raise_faults() { memory().raise(); }
Stats stats() { return memory().stats(); }
void set_guard(bool on) { memory().set_guard(on); }
bool guard() { return memory().guard(); }

Access::Access() { memory().open(); }
Access::~Access() { memory().close(); }

}  // namespace cutaway::cuda::emu
