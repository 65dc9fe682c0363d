// Products of bf16 matrices by the instruction that multiplies pairs and adds them to f32
// (AVX-512-BF16). Pairs lie along k: both operands are read as 32-bit pairs, and an odd last step
// is filled up with zeros.
#include <cutaway/core/cpu/gemm.h>

#include <cutaway/core/math/half.h>

#if defined(__AVX512F__) && defined(__GNUC__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include <cutaway/core/cpu/gemm_tile.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/parallel.h>

// The header's own "undefined" vectors are taken for mistakes (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC push_options
#pragma GCC target("avx512bf16")

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int kL = kVectorLanes<float>;
constexpr int64_t kWorthSplitting = int64_t{1} << 21;  // multiplications a thread
using Pair = uint32_t;

// What becomes of the sums, as in gemm_tile.h.
struct FinishBf16 {
  BFloat16* c;
  int64_t c_row;
  float alpha, beta;
  const BFloat16* bias;
  int last;
};

inline __m512 widen(__mmask16 lanes, const BFloat16* p) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

// R rows × V vectors over `depth` pairs.
template <int R, int V>
void tile(int64_t depth, const Pair* a, int64_t a_row, int64_t a_step, const Pair* b,
          int64_t b_step, const FinishBf16& f) {
  __m512 sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[r][v] = _mm512_setzero_ps();
  }
#pragma GCC unroll 1
  for (int64_t q = 0; q < depth; ++q) {
    __m512i column[V];
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) column[v] = _mm512_loadu_si512(b + v * kL);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      Pair x;
      std::memcpy(&x, a + r * a_row, sizeof x);  // rows need not start at a multiple of four bytes
      const __m512i pair = _mm512_set1_epi32(int(x));
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)pair, (__m512bh)column[v]);
      }
    }
    a += a_step;
    b += b_step;
  }
  const FinishBf16 g = f;
  const __m512 alpha = _mm512_set1_ps(g.alpha), beta = _mm512_set1_ps(g.beta);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      const __mmask16 lanes = v + 1 < V ? 0xffff : __mmask16((1u << g.last) - 1);
      BFloat16* out = g.c + r * g.c_row + v * kL;
      __m512 y = _mm512_mul_ps(alpha, sum[r][v]);
      if (g.beta != 0) y = _mm512_fmadd_ps(beta, widen(lanes, out), y);
      if (g.bias) y = _mm512_add_ps(y, widen(lanes, g.bias + v * kL));
      _mm256_mask_storeu_epi16(out, lanes, (__m256i)_mm512_cvtneps_pbh(y));
    }
  }
}

using TileBf16 = void (*)(int64_t, const Pair*, int64_t, int64_t, const Pair*, int64_t,
                          const FinishBf16&);

template <int V, int... R>
TileBf16 tile_of(int rows, std::integer_sequence<int, R...>) {
  static constexpr TileBf16 tiles[] = {&tile<R + 1, V>...};
  return tiles[rows - 1];
}

TileBf16 find_tile_bf16(int rows, int vectors) {
  if (vectors == 1) return tile_of<1>(rows, std::make_integer_sequence<int, kTileRows[1]>{});
  if (vectors == 2) return tile_of<2>(rows, std::make_integer_sequence<int, kTileRows[2]>{});
  if (vectors == 3) return tile_of<3>(rows, std::make_integer_sequence<int, kTileRows[3]>{});
  return tile_of<4>(rows, std::make_integer_sequence<int, kTileRows[4]>{});
}

// out[j] = the pair of x[j·step] and y[j·step]; y null: zeros.
void pair_up(const BFloat16* x, const BFloat16* y, int64_t step, int64_t n, Pair* out) {
  const auto* low = reinterpret_cast<const uint16_t*>(x);
  const auto* high = reinterpret_cast<const uint16_t*>(y);
  if (!y) {
    for (int64_t j = 0; j < n; ++j) out[j] = low[j * step];
  } else if (step == 1) {
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) out[j] = Pair(low[j]) | Pair(high[j]) << 16;
  } else {
    for (int64_t j = 0; j < n; ++j) out[j] = Pair(low[j * step]) | Pair(high[j * step]) << 16;
  }
}

// out [⌈depth/2⌉, width] = pairs of columns 0 … n of b, zeros behind them.
void pack_panel(const Matrix<BFloat16>& b, int64_t depth, int64_t n, int64_t width, Pair* out) {
  const int64_t pairs = (depth + 1) / 2;
  int64_t q = 0;  // pairs done
  if (b.row == 1) {
    for (; 2 * (q + kL) <= depth; q += kL) {
      for (int64_t j = 0; j < width; j += kL) {
        const int count = int(std::clamp<int64_t>(n - j, 0, kL));
        float rows[kL][kL];
        for (int i = 0; i < count; ++i) {
          std::memcpy(rows[i], b.data + (j + i) * b.column + 2 * q, sizeof rows[i]);
        }
        transpose_square(rows[0], kL, count, reinterpret_cast<float*>(out + q * width + j), width);
      }
    }
  }
  for (; q < pairs; ++q) {
    const BFloat16* x = b.data + 2 * q * b.row;
    Pair* o = out + q * width;
    pair_up(x, 2 * q + 1 < depth ? x + b.row : nullptr, b.column, n, o);
    std::fill(o + n, o + width, Pair(0));
  }
}

