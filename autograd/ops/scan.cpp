#include <cutaway/autograd/ops/scan.h>

#include <limits>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/cast.h>
#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduction.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/kernels/scan.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

void cumsum_samples(SampleList&);
void cumprod_samples(SampleList&);
void logcumsumexp_samples(SampleList&);
void cummax_samples(SampleList&);
void cummin_samples(SampleList&);
void linear_scan_samples(SampleList&);

namespace {

struct ScanAttrs {
  int64_t dim;
  bool reverse = false;
  bool exclusive = false;
  bool shifted = false;
};

ScanArgs scan_args(const Tensor& x, const Tensor& out, const ScanAttrs& attrs, int dim) {
  ScanArgs a{.in = x.raw(),
             .out = out.raw(),
             .reverse = attrs.reverse,
             .exclusive = attrs.exclusive,
             .shifted = attrs.shifted};
  if (x.dim() == 0) return a;
  a.outer = x.sizes().slice(0, dim).numel();
  a.n = x.sizes()[dim];
  a.inner = x.sizes().slice(dim + 1, x.dim()).numel();
  return a;
}

// Checks, output 0 of type `type` and, with `indices`, output 1; one run of `kernel`.
void scan_into(Call& c, Kernel<ScanArgs>& kernel, DType type, bool indices = false) {
  const auto& attrs = c.attrs<ScanAttrs>();
  c.require_dtype(0);
  const Tensor& in = c.in(0);
  const int dim = normalize_dim(c.op.name, attrs.dim, in.dim());
  const Tensor y = c.out(0, in.sizes(), type);
  if (indices) c.out(1, in.sizes(), DType::i64);
  if (c.meta() || in.numel() == 0) return;
  const Tensor x = contiguous_raw(in);
  ScanArgs a = scan_args(x, y, attrs, dim);
  if (indices) a.index = c.outputs[1].data<int64_t>();
  kernel(x.device(), x.dtype(), a);
}

// Elements one place later along `dim` (one earlier for reverse), 0 at the free place.
Tensor shift(const Tensor& x, int64_t dim, bool reverse) {
  if (x.dim() == 0) return zeros_like(x);
  const int64_t n = x.size(dim);
  if (n == 0) return x;
  const int64_t from = reverse ? 1 : 0, to = reverse ? 0 : 1;
  return slice_scatter(zeros_like(x), slice(x, dim, from, from + n - 1), dim, to, to + n - 1);
}

// ---- cumsum

const OpRecord kCumsum{
    .name = "cumsum",
    .signature = "cumsum(x, dim, {reverse, exclusive}) → y",
    .meaning = "Running sum along a dimension.",
    .formula = "y_i = Σ_{j≤i} x_j;  reverse: j ≥ i;  exclusive: j ≠ i",
    .shapes = "x [..., n, ...]   y [..., n, ...]",
    .dtypes = kAllTypes,
    .forward = [](Call& c) { scan_into(c, kernels::cumsum, sum_type(c.in(0).dtype())); },
    .backward_text = "dx_i = Σ_{j≥i} g_j, the running sum the other way",
    .backward =
        [](Backward& b) {
          const auto& a = b.attrs<ScanAttrs>();
          b.set(0, cumsum(b.upstream(), a.dim, {.reverse = !a.reverse, .exclusive = a.exclusive}));
        },
    .samples = cumsum_samples,
    .onnx =
        [](OnnxCall& c) {
          const auto& a = c.attrs<ScanAttrs>();
          const std::string axis = c.constant(scalar_tensor(c.dim(a.dim), {.dtype = DType::i64}));
          c.result(c.node("CumSum", {c.cast(0, c.type()), axis},
                          {{"exclusive", int(a.exclusive)}, {"reverse", int(a.reverse)}}));
        },
};

// ---- cumprod

// With E_i the product before i: dx_i = E_i t_i and t_i = g_i + x_{i+1} t_{i+1}. Nothing is
// divided. When results are exclusive t_i is the sum over j > i only: the recurrence s_i = g_i +
// x_i s_{i+1}, taken at i + 1.
void cumprod_backward(Backward& b) {
  const auto& a = b.attrs<ScanAttrs>();
  const Tensor x = b.input(0);
  const bool back = !a.reverse;
  const Tensor before = cumprod(x, a.dim, {.reverse = a.reverse, .exclusive = true});
  Tensor t = linear_scan(x, b.upstream(), a.dim, {.reverse = back, .shifted = !a.exclusive});
  if (a.exclusive) t = shift(t, a.dim, back);
  b.set(0, before * t);
}

const OpRecord kCumprod{
    .name = "cumprod",
    .signature = "cumprod(x, dim, {reverse, exclusive}) → y",
    .meaning = "Running product along a dimension.",
    .formula = "y_i = Π_{j≤i} x_j;  reverse: j ≥ i;  exclusive: j ≠ i",
    .shapes = "x [..., n, ...]   y [..., n, ...]",
    .dtypes = kAllTypes,
    .save_inputs = 1,
    .forward = [](Call& c) { scan_into(c, kernels::cumprod, sum_type(c.in(0).dtype())); },
    .backward_text = "dx_i = Π_{j<i} x_j · t_i  with  t_i = g_i + x_{i+1} t_{i+1}",
    .backward = cumprod_backward,
    .samples = cumprod_samples,
};

// ---- linear_scan

void linear_scan_forward(Call& c) {
  const auto& attrs = c.attrs<ScanAttrs>();
  for (int i = 0; i < 2; ++i) c.require_dtype(i);
  c.require_same_device();
  const Tensor &a = c.in(0), &b = c.in(1);
  if (a.sizes() != b.sizes()) {
    throw ShapeError("linear_scan",
                     "a and b must have equal sizes; got a " + to_string(a.sizes()) + ", b " +
                         to_string(b.sizes()),
                     "expand one of them");
  }
  if (a.dtype() != b.dtype()) {
    throw DTypeError("linear_scan", std::string("a and b must have one type; got ") +
                                        name_of(a.dtype()) + " and " + name_of(b.dtype()));
  }
  const int dim = normalize_dim("linear_scan", attrs.dim, b.dim());
  const Tensor t = c.out(0, b.sizes(), b.dtype());
  if (c.meta() || b.numel() == 0) return;
  const Tensor factor = contiguous_raw(a), x = contiguous_raw(b);
  ScanArgs args = scan_args(x, t, attrs, dim);
  args.factor = factor.raw();
  kernels::linear_scan(x.device(), x.dtype(), args);
}

// The adjoint recurrence s runs the other way, with the factor at the other place.
void linear_scan_backward(Backward& b) {
  const auto& o = b.attrs<ScanAttrs>();
  const Tensor a = b.input(0);
  const Tensor s =
      linear_scan(a, b.upstream(), o.dim, {.reverse = !o.reverse, .shifted = !o.shifted});
  b.set(1, s);
  if (!b.needs(0)) return;
  const Tensor t = b.output();
  b.set(0, o.shifted ? shift(s, o.dim, !o.reverse) * t : s * shift(t, o.dim, o.reverse));
}

const OpRecord kLinearScan{
    .name = "linear_scan",
    .signature = "linear_scan(a, b, dim, {reverse, shifted}) → t",
    .meaning = "First-order linear recurrence along a dimension.",
    .formula = "t_i = b_i + a_i t_{i−1};  shifted: a_{i−1};  reverse: from i + 1",
    .shapes = "a [..., n, ...]   b [..., n, ...]   t [..., n, ...]",
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = linear_scan_forward,
    .backward_text = "s_i = g_i + a_{i+1} s_{i+1};  db_i = s_i;  da_i = s_i t_{i−1}",
    .backward = linear_scan_backward,
    .samples = linear_scan_samples,
};

// ---- logcumsumexp

// With t_i = Σ_{j≥i} g_j exp(y_i − y_j), a recurrence with factors in [0, 1]: dx_i = t_i exp(x_i −
// y_i). Where y = −inf, 0 is subtracted instead, which gives exp(−inf) = 0.
void logcumsumexp_backward(Backward& b) {
  const int64_t dim = b.attrs<ScanAttrs>().dim;
  const Tensor x = b.input(0), y = b.output();
  const Tensor anchor = masked_fill(y, eq(y, -std::numeric_limits<double>::infinity()), 0.0);
  Tensor next = anchor;
  if (y.dim() > 0 && y.size(dim) > 1) {
    next = slice_scatter(anchor, slice(anchor, dim, 1), dim, 0, y.size(dim) - 1);
  }
  const Tensor t = linear_scan(exp(y - next), b.upstream(), dim, {.reverse = true});
  b.set(0, t * exp(x - anchor));
}

const OpRecord kLogcumsumexp{
    .name = "logcumsumexp",
    .signature = "logcumsumexp(x, dim) → y",
    .meaning = "Running logarithm of a sum of exponentials.",
    .formula = "y_i = log Σ_{j≤i} exp(x_j)",
    .shapes = "x [..., n, ...]   y [..., n, ...]",
    .compute = Compute::f32,
    .save_inputs = 1,
    .save_outputs = 1,
    .forward = [](Call& c) { scan_into(c, kernels::logcumsumexp, c.in(0).dtype()); },
    .backward_text = "dx_i = exp(x_i − y_i) t_i  with  t_i = g_i + exp(y_i − y_{i+1}) t_{i+1}",
    .backward = logcumsumexp_backward,
    .samples = logcumsumexp_samples,
};

// ---- running extremes

// An element that is its own index collects the gradients from there to the next such element: a
// recurrence whose factors are 0 or 1.
void running_extreme_backward(Backward& b) {
  const Tensor& g = b.upstream();
  if (g.dim() == 0) return b.set(0, g);
  const int dim = normalize_dim("backward", b.attrs<ScanAttrs>().dim, g.dim());
  const Tensor own = eq(b.output(1), positions(g.sizes(), dim, g.device())).to(g.dtype());
  b.set(0, own * linear_scan(1.0 - own, g, dim, {.reverse = true, .shifted = true}));
}

const OpRecord kCummax{
    .name = "cummax",
    .signature = "cummax(x, dim) → y, indices",
    .meaning = "Largest element so far along a dimension, and the last place where it stands.",
    .formula = "y_i = max_{j≤i} x_j",
    .shapes = "x [..., n, ...]   y, indices [..., n, ...]",
    .dtypes = kAllTypes,
    .outputs = 2,
    .save_outputs = 2,
    .forward = [](Call& c) { scan_into(c, kernels::cummax, c.in(0).dtype(), true); },
    .backward_text = "dx_i = Σ g_j over j with indices_j = i",
    .backward = running_extreme_backward,
    .samples = cummax_samples,
};
const OpRecord kCummin{
    .name = "cummin",
    .signature = "cummin(x, dim) → y, indices",
    .meaning = "Smallest element so far along a dimension, and the last place where it stands.",
    .formula = "y_i = min_{j≤i} x_j",
    .shapes = "x [..., n, ...]   y, indices [..., n, ...]",
    .dtypes = kAllTypes,
    .outputs = 2,
    .save_outputs = 2,
    .forward = [](Call& c) { scan_into(c, kernels::cummin, c.in(0).dtype(), true); },
    .backward_text = "dx_i = Σ g_j over j with indices_j = i",
    .backward = running_extreme_backward,
    .samples = cummin_samples,
};

ValuesIndices run_pair(const OpRecord& op, TensorArg x, int64_t dim) {
  Tensors out = run_many(op, {*x}, ScanAttrs{.dim = dim}, x.site);
  return {std::move(out[0]), std::move(out[1])};
}

}  // namespace

Tensor cumsum(TensorArg x, int64_t dim, ScanOptions o) {
  return run(kCumsum, {x}, ScanAttrs{.dim = dim, .reverse = o.reverse, .exclusive = o.exclusive});
}
Tensor cumprod(TensorArg x, int64_t dim, ScanOptions o) {
  return run(kCumprod, {x}, ScanAttrs{.dim = dim, .reverse = o.reverse, .exclusive = o.exclusive});
}
Tensor logcumsumexp(TensorArg x, int64_t dim) {
  return run(kLogcumsumexp, {x}, ScanAttrs{.dim = dim});
}
ValuesIndices cummax(TensorArg x, int64_t dim) { return run_pair(kCummax, x, dim); }
ValuesIndices cummin(TensorArg x, int64_t dim) { return run_pair(kCummin, x, dim); }
Tensor linear_scan(TensorArg a, TensorArg b, int64_t dim, LinearScanOptions o) {
  return run(kLinearScan, {a, b},
             ScanAttrs{.dim = dim, .reverse = o.reverse, .shifted = o.shifted});
}

void register_scan_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kCumsum, &kCumprod, &kLogcumsumexp, &kCummax, &kCummin, &kLinearScan});
}

}  // namespace cutaway
