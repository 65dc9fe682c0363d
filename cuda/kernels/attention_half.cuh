#pragma once
#include <cutaway/cuda/device/attention_library.h>
#include <cutaway/cuda/device/exponential.h>
#include <cutaway/cuda/device/mma.h>
#include <cutaway/cuda/device/numbers.h>

// Attention of bf16 and f16 on tensor cores: products of 16-bit numbers, everything else in f32.
// Weights are rounded to the type before they meet the third operand, as is usual.
//
// Note: one skeleton makes all four results. A block of 4 warps owns 64 rows of a result of one
// head (queries for o and dq, keys for dk and dv), each warp 16 of them, and walks over tiles of 64
// rows of the other side:
//            weights from            times
//   o        softmax of q kᵀ         v
//   dq       ds, from q kᵀ and g vᵀ  k
//   dk       dsᵀ, from k qᵀ and v gᵀ q
//   dv       pᵀ, from k qᵀ           g
// Scores never leave registers: where a product leaves its sums, packed to 16 bits, is where the
// next one takes its left operand.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kHalfThreads = 128, kHalfTile = 64;
enum class HalfResult : uint8_t { o, dq, dk, dv };
// Shared memory: row-major tiles [64][Columns], and one tile turned, [Columns][64]. The row
// distances put the 32 words of a fragment into 32 banks.
template <int Columns>
struct HalfLayout {
  static constexpr int kRow = Columns + 8, kTile = kHalfTile * kRow;
  static constexpr int kTurnedRow = kHalfTile + 8, kTurned = Columns * kTurnedRow;
};

// A row-major operand of one head.
template <class T>
struct HalfRows {
  Global<const T> p;
  int64_t distance, count, columns;
  bool vectors;  // rows can be loaded 16 bytes at a time
};
template <class T>
struct HalfHead {
  HalfRows<T> q, k, v, g, o;
  int64_t index, mask;
};

template <class T>
DEVICE HalfRows<T> half_rows(const void* p, int64_t offset, int64_t distance, int64_t count,
                             int64_t columns) {
  const T* begin = static_cast<const T*>(p) + offset;
  const bool aligned = reinterpret_cast<uintptr_t>(begin) % 16 == 0 && distance % 8 == 0;
  return {global<const T>(p) + offset, distance, count, columns, aligned && columns % 8 == 0};
}

template <class T>
DEVICE HalfHead<T> half_head(const AttentionArgs& x, int64_t index) {
  int64_t offset[4] = {}, rest = index;
  for (int d = x.rank - 1; d >= 0; --d) {
    const int64_t at = rest % x.sizes[d];
    rest /= x.sizes[d];
    for (int i = 0; i < 4; ++i) offset[i] += at * x.strides[i][d];
  }
  const int64_t dense = index * x.queries * x.width;
  return {half_rows<T>(x.q, offset[0], x.q_row, x.queries, x.depth),
          half_rows<T>(x.k, offset[1], x.k_row, x.keys, x.depth),
          half_rows<T>(x.v, offset[2], x.v_row, x.keys, x.width),
          half_rows<T>(x.upstream, dense, x.width, x.queries, x.width),
          half_rows<T>(x.o, dense, x.width, x.queries, x.width),
          index,
          offset[3]};
}

// Eight neighbours of a row, zeros beyond the edges.
template <class T>
DEVICE Vec<T, 8> load_octet(const HalfRows<T>& m, int64_t row, int column) {
  Vec<T, 8> v;
  if (m.vectors && row < m.count && column < m.columns) {
    return load<8>(m.p, row * m.distance + column);
  }
  for (int i = 0; i < 8; ++i) {
    T element = T(0.0f);
    if (row < m.count && column + i < m.columns) element = m.p[row * m.distance + column + i];
    v[i] = element;
  }
  return v;
}

template <int Columns, class T>
DEVICE void load_tile(Shared<T> to, const HalfRows<T>& m, int64_t row0) {
  constexpr int kOctets = Columns / 8;
  for (int t = int(threadIdx.x); t < kHalfTile * kOctets; t += kHalfThreads) {
    const int row = t / kOctets, column = t % kOctets * 8;
    store(to, row * HalfLayout<Columns>::kRow + column, load_octet(m, row0 + row, column));
  }
}
// The same turned: lanes take neighbouring pairs of rows, whose numbers make one word.
template <int Columns, class T>
DEVICE void load_turned(Shared<T> to, const HalfRows<T>& m, int64_t row0) {
  const auto words = recast<uint32_t>(to);
  const int lane = int(threadIdx.x) % 32;
  for (int column = int(threadIdx.x) / 32 * 8; column < Columns; column += 8 * kHalfThreads / 32) {
    const Vec<T, 8> low = load_octet(m, row0 + 2 * lane, column);
    const Vec<T, 8> high = load_octet(m, row0 + 2 * lane + 1, column);
    for (int i = 0; i < 8; ++i) {
      words[(column + i) * (HalfLayout<Columns>::kTurnedRow / 2) + lane] =
          pack16(low[i].bits, high[i].bits);
    }
  }
}