// A as pairs: as it lies, or packed into `memory`. Strides in elements of bf16 for the former.
struct PairedRows {
  const Pair* data;
  int64_t row, step;  // in pairs
};

bool rows_are_paired(const Matrix<BFloat16>& a, int64_t k) {
  return a.column == 1 && k % 2 == 0 && a.row % 2 == 0;
}

// [m, ⌈k/2⌉] for rows that lie together, [⌈k/2⌉, m] otherwise.
PairedRows pack_rows(const Matrix<BFloat16>& a, int64_t m, int64_t k, Pair* memory) {
  const int64_t pairs = (k + 1) / 2;
  if (a.column == 1) {
    for (int64_t i = 0; i < m; ++i) {
      Pair* row = memory + i * pairs;
      row[pairs - 1] = 0;
      std::memcpy(row, a.data + i * a.row, size_t(k) * sizeof(BFloat16));
    }
    return {memory, pairs, 1};
  }
  for (int64_t q = 0; q < pairs; ++q) {
    const BFloat16* x = a.data + 2 * q * a.column;
    pair_up(x, 2 * q + 1 < k ? x + a.column : nullptr, a.row, m, memory + q * m);
  }
  return {memory, 1, m};
}

void run_panels(const Product<BFloat16>& p, const PairedRows& a, int64_t row, int64_t rows,
                int64_t column, int64_t columns) {
  const int64_t pairs = (p.k + 1) / 2;
  const Scratch<Pair> panel(pairs * kTileColumns<float>);
  for (int64_t j = column; j < column + columns; j += kTileColumns<float>) {
    const int64_t n = std::min<int64_t>(kTileColumns<float>, column + columns - j);
    const int vectors = int((n + kL - 1) / kL);
    pack_panel(p.b.block(0, j), p.k, n, vectors * kL, panel.get());
    const int64_t most = kTileRows[vectors], strips = (rows + most - 1) / most;
    int64_t i = row;
    for (int64_t s = 0; s < strips; ++s) {
      const int height = int((row + rows - i + strips - s - 1) / (strips - s));
      const FinishBf16 f{p.c + i * p.c_row + j,
                         p.c_row,
                         float(p.alpha),
                         float(p.beta),
                         p.bias ? p.bias + j : nullptr,
                         int(n - (vectors - 1) * kL)};
      find_tile_bf16(height, vectors)(pairs, a.data + i * a.row, a.row, a.step, panel.get(),
                                      vectors * kL, f);
      i += height;
    }
  }
}

}  // namespace

bool try_gemm(const Product<BFloat16>& p) {
  static const bool supported = __builtin_cpu_supports("avx512bf16");
  if (!supported || p.k <= 0 || p.alpha == 0) return false;
  const int64_t pairs = (p.k + 1) / 2;
  const bool lies_well = rows_are_paired(p.a, p.k);
  const Scratch<Pair> memory(lies_well ? 0 : p.m * pairs);
  const PairedRows a = lies_well
                           ? PairedRows{reinterpret_cast<const Pair*>(p.a.data), p.a.row / 2, 1}
                           : pack_rows(p.a, p.m, p.k, memory.get());
  // Columns are shared among the threads, or rows where columns are few.
  const int64_t threads = std::max<int64_t>(
      1, in_parallel_region()
             ? 1
             : std::min<int64_t>(num_threads(), p.m * p.n * p.k / kWorthSplitting));
  const int64_t panels = (p.n + kTileColumns<float> - 1) / kTileColumns<float>;
  const bool by_columns = panels >= 2 * threads || panels * kTileColumns<float> >= p.m;
  const int64_t step = by_columns ? (panels + threads - 1) / threads * kTileColumns<float>
                                  : (p.m + threads - 1) / threads;
  parallel_chunks(threads, [&](int64_t i) {
    const int64_t begin = i * step, size = by_columns ? p.n : p.m;
    if (begin >= size) return;
    const int64_t count = std::min(step, size - begin);
    by_columns ? run_panels(p, a, 0, p.m, begin, count) : run_panels(p, a, begin, count, 0, p.n);
  });
  return true;
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT

#pragma GCC pop_options
#else
namespace cutaway::cpu::CUTAWAY_VARIANT {
bool try_gemm(const Product<BFloat16>&) { return false; }
}  // namespace cutaway::cpu::CUTAWAY_VARIANT
#endif
