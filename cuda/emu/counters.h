#pragma once
#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <tuple>
#include <vector>

#include <cutaway/cuda/emu/pointer.h>

// What a launch did to memory, as the hardware would see it: lanes of a warp that are at the same
// line for the same time make one request. Sectors are the 32 bytes that travel at least, segments
// the 128 bytes of a cache line; shared memory has 32 banks of 4 bytes.
namespace cutaway::cuda::emu {

struct LineCounters {
  std::source_location at;
  Space space = Space::global;
  AccessKind kind = AccessKind::read;
  int64_t requests = 0;
  int64_t lanes = 0;         // taking part, summed over the requests
  int64_t useful_bytes = 0;  // asked for by lanes, the same address once per request
  int64_t sectors = 0;       // global: 32 bytes each
  int64_t segments = 0;      // global: 128 bytes each
  int64_t wavefronts = 0;    // shared: passes
  int64_t conflicts = 0;     // shared: passes beyond the unavoidable
  int64_t contention = 0;    // atomics: lanes that wait for another at the same address
};

struct LaunchCounters {
  std::string kernel;
  int64_t blocks = 0, threads = 0, barriers = 0, warp_operations = 0;
  std::vector<LineCounters> lines;  // in the order of their first request

  int64_t bytes_read() const;     // global, in sectors
  int64_t bytes_written() const;  // global, atomics too
  int64_t bank_conflicts() const;
  // Lanes that take part in a request, of 32; 1 when there was none.
  double lane_use() const;
};

// One request of warp 0 of the first block, for pictures.
struct Request {
  std::source_location at;
  Space space;
  AccessKind kind;
  int bytes;
  uint32_t mask;
  uint64_t address[32];
  int after_barriers;
  uint64_t order;  // of the requests of the launch, as the first lane made them

  int sectors() const;     // 32 bytes each
  int wavefronts() const;  // passes over the banks of shared memory
  // Passes beyond those that the number of bytes needs.
  int conflicts() const;
};

// Counts one launch.
class Collector {
 public:
  Collector(std::string kernel, int threads);
  void access(int thread, Space space, uint64_t address, int bytes, AccessKind kind,
              const std::source_location& at);
  void barrier();
  void warp_meets() { ++counters_.warp_operations; }
  void end_block();
  const LaunchCounters& counters() const { return counters_; }
  const std::vector<Request>& requests() const { return requests_; }

 private:
  // Requests of one line since the last barrier: the n-th visit of every lane makes the n-th.
  struct Site {
    size_t line = 0;  // in counters_.lines
    uint32_t visits[32] = {};
    std::vector<Request> requests;
  };
  using Key = std::tuple<const char*, uint32_t, uint32_t, AccessKind>;
  size_t line_of(Space space, AccessKind kind, const std::source_location& at);
  void flush();

  LaunchCounters counters_;
  std::vector<std::map<Key, Site>> warps_;
  std::vector<Request> requests_;
  uint64_t order_ = 0;
};

// Collected launches since the last call, oldest first (options().count).
struct Collected {
  LaunchCounters counters;
  std::vector<Request> first_warp;
};
std::vector<Collected> take_collected();
void publish(Collector&& collector);

}  // namespace cutaway::cuda::emu
