#include <cutaway/autograd/ops/decompositions.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/linalg.h>
#include <cutaway/autograd/ops/linalg_checks.h>
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>

namespace cutaway {

// Samples: decompositions_samples.cpp.
void qr_samples(SampleList&);
void eigh_samples(SampleList&);
void svd_samples(SampleList&);

namespace linalg {
namespace {

Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }
Tensor skew(const Tensor& x) { return x - transposed(x); }
Tensor scale_columns(const Tensor& x, const Tensor& s) { return x * s.unsqueeze(-2); }
Tensor times_transposed(const Tensor& a, const Tensor& b) {
  return matmul(a, b, {.transpose_b = true});
}
Tensor transposed_times(const Tensor& a, const Tensor& b) {
  return matmul(a, b, {.transpose_a = true});
}

// ---- qr

void qr_forward(Call& c) {
  check_matrix(c, 0);
  const Tensor& x = c.in(0);
  const int64_t m = x.size(-2), n = x.size(-1), k = std::min(m, n);
  const Shape batch = batch_of(x);
  c.out(0, with_matrix(batch, m, k), x.dtype());
  c.out(1, with_matrix(batch, k, n), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x);
  const Tensor q = host_room(c.outputs[0]), r = host_room(c.outputs[1]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    dense::qr(batch.numel(), m, n, a.data<T>(), q.data<T>(), r.data<T>());
  });
  deliver(c.outputs[0], q);
  deliver(c.outputs[1], r);
}

// With M = r grᵀ − gqᵀ q and its lower triangle mirrored: dx r ᵀ = gq + q mirrored(M).
void qr_backward(Backward& b) {
  const Tensor q = b.output(0), r = b.output(1);
  if (r.size(-2) != r.size(-1)) {
    throw AutogradError("qr", fmt::format("the derivative needs at least as many rows as columns; "
                                          "got q {}, r {}",
                                          to_string(q.sizes()), to_string(r.sizes())));
  }
  const Tensor gq = b.upstream(0), gr = b.upstream(1);
  const Tensor m = times_transposed(r, gr) - transposed_times(gq, q);
  const Tensor mirrored = tril(m) + transposed(tril(m, -1));
  const Tensor right = gq + matmul(q, mirrored);
  b.set(0, transposed(solve_triangular(r, transposed(right), {.upper = true})));
}

const OpRecord kQr{
    .name = "qr",
    .signature = "linalg::qr(x) → q, r",
    .meaning = "Orthonormal columns times an upper triangle with a diagonal that is not negative.",
    .formula = "x = q r,  qᵀ q = 1",
    .shapes = "x [..., m, n]   q [..., m, k]   r [..., k, n]   k = min(m, n)",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .outputs = 2,
    .save_outputs = 0b11,
    .forward = qr_forward,
    .backward_text = "M = r grᵀ − gqᵀ q,  dx = (gq + q (tril(M) + tril(M, −1)ᵀ)) r⁻ᵀ",
    .backward = qr_backward,
    .samples = qr_samples,
};

// ---- equal values

// Relative distance below which two eigenvalues or singular values count as equal, and size below
// which a part of the upstream gradient counts as 0.
struct Closeness {
  double equal, zero;
};
Closeness closeness(DType t) {
  return t == DType::f64 ? Closeness{1e-13, 1e-8} : Closeness{1e-5, 1e-3};
}

[[noreturn, gnu::cold]] void throw_undetermined(const char* op, const char* what) {
  throw AutogradError(
      op,
      fmt::format("two {} are equal, and the upstream gradient depends on how "
                  "their vectors were chosen",
                  what),
      "use functions of the values alone, or separate the values by a small change");
}

// Values of one batch entry, for decisions that are constants to the derivative.
struct Plain {
  int64_t n;
  std::vector<double> v;  // [batch, n, n]
  Plain(const Tensor& x) : n(x.size(-1)), v(x.detach().to_vector()) {}
  double at(int64_t batch, int64_t i, int64_t j) const {
    return v[size_t((batch * n + i) * n + j)];
  }
  double largest() const {
    double most = 0;
    for (double x : v) most = std::max(most, std::fabs(x));
    return most;
  }
};

// [..., n, n] true where values i and j are equal (always on the diagonal).
Tensor equal_values(const Tensor& values) {
  const std::vector<double> w = values.detach().to_vector();
  const int64_t n = values.size(-1), batch = n > 0 ? int64_t(w.size()) / n : 0;
  std::vector<double> same;
  for (int64_t b = 0; b < batch; ++b) {
    double largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(w[size_t(b * n + i)]));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const double distance = std::fabs(w[size_t(b * n + i)] - w[size_t(b * n + j)]);
        same.push_back(distance <= double(n) * closeness(values.dtype()).equal * largest);
      }
    }
  }
  Shape sizes = values.sizes();
  sizes.push_back(n);
  const Opts opts{.dtype = DType::boolean, .device = values.device()};
  return tensor(std::span<const double>(same), opts).reshape(sizes);
}

