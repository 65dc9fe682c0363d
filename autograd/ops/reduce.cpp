#include <cutaway/autograd/ops/reduce.h>

#include <limits>

#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduction.h>
#include <cutaway/autograd/ops/scan.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Sums, products, moments, norms. Samples and references: reduce_samples.cpp.
void mean_samples(SampleList&);
void prod_samples(SampleList&);
void var_samples(SampleList&);
void std_samples(SampleList&);
void logsumexp_samples(SampleList&);
void norm_samples(SampleList&);
void any_samples(SampleList&);
void all_samples(SampleList&);
void count_nonzero_samples(SampleList&);

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// ---- mean

// Mean of (x − mean x)² in ONNX, times n / (n − correction).
std::string onnx_variance(OnnxCall& c) {
  const auto& a = c.attrs<ReduceAttrs>();
  const uint32_t mask = reduced_mask("var", a, c.in().sizes());
  const std::string x = c.name(0);
  const onnx::Attribute axes("axes", mask_dims(mask));
  const std::string d = c.node("Sub", {x, c.node("ReduceMean", {x}, {axes, {"keepdims", 1}})});
  const std::string y =
      c.node("ReduceMean", {c.node("Mul", {d, d})}, {axes, {"keepdims", int(a.keepdim)}});
  const double n = double(reduced_count(c.in().sizes(), mask));
  return a.p == 0 ? y : c.node("Mul", {y, c.number(n / (n - a.p))});
}
// Extremes of 0 and 1 say whether any or all are true.
void onnx_truth(OnnxCall& c, const char* type) {
  const std::string x = c.cast(c.cast(0, DType::boolean), DType::boolean, DType::i32);
  const auto& a = c.attrs<ReduceAttrs>();
  const Shape axes = mask_dims(reduced_mask("any", a, c.in().sizes()));
  const std::string y = c.node(type, {x}, {{"axes", axes}, {"keepdims", int(a.keepdim)}});
  c.result(c.cast(y, DType::i32, DType::boolean));
}

const OpRecord kMean{
    .name = "mean",
    .signature = "mean(x, dims?, {keepdim}) → y",
    .meaning = "Mean over dimensions.",
    .formula = "y = Σ x / n",
    .shapes = "x [...]   y: the dimensions not in dims",
    .forward = [](Call& c) { reduce_into(c, kernels::mean, c.in(0).dtype()); },
    .backward_text = "dx = g / n, repeated over dims",
    .backward =
        [](Backward& b) {
          const Reduced r(b);
          b.set(0, expand(r.restore(b.upstream()) / r.divisor(), r.sizes));
        },
    .samples = mean_samples,
    .onnx = [](OnnxCall& c) { onnx_reduce(c, "ReduceMean", c.type()); },
};

// ---- product

// x with the reduced dimensions moved to the end and joined: [kept..., n].
Tensor joined(const Tensor& x, uint32_t mask) {
  Shape order;
  Shape sizes;
  for (int pass = 0; pass < 2; ++pass) {
    for (int d = 0; d < x.dim(); ++d) {
      if (int(mask >> d & 1) != pass) continue;
      order.push_back(d);
      if (pass == 0) sizes.push_back(x.size(d));
    }
  }
  sizes.push_back(reduced_count(x.sizes(), mask));
  return reshape(permute(x, order), sizes);
}

// The inverse of joined.
Tensor unjoined(const Tensor& t, const Shape& sizes, uint32_t mask) {
  Shape order, moved, back = Shape::filled(sizes.rank(), 0);
  for (int pass = 0; pass < 2; ++pass) {
    for (int d = 0; d < sizes.rank(); ++d) {
      if (int(mask >> d & 1) != pass) continue;
      back[d] = order.rank();
      order.push_back(d);
      moved.push_back(sizes[d]);
    }
  }
  return permute(reshape(t, moved), back);
}

// The product of the others is the product of those before and of those after: no division, and it
// differentiates again.
void prod_backward(Backward& b) {
  const Reduced r(b);
  const Tensor x = joined(b.input(0), r.mask);
  const Tensor g = joined(r.restore(b.upstream()), r.mask);
  const Tensor others =
      cumprod(x, -1, {.exclusive = true}) * cumprod(x, -1, {.reverse = true, .exclusive = true});
  b.set(0, unjoined(g * others, r.sizes, r.mask));
}

