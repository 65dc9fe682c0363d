#include <cutaway/autograd/ops/conv.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/conv_family.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/reduce.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/kernels/conv.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: conv_samples.cpp.
void conv_samples(SampleList&);
void conv_input_grad_samples(SampleList&);
void conv_weight_grad_samples(SampleList&);

namespace {

// Everything the three members of the family share; sizes of x and of the kernel are needed by the
// adjoints.
struct ConvAttrs {
  Shape stride, padding, dilation;
  int64_t groups = 1;
  Shape x_sizes;       // of the input gradient
  Shape weight_sizes;  // of the weight gradient
};

int64_t out_size(int64_t n, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t reach = n + 2 * pad - dilation * (kernel - 1) - 1;
  return reach < 0 ? 0 : reach / stride + 1;
}

void check_options(const char* op, const ConvAttrs& a) {
  for (int d = 0; d < a.stride.rank(); ++d) {
    if (a.stride[d] < 1 || a.dilation[d] < 1 || a.padding[d] < 0) {
      throw ValueError(
          op,
          fmt::format("stride and dilation must be ≥ 1, padding ≥ 0; got stride {}, dilation {}, "
                      "padding {}",
                      to_string(a.stride), to_string(a.dilation), to_string(a.padding)));
    }
  }
  if (a.groups < 1) throw ValueError(op, fmt::format("groups must be ≥ 1; got {}", a.groups));
}

// Checks x [N,C,…] against w [K,C/groups,…] and returns the sizes of y.
Shape result_sizes(const char* op, const Shape& x, const Shape& w, const ConvAttrs& a) {
  check_options(op, a);
  const int spatial = a.stride.rank();
  if (x.rank() != spatial + 2 || w.rank() != spatial + 2) {
    throw ShapeError(
        op, fmt::format(
                "needs x [N,C,{0} sizes] and weight [K,C/groups,{0} sizes]; got x {1}, weight {2}",
                spatial, to_string(x), to_string(w)));
  }
  if (x[1] != w[1] * a.groups || w[0] % a.groups != 0) {
    throw ShapeError(
        op,
        fmt::format("channels of x must be weight.size(1)·groups, and weight.size(0) a multiple of "
                    "groups; got x {}, weight {}, groups {}",
                    to_string(x), to_string(w), a.groups),
        "a weight has sizes [out channels, in channels / groups, kernel…]");
  }
  Shape y{x[0], w[0]};
  for (int d = 0; d < spatial; ++d) {
    if (w[2 + d] < 1 || a.dilation[d] * (w[2 + d] - 1) + 1 > x[2 + d] + 2 * a.padding[d]) {
      throw ShapeError(
          op,
          fmt::format("the kernel must fit into the padded input; got x {}, weight {}, padding {}, "
                      "dilation {}",
                      to_string(x), to_string(w), to_string(a.padding), to_string(a.dilation)));
    }
    y.push_back(out_size(x[2 + d], w[2 + d], a.stride[d], a.padding[d], a.dilation[d]));
  }
  return y;
}

void require_one_type(Call& c) {
  c.require_same_device();
  for (int i = 0; i < c.num_inputs; ++i) {
    c.require_dtype(i);
    if (c.has(i) && c.in(i).dtype() != c.in(0).dtype()) {
      throw DTypeError(c.op.name,
                       fmt::format("operands must have one type; got {} and {}",
                                   name_of(c.in(0).dtype()), name_of(c.in(i).dtype())),
                       "convert one with to(dtype)");
    }
  }
}

ConvArgs make_args(const Shape& x, const Shape& w, const Shape& y, const ConvAttrs& a) {
  ConvArgs args{.n = x[0], .c = x[1], .k = y[1], .groups = a.groups};
  const int spatial = a.stride.rank(), lead = 3 - spatial;
  for (int d = 0; d < spatial; ++d) {
    args.in[lead + d] = x[2 + d];
    args.out[lead + d] = y[2 + d];
    args.kernel[lead + d] = w[2 + d];
    args.stride[lead + d] = a.stride[d];
    args.pad[lead + d] = a.padding[d];
    args.dilation[lead + d] = a.dilation[d];
  }
  return args;
}

// 16-bit operands are computed in f32 and rounded once at the end. The kernels of the CPU do that
// themselves for bf16.
DType compute_type(DType t, Device device) {
  if (t == DType::bf16 && device.kind == DeviceKind::cpu) return t;
  return is_half(t) ? DType::f32 : t;
}

// Runs a kernel into `out` (already allocated); `first` and `second` are its two operands in the
// kernel's order.
void run_kernel(Kernel<ConvArgs>& kernel, ConvArgs args, const void* ConvArgs::*first,
                const Tensor& a, const void* ConvArgs::*second, const Tensor& b, const Tensor& bias,
                const Tensor& out) {
  if (out.numel() == 0) return;
  const DType type = compute_type(out.dtype(), out.device());
  const Tensor ca = cast_raw(a, type), cb = cast_raw(b, type);
  const Tensor cbias = bias.defined() ? cast_raw(bias, type) : Tensor();
  Tensor result =
      type == out.dtype() ? out : empty(out.sizes(), {.dtype = type, .device = out.device()});
  args.*first = ca.raw();
  args.*second = cb.raw();
  args.bias = cbias.defined() ? cbias.raw() : nullptr;
  args.result = result.raw();
  kernel(out.device(), type, args);
  if (!result.is_same(out)) copy_elements(out, result);
}

void conv_forward(Call& c) {
  require_one_type(c);
  const auto& a = c.attrs<ConvAttrs>();
  const Tensor &x = c.in(0), &w = c.in(1);
  const Shape y = result_sizes(c.op.name, x.sizes(), w.sizes(), a);
  const bool has_bias = c.has(2);
  if (has_bias && (c.in(2).dim() != 1 || c.in(2).size(0) != w.size(0))) {
    throw ShapeError(c.op.name, fmt::format("bias must be [K]; got bias {}, weight {}",
                                            to_string(c.in(2).sizes()), to_string(w.sizes())));
  }
  const Tensor& out = c.out(0, y, x.dtype());
  if (c.meta()) return;
  run_kernel(kernels::conv_forward, make_args(x.sizes(), w.sizes(), y, a), &ConvArgs::x, x,
             &ConvArgs::w, w, has_bias ? c.in(2) : Tensor(), out);
}

void conv_backward(Backward& b) {
  auto a = b.attrs<ConvAttrs>();
  const Tensor g = b.upstream();
  if (b.needs(0)) {
    a.x_sizes = b.input_sizes(0);
    b.set(0,
          conv_input_grad(g, b.input(1), {a.stride, a.padding, a.dilation, a.groups}, a.x_sizes));
  }
  if (b.needs(1)) {
    b.set(1, conv_weight_grad(b.input(0), g, {a.stride, a.padding, a.dilation, a.groups},
                              b.input_sizes(1)));
  }
  if (b.num_inputs() > 2 && b.needs(2)) {
    Shape dims{0};
    for (int d = 2; d < g.dim(); ++d) dims.push_back(d);
    b.set(2, sum(g, dims));
  }
}

void input_grad_forward(Call& c) {
  require_one_type(c);
  const auto& a = c.attrs<ConvAttrs>();
  const Tensor &g = c.in(0), &w = c.in(1);
  const Shape y = result_sizes(c.op.name, a.x_sizes, w.sizes(), a);
  if (y != g.sizes()) {
    throw ShapeError(c.op.name,
                     fmt::format("the gradient must have the sizes of the result; got {}, need {}",
                                 to_string(g.sizes()), to_string(y)));
  }
  const Tensor& out = c.out(0, a.x_sizes, g.dtype());
  if (c.meta()) return;
  run_kernel(kernels::conv_input_grad, make_args(a.x_sizes, w.sizes(), y, a), &ConvArgs::g, g,
             &ConvArgs::w, w, {}, out);
}

void input_grad_backward(Backward& b) {
  const auto& a = b.attrs<ConvAttrs>();
  const ConvGeometry geometry{a.stride, a.padding, a.dilation, a.groups};
  const Tensor v = b.upstream();
  if (b.needs(0)) b.set(0, conv_forward_family(v, b.input(1), geometry));
  if (b.needs(1)) b.set(1, conv_weight_grad(v, b.input(0), geometry, b.input_sizes(1)));
}

void weight_grad_forward(Call& c) {
  require_one_type(c);
  const auto& a = c.attrs<ConvAttrs>();
  const Tensor &x = c.in(0), &g = c.in(1);
  const Shape y = result_sizes(c.op.name, x.sizes(), a.weight_sizes, a);
  if (y != g.sizes()) {
    throw ShapeError(c.op.name,
                     fmt::format("the gradient must have the sizes of the result; got {}, need {}",
                                 to_string(g.sizes()), to_string(y)));
  }
  const Tensor& out = c.out(0, a.weight_sizes, x.dtype());
  if (c.meta()) return;
  if (x.size(0) == 0) return (void)Tensor(out).zero_();
  run_kernel(kernels::conv_weight_grad, make_args(x.sizes(), a.weight_sizes, y, a), &ConvArgs::x, x,
             &ConvArgs::g, g, {}, out);
}

void weight_grad_backward(Backward& b) {
  const auto& a = b.attrs<ConvAttrs>();
  const ConvGeometry geometry{a.stride, a.padding, a.dilation, a.groups};
  const Tensor v = b.upstream();
  if (b.needs(0)) b.set(0, conv_input_grad(b.input(1), v, geometry, b.input_sizes(0)));
  if (b.needs(1)) b.set(1, conv_forward_family(b.input(0), v, geometry));
}

// ---- as nodes of ONNX

onnx::Attributes onnx_window(const ConvAttrs& a, const Shape& weight, const Shape& end) {
  Shape pads = a.padding;
  for (const int64_t n : end) pads.push_back(n);
  return {{"kernel_shape", weight.slice(2, weight.rank())},
          {"strides", a.stride},
          {"dilations", a.dilation},
          {"pads", pads},
          {"group", a.groups}};
}
void onnx_conv(OnnxCall& c) {
  const auto& a = c.attrs<ConvAttrs>();
  c.result(c.node("Conv", {c.name(0), c.name(1), c.name(2)},
                  onnx_window(a, c.in(1).sizes(), a.padding)));
}
void onnx_conv_transpose(OnnxCall& c) {
  const auto& a = c.attrs<ConvAttrs>();
  const Shape &x = c.in().sizes(), &w = c.in(1).sizes();
  Shape extra;
  for (int d = 0; d < a.stride.rank(); ++d) {
    extra.push_back(a.x_sizes[2 + d] - ((x[2 + d] - 1) * a.stride[d] - 2 * a.padding[d] +
                                        a.dilation[d] * (w[2 + d] - 1) + 1));
  }
  onnx::Attributes attributes = onnx_window(a, w, a.padding);
  attributes.emplace_back("output_padding", extra);
  c.result(c.node("ConvTranspose", {c.name(0), c.name(1)}, attributes));
}

const OpRecord kConv{
    .name = "conv",
    .signature = "conv{1,2,3}d(x, weight, bias?, {stride, padding, dilation, groups}) → y",
    .meaning = "Cross-correlation of x with the kernels in weight.",
    .formula =
        "y[n,k,o] = bias[k] + Σ_c Σ_t weight[k,c,t] · x[n, c, o·stride + t·dilation − padding]",
    .shapes = "x [N,C,in…]   weight [K,C/groups,kernel…]   bias [K]   y [N,K,out…]",
    .compute = Compute::low,
    .save_inputs = 0b11,
    .cross = true,
    .forward = conv_forward,
    .backward_text =
        "dx = conv_input_grad(g, weight)   dweight = conv_weight_grad(x, g)   dbias = Σ g",
    .backward = conv_backward,
    .samples = conv_samples,
    .onnx = onnx_conv,
};

const OpRecord kConvInputGrad{
    .name = "conv_input_grad",
    .signature = "conv_transpose{1,2,3}d(g, weight, …) → x",
    .meaning = "The adjoint of conv in x: transposed convolution.",
    .formula =
        "x[n,c,i] = Σ_k Σ_{o,t: o·stride + t·dilation − padding = i} weight[k,c,t] · g[n,k,o]",
    .shapes = "g [N,K,out…]   weight [K,C/groups,kernel…]   x [N,C,in…]",
    .compute = Compute::low,
    .save_inputs = 0b11,
    .cross = true,
    .forward = input_grad_forward,
    .backward_text = "dg = conv(v, weight)   dweight = conv_weight_grad(v, g)",
    .backward = input_grad_backward,
    .samples = conv_input_grad_samples,
    .onnx = onnx_conv_transpose,
};

const OpRecord kConvWeightGrad{
    .name = "conv_weight_grad",
    .signature = "conv_weight_grad(x, g, …) → w",
    .meaning = "The adjoint of conv in weight.",
    .formula = "w[k,c,t] = Σ_n Σ_o g[n,k,o] · x[n, c, o·stride + t·dilation − padding]",
    .shapes = "x [N,C,in…]   g [N,K,out…]   w [K,C/groups,kernel…]",
    .compute = Compute::low,
    .save_inputs = 0b11,
    .cross = true,
    .forward = weight_grad_forward,
    .backward_text = "dx = conv_input_grad(g, v)   dg = conv(x, v)",
    .backward = weight_grad_backward,
    .samples = conv_weight_grad_samples,
};

// A batch dimension for x [C,…], taken away again from the result.
struct Batched {
  Tensor x;
  bool added;
  Batched(const Tensor& given, int spatial) : x(given), added(given.dim() == spatial + 1) {
    if (added) x = unsqueeze(given, 0);
  }
  Tensor undo(const Tensor& y) const { return added ? squeeze(y, 0) : y; }
};

Tensor conv_nd(const char* name, int spatial, TensorArg x, TensorArg w, const Tensor& bias,
               const ConvOptions& o) {
  CallScope scope(x.site);
  const ConvAttrs a{o.stride.expand(name, spatial),
                    o.padding.expand(name, spatial),
                    o.dilation.expand(name, spatial),
                    o.groups,
                    {},
                    {}};
  const Batched batched(*x, spatial);
  return batched.undo(run(kConv, {batched.x, *w, bias}, a));
}

Tensor conv_transpose_nd(const char* name, int spatial, TensorArg x, TensorArg w,
                         const Tensor& bias, const ConvTransposeOptions& o) {
  CallScope scope(x.site);
  ConvAttrs a{o.stride.expand(name, spatial),
              o.padding.expand(name, spatial),
              o.dilation.expand(name, spatial),
              o.groups,
              {},
              {}};
  check_options(name, a);
  const Shape extra = o.output_padding.expand(name, spatial);
  const Batched batched(*x, spatial);
  const Shape &in = batched.x.sizes(), &k = w->sizes();
  if (in.rank() != spatial + 2 || k.rank() != spatial + 2 || in[1] != k[0] ||
      k[0] % o.groups != 0) {
    throw ShapeError(
        name,
        fmt::format("needs x [N,C,…] and weight [C,K/groups,…]; got x {}, weight {}, groups {}",
                    to_string(x->sizes()), to_string(k), o.groups));
  }
  a.x_sizes = Shape{in[0], k[1] * o.groups};
  for (int d = 0; d < spatial; ++d) {
    if (extra[d] < 0 || (extra[d] >= a.stride[d] && extra[d] >= a.dilation[d])) {
      throw ValueError(
          name,
          fmt::format("output_padding must be smaller than stride or dilation; got {}, stride {}, "
                      "dilation {}",
                      to_string(extra), to_string(a.stride), to_string(a.dilation)));
    }
    const int64_t n = (in[2 + d] - 1) * a.stride[d] - 2 * a.padding[d] +
                      a.dilation[d] * (k[2 + d] - 1) + extra[d] + 1;
    if (n < 0)
      throw ShapeError(name, fmt::format("the result would have negative size; got x {}, weight {}",
                                         to_string(in), to_string(k)));
    a.x_sizes.push_back(n);
  }
  Tensor y = run(kConvInputGrad, {batched.x, *w}, a);
  if (bias.defined()) {
    if (bias.dim() != 1 || bias.size(0) != a.x_sizes[1]) {
      throw ShapeError(
          name, fmt::format("bias must be [{}]; got {}", a.x_sizes[1], to_string(bias.sizes())));
    }
    Shape wide = Shape::filled(spatial + 2, 1);
    wide[1] = bias.size(0);
    y = add(y, reshape(bias, wide));
  }
  return batched.undo(y);
}

}  // namespace

