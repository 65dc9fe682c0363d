#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cutaway/core/cpu/stream.h>
#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/math/rows.h>

// The innermost parts of group-shared layers: tiles of sums in vector registers whose rows may lie
// anywhere, and the panels they read.
//
// Note: panels. The batch is cut into panels of up to kPanelVectors vectors, and features are
// copied once to [panels][features][panel's width]: a panel's rows lie close together, so that
// those of a group stay in the first cache while all its labels pass over them, wherever they come
// from and however far rows of the whole batch are apart. Lanes behind the end of the batch are
// zeros.
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

// First factors of a tile, which each stand for a whole row of sums: row r has its values at
// p + r · row, `step` apart …
template <class T>
struct StridedRows {
  const T* p;
  int64_t row, step;

  StridedRows from(int64_t r) const { return {p + r * row, row, step}; }
  template <int R>
  StridedRows first() const {
    return *this;
  }
  [[gnu::always_inline]] T at(int r, int64_t) const { return p[r * row]; }
  void next() { p += step; }
};
// … or at p + offset[r], side by side.
template <class T>
struct ScatteredRows {
  const T* p;
  const int64_t* offset;

  template <int R>
  struct First {
    const T* row[R];

    [[gnu::always_inline]] T at(int r, int64_t q) const { return row[r][q]; }
    void next() {}
  };
  ScatteredRows from(int64_t r) const { return {p, offset + r}; }
  template <int R>
  [[gnu::always_inline]] First<R> first() const {
    First<R> f;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) f.row[r] = p + offset[r];
    return f;
  }
};

// Second factors: vectors at p + q · step …
template <class T>
struct StridedColumns {
  const T* p;
  int64_t step;

  [[gnu::always_inline]] const T* at(int64_t) const { return p; }
  void next() { p += step; }
};
// … or at p + offset[q].
template <class T>
struct ScatteredColumns {
  const T* p;
  const int64_t* offset;

  [[gnu::always_inline]] const T* at(int64_t q) const { return p + offset[q]; }
  void next() {}
};

// Cache lines that the next group will read, which tiles ask for: tile t for the line at
// from + t · tile, `step` bytes further with each of its products. The processor's own prediction
// fails where rows are short.
struct Lines {
  const char* from = nullptr;
  int64_t tiles = 0, tile = 0, step = 0;
};
// The first tiles ask for `one`, later ones for `two`, those that are left for its last lines
// again.
struct Ahead {
  Lines one, two;

  Lines of(int64_t t) const {
    Lines lines = t < one.tiles ? one : two;
    lines.from += std::min(t < one.tiles ? t : t - one.tiles, lines.tiles) * lines.tile;
    return lines;
  }
};

// The loop is that of gemm_tile.h, written again: one function for both made its products of the
// shape of dW 1.4 times as slow (g++ 12, measured).
//
// R × V vectors of sums: sum[r][v] = Σ_q a(r, q) · b(q)[v …], then finish(first + r, sum[r]).
template <int R, int V, class T, class A, class B, class Finish>
[[gnu::always_inline]] inline void sum_tile(int64_t depth, A a, B b, int64_t first, Lines ahead,
                                            Finish& finish) {
  Vector<T> sum[R][V] = {};
  auto rows = a.template first<R>();
#pragma GCC unroll 1
  for (int64_t q = 0; q < depth; ++q) {
    Vector<T> column[V];
    const T* from = b.at(q);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) column[v] = load_vector(from + v * kVectorLanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T x = rows.at(r, q);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] += x * column[v];
    }
    __builtin_prefetch(ahead.from, 0, 2);
    ahead.from += ahead.step;
    rows.next();
    b.next();
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) finish(first + r, sum[r]);
}

template <int R, int V, class T, class A, class B, class Finish>
[[gnu::noinline]] void last_tile(int64_t rows, int64_t depth, A a, B b, int64_t first, Lines ahead,
                                 Finish& finish) {
  if constexpr (R > 1) {
    if (rows < R) {
      return last_tile<R - 1, V, T>(rows, depth, a, b, first, ahead, finish);
    }
  }
  sum_tile<R, V, T>(depth, a, b, first, ahead, finish);
}

// All `rows`, a tile's height at a time.
template <int V, class T, class A, class B, class Finish>
[[gnu::noinline]] void sum_rows(int64_t rows, int64_t depth, A a, B b, const Ahead& ahead,
                                Finish finish) {
  constexpr int kHeight = kTileHeight[V];
  int64_t r = 0, t = 0;
  for (; r + kHeight <= rows; r += kHeight, ++t) {
    sum_tile<kHeight, V, T>(depth, a.from(r), b, r, ahead.of(t), finish);
  }
  if (r < rows) {
    last_tile<kHeight - 1, V, T>(rows - r, depth, a.from(r), b, r, ahead.of(t), finish);
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

// The first `count` elements of V vectors to `to`; whole ones around the caches if `stream`, where
// `to` begins a cache line.
template <int V, class Lanes, class X>
[[gnu::always_inline]] inline void store_part(const Lanes (&from)[V], int64_t count, X* to,
                                              bool stream = false) {
  using T = std::remove_cvref_t<decltype(from[0][0])>;
  constexpr int64_t kWidth = V * kVectorLanes<T>;
  if constexpr (std::is_same_v<X, T>) {
    if (count >= kWidth) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        T* at = to + v * kVectorLanes<T>;
        stream ? stream_vector(at, from[v]) : store_vector(at, from[v]);
      }
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