// Raises unless the skew part `x` is 0 wherever values are equal.
void check_gauge(const char* op, const char* what, const Tensor& x, const Tensor& same,
                 double scale) {
  const Plain values(x), equal(same);
  const double limit = closeness(x.dtype()).zero * (scale + 1e-300);
  for (size_t i = 0; i < values.v.size(); ++i) {
    if (equal.v[i] != 0 && std::fabs(values.v[i]) > limit) throw_undetermined(op, what);
  }
}

// x_ij / (w_j − w_i), and 0 where the values are equal.
Tensor over_distances(const Tensor& x, const Tensor& w, const Tensor& same) {
  const Tensor distance = w.unsqueeze(-2) - w.unsqueeze(-1);
  return masked_fill(x, same, 0) / masked_fill(distance, same, 1);
}

// ---- eigh

void eigh_forward(Call& c) {
  check_square(c, 0);
  const Tensor& x = c.in(0);
  const int64_t n = x.size(-1);
  Shape values = batch_of(x);
  const int64_t batch = values.numel();
  values.push_back(n);
  c.out(0, values, x.dtype());
  c.out(1, x.sizes(), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x);
  const Tensor w = host_room(c.outputs[0]), v = host_room(c.outputs[1]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto fault = dense::eigh(batch, n, a.data<T>(), w.data<T>(), v.data<T>());
    check_fault("eigh", fault, "x must be finite, and the iteration must converge", x, "");
  });
  deliver(c.outputs[0], w);
  deliver(c.outputs[1], v);
}

// dx = v (diag(gw) + k) vᵀ, k_ij = skew(vᵀ gv)_ij / (2 (w_j − w_i)).
void eigh_backward(Backward& b) {
  const Tensor w = b.output(0), v = b.output(1);
  Tensor inner = diag_embed(b.upstream(0));
  if (b.has_upstream(1) && v.numel() > 0) {
    const Tensor product = transposed_times(v, b.upstream(1));
    const Tensor k = skew(product) * 0.5, same = equal_values(w);
    check_gauge("eigh", "eigenvalues", k, same, Plain(product).largest());
    inner = inner + over_distances(k, w, same);
  }
  b.set(0, times_transposed(matmul(v, inner), v));
}

const OpRecord kEigh{
    .name = "eigh",
    .signature = "linalg::eigh(x) → w, v",
    .meaning = "Eigenvalues and orthonormal eigenvectors of the symmetric part, ascending.",
    .formula = "(x + xᵀ) / 2 = v diag(w) vᵀ",
    .shapes = "x [..., n, n]   w [..., n]   v [..., n, n]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .outputs = 2,
    .save_outputs = 0b11,
    .forward = eigh_forward,
    .backward_text = "dx = v (diag(gw) + skew(vᵀ gv)_ij / (2 (w_j − w_i))) vᵀ",
    .backward = eigh_backward,
    .samples = eigh_samples,
};