template <class T>
DEVICE void mma_half(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, BFloat16>) return mma_bf16(d, a, b);
  if constexpr (std::is_same_v<T, Float16>) return mma_f16(d, a, b);
}

// A warp's 16 rows by 64 columns, in fragments of 16 × 8.
struct HalfSquare {
  float v[8][4];
};
template <int Columns>
struct HalfSums {
  float v[Columns / 8][4];
};

// The place of an element of a fragment.
DEVICE int half_row(int e) {
  return int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4 + 8 * (e / 2);
}
DEVICE int half_column(int j, int e) { return 8 * j + 2 * (int(threadIdx.x) % 4) + e % 2; }

// out = the warp's rows of `left` times the rows of `right`, over `columns` numbers.
template <int Columns, class T>
DEVICE void half_scores(Shared<T> left, Shared<T> right, int64_t columns, HalfSquare& out) {
  constexpr int kWords = HalfLayout<Columns>::kRow / 2;
  const Shared<uint32_t> a_words = recast<uint32_t>(left), b_words = recast<uint32_t>(right);
  const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
  out = {};
  for (int d0 = 0; d0 < Columns; d0 += 16) {
    if (d0 >= columns) break;
    uint32_t a[4];
    for (int r = 0; r < 4; ++r) {
      a[r] = a_words[half_row(2 * (r % 2)) * kWords + d0 / 2 + t + 4 * (r / 2)];
    }
    for (int j = 0; j < 8; ++j) {
      const int at = (8 * j + g) * kWords + d0 / 2 + t;
      const uint32_t b[2] = {b_words[at], b_words[at + 4]};
      mma_half<T>(out.v[j], a, b);
    }
  }
}

// sums += weights, rounded to T, times the turned tile.
template <int Columns, class T>
DEVICE void half_apply(const HalfSquare& weights, Shared<T> turned, int64_t columns,
                       HalfSums<Columns>& sums) {
  const Shared<uint32_t> words = recast<uint32_t>(turned);
  const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
  for (int q = 0; q < kHalfTile / 16; ++q) {
    uint32_t a[4];
    for (int r = 0; r < 4; ++r) {
      const float* from = weights.v[2 * q + r / 2] + 2 * (r % 2);
      a[r] = pack16(T(from[0]).bits, T(from[1]).bits);
    }
    for (int n = 0; n < Columns / 8; ++n) {
      if (8 * n >= columns) break;
      const int at = (8 * n + g) * (HalfLayout<Columns>::kTurnedRow / 2) + 8 * q + t;
      const uint32_t b[2] = {words[at], words[at + 4]};
      mma_half<T>(sums.v[n], a, b);
    }
  }
}

// Scale, masks and bounds; -inf where the query may not look.
template <bool RowsAreKeys>
DEVICE void half_mask(const AttentionArgs& x, int64_t mask, int64_t row0, int64_t column0,
                      HalfSquare& s) {
  const auto allowed = global<const bool>(x.allowed);
  const auto added = global<const float>(x.added);
  for (int j = 0; j < 8; ++j) {
    for (int e = 0; e < 4; ++e) {
      const int64_t row = row0 + half_row(e), column = column0 + half_column(j, e);
      const int64_t query = RowsAreKeys ? column : row, key = RowsAreKeys ? row : column;
      float v = -math::detail::kInfF;
      if (query < x.queries && key < x.keys && !(x.causal && key > query)) {
        const int64_t at = mask + query * x.mask_row + key * x.mask_column;
        v = s.v[j][e] * float(x.scale);
        if (x.added) {
          const float more = added[at];
          v += more;
        }
        if (x.allowed) {
          const bool may = allowed[at];
          v = may ? v : -math::detail::kInfF;
        }
      }
      s.v[j][e] = v;
    }
  }
}

