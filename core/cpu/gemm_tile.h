#pragma once
#include <cstdint>
#include <utility>

#include <cutaway/core/cpu/vector.h>

// The innermost part of a matrix product: a tile of C in vector registers, and the packing of B.
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#define CUTAWAY_OWN_GEMM 1

namespace cutaway::cpu::CUTAWAY_VARIANT {

#if defined(__AVX512F__)
// Rows of a tile by its width in vectors: with 32 registers enough sums to hide the latency of the
// multiply-add, and few enough loads for each of them.
inline constexpr int kTileRows[] = {0, 14, 8, 8, 6};
#else
inline constexpr int kTileRows[] = {0, 10, 6};
#endif
inline constexpr int kTileVectors = int(sizeof(kTileRows) / sizeof(int)) - 1;

// Columns of the widest tile.
template <class T>
inline constexpr int kTileColumns = kTileVectors* kVectorLanes<T>;

// What becomes of the sums: C = alpha · sum + beta · C + bias.
template <class T>
struct Finish {
  T* c;
  int64_t c_row;
  T alpha, beta;
  const T* bias;  // of the tile's first column, or null
  int last;       // columns of the last vector that exist
};

// The last vector of a row when it has lanes that do not exist (they hold zeros of the packed B).
template <class T>
[[gnu::noinline]] void finish_part(const Finish<T>& f, T* out, const T* bias, Vector<T> sum) {
  constexpr int kL = kVectorLanes<T>;
  T sums[kL];
  store_vector(sums, sum);
  for (int j = 0; j < f.last; ++j) {
    T y = f.alpha * sums[j];
    if (f.beta != T(0)) y += f.beta * out[j];
    out[j] = bias ? y + bias[j] : y;
  }
}

// R rows × V vectors of C over `depth` steps: a is read at a[r·a_row + q·a_step], b at b[q·b_step
// …] in whole vectors.
template <class T, int R, int V>
void tile(int64_t depth, const T* a, int64_t a_row, int64_t a_step, const T* b, int64_t b_step,
          const Finish<T>& f) {
  Vector<T> sum[R][V] = {};
#pragma GCC unroll 1
  for (int64_t q = 0; q < depth; ++q) {
    Vector<T> column[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) column[v] = load_vector(b + v * kVectorLanes<T>);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const T x = a[r * a_row];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[r][v] += x * column[v];
    }
    a += a_step;
    b += b_step;
  }
  constexpr int kL = kVectorLanes<T>;
  const Finish<T> g = f;  // in registers
  const int whole = g.last == kL ? V : V - 1;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    T* out = g.c + r * g.c_row;
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      if (v == V - 1 && v == whole) {
        finish_part(f, out + v * kL, g.bias ? g.bias + v * kL : nullptr, sum[r][v]);
        continue;
      }
      Vector<T> y = g.alpha * sum[r][v];
      if (g.beta != T(0)) y += g.beta * load_vector(out + v * kL);
      if (g.bias) y += load_vector(g.bias + v * kL);
      store_vector(out + v * kL, y);
    }
  }
}

template <class T>
using Tile = void (*)(int64_t, const T*, int64_t, int64_t, const T*, int64_t, const Finish<T>&);

namespace detail {

template <class T, int V, int... R>
constexpr Tile<T> tile_of(int rows, std::integer_sequence<int, R...>) {
  constexpr Tile<T> tiles[] = {&tile<T, R + 1, V>...};
  return tiles[rows - 1];
}

}  // namespace detail

// The tile of `rows` (1 … kTileRows[vectors]) by `vectors` (1 … kTileVectors).
template <class T, int V = kTileVectors>
Tile<T> find_tile(int rows, int vectors) {
  if constexpr (V > 1) {
    if (vectors < V) return find_tile<T, V - 1>(rows, vectors);
  }
  return detail::tile_of<T, V>(rows, std::make_integer_sequence<int, kTileRows[V]>{});
}

// The sums of x[q] · rows[j·row + q] over q < depth, for each lane j < count.
template <class T>
inline Vector<T> dots(const T* x, const T* rows, int64_t row, int count, int64_t depth) {
  constexpr int kL = kVectorLanes<T>;
  const T* at[kL];
  for (int j = 0; j < kL; ++j) at[j] = rows + (j < count ? j : 0) * row;
  Vector<T> sum[kL] = {};
  int64_t q = 0;
  for (; q + kL <= depth; q += kL) {
    const Vector<T> y = load_vector(x + q);
#pragma GCC unroll 16
    for (int j = 0; j < kL; ++j) sum[j] += y * load_vector(at[j] + q);
  }
  transpose_rows(sum);
#pragma GCC unroll 4
  for (int half = kL / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < half; ++j) sum[j] += sum[j + half];
  }
  for (; q < depth; ++q) {
    Vector<T> column;
    for (int j = 0; j < kL; ++j) column[j] = at[j][q];
    sum[0] += x[q] * column;
  }
  return sum[0];
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
#endif
