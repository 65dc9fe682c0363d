#include <cutaway/cuda/emu/block.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <cutaway/core/parallel.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/fiber.h>
#include <cutaway/cuda/emu/limits.h>
#include <cutaway/cuda/emu/memory.h>
#include <cutaway/cuda/emu/options.h>

namespace cutaway::cuda::emu {

thread_local Coordinates coordinates;
thread_local bool detail::watch = false;

namespace {

constexpr int kWarp = 32;

enum class State : uint8_t { ready, in_warp, in_block, done };

struct Copy {
  const Region* to;
  void* target;
  const void* source;
  int bytes;
  std::source_location at;
};

struct Lane {
  Fiber fiber;
  State state = State::done;
  Vote vote = Vote::none;
  bool predicate = false;
  const WarpOperation* operation = nullptr;
  uint32_t mask = 0;
  void* part = nullptr;
  std::source_location at;
  uint32_t warp_epoch = 0;
  Dim3 thread;
  std::vector<Copy> copies;              // not committed
  std::deque<std::vector<Copy>> groups;  // committed, oldest first
};

struct SharedArray {
  std::source_location at;
  Region region;
};

bool same_line(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}
// "0-15, 17"
std::string ranges(const std::vector<int>& sorted) {
  std::string text;
  for (size_t i = 0; i < sorted.size();) {
    size_t j = i;
    while (j + 1 < sorted.size() && sorted[j + 1] == sorted[j] + 1) ++j;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", sorted[i]);
    if (j > i) text += fmt::format("-{}", sorted[j]);
    i = j + 1;
  }
  return text;
}

// One launch, shared by the OS threads that run its blocks.
struct Grid {
  const Launch& launch;
  void (*body)(void*);
  void* data;
  Options options;
  uint64_t run;
  Collector* collector;
};

// Runs blocks one after the other on the calling OS thread.
class Runner {
 public:
  void run_block(const Grid& grid, int64_t block);

  Lane& lane() { return *current_; }
  int index() const { return index_; }
  const Grid& grid() const { return *grid_; }
  void wait(State state);
  int vote_result = 0;
  const Region* global(const void* address, bool writes);
  const Region* shared(int64_t bytes, int64_t align, const std::source_location& at, bool dynamic);
  void watched(const Region* region, const void* address, int bytes, AccessKind kind,
               const std::source_location& at);
  void finish_copies(size_t pending);

 private:
  static void enter(void* runner);
  void start(const Grid& grid, int64_t block);
  void order_threads(int64_t block);
  void run_flat();
  void run_fibers();
  bool run_warp(int warp);
  bool complete_warp(int warp);
  bool release_barrier();
  void step(int i);
  [[noreturn]] void report_stuck();
  Stamp stamp(const std::source_location& at) const;
  bool live(int i) const { return i < threads_ && lanes_[size_t(i)].state != State::done; }

