#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/math/rows.h>

// The innermost parts of group-shared layers: tiles of sums in vector registers whose rows may lie
// anywhere, and the panels they read.
//
// Note: panels. The batch is cut into panels of up to kPanelVectors vectors. A panel of gathered
// features, [fan_in, width], is dense, so that it stays in the first cache while all labels of a
// group pass over it; lanes behind the end of the batch are zeros.
namespace cutaway::cpu::CUTAWAY_VARIANT {

// Rows of a tile by its width in vectors: enough sums to hide the latency of the multiply-add, and
// no more than there are registers.
#if defined(__AVX512F__)
inline constexpr int kTileHeight[] = {0, 14, 8, 8, 6};
#elif defined(__AVX2__)
inline constexpr int kTileHeight[] = {0, 10, 6};
#else
inline constexpr int kTileHeight[] = {0, 8, 4};
#endif
inline constexpr int kPanelVectors = int(sizeof(kTileHeight) / sizeof(int)) - 1;

template <class T>
inline constexpr int kPanelWidth = kPanelVectors* kVectorLanes<T>;

// The loop is that of gemm_tile.h, written again: one function for both made its products of the
// shape of dW 1.4 times as slow (g++ 12, measured).
//
// R × V vectors of sums: sum[r][v] = Σ_q a[r·a_row + q·a_step] · b[q·b_row + v …], then
// finish(first + r, sum[r]).
template <int R, int V, class T, class Finish>
[[gnu::always_inline]] inline void sum_tile(int64_t depth, const T* a, int64_t a_row,
                                            int64_t a_step, const T* b, int64_t b_row,
                                            int64_t first, Finish& finish) {
  Vector<T> sum[R][V] = {};
#pragma GCC unroll 1
  for (int64_t q = 0; q < depth; ++q) {
    Vector<T> column[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) column[v] = load_vector(b + v * kVectorLanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T x = a[r * a_row];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += x * column[v];
    }
    a += a_step;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) finish(first + r, sum[r]);
}

template <int R, int V, class T, class Finish>
[[gnu::noinline]] void last_tile(int64_t rows, int64_t depth, const T* a, int64_t a_row,
                                 int64_t a_step, const T* b, int64_t b_row, int64_t first,
                                 Finish& finish) {
  if constexpr (R > 1) {
    if (rows < R) {
      return last_tile<R - 1, V>(rows, depth, a, a_row, a_step, b, b_row, first, finish);
    }
  }
  sum_tile<R, V>(depth, a, a_row, a_step, b, b_row, first, finish);
}

// All `rows`, a tile's height at a time.
template <int V, class T, class Finish>
[[gnu::noinline]] void sum_rows(int64_t rows, int64_t depth, const T* a, int64_t a_row,
                                int64_t a_step, const T* b, int64_t b_row, Finish finish) {
  constexpr int kHeight = kTileHeight[V];
  int64_t r = 0;
  for (; r + kHeight <= rows; r += kHeight) {
    sum_tile<kHeight, V>(depth, a + r * a_row, a_row, a_step, b, b_row, r, finish);
  }
  if (r < rows) {
    last_tile<kHeight - 1, V>(rows - r, depth, a + r * a_row, a_row, a_step, b, b_row, r, finish);
  }
}

// Calls f with the number of vectors, 1 … kPanelVectors, as a constant.
template <int V = kPanelVectors, class F>
[[gnu::always_inline]] inline void with_vectors(int64_t vectors, F&& f) {
  if constexpr (V > 1) {
    if (vectors < V) return with_vectors<V - 1>(vectors, f);
  }
  f(std::integral_constant<int, V>{});
}

// `count` ≤ V vectors' worth of elements of `from` as V vectors, zeros behind.
template <int V, class T, class X>
[[gnu::always_inline]] inline void load_padded(const X* from, int64_t count, T* to) {
  constexpr int64_t kWidth = V * kVectorLanes<T>;
  if constexpr (std::is_same_v<X, T>) {
    if (count >= kWidth) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        store_vector(to + v * kVectorLanes<T>, load_vector(from + v * kVectorLanes<T>));
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
  } else {
    if (count > kWidth) count = kWidth;
    math::convert_row(from, to, count);
  }
  for (int64_t i = count; i < kWidth; ++i) to[i] = T(0);
}

// The first `count` elements of V vectors to `to`.
template <int V, class Lanes, class X>
[[gnu::always_inline]] inline void store_part(const Lanes (&from)[V], int64_t count, X* to) {
  using T = std::remove_cvref_t<decltype(from[0][0])>;
  constexpr int64_t kWidth = V * kVectorLanes<T>;
  if constexpr (std::is_same_v<X, T>) {
    if (count >= kWidth) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) store_vector(to + v * kVectorLanes<T>, from[v]);
      return;
    }
  }
  alignas(64) T room[kWidth];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) store_vector(room + v * kVectorLanes<T>, from[v]);
  if (count > kWidth) count = kWidth;
  if constexpr (std::is_same_v<X, T>) {
    for (int64_t i = 0; i < count; ++i) to[i] = room[i];
  } else {
    math::convert_row(room, to, count);
  }
}

// Adds to the first `count` elements at `to`.
template <int V, class Lanes, class T>
[[gnu::always_inline]] inline void add_part(const Lanes (&from)[V], int64_t count, T* to) {
  constexpr int64_t kWidth = V * kVectorLanes<T>;
  if (count >= kWidth) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      T* at = to + v * kVectorLanes<T>;
      store_vector(at, load_vector(at) + from[v]);
    }
    return;
  }
  alignas(64) T room[kWidth];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) store_vector(room + v * kVectorLanes<T>, from[v]);
  for (int64_t i = 0; i < count; ++i) to[i] += room[i];
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