// Online softmax; the four lanes that share a row reduce it by shuffles.
template <class T, int Columns>
DEVICE void half_soften(HalfSquare& s, float (&most)[2], float (&total)[2],
                        HalfSums<Columns>& out) {
  for (int h = 0; h < 2; ++h) {
    float top = most[h];
    for (int j = 0; j < 8; ++j) top = Larger()(Larger()(top, s.v[j][2 * h]), s.v[j][2 * h + 1]);
    top = Larger()(top, __shfl_xor_sync(kAllLanes, top, 1));
    top = Larger()(top, __shfl_xor_sync(kAllLanes, top, 2));
    const bool blind = top == -math::detail::kInfF;
    const float keep = blind ? 1.0f : exp_for<T>(most[h] - top);
    most[h] = top;
    float sum = 0;
    for (int j = 0; j < 8; ++j) {
      for (int e = 2 * h; e < 2 * h + 2; ++e) {
        s.v[j][e] = blind ? 0.0f : exp_for<T>(s.v[j][e] - top);
        sum += s.v[j][e];
      }
    }
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    total[h] = total[h] * keep + sum;
    for (int n = 0; n < Columns / 8; ++n) {
      out.v[n][2 * h] *= keep;
      out.v[n][2 * h + 1] *= keep;
    }
  }
}

// lse and dots (Σ_e g o) of 64 queries, eight lanes a row.
template <class T>
DEVICE void half_query_rows(const AttentionArgs& x, const HalfHead<T>& head, int64_t query0,
                            Shared<float> lses, Shared<float> dots) {
  const auto lse = global<const float>(x.lse);
  const int lane = int(threadIdx.x) % 8;
  for (int row = int(threadIdx.x) / 8; row < kHalfTile; row += kHalfThreads / 8) {
    const int64_t query = query0 + row;
    float sum = 0;
    for (int column = 8 * lane; column < x.width; column += 64) {
      const Vec<T, 8> g = load_octet(head.g, query, column), o = load_octet(head.o, query, column);
      for (int i = 0; i < 8; ++i) sum += float(g[i]) * float(o[i]);
    }
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (lane == 0) {
      float log_sum = -math::detail::kInfF;
      if (query < x.queries) log_sum = lse[head.index * x.queries + query];
      lses[row] = log_sum;
      dots[row] = sum;
    }
  }
}

// Scores to p = exp(s − lse), and with dp to ds = scale · p ∘ (dp − dot).
template <class T, bool RowsAreKeys, bool Gradient>
DEVICE void half_weights(HalfSquare& s, const HalfSquare& dp, float scale, Shared<float> lses,
                         Shared<float> dots) {
  for (int j = 0; j < 8; ++j) {
    for (int e = 0; e < 4; ++e) {
      const int at = RowsAreKeys ? half_column(j, e) : half_row(e);
      const float lse = lses[at];
      float p = lse == -math::detail::kInfF ? 0.0f : exp_for<T>(s.v[j][e] - lse);
      if constexpr (Gradient) {
        const float dot = dots[at];
        p *= scale * (dp.v[j][e] - dot);
      }
      s.v[j][e] = p;
    }
  }
}

template <class T, int Columns>
DEVICE void half_store(void* to, int64_t head, int64_t row0, int64_t rows, int64_t columns,
                       const HalfSums<Columns>& sums) {
  const auto out = global<T>(to);
  for (int n = 0; n < Columns / 8; ++n) {
    for (int h = 0; h < 2; ++h) {
      const int64_t row = row0 + half_row(2 * h);
      const int column = half_column(n, 0);
      if (row >= rows || column >= columns) continue;
      const int64_t at = (head * rows + row) * columns + column;
      const Vec<T, 2> pair = {{T(sums.v[n][2 * h]), T(sums.v[n][2 * h + 1])}};
      if (columns % 2 == 0) {
        store(out, at, pair);
      } else {
        out[at] = pair[0];
        if (column + 1 < columns) out[at + 1] = pair[1];
      }
    }
  }
}