// ---- svd

void svd_forward(Call& c) {
  check_matrix(c, 0);
  const Tensor& x = c.in(0);
  const int64_t m = x.size(-2), n = x.size(-1), k = std::min(m, n);
  const Shape batch = batch_of(x);
  Shape values = batch;
  values.push_back(k);
  c.out(0, with_matrix(batch, m, k), x.dtype());
  c.out(1, values, x.dtype());
  c.out(2, with_matrix(batch, k, n), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x);
  const Tensor u = host_room(c.outputs[0]), s = host_room(c.outputs[1]),
               vh = host_room(c.outputs[2]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto fault =
        dense::svd(batch.numel(), m, n, a.data<T>(), u.data<T>(), s.data<T>(), vh.data<T>());
    check_fault("svd", fault, "x must be finite, and the iteration must converge", x, "");
  });
  deliver(c.outputs[0], u);
  deliver(c.outputs[1], s);
  deliver(c.outputs[2], vh);
}

// Note: equal singular values. There the choice of u and v is free, and gu, gs, gv fix the
// gradient only within a block of equal values up to a symmetric part. Two cases are sure: the
// result does not depend on u and v there (the part is 0), or it is a function of u diag(s) vh,
// which shows in s_i gs_i = (uᵀ gu)_ii = (vᵀ gv)_ii; then the part is that of u diag(s) vh.
// Everything else raises.
Tensor symmetric_part(const Tensor& x, const Tensor& y, const Tensor& s, const Tensor& gs,
                      const Tensor& same) {
  const Tensor both = (x + transposed(x) + y + transposed(y)) * 0.5;
  const Plain px(x), py(y), total(both), equal(same);
  const std::vector<double> value = s.detach().to_vector(), upstream = gs.detach().to_vector();
  const int64_t n = px.n, batch = n > 0 ? int64_t(value.size()) / n : 0;
  const double scale = std::max(px.largest(), py.largest());
  const double limit = closeness(s.dtype()).zero * (scale + 1e-300);
  std::vector<double> keep(px.v.size(), 0);
  for (int64_t b = 0; b < batch; ++b) {
    const auto whole = [&](int64_t i) {
      const double want = value[size_t(b * n + i)] * upstream[size_t(b * n + i)];
      return std::fabs(px.at(b, i, i) - want) <= limit && std::fabs(py.at(b, i, i) - want) <= limit;
    };
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (i == j || equal.at(b, i, j) == 0 || std::fabs(total.at(b, i, j)) <= limit) continue;
        if (!whole(i) || !whole(j)) throw_undetermined("svd", "singular values");
        keep[size_t((b * n + i) * n + j)] = 1;
      }
    }
  }
  const Tensor kept =
      tensor(std::span<const double>(keep), {s.dtype(), s.device()}).reshape(x.sizes());
  const Tensor sums = s.unsqueeze(-2) + s.unsqueeze(-1);
  return both * kept / masked_fill(sums, eq(sums.detach(), 0), 1);
}

// What gu (or gv) adds outside of the span of u: (gu − u uᵀ gu) / s.
Tensor outside(const Tensor& u, const Tensor& gu, const Tensor& product, const Tensor& s) {
  const std::vector<double> values = s.detach().to_vector();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (!(*least > closeness(s.dtype()).equal * *most)) {
    throw AutogradError("svd",
                        "vectors of a singular value 0 have no derivative for a matrix that "
                        "is not square",
                        "use functions of the singular values alone");
  }
  return (gu - matmul(u, product)) / s.unsqueeze(-2);
}

