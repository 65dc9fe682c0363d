#include <cutaway/core/kernels/attention.h>

#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/cpu/small_product.h>
#include <cutaway/core/cpu/vector_math.h>
#include <cutaway/core/math/rows.h>
#include <cutaway/core/parallel.h>

// Note: tiled attention. Scores exist only as tiles of kQueryTile × kKeyTile. The forward pass
// keeps for each query the running maximum and sum of exponentials and rescales what it has
// whenever the maximum grows. The backward pass makes the tiles again from the saved logarithm of
// that sum.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kQueryTile = 64, kKeyTile = 128;

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Pointers of one head.
template <class T>
struct Head {
  const T *q, *k, *v, *added;
  const bool* allowed;
  T *o, *lse;
};

// Where q, k, v and the mask of head `index` begin, in elements.
void head_offsets(const AttentionArgs& x, int64_t index, int64_t (&offset)[4]) {
  for (int64_t& o : offset) o = 0;
  for (int d = x.rank - 1; d >= 0; --d) {
    const int64_t at = index % x.sizes[d];
    index /= x.sizes[d];
    for (int i = 0; i < 4; ++i) offset[i] += at * x.strides[i][d];
  }
}

template <class T>
Head<T> head_at(const AttentionArgs& x, int64_t index) {
  int64_t offset[4];
  head_offsets(x, index, offset);
  return {static_cast<const T*>(x.q) + offset[0],
          static_cast<const T*>(x.k) + offset[1],
          static_cast<const T*>(x.v) + offset[2],
          x.added ? static_cast<const T*>(x.added) + offset[3] : nullptr,
          x.allowed ? x.allowed + offset[3] : nullptr,
          static_cast<T*>(x.o) + index * x.queries * x.width,
          static_cast<T*>(x.lse) + index * x.queries};
}

// Rows [q0, q1) of the queries against rows [k0, k1) of the keys.
struct Tile {
  int64_t q0, q1, k0, k1;
  int64_t rows() const { return q1 - q0; }
  int64_t columns() const { return k1 - k0; }
};

template <class T>
constexpr T kMinusInf = -T(__builtin_inf());

// s [rows, columns] dense = the scores of a tile; -inf where the query may not look.
template <class T>
void scores(const AttentionArgs& x, const Head<T>& h, const Tile& t, T* s) {
  const int64_t n = t.columns();
  multiply(Product<T>{.m = t.rows(),
                      .n = n,
                      .k = x.depth,
                      .a = {h.q + t.q0 * x.q_row, x.q_row, 1},
                      .b = {h.k + t.k0 * x.k_row, 1, x.k_row},
                      .c = s,
                      .c_row = n,
                      .alpha = T(x.scale)});
  for (int64_t i = t.q0; i < t.q1; ++i) {
    T* row = s + (i - t.q0) * n;
    if (h.added) {
      const T* m = h.added + i * x.mask_row + t.k0 * x.mask_column;
      for (int64_t j = 0; j < n; ++j) row[j] += m[j * x.mask_column];
    }
    if (h.allowed) {
      const bool* m = h.allowed + i * x.mask_row + t.k0 * x.mask_column;
      for (int64_t j = 0; j < n; ++j) row[j] = m[j * x.mask_column] ? row[j] : kMinusInf<T>;
    }
    if (x.causal) {
      for (int64_t j = i + 1 > t.k0 ? i + 1 - t.k0 : 0; j < n; ++j) row[j] = kMinusInf<T>;
    }
  }
}

template <class T>
void exp_all(T* s, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    map_vectors([](auto v) { return math::lanes::exp(v); }, n, s, s);
  } else {
    for (int64_t i = 0; i < n; ++i) s[i] = math::exp(s[i]);
  }
}

// First key that no query of the tile may look at.
int64_t keys_end(const AttentionArgs& x, int64_t q1) {
  return x.causal ? least(x.keys, q1) : x.keys;
}

