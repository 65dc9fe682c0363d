#include <cutaway/autograd/ops/linalg.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/linalg_checks.h>
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>

namespace cutaway {

// Samples: linalg_samples.cpp.
void cholesky_samples(SampleList&);
void solve_samples(SampleList&);
void solve_triangular_samples(SampleList&);
void inverse_samples(SampleList&);
void det_samples(SampleList&);
void slogdet_samples(SampleList&);

namespace linalg {

void check_matrix(const Call& c, int i) {
  c.require_dtype(i);
  const Tensor& x = c.in(i);
  if (x.dim() < 2) {
    throw ShapeError(c.op.name,
                     fmt::format("needs at least two dimensions; got {}", to_string(x.sizes())));
  }
}

void check_square(const Call& c, int i) {
  check_matrix(c, i);
  const Tensor& x = c.in(i);
  if (x.size(-1) != x.size(-2)) {
    throw ShapeError(c.op.name,
                     fmt::format("matrices must be square; got {}", to_string(x.sizes())));
  }
}

void check_fault(const char* op, dense::Fault fault, const char* rule, const Tensor& x,
                 const char* hint) {
  if (fault < 0) return;
  throw ValueError(
      op,
      fmt::format("{}; got {}{}", rule, to_string(x.sizes()),
                  x.dim() > 2 ? fmt::format(", matrix {} of the batch", fault) : std::string()),
      hint);
}

namespace {

Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }

// ---- cholesky

void cholesky_forward(Call& c) {
  check_square(c, 0);
  const Tensor& x = c.in(0);
  c.out(0, x.sizes(), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x), out = host_room(c.outputs[0]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto fault = dense::cholesky(batch_of(x).numel(), x.size(-1), a.data<T>(), out.data<T>());
    check_fault("cholesky", fault, "x must be positive definite", x,
                "add a small multiple of the unit matrix");
  });
  deliver(c.outputs[0], out);
}

// s = l⁻ᵀ φ(lᵀ g) l⁻¹ with φ the lower triangle, its diagonal halved; dx = (s + sᵀ) / 2.
void cholesky_backward(Backward& b) {
  const Tensor l = b.output();
  const Tensor p = tril(matmul(l, b.upstream(), {.transpose_a = true}));
  const Tensor half = p - diag_embed(diagonal(p, {.dim1 = -2, .dim2 = -1})) * 0.5;
  const TriangularOptions turned{.transpose = true};
  const Tensor s = solve_triangular(l, transposed(solve_triangular(l, half, turned)), turned);
  b.set(0, (s + transposed(s)) * 0.5);
}

const OpRecord kCholesky{
    .name = "cholesky",
    .signature = "linalg::cholesky(x) → y",
    .meaning = "Lower triangular factor of a positive definite matrix; the symmetric part is used.",
    .formula = "y yᵀ = (x + xᵀ) / 2",
    .shapes = "x [..., n, n]   y [..., n, n]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .save_outputs = 0b1,
    .forward = cholesky_forward,
    .backward_text = "s = y⁻ᵀ φ(yᵀ g) y⁻¹,  dx = (s + sᵀ) / 2",
    .backward = cholesky_backward,
    .samples = cholesky_samples,
};

// ---- solve and solve_triangular

struct SolveAttrs {
  bool transpose;
};

[[noreturn, gnu::cold]] void throw_rows(const char* op, const Tensor& a, const Tensor& b) {
  throw ShapeError(op,
                   fmt::format("b must have as many rows as a; got a {}, b {}; need b "
                               "[..., {}, k]",
                               to_string(a.sizes()), to_string(b.sizes()), a.size(-1)),
                   "a vector for each matrix needs unsqueeze(-1)");
}

// Both operands with the whole batch, dense, on the host; `batch` receives its sizes.
std::pair<Tensor, Tensor> full_batch(const Call& c, Shape& batch) {
  check_square(c, 0);
  check_matrix(c, 1);
  c.require_same_device();
  const Tensor &a = c.in(0), &b = c.in(1);
  if (a.dtype() != b.dtype()) {
    throw DTypeError(c.op.name, fmt::format("operands must have one type; got a {}, b {}",
                                            name_of(a.dtype()), name_of(b.dtype())));
  }
  if (b.size(-2) != a.size(-1)) throw_rows(c.op.name, a, b);
  batch = broadcast(c.op.name, batch_of(a), batch_of(b));
  const auto widen = [&](const Tensor& x) {
    const Shape sizes = with_matrix(batch, x.size(-2), x.size(-1));
    return host_copy(c.op.name, make_view(x, x.layout().expand(sizes)));
  };
  if (a.is_meta()) return {a, b};
  return {widen(a), widen(b)};
}

void solve_forward(Call& c) {
  Shape batch;
  const auto [a, b] = full_batch(c, batch);
  const int64_t n = a.size(-1), columns = b.size(-1);
  c.out(0, with_matrix(batch, n, columns), a.dtype());
  if (c.meta()) return;
  const Tensor out = host_room(c.outputs[0]);
  const Tensor used =
      c.attrs<SolveAttrs>().transpose
          ? contiguous_raw(make_view(a, a.layout().transpose(a.dim() - 2, a.dim() - 1)))
          : a;
  by_type(a.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto fault =
        dense::solve(batch.numel(), n, columns, used.data<T>(), b.data<T>(), out.data<T>());
    check_fault("solve", fault, "a must be regular, a pivot is 0", a,
                "pinv() gives the solution of least norm");
  });
  deliver(c.outputs[0], out);
}

