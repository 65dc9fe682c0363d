#include <cutaway/autograd/ops/norm.h>

#include <fmt/format.h>
#include <limits>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/kernels/rows.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Normalisation of rows: layer_norm and rms_norm.
void layer_norm_samples(SampleList&);
void rms_norm_samples(SampleList&);

namespace {

struct RowNormAttrs {
  int dims;  // how many of the last dimensions make a row
  double eps;
};

[[noreturn]] [[gnu::cold]] void throw_rows(const char* op, const Tensor& x,
                                           const Shape& normalized) {
  throw ShapeError(
      op, fmt::format("the last sizes of x must be the normalized ones; got x {}, normalized {}",
                      to_string(x.sizes()), to_string(normalized)));
}
[[noreturn]] [[gnu::cold]] void throw_weight(const char* op, const char* what, const Tensor& w,
                                             const Tensor& x, const Shape& need) {
  throw ShapeError(
      op, fmt::format("{} must have the normalized sizes; got {} {}, x {}, need {}", what, what,
                      to_string(w.sizes()), to_string(x.sizes()), to_string(need)));
}
[[noreturn]] [[gnu::cold]] void throw_type(const char* op, const char* what, const Tensor& w,
                                           const Tensor& x) {
  throw DTypeError(op, fmt::format("{} must have the type of x; got {} {}, x {}", what, what,
                                   name_of(w.dtype()), name_of(x.dtype())));
}

void check_row_weight(const Call& c, int i, const char* what, const Shape& need) {
  if (!c.has(i)) return;
  if (c.in(i).sizes() != need) throw_weight(c.op.name, what, c.in(i), c.in(0), need);
  if (c.in(i).dtype() != c.in(0).dtype()) throw_type(c.op.name, what, c.in(i), c.in(0));
}

// Contiguous or undefined.
Tensor dense(const Tensor& t) { return t.defined() ? contiguous_raw(t) : t; }
const void* pointer(const Tensor& t) { return t.defined() ? t.raw() : nullptr; }

// Statistics [2, rows] in f64: means, then 1/sqrt(var + eps).
RowNormArgs row_args(const Tensor& x, const Tensor& stats, const RowNormAttrs& attrs,
                     bool centered) {
  const int from = x.dim() - attrs.dims;
  RowNormArgs a{.in = x.raw(), .rows = x.sizes().slice(0, from).numel()};
  a.width = x.sizes().slice(from, x.dim()).numel();
  a.eps = attrs.eps;
  double* s = stats.data<double>();
  a.mean = centered ? s : nullptr;
  a.rstd = s + a.rows;
  return a;
}

// Inputs x, weight?, bias? (layer_norm only).
void row_norm_forward(Call& c, bool centered) {
  const auto& attrs = c.attrs<RowNormAttrs>();
  c.require_dtype(0);
  c.require_same_device();
  const Tensor& in = c.in(0);
  const Shape need = in.sizes().slice(in.dim() - attrs.dims, in.dim());
  check_row_weight(c, 1, "weight", need);
  check_row_weight(c, 2, "bias", need);
  const Tensor y = c.out(0, in.sizes(), in.dtype());
  if (c.meta()) return;
  const Tensor x = contiguous_raw(in), weight = dense(c.in(1));
  const Tensor bias = c.num_inputs > 2 ? dense(c.in(2)) : Tensor();
  const int64_t rows = in.sizes().slice(0, in.dim() - attrs.dims).numel();
  const Tensor stats = empty({2, rows}, {.dtype = DType::f64, .device = x.device()});
  RowNormArgs a = row_args(x, stats, attrs, centered);
  a.out = y.raw();
  a.weight = pointer(weight);
  a.bias = pointer(bias);
  kernels::row_norm(x.device(), x.dtype(), a);
  c.save(stats);
}

void row_norm_fast_backward(Backward& b, bool centered) {
  const auto& attrs = b.attrs<RowNormAttrs>();
  const Tensor x = contiguous_raw(b.input(0)), g = contiguous_raw(b.upstream());
  const Tensor weight = dense(b.input(1));
  const Shape sizes = x.sizes().slice(x.dim() - attrs.dims, x.dim());
  const Opts opts{.dtype = x.dtype(), .device = x.device()};
  RowNormArgs a = row_args(x, b.extra(0), attrs, centered);
  a.grad = g.raw();
  a.weight = pointer(weight);
  const auto wanted = [&](int i, const Shape& s, void*& place) {
    if (i >= b.num_inputs() || !b.needs(i)) return;
    const Tensor t = empty(s, opts);
    place = t.raw();
    b.set(i, t);
  };
  wanted(0, x.sizes(), a.out);
  wanted(1, sizes, a.grad_weight);
  wanted(2, sizes, a.grad_bias);
  kernels::row_norm_backward(x.device(), x.dtype(), a);
}

// The same in public ops, for every order.
void row_norm_backward(Backward& b, bool centered) {
  const auto& attrs = b.attrs<RowNormAttrs>();
  const Tensor x = b.input(0), weight = b.input(1), &g = b.upstream();
  Shape dims;
  for (int d = x.dim() - attrs.dims; d < x.dim(); ++d) dims.push_back(d);
  const auto row_mean = [&](const Tensor& t) { return mean(t, dims, {.keepdim = true}); };
  const Tensor d = centered ? x - row_mean(x) : x;
  const Tensor rstd = rsqrt(row_mean(d * d) + attrs.eps);
  const Tensor hat = d * rstd;
  if (b.needs(0)) {
    const Tensor scaled = weight.defined() ? g * weight : g;
    const Tensor inner = scaled - hat * row_mean(scaled * hat);
    b.set(0, rstd * (centered ? inner - row_mean(scaled) : inner));
  }
  if (b.needs(1)) b.set(1, g * hat);  // summed to size by the engine
  if (b.num_inputs() > 2 && b.needs(2)) b.set(2, g);
}

// ---- as nodes of ONNX

void onnx_layer_norm(OnnxCall& c) {
  const auto& a = c.attrs<RowNormAttrs>();
  const Shape& x = c.in().sizes();
  const Shape rows = x.slice(x.rank() - a.dims, x.rank());
  const std::string w = c.has(1) ? c.name(1) : c.constant(ones(rows, {.dtype = c.type()}));
  c.result(c.node("LayerNormalization", {c.name(0), w, c.name(2)},
                  {{"axis", -a.dims}, {"epsilon", a.eps}}));
}
void onnx_rms_norm(OnnxCall& c) {
  const auto& a = c.attrs<RowNormAttrs>();
  Shape axes;
  for (int d = a.dims; d > 0; --d) axes.push_back(-d);
  const std::string x = c.name(0);
  const std::string mean =
      c.node("ReduceMean", {c.node("Mul", {x, x})}, {{"axes", axes}, {"keepdims", 1}});
  const std::string root = c.node("Sqrt", {c.node("Add", {mean, c.number(a.eps)})});
  const std::string y = c.node("Div", {x, root});
  c.result(c.has(1) ? c.node("Mul", {y, c.name(1)}) : y);
}

const OpRecord kLayerNorm{
    .name = "layer_norm",
    .signature = "layer_norm(x, normalized, weight?, bias?, {eps}) → y",
    .meaning =
        "Rows shifted and scaled to mean 0 and variance 1, then scaled and shifted by weights.",
    .formula = "y = (x − mean) / sqrt(var + eps) ⊙ weight + bias;  var divides by n",
    .shapes = "x [..., D]   weight, bias [D]   y [..., D]",
    .compute = Compute::f32,
    .save_inputs = 3,
    .forward = [](Call& c) { row_norm_forward(c, true); },
    .backward_text = "dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ ⊙ x̂)),  ĝ = g ⊙ weight",
    .backward = [](Backward& b) { row_norm_backward(b, true); },
    .fast_backward = [](Backward& b) { row_norm_fast_backward(b, true); },
    .samples = layer_norm_samples,
    .onnx = onnx_layer_norm,
};

const OpRecord kRmsNorm{
    .name = "rms_norm",
    .signature = "rms_norm(x, normalized, weight?, {eps}) → y",
    .meaning = "Rows scaled to root mean square 1, then scaled by weights.",
    .formula = "y = x / sqrt(mean(x²) + eps) ⊙ weight",
    .shapes = "x [..., D]   weight [D]   y [..., D]",
    .compute = Compute::f32,
    .save_inputs = 3,
    .forward = [](Call& c) { row_norm_forward(c, false); },
    .backward_text = "dx = r (ĝ − x̂ mean(ĝ ⊙ x̂)),  ĝ = g ⊙ weight,  r = 1 / sqrt(mean(x²) + eps)",
    .backward = [](Backward& b) { row_norm_backward(b, false); },
    .fast_backward = [](Backward& b) { row_norm_fast_backward(b, false); },
    .samples = rms_norm_samples,
    .onnx = onnx_rms_norm,
};

RowNormAttrs row_attrs(const char* op, const Tensor& x, const Shape& normalized, double eps) {
  const int from = x.dim() - normalized.rank();
  if (normalized.empty() || from < 0 || x.sizes().slice(from, x.dim()) != normalized) {
    throw_rows(op, x, normalized);
  }
  return {normalized.rank(), eps};
}

double machine_epsilon(DType t) {
  constexpr double kEpsilon[] = {0x1p-52, 0x1p-23, 0x1p-7, 0x1p-10};
  return is_floating(t) ? kEpsilon[int(t)] : 0;
}

}  // namespace

Tensor layer_norm(TensorArg x, const Shape& normalized, TensorArg weight, TensorArg bias,
                  LayerNormOptions o) {
  CallScope scope(x.site);
  return run(kLayerNorm, {x, weight, bias}, row_attrs("layer_norm", *x, normalized, o.eps));
}

Tensor rms_norm(TensorArg x, const Shape& normalized, TensorArg weight, RmsNormOptions o) {
  CallScope scope(x.site);
  const double eps = o.eps.value_or(machine_epsilon(x->dtype()));
  return run(kRmsNorm, {x, weight}, row_attrs("rms_norm", *x, normalized, eps));
}

void register_norm_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kLayerNorm, &kRmsNorm});
}

}  // namespace cutaway