void svd_backward(Backward& b) {
  const Tensor u = b.output(0), s = b.output(1), v = transposed(b.output(2));
  const bool values_only = !b.has_upstream(0) && !b.has_upstream(2);
  Tensor inner = diag_embed(b.upstream(1));
  if (values_only || s.numel() == 0) {
    return b.set(0, times_transposed(matmul(u, inner), v));
  }
  const Tensor gu = b.upstream(0), gv = transposed(b.upstream(2));
  const Tensor x = transposed_times(u, gu), y = transposed_times(v, gv);
  const Tensor sum_part = skew(x) + skew(y), same = equal_values(s);
  const double scale = std::max(Plain(x).largest(), Plain(y).largest());
  check_gauge("svd", "singular values", sum_part, same, scale);
  const Tensor sums = s.unsqueeze(-2) + s.unsqueeze(-1), none = eq(sums.detach(), 0);
  const Tensor difference = masked_fill(skew(x) - skew(y), none, 0) / masked_fill(sums, none, 1);
  inner = inner + (over_distances(sum_part, s, same) + difference) * 0.5 +
          symmetric_part(x, y, s, b.upstream(1), same);
  Tensor grad = times_transposed(matmul(u, inner), v);
  if (u.size(-2) > u.size(-1) && b.has_upstream(0)) {
    grad = grad + times_transposed(outside(u, gu, x, s), v);
  }
  if (v.size(-2) > v.size(-1) && b.has_upstream(2)) {
    grad = grad + times_transposed(u, outside(v, gv, y, s));
  }
  b.set(0, grad);
}

const OpRecord kSvd{
    .name = "svd",
    .signature = "linalg::svd(x) → u, s, vh",
    .meaning = "Singular values, descending, with their left and right vectors.",
    .formula = "x = u diag(s) vh",
    .shapes = "x [..., m, n]   u [..., m, k]   s [..., k]   vh [..., k, n]   k = min(m, n)",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .outputs = 3,
    .save_outputs = 0b111,
    .forward = svd_forward,
    .backward_text =
        "dx = u (diag(gs) + (p_ij / (s_j − s_i) + d_ij / (s_j + s_i)) / 2) vh + parts "
        "outside of u and v,  p, d = skew(uᵀ gu) ± skew(vᵀ gv)",
    .backward = svd_backward,
    .samples = svd_samples,
};

}  // namespace

Qr qr(TensorArg x) {
  const Tensors out = run_many(kQr, {*x}, NoAttrs{}, x.site);
  return {out[0], out[1]};
}

Eigh eigh(TensorArg x) {
  const Tensors out = run_many(kEigh, {*x}, NoAttrs{}, x.site);
  return {out[0], out[1]};
}
Tensor eigvalsh(TensorArg x) { return eigh(x).values; }

Svd svd(TensorArg x) {
  const Tensors out = run_many(kSvd, {*x}, NoAttrs{}, x.site);
  return {out[0], out[1], out[2]};
}
Tensor svdvals(TensorArg x) { return svd(x).s; }

Tensor pinv(TensorArg x, double rcond) {
  CallScope scope(x.site);
  const Svd d = svd(x);
  if (d.s.numel() == 0) return transposed(*x);
  const Tensor limit = amax(d.s.detach(), -1, {.keepdim = true}) * rcond;
  const Tensor small = le(d.s.detach(), limit);
  const Tensor reciprocals = masked_fill(1.0 / masked_fill(d.s, small, 1), small, 0);
  return transposed(matmul(scale_columns(d.u, reciprocals), d.vh));
}

Tensor matrix_norm(TensorArg x, MatrixNorm kind) {
  CallScope scope(x.site);
  if (x->dim() < 2) {
    throw ShapeError("matrix_norm", "needs at least two dimensions; got " + to_string(x->sizes()));
  }
  if (kind == MatrixNorm::frobenius) return norm(x, Shape{-2, -1});
  const Tensor s = svdvals(x);
  if (kind == MatrixNorm::nuclear) return sum(s, -1);
  return s.size(-1) == 0 ? sum(s, -1) : s.select(-1, 0);
}

}  // namespace linalg

void register_decompositions_ops(std::vector<const OpRecord*>& list) {
  using namespace linalg;
  for (const OpRecord* op : {&kQr, &kEigh, &kSvd}) list.push_back(op);
}

}  // namespace cutaway