Tensor conv_forward_family(TensorArg x, TensorArg w, const ConvGeometry& q) {
  return run(kConv, {x, w, Tensor()}, ConvAttrs{q.stride, q.padding, q.dilation, q.groups, {}, {}});
}
Tensor conv_input_grad(TensorArg g, TensorArg w, const ConvGeometry& q, const Shape& x_sizes) {
  return run(kConvInputGrad, {g, w},
             ConvAttrs{q.stride, q.padding, q.dilation, q.groups, x_sizes, {}});
}
Tensor conv_weight_grad(TensorArg x, TensorArg g, const ConvGeometry& q,
                        const Shape& weight_sizes) {
  return run(kConvWeightGrad, {x, g},
             ConvAttrs{q.stride, q.padding, q.dilation, q.groups, {}, weight_sizes});
}

Shape Dims::expand(const char* op, int n) const {
  if (values_.rank() == n) return values_;
  if (values_.rank() != 1) {
    throw ShapeError(op, fmt::format("needs one number or {}; got {}", n, to_string(values_)));
  }
  return Shape::filled(n, values_[0]);
}

Tensor conv1d(TensorArg x, TensorArg w, const Tensor& bias, const ConvOptions& o) {
  return conv_nd("conv1d", 1, x, w, bias, o);
}
Tensor conv2d(TensorArg x, TensorArg w, const Tensor& bias, const ConvOptions& o) {
  return conv_nd("conv2d", 2, x, w, bias, o);
}
Tensor conv3d(TensorArg x, TensorArg w, const Tensor& bias, const ConvOptions& o) {
  return conv_nd("conv3d", 3, x, w, bias, o);
}
Tensor conv_transpose1d(TensorArg x, TensorArg w, const Tensor& bias,
                        const ConvTransposeOptions& o) {
  return conv_transpose_nd("conv_transpose1d", 1, x, w, bias, o);
}
Tensor conv_transpose2d(TensorArg x, TensorArg w, const Tensor& bias,
                        const ConvTransposeOptions& o) {
  return conv_transpose_nd("conv_transpose2d", 2, x, w, bias, o);
}
Tensor conv_transpose3d(TensorArg x, TensorArg w, const Tensor& bias,
                        const ConvTransposeOptions& o) {
  return conv_transpose_nd("conv_transpose3d", 3, x, w, bias, o);
}

void register_conv_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kConv, &kConvInputGrad, &kConvWeightGrad});
}

}  // namespace cutaway