Tensor solve_with(const Tensor& a, const Tensor& b, bool transpose);

void solve_backward(Backward& b) {
  const bool transpose = b.attrs<SolveAttrs>().transpose;
  const Tensor a = b.input(0), y = b.output();
  const Tensor db = solve_with(a, b.upstream(), !transpose);
  if (b.needs(1)) b.set(1, db);
  if (!b.needs(0)) return;
  b.set(0, neg(transpose ? matmul(y, db, {.transpose_b = true})
                         : matmul(db, y, {.transpose_b = true})));
}

const OpRecord kSolve{
    .name = "solve",
    .signature = "linalg::solve(a, b) → y",
    .meaning = "Solution of linear equations, by LU with row exchanges.",
    .formula = "a y = b",
    .shapes = "a [..., n, n]   b [..., n, k]   y [..., n, k]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .save_inputs = 0b1,
    .save_outputs = 0b1,
    .forward = solve_forward,
    .backward_text = "db = a⁻ᵀ g,  da = −db yᵀ",
    .backward = solve_backward,
    .samples = solve_samples,
};

Tensor solve_with(const Tensor& a, const Tensor& b, bool transpose) {
  return run(kSolve, {a, b}, SolveAttrs{transpose});
}

void solve_triangular_forward(Call& c) {
  const auto& o = c.attrs<TriangularOptions>();
  Shape batch;
  const auto [a, b] = full_batch(c, batch);
  const int64_t n = a.size(-1), columns = b.size(-1);
  c.out(0, with_matrix(batch, n, columns), a.dtype());
  if (c.meta()) return;
  const Tensor out = host_room(c.outputs[0]);
  by_type(a.dtype(), [&](auto t) {
    using T = decltype(t);
    const dense::Triangle form{.upper = o.upper, .transpose = o.transpose, .unit = o.unit};
    const auto fault = dense::solve_triangular(batch.numel(), n, columns, form, a.data<T>(),
                                               b.data<T>(), out.data<T>());
    check_fault("solve_triangular", fault, "a must have no 0 on its diagonal", a, "");
  });
  deliver(c.outputs[0], out);
}

void solve_triangular_backward(Backward& b) {
  const auto& o = b.attrs<TriangularOptions>();
  const Tensor a = b.input(0), y = b.output();
  TriangularOptions turned = o;
  turned.transpose = !o.transpose;
  const Tensor db = solve_triangular(a, b.upstream(), turned);
  if (b.needs(1)) b.set(1, db);
  if (!b.needs(0)) return;
  const Tensor da = neg(o.transpose ? matmul(y, db, {.transpose_b = true})
                                    : matmul(db, y, {.transpose_b = true}));
  b.set(0, o.upper ? triu(da, o.unit ? 1 : 0) : tril(da, o.unit ? -1 : 0));
}

