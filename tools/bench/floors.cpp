#include <tools/bench/floors.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cutaway/autograd/ops.h>
#include <cutaway/core/dispatch.h>
#include <cutaway/core/parallel.h>

namespace cutaway::tools {
namespace {

// Twelve independent sums hide the latency of two multiply-add units. The loops over them are
// unrolled, or the sums would live in memory.
constexpr int kSums = 12;
using Loop = void (*)(int64_t, float*);

// Operations of one turn of a loop.
struct Peak {
  Loop loop;
  double flops_per_turn;
};

void scalar_loop(int64_t turns, float* out) {
  float sums[kSums] = {};
  volatile float factor = 0.999f;
  const float a = factor, b = factor * 0.5f;
  for (int64_t t = 0; t < turns; ++t) {
#pragma GCC unroll 12
    for (float& s : sums) s = s * a + b;
  }
  *out = 0;
  for (const float s : sums) *out += s;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void avx2_loop(int64_t turns, float* out) {
  __m256 s[kSums];
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.5f);
  for (__m256& v : s) v = _mm256_setzero_ps();
  for (int64_t t = 0; t < turns; ++t) {
#pragma GCC unroll 12
    for (__m256& v : s) v = _mm256_fmadd_ps(v, a, b);
  }
  for (int i = 1; i < kSums; ++i) s[0] = _mm256_add_ps(s[0], s[i]);
  *out = _mm256_cvtss_f32(s[0]);
}

__attribute__((target("avx512f"))) void avx512_loop(int64_t turns, float* out) {
  __m512 s[kSums];
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.5f);
  for (__m512& v : s) v = _mm512_setzero_ps();
  for (int64_t t = 0; t < turns; ++t) {
#pragma GCC unroll 12
    for (__m512& v : s) v = _mm512_fmadd_ps(v, a, b);
  }
  for (int i = 1; i < kSums; ++i) s[0] = _mm512_add_ps(s[0], s[i]);
  *out = _mm512_cvtss_f32(s[0]);
}

__attribute__((target("avx512f,avx512bf16"))) void bf16_loop(int64_t turns, float* out) {
  __m512 s[kSums];
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.01f), _mm512_set1_ps(0.01f));
  for (__m512& v : s) v = _mm512_setzero_ps();
  for (int64_t t = 0; t < turns; ++t) {
#pragma GCC unroll 12
    for (__m512& v : s) v = _mm512_dpbf16_ps(v, a, a);
  }
  for (int i = 1; i < kSums; ++i) s[0] = _mm512_add_ps(s[0], s[i]);
  *out = _mm512_cvtss_f32(s[0]);
}
#endif

Peak peak_loop(DType dtype) {
#if defined(__x86_64__)
  const std::string variant = cpu_variant();
  if (variant == "avx512") {
    if (dtype == DType::bf16 && __builtin_cpu_supports("avx512bf16"))
      return {&bf16_loop, kSums * 64};
    return {&avx512_loop, kSums * 32};
  }
  if (variant == "avx2") return {&avx2_loop, kSums * 16};
#endif
  (void)dtype;
  return {&scalar_loop, kSums * 2};
}

// The shortest of several runs, in seconds: a floor is what the machine does undisturbed.
template <class F>
double shortest(int runs, F&& f) {
  using Clock = std::chrono::steady_clock;
  double best = INFINITY;
  for (int i = 0; i < runs; ++i) {
    const auto begin = Clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

// num_threads() is `n` while alive.
class ThreadsScope {
 public:
  explicit ThreadsScope(int n) : before_(num_threads()) { set_num_threads(n); }
  ~ThreadsScope() { set_num_threads(before_); }
  ThreadsScope(const ThreadsScope&) = delete;

 private:
  int before_;
};

double measure_copy(int64_t half, int threads) {
  const ThreadsScope scope(threads);
  std::vector<char> from(size_t(half), 1), to(size_t(half), 2);
  const int64_t repeats = std::max<int64_t>(1, (1 << 24) / half);
  const double seconds = shortest(7, [&] {
    for (int64_t r = 0; r < repeats; ++r) {
      parallel_for(half, 1 << 17, [&](int64_t begin, int64_t end) {
        std::memcpy(to.data() + begin, from.data() + begin, size_t(end - begin));
      });
    }
  });
  return 2 * double(half) * double(repeats) / seconds;
}

}  // namespace

double peak_flops(DType dtype, int threads) {
  static std::map<std::pair<DType, int>, double> known;
  double& rate = known[{dtype, threads}];
  if (rate > 0) return rate;
  const Peak peak = peak_loop(dtype);
  const ThreadsScope scope(threads);
  // Short runs: some of them fall between interruptions. Several threads need time to wake up.
  const int64_t turns = threads > 1 ? 1 << 21 : 1 << 17;
  std::vector<float> sums(size_t(threads) * 16);
  const double seconds = shortest(threads > 1 ? 20 : 200, [&] {
    parallel_chunks(threads, [&](int64_t i) { peak.loop(turns, &sums[size_t(i) * 16]); });
  });
  return rate = peak.flops_per_turn * double(turns) * threads / seconds;
}

double copy_rate(double bytes, int threads) {
  static std::map<std::pair<int, int>, double> known;  // by power of two
  const int power = std::clamp(int(std::lround(std::log2(std::max(bytes, 2.0)))), 12, 28);
  double& rate = known[{power, threads}];
  if (rate == 0) rate = measure_copy(int64_t(1) << (power - 1), threads);
  return rate;
}

double floor_ms(DType dtype, double flops, double bytes, int threads) {
  const double arithmetic = flops / peak_flops(dtype, threads);
  const double traffic = bytes > 0 ? bytes / copy_rate(bytes, threads) : 0;
  return 1e3 * std::max(arithmetic, traffic);
}

double call_cost_ms() {
  static double known = 0;
  if (known > 0) return known;
  const Tensor a = ones({1}, {.requires_grad = true}), b = ones({1}, {.requires_grad = true});
  constexpr int kCalls = 2000;
  const double seconds = shortest(7, [&] {
    for (int i = 0; i < kCalls; ++i) const Tensor y = add(a, b);
  });
  return known = 1e3 * seconds / kCalls;
}

}  // namespace cutaway::tools