// Online softmax: s becomes exp(s − maximum); `most` and `sum` are updated, `keep` says by how much
// the earlier result must shrink. Sums in f64.
template <class T>
void soften(T* s, int64_t rows, int64_t columns, T* most, double* sum, T* keep) {
  for (int64_t i = 0; i < rows; ++i) {
    T* row = s + i * columns;
    T top = most[i];
    int bad = 0;  // NaN must reach the result
#pragma omp simd reduction(max : top) reduction(| : bad)
    for (int64_t j = 0; j < columns; ++j) {
      top = row[j] > top ? row[j] : top;
      bad |= row[j] != row[j];
    }
    if (bad) top = T(__builtin_nan(""));
    keep[i] = 1;
    if (top == kMinusInf<T>) continue;  // all of the row is, and becomes 0
    keep[i] = math::exp(most[i] - top);
    most[i] = top;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) row[j] -= top;
  }
  exp_all(s, rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = s + i * columns;
    double total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t j = 0; j < columns; ++j) total += double(row[j]);
    sum[i] = sum[i] * double(keep[i]) + total;
  }
}

template <class T>
void forward_rows(const AttentionArgs& x, const Head<T>& h, int64_t q0, int64_t q1) {
  const int64_t rows = q1 - q0, width = x.width;
  Scratch<T> s(rows * kKeyTile), most(rows), keep(rows);
  Scratch<double> sum(rows);
  T* out = h.o + q0 * width;
  for (int64_t i = 0; i < rows; ++i) {
    most[i] = kMinusInf<T>;
    sum[i] = 0;
  }
  for (int64_t i = 0; i < rows * width; ++i) out[i] = 0;
  const int64_t end = keys_end(x, q1);
  for (int64_t k0 = 0; k0 < end; k0 += kKeyTile) {
    const Tile t{q0, q1, k0, least(end, k0 + kKeyTile)};
    scores(x, h, t, s.get());
    soften(s.get(), rows, t.columns(), most.get(), sum.get(), keep.get());
    if (k0 > 0) {
      for (int64_t i = 0; i < rows; ++i) {
        if (keep[i] == 1) continue;
        for (int64_t e = 0; e < width; ++e) out[i * width + e] *= keep[i];
      }
    }
    multiply(Product<T>{.m = rows,
                        .n = width,
                        .k = t.columns(),
                        .a = {s.get(), t.columns(), 1},
                        .b = {h.v + k0 * x.v_row, x.v_row, 1},
                        .c = out,
                        .c_row = width,
                        .beta = T(k0 > 0)});
  }
  for (int64_t i = 0; i < rows; ++i) {
    const double total = sum[i];
    const bool blind = total == 0;  // may look nowhere
    const T factor = blind ? T(0) : T(1 / total);
    for (int64_t e = 0; e < width; ++e) out[i * width + e] *= factor;
    h.lse[q0 + i] = blind ? kMinusInf<T> : T(double(most[i]) + __builtin_log(total));
  }
}

// run(begin, end, tiles) for ranges of the tiles of queries of all heads: i is tile i % tiles of
// head i / tiles.
template <class F>
void in_tiles(const AttentionArgs& x, F run) {
  const int64_t tiles = (x.queries + kQueryTile - 1) / kQueryTile;
  const int64_t work = x.queries * x.keys * (x.depth + x.width) / (tiles > 0 ? tiles : 1);
  parallel_for(x.batch * tiles, 1 + 4 * kGrain / (work + 1),
               [&](int64_t begin, int64_t end) { run(begin, end, tiles); });
}

template <class T>
void attention(const AttentionArgs& x) {
  in_tiles(x, [&](int64_t begin, int64_t end, int64_t tiles) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t q0 = i % tiles * kQueryTile;
      forward_rows(x, head_at<T>(x, i / tiles), q0, least(x.queries, q0 + kQueryTile));
    }
  });
}

// Gradients of one head.
template <class T>
struct HeadGradient {
  const T* g;
  T *dq, *dk, *dv;
};

// p [rows, columns] = probabilities of a tile, from the saved lse.
template <class T>
void probabilities(const AttentionArgs& x, const Head<T>& h, const Tile& t, T* p) {
  scores(x, h, t, p);
  for (int64_t i = 0; i < t.rows(); ++i) {
    T* row = p + i * t.columns();
    const T lse = h.lse[t.q0 + i];
    const bool blind = lse == kMinusInf<T>;  // may look nowhere
#pragma omp simd
    for (int64_t j = 0; j < t.columns(); ++j) row[j] = blind ? kMinusInf<T> : row[j] - lse;
  }
  exp_all(p, t.rows() * t.columns());
}