void prod_fast_backward(Backward& b) {
  const Reduced r(b);
  const Tensor x = contiguous_raw(joined(b.input(0), r.mask));
  const Tensor g = contiguous_raw(b.upstream());
  Tensor grad = empty_like(x);
  if (!x.is_meta()) {
    const int64_t n = x.sizes().back();
    kernels::prod_backward(
        x.device(), x.dtype(),
        {.in = x.raw(), .upstream = g.raw(), .grad = grad.raw(), .outer = g.numel(), .n = n});
  }
  b.set(0, unjoined(grad, r.sizes, r.mask));
}

const OpRecord kProd{
    .name = "prod",
    .signature = "prod(x, dims?, {keepdim}) → y",
    .meaning = "Product over dimensions.",
    .formula = "y = Π x",
    .shapes = "x [...]   y: the dimensions not in dims",
    .dtypes = kAllTypes,
    .save_inputs = 1,
    .forward = [](Call& c) { reduce_into(c, kernels::prod, sum_type(c.in(0).dtype())); },
    .backward_text = "dx_i = g · Π_{j<i} x_j · Π_{j>i} x_j",
    .backward = prod_backward,
    .fast_backward = prod_fast_backward,
    .samples = prod_samples,
    .onnx = [](OnnxCall& c) { onnx_reduce(c, "ReduceProd", c.type()); },
};

// ---- variance

double freedom(const Reduced& r) {
  const double f = r.divisor() - r.attrs.p;
  return f > 0 ? f : 0;
}

const OpRecord kVar{
    .name = "var",
    .signature = "var(x, dims?, {correction, keepdim}) → y",
    .meaning = "Variance over dimensions.",
    .formula = "y = Σ (x − mean)² / (n − correction)",
    .shapes = "x [...]   y: the dimensions not in dims",
    .save_inputs = 1,
    .forward = [](Call& c) { reduce_into(c, kernels::var, c.in(0).dtype()); },
    .backward_text = "dx = 2 g (x − mean) / (n − correction)",
    .backward =
        [](Backward& b) {
          const Reduced r(b);
          const Tensor x = b.input(0);
          const Tensor d = x - mean(x, r.dims, {.keepdim = true});
          b.set(0, (r.restore(b.upstream()) * (2 / freedom(r))) * d);
        },
    .samples = var_samples,
    .onnx = [](OnnxCall& c) { c.result(onnx_variance(c)); },
};

void std_backward(Backward& b) {
  const Reduced r(b);
  const Tensor x = b.input(0);
  const Tensor y = r.restore(b.output());
  const Tensor flat = eq(y, 0.0);
  const Tensor slope = r.restore(b.upstream()) / (where(flat, ones_like(y), y) * freedom(r));
  const Tensor d = x - mean(x, r.dims, {.keepdim = true});
  b.set(0, where(flat, zeros_like(y), slope) * d);
}

const OpRecord kStd{
    .name = "std",
    .signature = "std(x, dims?, {correction, keepdim}) → y",
    .meaning = "Standard deviation over dimensions.",
    .formula = "y = sqrt(Σ (x − mean)² / (n − correction))",
    .shapes = "x [...]   y: the dimensions not in dims",
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = [](Call& c) { reduce_into(c, kernels::std_dev, c.in(0).dtype()); },
    .backward_text = "dx = g (x − mean) / (y (n − correction)), 0 where y = 0",
    .backward = std_backward,
    .samples = std_samples,
    .onnx = [](OnnxCall& c) { c.result(c.node("Sqrt", {onnx_variance(c)})); },
};

// ---- logsumexp

void logsumexp_backward(Backward& b) {
  const Reduced r(b);
  const Tensor y = r.restore(b.output());
  // exp(−inf − 0) = 0 where everything is −inf.
  const Tensor anchor = where(eq(y, -kInf), zeros_like(y), y);
  b.set(0, r.restore(b.upstream()) * exp(b.input(0) - anchor));
}

const OpRecord kLogsumexp{
    .name = "logsumexp",
    .signature = "logsumexp(x, dims?, {keepdim}) → y",
    .meaning = "Logarithm of a sum of exponentials, without overflow.",
    .formula = "y = log Σ exp(x), computed as m + log Σ exp(x − m) with m = max x",
    .shapes = "x [...]   y: the dimensions not in dims",
    .compute = Compute::f32,
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = [](Call& c) { reduce_into(c, kernels::logsumexp, c.in(0).dtype()); },
    .backward_text = "dx = g exp(x − y), 0 where y = −inf",
    .backward = logsumexp_backward,
    .samples = logsumexp_samples,
    .onnx = [](OnnxCall& c) { onnx_reduce(c, "ReduceLogSumExp", c.type()); },
};

