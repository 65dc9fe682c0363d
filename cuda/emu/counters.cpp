#include <cutaway/cuda/emu/counters.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace cutaway::cuda::emu {
namespace {

constexpr size_t kMaxRequests = 4096;  // kept for pictures

std::mutex mutex;
std::vector<Collected> collected;

// The different units of `size` bytes that a request touches.
std::set<uint64_t> units(const Request& r, uint64_t size) {
  std::set<uint64_t> list;
  for (int l = 0; l < 32; ++l) {
    if (((r.mask >> l) & 1u) == 0) continue;
    const uint64_t last = r.address[l] + uint64_t(r.bytes) - 1;
    for (uint64_t u = r.address[l] / size; u <= last / size; ++u) list.insert(u);
  }
  return list;
}

int64_t addresses(const Request& r) {
  std::set<uint64_t> list;
  for (int l = 0; l < 32; ++l) {
    if ((r.mask >> l) & 1u) list.insert(r.address[l]);
  }
  return int64_t(list.size());
}

// Lanes are served 32, 16 or 8 at a time for words of 4, 8 and 16 bytes; in one pass each bank
// gives one word of 4 bytes, to any number of lanes.
struct Passes {
  int all = 0, avoidable = 0;
};
Passes passes_of(const Request& r) {
  const int together = r.bytes <= 4 ? 32 : r.bytes == 8 ? 16 : 8;
  Passes sum;
  for (int first = 0; first < 32; first += together) {
    std::map<uint64_t, std::set<uint64_t>> words;  // of each bank
    for (int l = first; l < first + together; ++l) {
      if (((r.mask >> l) & 1u) == 0) continue;
      for (uint64_t b = 0; b < uint64_t(r.bytes); b += 4) {
        const uint64_t word = (r.address[l] + b) / 4;
        words[word % 32].insert(word);
      }
    }
    size_t passes = 0;
    for (const auto& [bank, list] : words) passes = std::max(passes, list.size());
    sum.all += int(passes);
    sum.avoidable += passes > 0 ? int(passes) - 1 : 0;
  }
  return sum;
}

void count(const Request& r, LineCounters& c) {
  ++c.requests;
  c.lanes += std::popcount(r.mask);
  const int64_t different = addresses(r);
  c.useful_bytes += different * r.bytes;
  if (r.kind == AccessKind::atomic) c.contention += std::popcount(r.mask) - different;
  if (r.space == Space::global) {
    c.sectors += int64_t(units(r, 32).size());
    c.segments += int64_t(units(r, 128).size());
  } else {
    const Passes p = passes_of(r);
    c.wavefronts += p.all;
    c.conflicts += p.avoidable;
  }
}

}  // namespace

int Request::sectors() const { return space == Space::global ? int(units(*this, 32).size()) : 0; }
int Request::wavefronts() const { return space == Space::shared ? passes_of(*this).all : 0; }
int Request::conflicts() const { return space == Space::shared ? passes_of(*this).avoidable : 0; }

int64_t LaunchCounters::bytes_read() const {
  int64_t sum = 0;
  for (const LineCounters& l : lines) {
    if (l.space == Space::global && l.kind != AccessKind::write) sum += 32 * l.sectors;
  }
  return sum;
}
int64_t LaunchCounters::bytes_written() const {
  int64_t sum = 0;
  for (const LineCounters& l : lines) {
    if (l.space == Space::global && l.kind != AccessKind::read) sum += 32 * l.sectors;
  }
  return sum;
}
int64_t LaunchCounters::bank_conflicts() const {
  int64_t sum = 0;
  for (const LineCounters& l : lines) sum += l.conflicts;
  return sum;
}
double LaunchCounters::lane_use() const {
  int64_t lanes = 0, requests = 0;
  for (const LineCounters& l : lines) {
    lanes += l.lanes;
    requests += l.requests;
  }
  return requests == 0 ? 1.0 : double(lanes) / (32.0 * double(requests));
}

Collector::Collector(std::string kernel, int threads) {
  counters_.kernel = std::move(kernel);
  counters_.threads = threads;
  warps_.resize(size_t((threads + 31) / 32));
}

size_t Collector::line_of(Space space, AccessKind kind, const std::source_location& at) {
  auto& lines = counters_.lines;
  const auto known = std::find_if(lines.begin(), lines.end(), [&](const LineCounters& l) {
    return l.kind == kind && l.at.line() == at.line() && l.at.column() == at.column() &&
           std::string_view(l.at.file_name()) == at.file_name();
  });
  if (known != lines.end()) return size_t(known - lines.begin());
  lines.push_back({});
  lines.back().at = at;
  lines.back().space = space;
  lines.back().kind = kind;
  return lines.size() - 1;
}

void Collector::access(int thread, Space space, uint64_t address, int bytes, AccessKind kind,
                       const std::source_location& at) {
  const int lane = thread % 32;
  const Key key{at.file_name(), at.line(), at.column(), kind};
  auto [entry, fresh] = warps_[size_t(thread / 32)].try_emplace(key);
  Site& site = entry->second;
  if (fresh) site.line = line_of(space, kind, at);
  const uint32_t visit = site.visits[lane]++;
  if (site.requests.size() <= visit) {
    site.requests.push_back({at, space, kind, bytes, 0, {}, int(counters_.barriers), order_++});
  }
  Request& r = site.requests[visit];
  r.mask |= 1u << lane;
  r.address[lane] = address;
}

void Collector::flush() {
  for (auto& warp : warps_) {
    for (auto& [key, site] : warp) {
      for (const Request& r : site.requests) {
        count(r, counters_.lines[site.line]);
        const bool first_warp = counters_.blocks == 0 && &warp == &warps_.front();
        if (first_warp && requests_.size() < kMaxRequests) requests_.push_back(r);
      }
    }
    warp.clear();
  }
}

void Collector::barrier() {
  flush();
  ++counters_.barriers;
}

void Collector::end_block() {
  flush();
  if (counters_.blocks == 0) {
    std::sort(requests_.begin(), requests_.end(),
              [](const Request& a, const Request& b) { return a.order < b.order; });
  }
  ++counters_.blocks;
}

void publish(Collector&& c) {
  std::lock_guard lock(mutex);
  collected.push_back({c.counters(), c.requests()});
}

std::vector<Collected> take_collected() {
  std::lock_guard lock(mutex);
  return std::exchange(collected, {});
}

}  // namespace cutaway::cuda::emu
