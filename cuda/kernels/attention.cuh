#pragma once
#include <cutaway/core/kernels/attention.h>
#include <cutaway/core/math/elementary.h>
#include <cutaway/cuda/device/language.h>
#include <cutaway/cuda/ladder.h>

// Attention in tiles: scores exist only as squares in registers and shared memory.
//
// Note: how the work is cut. A block of 256 threads makes 64 columns of a tile of rows of one
// result (o, dq, dk or dv) of one head, alone: no atomics, and the same bits in every run. It walks
// over tiles of the other side: a product of two operands (scores), something done to the scores,
// a product of them with a third. Results wider than 64 columns make scores for every 64.
namespace cutaway::cuda::CUTAWAY_TARGET {

inline constexpr int kHeadThreads = 256, kDepthStep = 32, kResultColumns = 64;
// Thread (tx, ty) of 16 × 16 owns rows ty + 16i and columns tx + 16j of a tile.
template <class T>
inline constexpr int kPer = sizeof(T) == 8 ? 2 : 4;
template <class T>
inline constexpr int kTile = 16 * kPer<T>;
// Row distances in shared memory: writes that transpose, and rows read by half warps, meet no bank
// twice.
template <class T>
inline constexpr int kOperandRow = kTile<T> + 1;
template <class T>
inline constexpr int kWeightRow = kTile<T> + 16;

template <class T>
struct Square {
  T v[kPer<T>][kPer<T>];
};
template <class T>
struct ResultTile {
  T v[kPer<T>][kResultColumns / 16];
};

// A row-major operand of one head.
template <class T>
struct Rows {
  Global<const T> p;
  int64_t offset, distance, count, columns;
};

template <class T>
struct HeadTile {
  AttentionArgs x;
  int64_t head, chunk, row0;
  Rows<T> q, k, v, g, o;
  int64_t mask;  // offset
};

// The place of a block: tiles vary fastest, then columns of the result, then heads.
template <class T>
DEVICE HeadTile<T> head_tile(const AttentionArgs& x, int64_t tiles, int64_t chunks) {
  HeadTile<T> h;
  h.x = x;
  h.row0 = blockIdx.x % tiles * kTile<T>;
  h.chunk = blockIdx.x / tiles % chunks;
  h.head = blockIdx.x / tiles / chunks;
  int64_t offset[4] = {}, rest = h.head;
  for (int d = x.rank - 1; d >= 0; --d) {
    const int64_t at = rest % x.sizes[d];
    rest /= x.sizes[d];
    for (int i = 0; i < 4; ++i) offset[i] += at * x.strides[i][d];
  }
  h.q = {global<const T>(x.q), offset[0], x.q_row, x.queries, x.depth};
  h.k = {global<const T>(x.k), offset[1], x.k_row, x.keys, x.depth};
  h.v = {global<const T>(x.v), offset[2], x.v_row, x.keys, x.width};
  const int64_t dense = h.head * x.queries * x.width;
  h.g = {global<const T>(x.upstream), dense, x.width, x.queries, x.width};
  h.o = {global<const T>(x.o), dense, x.width, x.queries, x.width};
  h.mask = offset[3];
  return h;
}

// out += a bᵀ for rows a0 … of a and b0 … of b. `tiles` holds both, inner index first.
template <class T>
DEVICE void multiply_rows(Shared<T> tiles, const Rows<T>& a, int64_t a0, const Rows<T>& b,
                          int64_t b0, Square<T>& out) {
  constexpr int kRow = kOperandRow<T>, kRight = kDepthStep * kRow;
  const int thread = int(threadIdx.x), tx = thread % 16, ty = thread / 16;
  for (int64_t d0 = 0; d0 < a.columns; d0 += kDepthStep) {
    __syncthreads();
    for (int t = thread; t < kTile<T> * kDepthStep; t += kHeadThreads) {
      const int d = t % kDepthStep, r = t / kDepthStep;
      T u = 0, v = 0;
      if (d0 + d < a.columns && a0 + r < a.count)
        u = a.p[a.offset + (a0 + r) * a.distance + d0 + d];
      if (d0 + d < a.columns && b0 + r < b.count)
        v = b.p[b.offset + (b0 + r) * b.distance + d0 + d];
      tiles[d * kRow + r] = u;
      tiles[kRight + d * kRow + r] = v;
    }
    __syncthreads();
    for (int d = 0; d < kDepthStep; ++d) {
      T u[kPer<T>], v[kPer<T>];
      for (int i = 0; i < kPer<T>; ++i) u[i] = tiles[d * kRow + ty + 16 * i];
      for (int j = 0; j < kPer<T>; ++j) v[j] = tiles[kRight + d * kRow + tx + 16 * j];
      for (int i = 0; i < kPer<T>; ++i) {
        for (int j = 0; j < kPer<T>; ++j) out.v[i][j] += u[i] * v[j];
      }
    }
  }
}

// out += w m for columns c0 … of the rows m0 … of m; w is first put into shared memory.
template <class T>
DEVICE void multiply_weights(Shared<T> weights, Shared<T> tiles, const Square<T>& w,
                             const Rows<T>& m, int64_t m0, int64_t c0, ResultTile<T>& out) {
  constexpr int kRow = kWeightRow<T>, kStep = 32;
  const int thread = int(threadIdx.x), tx = thread % 16, ty = thread / 16;
  for (int i = 0; i < kPer<T>; ++i) {
    for (int j = 0; j < kPer<T>; ++j) weights[(ty + 16 * i) * kRow + tx + 16 * j] = w.v[i][j];
  }
  for (int q0 = 0; q0 < kTile<T>; q0 += kStep) {
    __syncthreads();
    for (int t = thread; t < kStep * kResultColumns; t += kHeadThreads) {
      const int c = t % kResultColumns, q = t / kResultColumns;
      const int64_t row = m0 + q0 + q;
      T v = 0;
      if (row < m.count && c0 + c < m.columns) v = m.p[m.offset + row * m.distance + c0 + c];
      tiles[t] = v;
    }
    __syncthreads();
    for (int q = 0; q < kStep; ++q) {
      T u[kPer<T>], v[kResultColumns / 16];
      for (int i = 0; i < kPer<T>; ++i) u[i] = weights[(ty + 16 * i) * kRow + q0 + q];
      for (int j = 0; j < kResultColumns / 16; ++j) {
        v[j] = tiles[q * kResultColumns + tx + 16 * j];
      }
      for (int i = 0; i < kPer<T>; ++i) {
        for (int j = 0; j < kResultColumns / 16; ++j) out.v[i][j] += u[i] * v[j];
      }
    }
  }
}

inline constexpr double kInfinity = __builtin_inf();
// Scale, masks and bounds; -inf where the query may not look. Rows are keys if RowsAreKeys, else
// queries.
template <bool RowsAreKeys, class T>
DEVICE void finish_scores(const HeadTile<T>& h, int64_t column0, Square<T>& s) {
  const AttentionArgs& x = h.x;
  const auto allowed = global<const bool>(x.allowed);
  const auto added = global<const T>(x.added);
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  for (int i = 0; i < kPer<T>; ++i) {
    for (int j = 0; j < kPer<T>; ++j) {
      const int64_t row = h.row0 + ty + 16 * i, column = column0 + tx + 16 * j;
      const int64_t query = RowsAreKeys ? column : row, key = RowsAreKeys ? row : column;
      T v = T(-kInfinity);
      if (query < x.queries && key < x.keys && !(x.causal && key > query)) {
        const int64_t at = h.mask + query * x.mask_row + key * x.mask_column;
        v = s.v[i][j] * T(x.scale);
        if (x.added) {
          const T more = added[at];
          v += more;
        }
        if (x.allowed) {
          const bool may = allowed[at];
          v = may ? v : T(-kInfinity);
        }
      }
      s.v[i][j] = v;
    }
  }
}

// Over the 16 threads that share a row.
template <class T>
DEVICE T row_sum(T v) {
  for (int step = 8; step > 0; step /= 2) v += __shfl_xor_sync(kAllLanes, v, step);
  return v;
}
// NaN counts as largest: it must reach the result.
template <class T>
DEVICE T larger(T a, T b) {
  return b > a || b != b ? b : a;
}

// Online softmax of one tile: s becomes exp(s − maximum), what was summed before shrinks.
template <class T>
DEVICE void soften(Square<T>& s, T (&most)[kPer<T>], double (&sum)[kPer<T>], ResultTile<T>& out) {
  for (int i = 0; i < kPer<T>; ++i) {
    T top = most[i];
    for (int j = 0; j < kPer<T>; ++j) top = larger(top, s.v[i][j]);
    for (int step = 8; step > 0; step /= 2) {
      top = larger(top, __shfl_xor_sync(kAllLanes, top, step));
    }
    const bool blind = top == T(-kInfinity);
    const T keep = blind ? T(1) : math::exp(most[i] - top);
    most[i] = top;
    T total = 0;
    for (int j = 0; j < kPer<T>; ++j) {
      s.v[i][j] = blind ? T(0) : math::exp(s.v[i][j] - top);
      total += s.v[i][j];
    }
    sum[i] = sum[i] * double(keep) + double(row_sum(total));
    for (int j = 0; j < kResultColumns / 16; ++j) out.v[i][j] *= keep;
  }
}

template <class T>
DEVICE void store_result(void* to, const HeadTile<T>& h, const ResultTile<T>& r, int64_t rows,
                         int64_t columns, int64_t column0) {
  const auto out = global<T>(to);
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  for (int i = 0; i < kPer<T>; ++i) {
    for (int j = 0; j < kResultColumns / 16; ++j) {
      const int64_t row = h.row0 + ty + 16 * i, column = column0 + tx + 16 * j;
      if (row < rows && column < columns) {
        out[(h.head * rows + row) * columns + column] = r.v[i][j];
      }
    }
  }
}

template <class T>
inline constexpr int kTilesSize = 2 * kDepthStep* kOperandRow<T>;

template <class T>
KERNEL attention_rows(AttentionArgs x, int64_t tiles, int64_t chunks) {
  SHARED(T, operands, kTilesSize<T>);
  SHARED(T, weights, kTile<T> * kWeightRow<T>);
  const HeadTile<T> h = head_tile<T>(x, tiles, chunks);
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  ResultTile<T> out = {};
  T most[kPer<T>];
  double sum[kPer<T>] = {};
  for (int i = 0; i < kPer<T>; ++i) most[i] = T(-kInfinity);
  const int64_t end = x.causal ? min(x.keys, h.row0 + kTile<T>) : x.keys;
  for (int64_t k0 = 0; k0 < end; k0 += kTile<T>) {
    Square<T> s = {};
    multiply_rows(operands, h.q, h.row0, h.k, k0, s);
    finish_scores<false>(h, k0, s);
    soften(s, most, sum, out);
    multiply_weights(weights, operands, s, h.v, k0, h.chunk * kResultColumns, out);
  }
  const auto lse = global<T>(x.lse);
  for (int i = 0; i < kPer<T>; ++i) {
    const bool blind = sum[i] == 0;  // may look nowhere
    const T factor = blind ? T(0) : T(1 / sum[i]);
    for (int j = 0; j < kResultColumns / 16; ++j) out.v[i][j] *= factor;
    const int64_t row = h.row0 + ty + 16 * i;
    if (h.chunk == 0 && tx == 0 && row < x.queries) {
      lse[h.head * x.queries + row] =
          blind ? T(-kInfinity) : T(double(most[i]) + math::log(sum[i]));
    }
  }
  store_result(x.o, h, out, x.queries, x.width, h.chunk * kResultColumns);
}

// Backward: p = exp(s − lse); dv = pᵀ g; ds = p ∘ (g vᵀ − dot), dot_i = Σ_e g_ie o_ie;
// dq = scale ds k; dk = scale dsᵀ q.
// dots and lse of the queries from q0 on, in shared memory.
template <class T>
DEVICE void load_query_rows(const HeadTile<T>& h, int64_t q0, Shared<T> dots, Shared<T> lses) {
  const auto lse = global<const T>(h.x.lse);
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  __syncthreads();
  for (int i = 0; i < kPer<T>; ++i) {
    const int64_t query = q0 + ty + 16 * i;
    double sum = 0;
    if (query < h.x.queries) {
      for (int64_t e = tx; e < h.x.width; e += 16) {
        const T g = h.g.p[h.g.offset + query * h.x.width + e];
        const T o = h.o.p[h.o.offset + query * h.x.width + e];
        sum += double(g) * double(o);
      }
    }
    sum = row_sum(sum);
    if (tx == 0) {
      T log_sum = T(-kInfinity);
      if (query < h.x.queries) log_sum = lse[h.head * h.x.queries + query];
      dots[ty + 16 * i] = T(sum);
      lses[ty + 16 * i] = log_sum;
    }
  }
  __syncthreads();
}

// Scores to probabilities.
template <bool RowsAreKeys, class T>
DEVICE void probabilities(Shared<T> lses, Square<T>& s) {
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  for (int i = 0; i < kPer<T>; ++i) {
    for (int j = 0; j < kPer<T>; ++j) {
      const T lse = lses[RowsAreKeys ? tx + 16 * j : ty + 16 * i];
      const bool blind = lse == T(-kInfinity);
      s.v[i][j] = blind ? T(0) : math::exp(s.v[i][j] - lse);
    }
  }
}

// p becomes scale · p ∘ (dp − dot).
template <bool RowsAreKeys, class T>
DEVICE void score_gradients(Shared<T> dots, const Square<T>& dp, T scale, Square<T>& p) {
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  for (int i = 0; i < kPer<T>; ++i) {
    for (int j = 0; j < kPer<T>; ++j) {
      const T dot = dots[RowsAreKeys ? tx + 16 * j : ty + 16 * i];
      p.v[i][j] *= scale * (dp.v[i][j] - dot);
    }
  }
}

template <class T>
KERNEL attention_query_gradients(AttentionArgs x, int64_t tiles, int64_t chunks) {
  SHARED(T, operands, kTilesSize<T>);
  SHARED(T, weights, kTile<T> * kWeightRow<T>);
  SHARED(T, dots, kTile<T>);
  SHARED(T, lses, kTile<T>);
  const HeadTile<T> h = head_tile<T>(x, tiles, chunks);
  load_query_rows(h, h.row0, dots, lses);
  ResultTile<T> out = {};
  const int64_t end = x.causal ? min(x.keys, h.row0 + kTile<T>) : x.keys;
  for (int64_t k0 = 0; k0 < end; k0 += kTile<T>) {
    Square<T> p = {}, dp = {};
    multiply_rows(operands, h.q, h.row0, h.k, k0, p);
    finish_scores<false>(h, k0, p);
    probabilities<false>(lses, p);
    multiply_rows(operands, h.g, h.row0, h.v, k0, dp);
    score_gradients<false>(dots, dp, T(x.scale), p);
    multiply_weights(weights, operands, p, h.k, k0, h.chunk * kResultColumns, out);
  }
  store_result(x.dq, h, out, x.queries, x.depth, h.chunk * kResultColumns);
}

// The first `value_chunks` chunks are of dv, the others of dk.
template <class T>
KERNEL attention_key_gradients(AttentionArgs x, int64_t tiles, int64_t chunks,
                               int64_t value_chunks) {
  SHARED(T, operands, kTilesSize<T>);
  SHARED(T, weights, kTile<T> * kWeightRow<T>);
  SHARED(T, dots, kTile<T>);
  SHARED(T, lses, kTile<T>);
  const HeadTile<T> h = head_tile<T>(x, tiles, chunks);
  const bool values = h.chunk < value_chunks;  // the same for the whole block
  const int64_t column0 = (values ? h.chunk : h.chunk - value_chunks) * kResultColumns;
  ResultTile<T> out = {};
  for (int64_t q0 = x.causal ? h.row0 : 0; q0 < x.queries; q0 += kTile<T>) {
    load_query_rows(h, q0, dots, lses);
    Square<T> p = {}, dp = {};
    multiply_rows(operands, h.k, h.row0, h.q, q0, p);
    finish_scores<true>(h, q0, p);
    probabilities<true>(lses, p);
    if (values) {
      multiply_weights(weights, operands, p, h.g, q0, column0, out);
      continue;
    }
    multiply_rows(operands, h.v, h.row0, h.g, q0, dp);
    score_gradients<true>(dots, dp, T(x.scale), p);
    multiply_weights(weights, operands, p, h.q, q0, column0, out);
  }
  store_result(values ? x.dv : x.dk, h, out, x.keys, values ? x.width : x.depth, column0);
}

inline Launch head_launch(const char* name, int64_t blocks) {
  return {.name = name, .grid = {unsigned(blocks)}, .block = {kHeadThreads}};
}
template <class T>
void attention(const AttentionArgs& x) {
  if (x.batch == 0 || x.queries == 0) return;
  const int64_t tiles = blocks_for(x.queries, kTile<T>);
  const int64_t chunks = x.width > 0 ? blocks_for(x.width, kResultColumns) : 1;
  launch(head_launch("attention", tiles * chunks * x.batch), attention_rows<T>, x, tiles, chunks);
}

template <class T>
void attention_backward(const AttentionArgs& x) {
  if (x.batch == 0) return;
  const int64_t depth = blocks_for(x.depth, kResultColumns);
  const int64_t width = blocks_for(x.width, kResultColumns);
  const int64_t queries = blocks_for(x.queries, kTile<T>), keys = blocks_for(x.keys, kTile<T>);
  if (queries * depth > 0) {
    launch(head_launch("attention_query_gradients", queries * depth * x.batch),
           attention_query_gradients<T>, x, queries, depth);
  }
  if (keys * (width + depth) > 0) {
    launch(head_launch("attention_key_gradients", keys * (width + depth) * x.batch),
           attention_key_gradients<T>, x, keys, width + depth, width);
  }
}

template <class T>
void register_attention_type(DType dtype) {
  kernels::attention.set(kDevice, dtype, &attention<T>);
  kernels::attention_backward.set(kDevice, dtype, &attention_backward<T>);
}

inline Ladder<AttentionArgs> attention_ladder();  // ladder_attention.cuh
void register_attention_kernels() {
  ladders_to_fill(kDevice).attention = attention_ladder();
  register_attention_type<double>(DType::f64);
  register_attention_type<float>(DType::f32);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET

#include <cutaway/cuda/kernels/ladder_attention.cuh>