const OpRecord kSolveTriangular{
    .name = "solve_triangular",
    .signature = "linalg::solve_triangular(a, b, {upper, transpose, unit}) → y",
    .meaning = "Solution of linear equations with a triangular matrix.",
    .formula = "a y = b",
    .shapes = "a [..., n, n]   b [..., n, k]   y [..., n, k]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .save_inputs = 0b1,
    .save_outputs = 0b1,
    .forward = solve_triangular_forward,
    .backward_text = "db = a⁻ᵀ g,  da = −triangle(db yᵀ)",
    .backward = solve_triangular_backward,
    .samples = solve_triangular_samples,
};

// ---- inverse

void inverse_forward(Call& c) {
  check_square(c, 0);
  const Tensor& x = c.in(0);
  c.out(0, x.sizes(), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x), out = host_room(c.outputs[0]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    const auto fault = dense::inverse(batch_of(x).numel(), x.size(-1), a.data<T>(), out.data<T>());
    check_fault("inverse", fault, "x must be regular, a pivot is 0", x,
                "pinv() is defined for every matrix");
  });
  deliver(c.outputs[0], out);
}

const OpRecord kInverse{
    .name = "inverse",
    .signature = "linalg::inverse(x) → y",
    .meaning = "Inverse of a square matrix.",
    .formula = "x y = 1",
    .shapes = "x [..., n, n]   y [..., n, n]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .save_outputs = 0b1,
    .forward = inverse_forward,
    .backward_text = "dx = −yᵀ g yᵀ",
    .backward =
        [](Backward& b) {
          const Tensor y = b.output();
          b.set(0, neg(matmul(matmul(y, b.upstream(), {.transpose_a = true}), y,
                              {.transpose_b = true})));
        },
    .samples = inverse_samples,
};

// ---- det

void det_forward(Call& c) {
  check_square(c, 0);
  const Tensor& x = c.in(0);
  c.out(0, batch_of(x), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x), out = host_room(c.outputs[0]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    dense::det(out.numel(), x.size(-1), a.data<T>(), out.data<T>());
  });
  deliver(c.outputs[0], out);
}

Tensor as_matrix(const Tensor& number) { return number.unsqueeze(-1).unsqueeze(-1); }

// Cofactors as determinants of minors: n² determinants, but no division, so they differentiate at
// singular matrices too. x [..., n, n], n > 0.
Tensor cofactors_by_minors(const Tensor& x) {
  const int64_t n = x.size(-1), count = batch_of(x).numel();
  const Opts opts{.dtype = x.dtype(), .device = x.device()};
  if (n == 1) return ones(x.sizes(), opts);
  Tensor keep = zeros({n, n - 1, n}, {.dtype = x.dtype()});  // keep[i] drops row i
  std::vector<double> signs;
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t row = 0; row < n - 1; ++row) {
        keep.data<T>()[(i * (n - 1) + row) * n + row + (row >= i)] = 1;
      }
      for (int64_t j = 0; j < n; ++j) signs.push_back((i + j) % 2 ? -1 : 1);
    }
  });
  keep = keep.to(x.device());
  const Tensor rows = matmul(keep, x.reshape({count, 1, n, n}));
  const Tensor minors = matmul(rows.unsqueeze(2), keep, {.transpose_b = true});
  const Tensor sign = tensor(std::span<const double>(signs), opts).reshape({n, n});
  return (det(minors) * sign).reshape(x.sizes());
}

// Note: gradient of det. It is the matrix of cofactors, which is det · x⁻ᵀ for a regular x, and
// finite for every x.
void det_backward(Backward& b) {
  const Tensor x = b.input(0);
  if (x.numel() == 0) return b.set(0, zeros_like(x));
  bool singular = false;
  if (!x.is_meta()) {
    const Tensor a = host_copy("det", x.detach());
    by_type(x.dtype(), [&](auto t) {
      using T = decltype(t);
      singular = dense::nearly_singular(batch_of(x).numel(), x.size(-1), a.data<T>());
    });
  }
  const Tensor c =
      singular ? cofactors_by_minors(x) : as_matrix(b.output()) * transposed(inverse(x));
  b.set(0, as_matrix(b.upstream()) * c);
}

