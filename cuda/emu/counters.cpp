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

void count_global(const Request& r, LineCounters& c) {
  std::set<uint64_t> sectors, segments, addresses;
  for (int l = 0; l < 32; ++l) {
    if (((r.mask >> l) & 1u) == 0) continue;
    const uint64_t last = r.address[l] + uint64_t(r.bytes) - 1;
    for (uint64_t s = r.address[l] / 32; s <= last / 32; ++s) sectors.insert(s);
    for (uint64_t s = r.address[l] / 128; s <= last / 128; ++s) segments.insert(s);
    addresses.insert(r.address[l]);
  }
  c.sectors += int64_t(sectors.size());
  c.segments += int64_t(segments.size());
  c.useful_bytes += int64_t(addresses.size()) * r.bytes;
  if (r.kind == AccessKind::atomic) {
    c.contention += int64_t(std::popcount(r.mask)) - int64_t(addresses.size());
  }
}

// Lanes are served 32, 16 or 8 at a time for words of 4, 8 and 16 bytes; in one pass each bank
// gives one word of 4 bytes, to any number of lanes.
void count_shared(const Request& r, LineCounters& c) {
  const int together = r.bytes <= 4 ? 32 : r.bytes == 8 ? 16 : 8;
  std::set<uint64_t> addresses;
  for (int first = 0; first < 32; first += together) {
    std::map<uint64_t, std::set<uint64_t>> words;  // of each bank
    for (int l = first; l < first + together; ++l) {
      if (((r.mask >> l) & 1u) == 0) continue;
      addresses.insert(r.address[l]);
      for (uint64_t b = 0; b < uint64_t(r.bytes); b += 4) {
        const uint64_t word = (r.address[l] + b) / 4;
        words[word % 32].insert(word);
      }
    }
    size_t passes = 0;
    for (const auto& [bank, list] : words) passes = std::max(passes, list.size());
    c.wavefronts += int64_t(passes);
    c.conflicts += passes > 0 ? int64_t(passes) - 1 : 0;
  }
  c.useful_bytes += int64_t(addresses.size()) * r.bytes;
  if (r.kind == AccessKind::atomic) {
    c.contention += int64_t(std::popcount(r.mask)) - int64_t(addresses.size());
  }
}

}  // namespace

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
    site.requests.push_back({at, space, kind, bytes, 0, {}, int(counters_.barriers)});
  }
  Request& r = site.requests[visit];
  r.mask |= 1u << lane;
  r.address[lane] = address;
}

void Collector::flush() {
  for (auto& warp : warps_) {
    for (auto& [key, site] : warp) {
      LineCounters& c = counters_.lines[site.line];
      for (const Request& r : site.requests) {
        ++c.requests;
        c.lanes += std::popcount(r.mask);
        if (r.space == Space::global) {
          count_global(r, c);
        } else {
          count_shared(r, c);
        }
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
