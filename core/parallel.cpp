#include <cutaway/core/parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <omp.h>
#include <string>
#include <thread>

#include <cutaway/core/error.h>

namespace cutaway {
namespace {

int threads_from_environment() {
  for (const char* name : {"CUTAWAY_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    const int n = text ? std::atoi(text) : 0;
    if (n > 0) return std::min(n, 256);
  }
  return std::max(1, omp_get_num_procs());
}

std::atomic<int> threads{0};

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
  threads.store(std::min(n, 256), std::memory_order_relaxed);
}

bool in_parallel_region() { return omp_in_parallel(); }

CallingThreadScope::CallingThreadScope() : outside_(omp_in_parallel() ? 1 : omp_get_max_threads()) {
  if (outside_ > 1) omp_set_num_threads(1);
}
CallingThreadScope::~CallingThreadScope() {
  if (outside_ > 1) omp_set_num_threads(outside_);
}

void detail::run_parallel(int64_t chunks, void (*body)(void*, int64_t), void* data) {
  const int team = int(std::min<int64_t>(num_threads(), chunks));
  // One team at a time: a region begun by another thread meanwhile stays on that thread.
  static std::atomic<bool> busy{false};
  if (team <= 1 || omp_in_parallel() || busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t i = 0; i < chunks; ++i) body(data, i);
    return;
  }
  std::exception_ptr error;
  std::atomic<bool> failed{false};
#pragma omp parallel for schedule(static) num_threads(team)
  for (int64_t i = 0; i < chunks; ++i) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      body(data, i);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  busy.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace cutaway
