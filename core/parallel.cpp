#include <cutaway/core/parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <omp.h>
#include <string>

#include <cutaway/core/context.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

constexpr int kMostThreads = 256;

// Cores that a Linux container may use, by the quota of its control group; 0 when there is none.
int cores_of_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return std::max(1, int(quota / period + 0.5));
}

int threads_from_environment() {
  for (const char* name : {"CUTAWAY_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    const int n = text ? std::atoi(text) : 0;
    if (n > 0) return std::min(n, kMostThreads);
  }
  const int cores = std::clamp(omp_get_num_procs(), 1, kMostThreads);
  const int quota = cores_of_quota();
  return quota > 0 ? std::min(cores, quota) : cores;
}

std::atomic<int> threads{0};
std::atomic<bool> busy{false};  // one team at a time in the process
constinit thread_local bool inside = false;

// The exception of the lowest chunk that failed, whatever the number of threads.
struct Failure {
  std::mutex mutex;
  std::atomic<int64_t> chunk;
  std::exception_ptr error;

  explicit Failure(int64_t chunks) : chunk(chunks) {}
  void note(int64_t i) noexcept {
    std::lock_guard lock(mutex);
    if (i >= chunk.load()) return;
    chunk = i;
    error = std::current_exception();
  }
};

// What the calling thread is doing, for the time of a region, on a thread of its team.
class TeamMember {
 public:
  explicit TeamMember(const Context& caller) : kept_(context()) {
    context() = caller;
    inside = true;
  }
  ~TeamMember() {
    context() = kept_;
    inside = false;
  }

 private:
  Context kept_;
};

}  // namespace

int num_threads() {
  int n = threads.load(std::memory_order_relaxed);
  if (n == 0) [[unlikely]] {
    n = threads_from_environment();
    set_num_threads(n);
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 1) {
    throw ValueError("set_num_threads", "needs at least 1 thread; got " + std::to_string(n));
  }
  threads.store(std::min(n, kMostThreads), std::memory_order_relaxed);
}

bool in_parallel_region() { return inside || omp_in_parallel(); }

CallingThreadScope::CallingThreadScope() : outside_(omp_in_parallel() ? 1 : omp_get_max_threads()) {
  if (outside_ > 1) omp_set_num_threads(1);
}
CallingThreadScope::~CallingThreadScope() {
  if (outside_ > 1) omp_set_num_threads(outside_);
}

void detail::run_parallel(int64_t chunks, void (*body)(void*, int64_t), void* data) {
  const int team = int(std::min<int64_t>(num_threads(), chunks));
  if (team <= 1 || in_parallel_region() || busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t i = 0; i < chunks; ++i) body(data, i);
    return;
  }
  Failure failure(chunks);
  const Context caller = context();
#pragma omp parallel num_threads(team)
  {
    const TeamMember member(caller);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < chunks; ++i) {
      if (i > failure.chunk.load(std::memory_order_relaxed)) continue;
      try {
        body(data, i);
      } catch (...) {
        failure.note(i);
      }
    }
  }
  busy.store(false, std::memory_order_release);
  if (failure.error) std::rethrow_exception(failure.error);
}

}  // namespace cutaway
