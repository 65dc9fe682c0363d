#pragma once
#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/math/rows.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

// What kernels of whole rows share: sums in f64, and sums in f32 of kRowLanes lanes over blocks of
// kRowBlock elements, the blocks added in f64.
namespace cutaway::cpu::CUTAWAY_VARIANT {

// Σ term(i), f64, four sums side by side.
template <class F>
double sum_f64(int64_t n, F&& term) {
  constexpr int64_t kLanes = 32;
  alignas(64) double lane[kLanes] = {};
  double total = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int64_t j = 0; j < kLanes; ++j) lane[j] += term(i + j);
  }
  for (; i < n; ++i) total += term(i);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
  }
  return lane[0] + total;
}

template <class T>
double wide(T x) {
  return double(compute(x));
}

inline constexpr int64_t kRowLanes = 64;
inline constexpr int64_t kRowBlock = 1024;  // a lane adds up 16 products

// Floats as doubles.
[[gnu::always_inline]] inline Vector<double> widened(const float* p) {
  typedef float Half __attribute__((vector_size(kVectorBytes / 2), aligned(4), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const Half*>(p), Vector<double>);
}

// kRowLanes sums in f32: their number does not depend on the CPU.
struct LaneSums {
  static constexpr int64_t kStep = kVectorLanes<float>;
  static constexpr int64_t kVectors = kRowLanes / kStep;
  Vector<float> lane[kVectors] = {};

  // The sum of all lanes, halves upon halves; they are 0 afterwards.
  [[gnu::always_inline]] double take() {
    Vector<float> part[kVectors];
    for (int64_t k = 0; k < kVectors; ++k) {
      part[k] = lane[k];
      lane[k] = Vector<float>{};
    }
    constexpr int64_t kWide = 16, kHalf = 8;  // sums that are left for f64
    constexpr int64_t kDoubles = kVectorLanes<double>;
#pragma GCC unroll 4
    for (int64_t count = kVectors / 2; count * kStep >= kWide; count /= 2) {
#pragma GCC unroll 16
      for (int64_t k = 0; k < count; ++k) part[k] += part[k + count];
    }
    alignas(64) float left[kWide];
    for (int64_t k = 0; k < kWide / kStep; ++k) store_vector(left + k * kStep, part[k]);
    Vector<double> sum[kHalf / kDoubles];
    for (int64_t k = 0; k < kHalf / kDoubles; ++k) {
      sum[k] = widened(left + k * kDoubles) + widened(left + kHalf + k * kDoubles);
    }
    alignas(64) double last[kHalf];
    for (int64_t k = 0; k < kHalf / kDoubles; ++k) store_vector(last + k * kDoubles, sum[k]);
    return ((last[0] + last[4]) + (last[2] + last[6])) +
           ((last[1] + last[5]) + (last[3] + last[7]));
  }
};

// Calls vector(first, k) for groups of LaneSums::kStep elements, k the part of LaneSums they belong
// to, in blocks of kRowBlock; after each block end(); then element(i) for those left over.
template <class V, class E, class B>
[[gnu::always_inline]] inline void for_row(int64_t n, V&& vector, E&& element, B&& end) {
  constexpr int64_t kStep = LaneSums::kStep;
  int64_t i = 0;
  while (i + kStep <= n) {
    const int64_t to = i + kRowBlock < n ? i + kRowBlock : n;
    for (; i + kRowLanes <= to; i += kRowLanes) {
#pragma GCC unroll 16
      for (int64_t k = 0; k < LaneSums::kVectors; ++k) vector(i + k * kStep, k);
    }
    for (; i + kStep <= to; i += kStep) vector(i, 0);
    end();
  }
  for (; i < n; ++i) element(i);
}

// How results are written. Streaming passes the caches by: a result that does not fit into them is
// then not read before it is written.
enum class Store : uint8_t { plain, stream };
inline constexpr int64_t kStreamBytes = 8 << 20;

// True where rows of n elements shall be streamed to `out`; only whole cache lines can.
template <class T>
bool streams_rows(const void* out, int64_t rows, int64_t n) {
#if defined(__SSE2__)
  return std::is_same_v<T, float> && rows * n * int64_t(sizeof(T)) >= kStreamBytes &&
         n * sizeof(T) % 64 == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0;
#else
  return false;
#endif
}
// Makes what was streamed visible to other threads.
inline void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
[[gnu::always_inline]] inline void stream_vector(float* p, Vector<float> v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, __m512(v));
#elif defined(__AVX2__)
  _mm256_stream_ps(p, __m256(v));
#elif defined(__SSE2__)
  _mm_stream_ps(p, __m128(v));
#else
  store_vector(p, v);
#endif
}

// out[i] = value(at), where at(row) is the vector, or for the last elements the number, that row
// has there.
template <Store kStore, class F>
[[gnu::always_inline]] inline void write_row(float* out, int64_t n, F&& value) {
  int64_t i = 0;
  for (; i + LaneSums::kStep <= n; i += LaneSums::kStep) {
    const Vector<float> v = value([i](const float* row) { return load_vector(row + i); });
    if constexpr (kStore == Store::stream) {
      stream_vector(out + i, v);
    } else {
      store_vector(out + i, v);
    }
  }
  for (; i < n; ++i) out[i] = value([i](const float* row) { return row[i]; });
}

// A row as floats: itself, or converted into `room`.
inline const float* float_row(const float* row, int64_t, float*) { return row; }
template <class T>
const float* float_row(const T* row, int64_t n, float* room) {
  math::convert_row(row, room, n);
  return room;
}

// A result row in f32: itself, or a buffer that done() converts.
template <class T>
struct FloatResult {
  explicit FloatResult(int64_t n) : room(kIsHalf<T> ? n : 0) {}
  float* begin(T* row) {
    if constexpr (kIsHalf<T>)
      return room.get();
    else
      return row;
  }
  void done(T* row, int64_t n) {
    if constexpr (kIsHalf<T>) math::convert_row(room.get(), row, n);
  }
  Scratch<float> room;
};

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