// Adds what one tile gives: dv += pᵀ g; ds = p ∘ (g vᵀ − dot); dq += ds k; dk += dsᵀ q.
template <class T>
void tile_gradients(const AttentionArgs& x, const Head<T>& h, const HeadGradient<T>& d,
                    const Tile& t, const T* dot, T* p, T* ds) {
  const int64_t rows = t.rows(), n = t.columns();
  probabilities(x, h, t, p);
  const T* g = d.g + t.q0 * x.width;
  multiply(Product<T>{.m = n,
                      .n = x.width,
                      .k = rows,
                      .a = {p, 1, n},
                      .b = {g, x.width, 1},
                      .c = d.dv + t.k0 * x.width,
                      .c_row = x.width,
                      .beta = 1});
  multiply(Product<T>{.m = rows,
                      .n = n,
                      .k = x.width,
                      .a = {g, x.width, 1},
                      .b = {h.v + t.k0 * x.v_row, 1, x.v_row},
                      .c = ds,
                      .c_row = n});
  for (int64_t i = 0; i < rows; ++i) {
    T* row = ds + i * n;
    const T* weights = p + i * n;
    const T sum = dot[i];
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) row[j] = weights[j] * (row[j] - sum);
  }
  multiply(Product<T>{.m = rows,
                      .n = x.depth,
                      .k = n,
                      .a = {ds, n, 1},
                      .b = {h.k + t.k0 * x.k_row, x.k_row, 1},
                      .c = d.dq + t.q0 * x.depth,
                      .c_row = x.depth,
                      .alpha = T(x.scale),
                      .beta = 1});
  multiply(Product<T>{.m = n,
                      .n = x.depth,
                      .k = rows,
                      .a = {ds, 1, n},
                      .b = {h.q + t.q0 * x.q_row, x.q_row, 1},
                      .c = d.dk + t.k0 * x.depth,
                      .c_row = x.depth,
                      .alpha = T(x.scale),
                      .beta = 1});
}

template <class T>
void backward_head(const AttentionArgs& x, const Head<T>& h, const HeadGradient<T>& d) {
  for (int64_t i = 0; i < x.queries * x.depth; ++i) d.dq[i] = 0;
  for (int64_t i = 0; i < x.keys * x.depth; ++i) d.dk[i] = 0;
  for (int64_t i = 0; i < x.keys * x.width; ++i) d.dv[i] = 0;
  Scratch<T> p(kQueryTile * kKeyTile), ds(kQueryTile * kKeyTile), dot(kQueryTile);
  for (int64_t q0 = 0; q0 < x.queries; q0 += kQueryTile) {
    const int64_t q1 = least(x.queries, q0 + kQueryTile);
    for (int64_t i = q0; i < q1; ++i) {
      double sum = 0;
      for (int64_t e = 0; e < x.width; ++e) {
        sum += double(d.g[i * x.width + e]) * double(h.o[i * x.width + e]);
      }
      dot[i - q0] = T(sum);
    }
    const int64_t end = keys_end(x, q1);
    for (int64_t k0 = 0; k0 < end; k0 += kKeyTile) {
      const Tile t{q0, q1, k0, least(end, k0 + kKeyTile)};
      tile_gradients(x, h, d, t, dot.get(), p.get(), ds.get());
    }
  }
}

// run(begin, end) for ranges of heads.
template <class F>
void over_heads(const AttentionArgs& x, F run) {
  const int64_t work = x.queries * x.keys * (x.depth + x.width);
  parallel_for(x.batch, 1 + 4 * kGrain / (work + 1), run);
}

template <class T>
void attention_backward(const AttentionArgs& x) {
  over_heads(x, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const HeadGradient<T> d{static_cast<const T*>(x.upstream) + i * x.queries * x.width,
                              static_cast<T*>(x.dq) + i * x.queries * x.depth,
                              static_cast<T*>(x.dk) + i * x.keys * x.depth,
                              static_cast<T*>(x.dv) + i * x.keys * x.width};
      backward_head(x, head_at<T>(x, i), d);
    }
  });
}