// ---- norm

// Derivative of ‖x‖_p by x for finite p > 0: sign(x) (|x|/y)^(p−1). Zeros are replaced by ones
// before they could meet a division or a power, and masked afterwards.
Tensor norm_slope(const Tensor& x, const Tensor& y, double p) {
  const Tensor no_length = eq(y, 0.0);
  const Tensor safe = where(no_length, ones_like(y), y);
  if (p == 2) return where(no_length, zeros_like(y), x / safe);
  const Tensor zero = eq(x, 0.0);
  const Tensor ratio = where(zero, ones_like(x), abs(x) / safe);
  return where(zero, zeros_like(x), sign(x) * exp(log(ratio) * (p - 1)));
}

void norm_backward(Backward& b) {
  const Reduced r(b);
  const double p = r.attrs.p;
  const Tensor x = b.input(0), g = r.restore(b.upstream());
  if (p == 0) {
    b.set(0, zeros_like(x));
  } else if (p == 1) {
    b.set(0, sign(x) * g);
  } else if (p == kInf || p == -kInf) {
    const Tensor hit = eq(abs(x), r.restore(b.output())).to(x.dtype());
    b.set(0, sign(x) * hit * (g / sum(hit, r.dims, {.keepdim = true})));
  } else {
    b.set(0, norm_slope(x, r.restore(b.output()), p) * g);
  }
}

void norm_forward(Call& c) {
  const auto& attrs = c.attrs<ReduceAttrs>();
  if (attrs.p != attrs.p)
    throw ValueError("norm", "p must be a number; got NaN, need any order, ±inf too");
  if (attrs.p < 0) {
    require_elements("norm", c.in(0).sizes(), reduced_mask("norm", attrs, c.in(0).sizes()));
  }
  reduce_into(c, kernels::norm, c.in(0).dtype());
}

const OpRecord kNorm{
    .name = "norm",
    .signature = "norm(x, dims?, {p, keepdim}) → y",
    .meaning = "p-norm of the elements over dimensions.",
    .formula = "y = (Σ |x|^p)^(1/p);  p = 0: number of x ≠ 0;  ±inf: extreme of |x|",
    .shapes = "x [...]   y: the dimensions not in dims",
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = norm_forward,
    .backward_text = "dx = g sign(x) (|x| / y)^(p−1), 0 where x = 0 or y = 0",
    .backward = norm_backward,
    .samples = norm_samples,
    .onnx =
        [](OnnxCall& c) {
          const double p = c.attrs<ReduceAttrs>().p;
          if (p != 1 && p != 2) c.refuse("has an equivalent in ONNX for p = 1 and 2 only");
          onnx_reduce(c, p == 1 ? "ReduceL1" : "ReduceL2", c.type());
        },
};

// ---- truth values and counts

const OpRecord kAny{
    .name = "any",
    .signature = "any(x, dims?, {keepdim}) → y",
    .meaning = "Is any element not zero?",
    .formula = "y = ∃ x ≠ 0",
    .shapes = "x [...]   y: the dimensions not in dims, bool",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { reduce_into(c, kernels::any, DType::boolean); },
    .no_gradient = "the result is bool",
    .samples = any_samples,
    .onnx = [](OnnxCall& c) { onnx_truth(c, "ReduceMax"); },
};
const OpRecord kAll{
    .name = "all",
    .signature = "all(x, dims?, {keepdim}) → y",
    .meaning = "Are all elements not zero?",
    .formula = "y = ∀ x ≠ 0",
    .shapes = "x [...]   y: the dimensions not in dims, bool",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { reduce_into(c, kernels::all, DType::boolean); },
    .no_gradient = "the result is bool",
    .samples = all_samples,
    .onnx = [](OnnxCall& c) { onnx_truth(c, "ReduceMin"); },
};
const OpRecord kCountNonzero{
    .name = "count_nonzero",
    .signature = "count_nonzero(x, dims?, {keepdim}) → y",
    .meaning = "Number of elements that are not zero.",
    .formula = "y = Σ [x ≠ 0]",
    .shapes = "x [...]   y: the dimensions not in dims, i64",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { reduce_into(c, kernels::count_nonzero, DType::i64); },
    .no_gradient = "the result is an integer",
    .samples = count_nonzero_samples,
};

}  // namespace

