#include <cutaway/autograd/ops/linear.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops/matmul_args.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: linear_samples.cpp.
void linear_samples(SampleList&);

namespace {

[[noreturn, gnu::cold]] void throw_shapes(const char* rule, const Tensor& x, const Tensor& w,
                                          const std::string& need, const char* hint) {
  throw ShapeError("linear",
                   fmt::format("{}; got x {}, weight {}; need {}", rule, to_string(x.sizes()),
                               to_string(w.sizes()), need),
                   hint);
}

void check_linear(const Call& c) {
  const Tensor &x = c.in(0), &w = c.in(1);
  for (int i = 0; i < 3; ++i) c.require_dtype(i);
  c.require_same_device();
  if (x.dim() < 1 || w.dim() != 2) {
    throw_shapes("x needs at least one dimension and weight two", x, w,
                 "x [...,in], weight [out,in]", "");
  }
  if (x.sizes().back() != w.sizes()[1]) {
    const bool turned = x.sizes().back() == w.sizes()[0];
    throw_shapes("last size of x and of weight must agree", x, w,
                 fmt::format("weight [out,{}]", x.sizes().back()),
                 turned ? "weight looks transposed: it is stored as [out,in]; use weight.t()" : "");
  }
  if (x.dtype() != w.dtype() || (c.has(2) && c.in(2).dtype() != x.dtype())) {
    throw DTypeError(
        "linear",
        fmt::format("operands must have one type; got x {}, weight {}{}", name_of(x.dtype()),
                    name_of(w.dtype()),
                    c.has(2) ? fmt::format(", bias {}", name_of(c.in(2).dtype())) : ""),
        fmt::format("convert with to(DType::{})", name_of(w.dtype())));
  }
  if (c.has(2) && c.in(2).sizes() != Shape{w.sizes()[0]}) {
    throw ShapeError("linear",
                     fmt::format("bias must have one entry for each output; got bias {}, need [{}]",
                                 to_string(c.in(2).sizes()), w.sizes()[0]));
  }
}

// x as a matrix or more, without history.
Tensor at_least_2d(const Tensor& x) {
  if (x.dim() >= 2) return x;
  return make_view(x, {{1, x.sizes()[0]}, {x.sizes()[0], x.strides()[0]}, x.layout().offset});
}

void linear_forward(Call& c) {
  check_linear(c);
  const Tensor &x = c.in(0), &w = c.in(1);
  Shape sizes = x.sizes();
  sizes[sizes.rank() - 1] = w.sizes()[0];
  Tensor& out = c.out(0, sizes, x.dtype());
  if (c.meta() || out.numel() == 0) return;
  const MatmulOptions options{.transpose_b = true};
  const Tensor rows = at_least_2d(x);
  MatmulArgs args =
      detail::matmul_args(out, rows, w, detail::check_matmul("linear", rows, w, options), options);
  const Tensor bias = c.has(2) ? contiguous_raw(c.in(2)) : Tensor();
  if (bias.defined()) args.bias = bias.raw();
  kernels::matmul(out.device(), out.dtype(), args);
}

void linear_backward(Backward& b) {
  const Tensor& g = b.upstream();
  if (b.needs(0)) b.set(0, matmul(g, b.input(1)));
  if (b.needs(1)) {
    const Tensor x = b.input(0);
    b.set(1, matmul(g.dim() == 1 ? g.unsqueeze(0) : g, x.dim() == 1 ? x.unsqueeze(0) : x,
                    {.transpose_a = true, .sum_batch = true}));
  }
  if (b.num_inputs() > 2 && b.needs(2)) b.set(2, g);  // summed to [out] by the engine
}

// The same by kernels alone: no nodes, no views, one pass for the sums of the columns.
void linear_fast_backward(Backward& b) {
  const Tensor g = at_least_2d(b.upstream());
  if (b.needs(0)) {
    const Tensor grad = detail::matmul_raw(g, b.input(1), {});
    const Shape& sizes = b.input_sizes(0);
    b.set(0, sizes.rank() == grad.dim() ? grad : make_view(grad, Layout::contiguous(sizes)));
  }
  if (b.needs(1)) {
    b.set(1,
          detail::matmul_raw(g, at_least_2d(b.input(0)), {.transpose_a = true, .sum_batch = true}));
  }
  if (b.num_inputs() > 2 && b.needs(2)) {
    const Tensor rows = contiguous_raw(g);
    const Tensor grad = empty({g.sizes().back()}, {.dtype = g.dtype(), .device = g.device()});
    const int64_t columns = g.sizes().back();
    if (!g.is_meta() && columns > 0) {
      kernels::column_sums(
          g.device(), g.dtype(),
          {.rows = g.numel() / columns, .columns = columns, .in = rows.raw(), .out = grad.raw()});
    }
    b.set(2, grad);
  }
}

// Gemm for matrices, else MatMul with the transposed weight.
void onnx_linear(OnnxCall& c) {
  if (c.in().dim() == 2) {
    return c.result(c.node("Gemm", {c.name(0), c.name(1), c.name(2)}, {{"transB", 1}}));
  }
  const std::string w = c.node("Transpose", {c.name(1)}, {{"perm", Shape{1, 0}}});
  const std::string y = c.node("MatMul", {c.name(0), w});
  c.result(c.has(2) ? c.node("Add", {y, c.name(2)}) : y);
}

const OpRecord kLinear{
    .name = "linear",
    .signature = "linear(x, weight, bias?) → y",
    .meaning = "Affine map of the last dimension.",
    .formula = "y = x wᵀ + bias",
    .shapes = "x [..., in]   weight [out, in]   bias [out]   y [..., out]",
    .dtypes = kFloating,
    .compute = Compute::low,
    .save_inputs = 0b11,
    .cross = true,
    .forward = linear_forward,
    .backward_text = "dx = g w,  dw = gᵀ x,  dbias = Σ g over all but the last dimension",
    .backward = linear_backward,
    .fast_backward = linear_fast_backward,
    .samples = linear_samples,
    .onnx = onnx_linear,
};

}  // namespace

Tensor linear(TensorArg x, TensorArg weight, TensorArg bias) {
  if (!bias->defined()) return run(kLinear, {x, weight});
  return run(kLinear, {x, weight, bias});
}

Tensor bilinear(TensorArg a, TensorArg b, TensorArg weight, TensorArg bias) {
  CallScope scope(a.site);
  if (weight->dim() != 3 || a->dim() < 1 || b->dim() != a->dim() ||
      a->sizes().back() != weight->sizes()[1] || b->sizes().back() != weight->sizes()[2] ||
      !(a->sizes().slice(0, a->dim() - 1) == b->sizes().slice(0, b->dim() - 1))) {
    throw ShapeError(
        "bilinear",
        fmt::format("need a [...,n], b [...,m], weight [out,n,m]; got a {}, b {}, "
                    "weight {}",
                    to_string(a->sizes()), to_string(b->sizes()), to_string(weight->sizes())));
  }
  // u_oi = Σ_j w_oij b_j for every row of b, then Σ_i u_oi a_i.
  const int64_t out = weight->sizes()[0], n = weight->sizes()[1];
  Shape parts = b->sizes();
  parts[parts.rank() - 1] = out;
  parts.push_back(n);
  const Tensor u = linear(b, weight->reshape({out * n, weight->sizes()[2]})).reshape(parts);
  const Tensor y = matmul(u, a->unsqueeze(-1)).squeeze(-1);
  return bias->defined() ? y + *bias : y;
}

void register_linear_ops(std::vector<const OpRecord*>& list) { list.push_back(&kLinear); }

}  // namespace cutaway