// ---- bf16 and f16: heads are converted on the way in and out; everything between is f32

// x [rows, columns] with rows `row` apart as a dense f32 matrix.
template <class S>
void widen(const void* x, int64_t offset, int64_t row, int64_t rows, int64_t columns, float* out) {
  const S* from = static_cast<const S*>(x) + offset;
  for (int64_t i = 0; i < rows; ++i) {
    math::convert_row(from + i * row, out + i * columns, columns);
  }
}

// Operands of one head in f32.
template <class S>
class WideHead {
 public:
  explicit WideHead(const AttentionArgs& x)
      : args(x), q_(x.queries * x.depth), k_(x.keys * x.depth), v_(x.keys * x.width) {
    args.q_row = args.k_row = x.depth;
    args.v_row = x.width;
  }
  // Converts head `index`, unless it is the one that is there.
  void load(const AttentionArgs& x, int64_t index) {
    if (index == index_) return;
    index_ = index;
    int64_t offset[4];
    head_offsets(x, index, offset);
    widen<S>(x.q, offset[0], x.q_row, x.queries, x.depth, q_.get());
    widen<S>(x.k, offset[1], x.k_row, x.keys, x.depth, k_.get());
    widen<S>(x.v, offset[2], x.v_row, x.keys, x.width, v_.get());
    head = {q_.get(),
            k_.get(),
            v_.get(),
            x.added ? static_cast<const float*>(x.added) + offset[3] : nullptr,
            x.allowed ? x.allowed + offset[3] : nullptr,
            nullptr,
            static_cast<float*>(x.lse) + index * x.queries};
  }
  AttentionArgs args;
  Head<float> head;

 private:
  int64_t index_ = -1;
  Scratch<float> q_, k_, v_;
};

template <class S>
void half_attention(const AttentionArgs& x) {
  in_tiles(x, [&](int64_t begin, int64_t end, int64_t tiles) {
    WideHead<S> wide(x);
    Scratch<float> out(x.queries * x.width);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = i / tiles, q0 = i % tiles * kQueryTile;
      const int64_t q1 = least(x.queries, q0 + kQueryTile);
      wide.load(x, index);
      wide.head.o = out.get();
      forward_rows(wide.args, wide.head, q0, q1);
      math::convert_row(out.get() + q0 * x.width,
                        static_cast<S*>(x.o) + (index * x.queries + q0) * x.width,
                        (q1 - q0) * x.width);
    }
  });
}

template <class S>
void half_attention_backward(const AttentionArgs& x) {
  const int64_t nq = x.queries * x.depth, nk = x.keys * x.depth, nv = x.keys * x.width;
  const int64_t no = x.queries * x.width;
  over_heads(x, [&](int64_t begin, int64_t end) {
    WideHead<S> wide(x);
    Scratch<float> o(no), g(no), dq(nq), dk(nk), dv(nv);
    for (int64_t i = begin; i < end; ++i) {
      wide.load(x, i);
      math::convert_row(static_cast<const S*>(x.o) + i * no, o.get(), no);
      math::convert_row(static_cast<const S*>(x.upstream) + i * no, g.get(), no);
      wide.head.o = o.get();
      backward_head<float>(wide.args, wide.head, {g.get(), dq.get(), dk.get(), dv.get()});
      math::convert_row(dq.get(), static_cast<S*>(x.dq) + i * nq, nq);
      math::convert_row(dk.get(), static_cast<S*>(x.dk) + i * nk, nk);
      math::convert_row(dv.get(), static_cast<S*>(x.dv) + i * nv, nv);
    }
  });
}

template <class S>
void register_half_type(DType dtype) {
  kernels::attention.set(DeviceKind::cpu, dtype, &half_attention<S>);
  kernels::attention_backward.set(DeviceKind::cpu, dtype, &half_attention_backward<S>);
}

template <class T>
void register_type(DType dtype) {
  kernels::attention.set(DeviceKind::cpu, dtype, &attention<T>);
  kernels::attention_backward.set(DeviceKind::cpu, dtype, &attention_backward<T>);
}

}  // namespace

void register_attention_kernels() {
  register_type<double>(DType::f64);
  register_type<float>(DType::f32);
  register_half_type<BFloat16>(DType::bf16);
  register_half_type<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