void det_fast_backward(Backward& b) {
  const Tensor x = b.input(0), c = empty(x.sizes(), {.dtype = x.dtype(), .device = x.device()});
  if (!x.is_meta()) {
    const Tensor a = host_copy("det", x), out = host_room(c);
    by_type(x.dtype(), [&](auto t) {
      using T = decltype(t);
      dense::cofactor(batch_of(x).numel(), x.size(-1), a.data<T>(), out.data<T>());
    });
    deliver(c, out);
  }
  b.set(0, as_matrix(b.upstream()) * c);
}

const OpRecord kDet{
    .name = "det",
    .signature = "linalg::det(x) → y",
    .meaning = "Determinant of a square matrix.",
    .formula = "y = Σ over permutations p of sign(p) ∏_i x_i,p(i)",
    .shapes = "x [..., n, n]   y [...]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .save_inputs = 0b1,
    .save_outputs = 0b1,
    .forward = det_forward,
    .backward_text = "dx = g · cofactors(x)",
    .backward = det_backward,
    .fast_backward = det_fast_backward,
    .samples = det_samples,
    .onnx = onnx_same<"Det">,
};

// ---- slogdet

void slogdet_forward(Call& c) {
  check_square(c, 0);
  const Tensor& x = c.in(0);
  c.out(0, batch_of(x), x.dtype());
  c.out(1, batch_of(x), x.dtype());
  if (c.meta()) return;
  const Tensor a = host_copy(c.op.name, x);
  const Tensor sign = host_room(c.outputs[0]), log = host_room(c.outputs[1]);
  by_type(x.dtype(), [&](auto t) {
    using T = decltype(t);
    dense::slogdet(sign.numel(), x.size(-1), a.data<T>(), sign.data<T>(), log.data<T>());
  });
  deliver(c.outputs[0], sign);
  deliver(c.outputs[1], log);
}

const OpRecord kSlogdet{
    .name = "slogdet",
    .signature = "linalg::slogdet(x) → sign, logabsdet",
    .meaning = "Sign of the determinant and logarithm of its magnitude.",
    .formula = "det(x) = sign · exp(logabsdet)",
    .shapes = "x [..., n, n]   sign [...]   logabsdet [...]",
    .dtypes = kFullFloats,
    .compute = Compute::f32,
    .outputs = 2,
    .save_inputs = 0b1,
    .forward = slogdet_forward,
    .backward_text = "dx = g_logabsdet · x⁻ᵀ",
    .backward =
        [](Backward& b) {
          if (!b.has_upstream(1)) return;
          b.set(0, as_matrix(b.upstream(1)) * transposed(inverse(b.input(0))));
        },
    .samples = slogdet_samples,
};

}  // namespace

Tensor cholesky(TensorArg x) { return run(kCholesky, {x}); }

Tensor cholesky_solve(TensorArg b, TensorArg l) {
  CallScope scope(b.site);
  return solve_triangular(l, solve_triangular(l, b), {.transpose = true});
}

Tensor solve(TensorArg a, TensorArg b) {
  if (b->dim() != 1) return run(kSolve, {a, b}, SolveAttrs{false});
  CallScope scope(a.site);
  return run(kSolve, {a, b->unsqueeze(1)}, SolveAttrs{false}).squeeze(-1);
}

Tensor solve_triangular(TensorArg a, TensorArg b, TriangularOptions options) {
  return run(kSolveTriangular, {a, b}, options);
}

Tensor inverse(TensorArg x) { return run(kInverse, {x}); }
Tensor det(TensorArg x) { return run(kDet, {x}); }

SlogDet slogdet(TensorArg x) {
  const Tensors out = run_many(kSlogdet, {*x}, NoAttrs{}, x.site);
  return {out[0], out[1]};
}

Tensor trace(TensorArg x) {
  CallScope scope(x.site);
  if (x->dim() < 2) {
    throw ShapeError("trace", "needs at least two dimensions; got " + to_string(x->sizes()));
  }
  return sum(diagonal(x, {.dim1 = -2, .dim2 = -1}), -1);
}

}  // namespace linalg

void register_linalg_ops(std::vector<const OpRecord*>& list) {
  using namespace linalg;
  for (const OpRecord* op : {&kCholesky, &kSolve, &kSolveTriangular, &kInverse, &kDet, &kSlogdet}) {
    list.push_back(op);
  }
}

}  // namespace cutaway