template <class T, int Columns, HalfResult Result>
KERNEL attention_tensor_cores(AttentionArgs x, int64_t tiles) {
  using Layout = HalfLayout<Columns>;
  constexpr bool kKeys = Result == HalfResult::dk || Result == HalfResult::dv;
  constexpr bool kGradient = Result == HalfResult::dq || Result == HalfResult::dk;
  DYNAMIC_SHARED(T, memory);
  SHARED(float, lses, kHalfTile);
  SHARED(float, dots, kHalfTile);
  const Shared<T> left = memory, right = left + Layout::kTile, turned = right + Layout::kTile;
  const Shared<T> left_g = turned + Layout::kTurned, right_g = left_g + Layout::kTile;
  const HalfHead<T> head = half_head<T>(x, blockIdx.x / tiles);
  const int64_t row0 = blockIdx.x % tiles * kHalfTile;
  const int64_t columns = Result == HalfResult::o || Result == HalfResult::dv ? x.width : x.depth;

  load_tile<Columns>(left, kKeys ? head.k : head.q, row0);
  if constexpr (kGradient) load_tile<Columns>(left_g, kKeys ? head.v : head.g, row0);
  if constexpr (Result == HalfResult::dq) half_query_rows(x, head, row0, lses, dots);

  HalfSums<Columns> sums = {};
  float most[2] = {-math::detail::kInfF, -math::detail::kInfF}, total[2] = {};
  const int64_t other = kKeys ? x.queries : x.keys;
  const int64_t begin = kKeys && x.causal ? row0 : 0;
  const int64_t end = !kKeys && x.causal ? min(other, row0 + kHalfTile) : other;
  for (int64_t c0 = begin; c0 < end; c0 += kHalfTile) {
    __syncthreads();
    load_tile<Columns>(right, kKeys ? head.q : head.k, c0);
    if constexpr (kGradient) load_tile<Columns>(right_g, kKeys ? head.g : head.v, c0);
    if constexpr (Result == HalfResult::o) load_turned<Columns>(turned, head.v, c0);
    if constexpr (Result == HalfResult::dq) load_turned<Columns>(turned, head.k, c0);
    if constexpr (Result == HalfResult::dk) load_turned<Columns>(turned, head.q, c0);
    if constexpr (Result == HalfResult::dv) load_turned<Columns>(turned, head.g, c0);
    if constexpr (kKeys) half_query_rows(x, head, c0, lses, dots);
    __syncthreads();
    HalfSquare s, dp;
    half_scores<Columns>(left, right, x.depth, s);
    half_mask<kKeys>(x, head.mask, row0, c0, s);
    if constexpr (kGradient) half_scores<Columns>(left_g, right_g, x.width, dp);
    if constexpr (Result == HalfResult::o) {
      half_soften<T>(s, most, total, sums);
    } else {
      half_weights<T, kKeys, kGradient>(s, dp, float(x.scale), lses, dots);
    }
    half_apply<Columns>(s, turned, columns, sums);
  }
  if constexpr (Result == HalfResult::o) {
    const auto lse = global<float>(x.lse);
    for (int h = 0; h < 2; ++h) {
      const bool blind = total[h] == 0;  // may look nowhere
      const float factor = blind ? 0.0f : 1 / total[h];
      for (int n = 0; n < Columns / 8; ++n) {
        sums.v[n][2 * h] *= factor;
        sums.v[n][2 * h + 1] *= factor;
      }
      const int64_t row = row0 + half_row(2 * h);
      if (threadIdx.x % 4 == 0 && row < x.queries) {
        lse[head.index * x.queries + row] =
            blind ? -math::detail::kInfF : most[h] + math::log(total[h]);
      }
    }
  }
  void* const results[] = {x.o, x.dq, x.dk, x.dv};
  half_store<T>(results[int(Result)], head.index, row0, kKeys ? x.keys : x.queries, columns, sums);
}

template <class T, int Columns, HalfResult Result>
void launch_half(const char* name, const AttentionArgs& x) {
  using Layout = HalfLayout<Columns>;
  constexpr bool kKeys = Result == HalfResult::dk || Result == HalfResult::dv;
  constexpr bool kGradient = Result == HalfResult::dq || Result == HalfResult::dk;
  const int64_t tiles = blocks_for(kKeys ? x.keys : x.queries, kHalfTile);
  if (tiles * x.batch == 0) return;
  const int64_t shared =
      ((kGradient ? 4 : 2) * Layout::kTile + Layout::kTurned) * int64_t(sizeof(T));
  launch({.name = name,
          .grid = {unsigned(tiles * x.batch)},
          .block = {kHalfThreads},
          .shared = shared},
         attention_tensor_cores<T, Columns, Result>, x, tiles);
}

template <class T, HalfResult Result>
void run_half(const char* name, const AttentionArgs& x) {
  if (x.depth <= 64 && x.width <= 64) return launch_half<T, 64, Result>(name, x);
  launch_half<T, kHalfAttentionColumns, Result>(name, x);
}
template <class T>
void attention_half(const AttentionArgs& x) {
  if (!by_library<T>(AttentionPass::forward, x)) run_half<T, HalfResult::o>("attention", x);
}
template <class T>
void attention_half_backward(const AttentionArgs& x) {
  if (by_library<T>(AttentionPass::backward, x)) return;
  run_half<T, HalfResult::dq>("attention_dq", x);
  run_half<T, HalfResult::dk>("attention_dk", x);
  run_half<T, HalfResult::dv>("attention_dv", x);
}

template <class T>
void register_attention_half_type(DType dtype) {
  kernels::attention.set(kDevice, dtype, &attention_half<T>);
  kernels::attention_backward.set(kDevice, dtype, &attention_half_backward<T>);
}
void register_attention_half_kernels() {
  register_attention_half_type<BFloat16>(DType::bf16);
  register_attention_half_type<Float16>(DType::f16);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