// ---- the functions

Tensor mean(TensorArg x, ReduceOptions o) { return run(kMean, {x}, over_all(o.keepdim)); }
Tensor mean(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kMean, {x}, over(dims, o.keepdim));
}
Tensor mean(TensorArg x, int64_t dim, ReduceOptions o) { return mean(x, Shape{dim}, o); }

Tensor prod(TensorArg x, ReduceOptions o) { return run(kProd, {x}, over_all(o.keepdim)); }
Tensor prod(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kProd, {x}, over(dims, o.keepdim));
}
Tensor prod(TensorArg x, int64_t dim, ReduceOptions o) { return prod(x, Shape{dim}, o); }

Tensor var(TensorArg x, VarOptions o) { return run(kVar, {x}, over_all(o.keepdim, o.correction)); }
Tensor var(TensorArg x, const Shape& dims, VarOptions o) {
  return run(kVar, {x}, over(dims, o.keepdim, o.correction));
}
Tensor var(TensorArg x, int64_t dim, VarOptions o) { return var(x, Shape{dim}, o); }

Tensor std(TensorArg x, VarOptions o) { return run(kStd, {x}, over_all(o.keepdim, o.correction)); }
Tensor std(TensorArg x, const Shape& dims, VarOptions o) {
  return run(kStd, {x}, over(dims, o.keepdim, o.correction));
}
Tensor std(TensorArg x, int64_t dim, VarOptions o) { return std(x, Shape{dim}, o); }

VarMean var_mean(TensorArg x, VarOptions o) {
  CallScope scope(x.site);
  return {var(*x, o), mean(*x, {.keepdim = o.keepdim})};
}
VarMean var_mean(TensorArg x, const Shape& dims, VarOptions o) {
  CallScope scope(x.site);
  return {var(*x, dims, o), mean(*x, dims, {.keepdim = o.keepdim})};
}

Tensor logsumexp(TensorArg x, ReduceOptions o) { return run(kLogsumexp, {x}, over_all(o.keepdim)); }
Tensor logsumexp(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kLogsumexp, {x}, over(dims, o.keepdim));
}
Tensor logsumexp(TensorArg x, int64_t dim, ReduceOptions o) { return logsumexp(x, Shape{dim}, o); }

Tensor any(TensorArg x, ReduceOptions o) { return run(kAny, {x}, over_all(o.keepdim)); }
Tensor any(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kAny, {x}, over(dims, o.keepdim));
}
Tensor any(TensorArg x, int64_t dim, ReduceOptions o) { return any(x, Shape{dim}, o); }

Tensor all(TensorArg x, ReduceOptions o) { return run(kAll, {x}, over_all(o.keepdim)); }
Tensor all(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kAll, {x}, over(dims, o.keepdim));
}
Tensor all(TensorArg x, int64_t dim, ReduceOptions o) { return all(x, Shape{dim}, o); }

Tensor count_nonzero(TensorArg x, ReduceOptions o) {
  return run(kCountNonzero, {x}, over_all(o.keepdim));
}
Tensor count_nonzero(TensorArg x, const Shape& dims, ReduceOptions o) {
  return run(kCountNonzero, {x}, over(dims, o.keepdim));
}
Tensor count_nonzero(TensorArg x, int64_t dim, ReduceOptions o) {
  return count_nonzero(x, Shape{dim}, o);
}

Tensor norm(TensorArg x, NormOptions o) { return run(kNorm, {x}, over_all(o.keepdim, o.p)); }
Tensor norm(TensorArg x, const Shape& dims, NormOptions o) {
  return run(kNorm, {x}, over(dims, o.keepdim, o.p));
}
Tensor norm(TensorArg x, int64_t dim, NormOptions o) { return norm(x, Shape{dim}, o); }

Tensor normalize(TensorArg x, int64_t dim, NormalizeOptions o) {
  CallScope scope(x.site);
  const Tensor length = norm(*x, dim, {.p = o.p, .keepdim = true});
  return *x / masked_fill(length, lt(length, o.eps), o.eps);
}

void register_reduce_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(),
              {&kMean, &kProd, &kVar, &kStd, &kLogsumexp, &kNorm, &kAny, &kAll, &kCountNonzero});
}

}  // namespace cutaway
