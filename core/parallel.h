#pragma once
#include <cstdint>
#include <type_traits>

namespace cutaway {

// Number of threads kernels may use, products included. Starts as CUTAWAY_NUM_THREADS,
// OMP_NUM_THREADS or the number of cores, at most the CPU quota of the container.
//
// Note: idle threads. The OpenMP runtime lets threads spin for a while after each region, which
// slows a machine shared with others down several times. Start a program with GOMP_SPINCOUNT=2000
// there: the runtime reads it before main(), so the library cannot set it. The command does.
int num_threads();
// Sets it for the process; n < 1 raises ValueError, n above 256 counts as 256.
void set_num_threads(int n);
// Whether the caller is a chunk of parallel_chunks() that runs on several threads.
bool in_parallel_region();

// While alive, OpenMP code of other libraries called from this thread (BLAS) stays on this thread.
// Note: threads of products. core/linalg/blas hands blocks of a product to parallel_chunks and runs
// the library in such a scope: it never brings threads of its own into a region of ours, and the
// bits of a product do not depend on the number of threads.
class CallingThreadScope {
 public:
  CallingThreadScope();
  ~CallingThreadScope();
  CallingThreadScope(const CallingThreadScope&) = delete;

 private:
  int outside_;
};

namespace detail {
void run_parallel(int64_t chunks, void (*body)(void*, int64_t), void* data);
}

// Elements worth a second thread.
inline constexpr int64_t kGrain = 32768;

// Calls body(chunk) for chunk 0 … chunks-1, each once, on up to num_threads() threads, with the
// context of the caller. The exception of the lowest failing chunk is rethrown here; chunks above
// it may be left out. Nested calls, and calls while another thread has a team, run on the calling
// thread.
template <class F>
void parallel_chunks(int64_t chunks, F&& body) {
  using Body = std::remove_reference_t<F>;
  if (chunks <= 1) {
    if (chunks == 1) body(int64_t(0));
    return;
  }
  const auto call = [](void* f, int64_t chunk) { (*static_cast<Body*>(f))(chunk); };
  detail::run_parallel(chunks, call, const_cast<void*>(static_cast<const void*>(&body)));
}

// Splits [0, n) into contiguous ranges of at least `grain` and calls body(begin, end). The split
// depends on the thread count: use it only where elements do not meet (maps, rows). Sums use
// parallel_chunks with a fixed chunk size.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  if (n <= 0) return;
  if (n <= grain) return body(int64_t(0), n);
  int64_t parts = (n + grain - 1) / grain;
  const int64_t most = num_threads();
  if (parts > most) parts = most;
  if (parts <= 1) return body(int64_t(0), n);
  const int64_t step = (n + parts - 1) / parts;
  parallel_chunks(parts, [&](int64_t i) {
    const int64_t begin = i * step, end = begin + step < n ? begin + step : n;
    if (begin < end) body(begin, end);
  });
}

}  // namespace cutaway