  const Grid* grid_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<int> order_;  // of threads: warp by warp
  int threads_ = 0, alive_ = 0;
  Lane* current_ = nullptr;
  int index_ = 0;  // of the current lane
  uint32_t block_ = 0, block_epoch_ = 0;
  std::vector<uint32_t> warp_epochs_;
  std::exception_ptr error_;
  std::deque<Region> globals_;
  uint64_t globals_of_ = 0;  // the launch they belong to
  std::unique_ptr<char[]> shared_;
  int64_t shared_used_ = 0;
  std::deque<SharedArray> arrays_;
  std::optional<Shadow> shared_shadow_;
  uint64_t shared_run_ = 0;
};

thread_local std::unique_ptr<Runner> runner_of_thread;
thread_local Runner* running = nullptr;

Runner& here() { return *running; }

void Runner::start(const Grid& grid, int64_t block) {
  grid_ = &grid;
  const Dim3 g = grid.launch.grid, b = grid.launch.block;
  threads_ = int(b.x * b.y * b.z);
  if (lanes_.size() < size_t(threads_)) lanes_.resize(size_t(threads_));
  alive_ = threads_;
  block_ = uint32_t(block);
  block_epoch_ = 0;
  warp_epochs_.assign(size_t((threads_ + kWarp - 1) / kWarp), 0);
  error_ = nullptr;
  coordinates.block_size = b;
  coordinates.grid_size = g;
  coordinates.block = {unsigned(block % g.x), unsigned(block / g.x % g.y),
                       unsigned(block / g.x / g.y)};
  if (globals_of_ != grid.run) globals_.clear();
  globals_of_ = grid.run;
  arrays_.clear();
  shared_used_ = 0;
  ++shared_run_;
  for (int i = 0; i < threads_; ++i) {
    Lane& lane = lanes_[size_t(i)];
    lane.state = State::ready;
    lane.warp_epoch = 0;
    lane.thread = {unsigned(i) % b.x, unsigned(i) / b.x % b.y, unsigned(i) / b.x / b.y};
    lane.copies.clear();
    lane.groups.clear();
  }
  order_threads(block);
}

void Runner::order_threads(int64_t block) {
  const Order order = grid_->options.order;
  order_.resize(size_t(threads_));
  std::iota(order_.begin(), order_.end(), 0);
  if (order == Order::reverse) std::reverse(order_.begin(), order_.end());
  if (order != Order::shuffled) return;
  std::mt19937_64 random(grid_->options.seed ^ (uint64_t(block) * 0x9e3779b97f4a7c15u));
  std::vector<int> warps(warp_epochs_.size());
  std::iota(warps.begin(), warps.end(), 0);
  std::shuffle(warps.begin(), warps.end(), random);
  order_.clear();
  for (int w : warps) {
    const auto first = order_.size();
    for (int i = w * kWarp; i < std::min(threads_, (w + 1) * kWarp); ++i) order_.push_back(i);
    std::shuffle(order_.begin() + int64_t(first), order_.end(), random);
  }
}

void Runner::run_block(const Grid& grid, int64_t block) {
  start(grid, block);
  running = this;
  detail::watch = grid.options.check || grid.options.count;
  struct Leave {
    ~Leave() {
      running = nullptr;
      detail::watch = false;
    }
  } leave;
  if (grid.launch.sync == Sync::none) {
    run_flat();
  } else {
    run_fibers();
  }
  if (grid.collector) grid.collector->end_block();
}

void Runner::run_flat() {
  for (int i : order_) {
    current_ = &lanes_[size_t(i)];
    index_ = i;
    coordinates.thread = current_->thread;
    grid_->body(grid_->data);
  }
}

void Runner::enter(void* self) {
  auto& runner = *static_cast<Runner*>(self);
  try {
    runner.grid_->body(runner.grid_->data);
    if (!runner.current_->copies.empty() || !runner.current_->groups.empty()) {
      const auto& lane = *runner.current_;
      fail(FaultKind::pending_copy,
           lane.groups.empty() ? lane.copies.front().at : lane.groups.front().front().at,
           "the kernel ended before this asynchronous copy was waited for",
           "call copy_async_wait<0>() before the data are used");
    }
  } catch (...) {
    if (!runner.error_) runner.error_ = std::current_exception();
  }
  runner.current_->state = State::done;
  --runner.alive_;
}

void Runner::step(int i) {
  current_ = &lanes_[size_t(i)];
  index_ = i;
  coordinates.thread = current_->thread;
  current_->fiber.resume();
  if (error_) std::rethrow_exception(error_);
}

void Runner::run_fibers() {
  for (int i = 0; i < threads_; ++i) lanes_[size_t(i)].fiber.prepare(&Runner::enter, this);
  while (alive_ > 0) {
    bool moved = false;
    for (size_t i = 0; i < order_.size(); i += 1) {
      // order_ holds the lanes of a warp together.
      if (i == 0 || order_[i] / kWarp != order_[i - 1] / kWarp)
        moved |= run_warp(order_[i] / kWarp);
    }
    if (alive_ > 0 && !release_barrier() && !moved) report_stuck();
  }
}

// Runs the warp until every lane waits for other warps or has ended.
bool Runner::run_warp(int warp) {
  bool moved = false;
  const auto first =
      std::find_if(order_.begin(), order_.end(), [&](int i) { return i / kWarp == warp; });
  for (bool again = true; again;) {
    for (auto i = first; i != order_.end() && *i / kWarp == warp; ++i) {
      if (lanes_[size_t(*i)].state != State::ready) continue;
      moved = true;
      step(*i);
    }
    again = complete_warp(warp);
  }
  return moved;
}

// Completes every warp operation all of whose live lanes have arrived.
bool Runner::complete_warp(int warp) {
  bool any = false;
  const int base = warp * kWarp;
  for (int l = 0; l < kWarp; ++l) {
    if (!live(base + l) || lanes_[size_t(base + l)].state != State::in_warp) continue;
    const Lane& first = lanes_[size_t(base + l)];
    const uint32_t mask = first.mask;
    const WarpOperation& operation = *first.operation;
    void* parts[kWarp] = {};
    bool all = true;
    for (int k = 0; k < kWarp && all; ++k) {
      if (((mask >> k) & 1u) == 0 || !live(base + k)) continue;
      const Lane& lane = lanes_[size_t(base + k)];
      all = lane.state == State::in_warp && lane.operation == &operation && lane.mask == mask &&
            same_line(lane.at, first.at);
      parts[k] = lane.part;
    }
    if (!all) continue;
    if (grid_->collector) grid_->collector->warp_meets();
    operation.complete(parts, mask);
    const uint32_t epoch = operation.orders_memory ? ++warp_epochs_[size_t(warp)] : 0;
    for (int k = 0; k < kWarp; ++k) {
      if (!parts[k]) continue;
      Lane& lane = lanes_[size_t(base + k)];
      lane.state = State::ready;
      if (operation.orders_memory) lane.warp_epoch = epoch;
    }
    any = true;
  }
  return any;
}

bool Runner::release_barrier() {
  const Lane* first = nullptr;
  for (int i = 0; i < threads_; ++i) {
    const Lane& lane = lanes_[size_t(i)];
    if (lane.state == State::done) continue;
    if (lane.state != State::in_block) return false;
    if (!first) first = &lane;
    if (!same_line(lane.at, first->at)) report_stuck();
  }
  if (!first) return false;
  int count = 0, present = 0;
  for (int i = 0; i < threads_; ++i) {
    Lane& lane = lanes_[size_t(i)];
    if (lane.state == State::done) continue;
    ++present;
    count += lane.predicate ? 1 : 0;
    lane.state = State::ready;
  }
  vote_result = first->vote == Vote::any   ? int(count > 0)
                : first->vote == Vote::all ? int(count == present)
                                           : count;
  ++block_epoch_;
  if (grid_->collector) grid_->collector->barrier();
  return true;
}

// No lane can go on: says who waits where.
void Runner::report_stuck() {
  struct Group {
    State state;
    const Lane* lane;
    std::vector<int> members;
  };
  std::vector<Group> groups;
  for (int i = 0; i < threads_; ++i) {
    const Lane& lane = lanes_[size_t(i)];
    if (lane.state == State::done) continue;
    auto g = std::find_if(groups.begin(), groups.end(), [&](const Group& x) {
      return x.state == lane.state && same_line(x.lane->at, lane.at) && x.lane->mask == lane.mask;
    });
    if (g == groups.end()) g = groups.insert(g, {lane.state, &lane, {}});
    g->members.push_back(i);
  }
  std::string text;
  const Group* culprit = &groups.front();
  for (const Group& g : groups) {
    if (g.state == State::in_warp && culprit->state != State::in_warp) culprit = &g;
    const std::string what =
        g.state == State::in_warp
            ? fmt::format("{} with mask {:#010x}", g.lane->operation->name, g.lane->mask)
            : std::string("__syncthreads");
    text += fmt::format("{}threads {} wait in {} at {}", text.empty() ? "" : "; ",
                        ranges(g.members), what, line_of(g.lane->at));
  }
  if (alive_ < threads_) text += fmt::format("; {} threads have ended", threads_ - alive_);
  if (culprit->state == State::in_warp) {
    throw KernelFault(grid_->launch.name, FaultKind::divergent_warp, culprit->lane->at, text,
                      "every lane that a mask names must reach the same operation, or have ended");
  }
  throw KernelFault(grid_->launch.name, FaultKind::divergent_barrier, culprit->lane->at, text,
                    "all threads of a block must reach the same barrier");
}

void Runner::wait(State state) {
  current_->state = state;
  current_->fiber.suspend();
}

const Region* Runner::global(const void* address, bool writes) {
  if (!address) return &kNowhere;
  const auto* at = static_cast<const char*>(address);
  for (const Region& r : globals_) {
    if (at >= r.begin && at < r.begin + std::max<int64_t>(r.bytes, 1)) return &r;
  }
  const Block found = find_block(address);
  if (!found.begin || found.freed) return &kNowhere;
  // Without checks nobody notes what is written: all of it counts as written from here on.
  if (writes && found.shadow && !grid_->options.check) found.shadow->set_written(0, found.bytes);
  globals_.push_back({found.begin, found.bytes, Space::global, found.shadow});
  return &globals_.back();
}

const Region* Runner::shared(int64_t bytes, int64_t align, const std::source_location& at,
                             bool dynamic) {
  for (const SharedArray& a : arrays_) {
    if (same_line(a.at, at)) return &a.region;
  }
  if (!shared_) shared_ = std::make_unique<char[]>(size_t(kShared) + 128);
  if (!shared_shadow_) shared_shadow_.emplace(kShared);
  align = std::max<int64_t>(align, 16);
  const int64_t begin = (shared_used_ + align - 1) / align * align;
  const int64_t limit = dynamic ? kShared : kStaticShared + grid_->launch.shared;
  if (begin + bytes > limit) {
    fail(FaultKind::bad_launch, at,
         fmt::format("shared memory of {} bytes goes beyond the {} bytes of a block", begin + bytes,
                     limit),
         "use smaller tiles, or dynamic shared memory");
  }
  shared_used_ = begin + bytes;
  char* base = shared_.get() + (128 - reinterpret_cast<uintptr_t>(shared_.get()) % 128) % 128;
  std::memset(base + begin, 0xff, size_t(bytes));
  if (grid_->options.check) shared_shadow_->set_written(begin, bytes, false);
  arrays_.push_back({at, Region{base + begin, bytes, Space::shared, &*shared_shadow_}});
  return &arrays_.back().region;
}

Stamp Runner::stamp(const std::source_location& at) const {
  Stamp s;
  s.run = grid_->run;
  s.block = block_;
  s.thread = uint16_t(index_);
  s.block_epoch = block_epoch_;
  s.warp_epoch = current_->warp_epoch;
  s.at = at;
  return s;
}

void Runner::watched(const Region* region, const void* address, int bytes, AccessKind kind,
                     const std::source_location& at) {
  if (grid_->collector) {
    // As if every buffer began on a line of the cache, which it does on a GPU.
    const auto begin = reinterpret_cast<uintptr_t>(region->begin);
    const auto place = reinterpret_cast<uintptr_t>(address) - begin + (begin & ~uintptr_t{255});
    grid_->collector->access(index_, region->space, place, bytes, kind, at);
  }
  if (!grid_->options.check || !region->shadow) return;
  const char* origin = region->begin;
  Stamp me = stamp(at);
  if (region->space == Space::shared) {
    origin = shared_.get() + (128 - reinterpret_cast<uintptr_t>(shared_.get()) % 128) % 128;
    me.run = shared_run_;
  }
  const int64_t offset = static_cast<const char*>(address) - origin;
  const char* where = region->space == Space::shared ? "shared" : "global";
  if (kind != AccessKind::write && !region->shadow->written(offset, bytes)) {
    fail(FaultKind::uninitialized, at,
         fmt::format("thread {} of block {} reads {} memory that nothing has written, {} bytes at "
                     "byte {} of {}",
                     index_, block_, where, bytes,
                     static_cast<const char*>(address) - region->begin, region->bytes),
         "write it first, and put a barrier between the write and the read");
  }
  if (const Stamp* other = region->shadow->touch(offset, bytes, kind, me)) {
    throw KernelFault(
        grid_->launch.name, FaultKind::race, at,
        fmt::format("thread {} of block {} {} {} memory that thread {} of block {} uses at {}, and "
                    "nothing orders the two",
                    index_, block_, kind == AccessKind::read ? "reads" : "writes", where,
                    other->thread, other->block, line_of(other->at)),
        "put a barrier between them, use an atomic, or give each thread its own place",
        int(other->at.line()));
  }
  if (kind != AccessKind::read) region->shadow->set_written(offset, bytes);
}

void Runner::finish_copies(size_t pending) {
  auto& groups = current_->groups;
  while (groups.size() > pending) {
    for (const Copy& c : groups.front()) {
      touch(c.to, c.target, c.bytes, AccessKind::write, c.at);
      std::memcpy(c.target, c.source, size_t(c.bytes));
    }
    groups.pop_front();
  }
}

}  // namespace

void fail(FaultKind kind, const std::source_location& at, const std::string& what,
          const char* hint) {
  throw KernelFault(here().grid().launch.name, kind, at, what, hint);
}

void detail::bad_access(const Region* region, const void* address, int bytes, AccessKind kind,
                        const std::source_location& at) {
  const char* verb = kind == AccessKind::read ? "reads" : "writes";
  const int thread = here().index();
  const auto& b = coordinates.block;
  const std::string who = fmt::format("thread {} of block ({}, {}, {})", thread, b.x, b.y, b.z);
  if (!region->begin) {
    fail(FaultKind::out_of_bounds, at,
         fmt::format("{} {} through {}", who, verb,
                     address ? "a pointer to memory that is not the device's" : "a null pointer"),
         "kernels see buffers of their device only");
  }
  const auto offset = static_cast<const char*>(address) - region->begin;
  if (offset < 0 || offset + bytes > region->bytes) {
    fail(FaultKind::out_of_bounds, at,
         fmt::format("{} {} {} bytes at byte {} of {} of {} bytes", who, verb, bytes, offset,
                     region->space == Space::shared ? "a shared array" : "a buffer", region->bytes),
         "check the index against the size");
  }
  fail(FaultKind::misaligned, at,
       fmt::format("{} {} {} bytes at once at byte {}, which is no multiple of {}", who, verb,
                   bytes, offset, bytes),
       "align the address, or use narrower accesses");
}

void detail::watched_access(const Region* region, const void* address, int bytes, AccessKind kind,
                            const std::source_location& at) {
  here().watched(region, address, bytes, kind, at);
}

void join_warp(const WarpOperation& operation, uint32_t mask, void* part,
               const std::source_location& at) {
  Runner& r = here();
  if (r.grid().launch.sync == Sync::none) {
    fail(FaultKind::undeclared_sync, at,
         fmt::format("{} in a kernel that was launched as free of synchronisation", operation.name),
         "launch it with Sync::block");
  }
  if (((mask >> lane_index()) & 1u) == 0) {
    fail(FaultKind::bad_mask, at,
         fmt::format("lane {} calls {} with mask {:#010x}, which does not name it", lane_index(),
                     operation.name, mask),
         "a lane must be in the mask it passes");
  }
  Lane& lane = r.lane();
  lane.operation = &operation;
  lane.mask = mask;
  lane.part = part;
  lane.at = at;
  r.wait(State::in_warp);
}

int join_block(Vote vote, bool predicate, const std::source_location& at) {
  Runner& r = here();
  if (r.grid().launch.sync == Sync::none) {
    fail(FaultKind::undeclared_sync, at,
         "__syncthreads in a kernel that was launched as free of synchronisation",
         "launch it with Sync::block");
  }
  Lane& lane = r.lane();
  lane.vote = vote;
  lane.predicate = predicate;
  lane.mask = 0;
  lane.at = at;
  r.wait(State::in_block);
  return r.vote_result;
}

const Region* global_region(const void* address, bool writes) {
  return here().global(address, writes);
}
const Region* shared_region(int64_t bytes, int64_t align, const std::source_location& at) {
  return here().shared(bytes, align, at, false);
}
const Region* dynamic_shared_region(const std::source_location& at) {
  return here().shared(here().grid().launch.shared, 128, at, true);
}

void start_copy(const Region* to, void* target, const Region* from, const void* source, int bytes,
                const std::source_location& at) {
  touch(from, source, bytes, AccessKind::read, at);
  here().lane().copies.push_back({to, target, source, bytes, at});
}
void commit_copies() {
  Lane& lane = here().lane();
  lane.groups.push_back(std::move(lane.copies));
  lane.copies.clear();
}
void wait_copies(int pending) { here().finish_copies(size_t(pending)); }

int lane_index() { return here().index() % kWarp; }

void run_grid(const Launch& launch, void (*body)(void*), void* data) {
  static std::atomic<uint64_t> runs{0};
  check_limits(launch);
  raise_faults();
  const Access access;
  const Options o = options();
  const int64_t blocks = int64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  std::optional<Collector> collector;
  if (o.count)
    collector.emplace(launch.name, int(launch.block.x * launch.block.y * launch.block.z));
  const Grid grid{launch, body, data, o, ++runs, collector ? &*collector : nullptr};
  const auto run = [&](int64_t position) {
    if (running) {
      throw KernelFault(launch.name, FaultKind::bad_launch, launch.at,
                        "a launch from inside a kernel", "launch from the host");
    }
    if (!runner_of_thread) runner_of_thread = std::make_unique<Runner>();
    runner_of_thread->run_block(grid, block_at(position, blocks, o));
  };
  if (o.check || o.count || blocks == 1) {
    for (int64_t i = 0; i < blocks; ++i) run(i);
  } else {
    parallel_chunks(blocks, run);
  }
  if (collector) publish(std::move(*collector));
}

}  // namespace cutaway::cuda::emu
