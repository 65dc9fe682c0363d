#include <cutaway/autograd/ops/pool.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/index_tools.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/kernels/pool.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: pool_samples.cpp.
void max_pool_samples(SampleList&);
void plane_scatter_samples(SampleList&);
void plane_gather_samples(SampleList&);
void avg_pool_samples(SampleList&);
void avg_pool_grad_samples(SampleList&);

namespace {

// Windows of all kinds of pooling; sizes of the lists give the number of spatial dimensions.
struct PoolAttrs {
  Shape in, out;  // spatial sizes
  Shape kernel, stride, padding, dilation;
  bool adaptive = false, include_pad = true;
  int64_t divisor = 0;  // 0: the number of elements
};

// The windows along each dimension, as the kernels want them.
struct Windows {
  std::vector<int64_t> begin[3], end[3];
  std::vector<double> divisor[3];
  PoolArgs args;

  explicit Windows(const PoolAttrs& a) {
    const int spatial = a.in.rank(), lead = 3 - spatial;
    for (int d = 0; d < 3; ++d) {
      if (d < lead) {
        add(d, 0, 1, 1);
        continue;
      }
      const int s = d - lead;
      args.in[d] = a.in[s];
      args.out[d] = a.out[s];
      if (!a.adaptive) args.step[d] = a.dilation[s];
      for (int64_t o = 0; o < a.out[s]; ++o) a.adaptive ? adaptive(a, d, s, o) : window(a, d, s, o);
    }
    for (int d = 0; d < 3; ++d) {
      args.begin[d] = begin[d].data();
      args.end[d] = end[d].data();
      args.divisor[d] = divisor[d].data();
    }
    args.fixed_divisor = double(a.divisor);
  }

 private:
  void add(int d, int64_t first, int64_t last, double count) {
    begin[d].push_back(first);
    end[d].push_back(last);
    divisor[d].push_back(count);
  }
  void adaptive(const PoolAttrs& a, int d, int s, int64_t o) {
    const int64_t n = a.in[s], m = a.out[s];
    const int64_t first = o * n / m, last = ((o + 1) * n + m - 1) / m;
    add(d, first, last, double(last - first));
  }
  void window(const PoolAttrs& a, int d, int s, int64_t o) {
    const int64_t n = a.in[s], step = a.dilation[s], from = o * a.stride[s] - a.padding[s];
    const int64_t to = from + (a.kernel[s] - 1) * step + 1;
    const int64_t first = from < 0 ? from + (-from + step - 1) / step * step : from;
    const int64_t last = std::min(to, n);
    // Explicit padding counts when asked for, the overhang of ceil_mode never.
    const int64_t padded = std::min(to, n + a.padding[s]) - from;
    add(d, first, last, double(a.include_pad ? padded : last - first));
  }
};

int64_t planes_of(const Tensor& x, int spatial) {
  int64_t n = 1;
  for (int d = 0; d < x.dim() - spatial; ++d) n *= x.sizes()[d];
  return n;
}

Shape with_spatial(const Shape& sizes, const Shape& spatial) {
  Shape s = sizes.slice(0, sizes.rank() - spatial.rank());
  for (int64_t n : spatial) s.push_back(n);
  return s;
}

void max_pool_forward(Call& c) {
  c.require_dtype(0);
  const auto& a = c.attrs<PoolAttrs>();
  const Tensor& x = c.in(0);
  const Shape sizes = with_spatial(x.sizes(), a.out);
  const Tensor& y = c.out(0, sizes, x.dtype());
  const Tensor& index = c.out(1, sizes, DType::i64);
  if (c.meta() || y.numel() == 0) return;
  Windows w(a);
  const Tensor dense = contiguous_raw(x);
  w.args.planes = planes_of(x, a.in.rank());
  w.args.x = dense.raw();
  w.args.result = y.raw();
  w.args.indices = index.data<int64_t>();
  kernels::max_pool(x.device(), x.dtype(), w.args);
}

struct PlaneAttrs {
  Shape sizes;  // of the large side
  int spatial = 1;
};

extern const OpRecord kPlaneScatter;
extern const OpRecord kPlaneGather;

// Elements of `from` [planes…,out…] added into zeros of `sizes` at flat positions of each plane;
// and the adjoint.
Tensor plane_scatter(TensorArg from, TensorArg index, const PlaneAttrs& a) {
  return run(kPlaneScatter, {from, index}, a);
}
Tensor plane_gather(TensorArg x, TensorArg index, const PlaneAttrs& a) {
  return run(kPlaneGather, {x, index}, a);
}

void max_pool_backward(Backward& b) {
  if (!b.needs(0) || !b.has_upstream(0)) return;
  b.set(0, plane_scatter(b.upstream(0), b.output(1),
                         {b.input_sizes(0), b.attrs<PoolAttrs>().in.rank()}));
}

PlaneIndexArgs plane_args(const OpRecord& op, const PlaneAttrs& a, const Tensor& index) {
  PlaneIndexArgs args{.planes = planes_of(index, a.spatial)};
  args.in = a.sizes.slice(a.sizes.rank() - a.spatial, a.sizes.rank()).numel();
  args.out = index.numel() / std::max<int64_t>(args.planes, 1);
  args.indices = index.data<int64_t>();
  const int64_t i = first_outside(index, 0, args.in);
  if (i >= 0) {
    throw IndexError(op.name,
                     fmt::format("index {} at position {} is out of range; a plane has {} elements",
                                 value_at(index, i), i, args.in));
  }
  return args;
}

// Index tensors are i64 and belong to a large side of these sizes.
void check_planes(Call& c, const Shape& large, const Tensor& index, int spatial) {
  c.require_same_device();
  if (index.dtype() != DType::i64)
    throw DTypeError(c.op.name, fmt::format("indices must be i64; got {}", name_of(index.dtype())));
  const bool ranks = spatial >= 1 && large.rank() >= spatial && index.dim() == large.rank();
  if (!ranks ||
      large.slice(0, large.rank() - spatial) != index.sizes().slice(0, large.rank() - spatial)) {
    throw ShapeError(
        c.op.name,
        fmt::format("indices and planes must agree before the {} spatial sizes; got {} and {}",
                    spatial, to_string(index.sizes()), to_string(large)));
  }
}

void plane_scatter_forward(Call& c) {
  c.require_dtype(0);
  const auto& a = c.attrs<PlaneAttrs>();
  check_planes(c, a.sizes, c.in(1), a.spatial);
  if (c.in(0).sizes() != c.in(1).sizes()) {
    throw ShapeError(c.op.name,
                     fmt::format("values and indices must have the same sizes; got {} and {}",
                                 to_string(c.in(0).sizes()), to_string(c.in(1).sizes())));
  }
  const Tensor& y = c.out(0, a.sizes, c.in(0).dtype());
  if (c.meta() || y.numel() == 0) return;
  const Tensor from = contiguous_raw(c.in(0)), index = contiguous_raw(c.in(1));
  PlaneIndexArgs args = plane_args(c.op, a, index);
  args.from = from.raw();
  args.result = y.raw();
  kernels::plane_scatter(y.device(), y.dtype(), args);
}

void plane_gather_forward(Call& c) {
  c.require_dtype(0);
  const auto& a = c.attrs<PlaneAttrs>();
  check_planes(c, a.sizes, c.in(1), a.spatial);
  const Tensor& y = c.out(0, c.in(1).sizes(), c.in(0).dtype());
  if (c.meta() || y.numel() == 0) return;
  const Tensor from = contiguous_raw(c.in(0)), index = contiguous_raw(c.in(1));
  PlaneIndexArgs args = plane_args(c.op, a, index);
  args.from = from.raw();
  args.result = y.raw();
  kernels::plane_gather(y.device(), y.dtype(), args);
}

void avg_pool_forward(Call& c) {
  c.require_dtype(0);
  const auto& a = c.attrs<PoolAttrs>();
  const Tensor& x = c.in(0);
  const Tensor& y = c.out(0, with_spatial(x.sizes(), a.out), x.dtype());
  if (c.meta() || y.numel() == 0) return;
  Windows w(a);
  const Tensor dense = contiguous_raw(x);
  w.args.planes = planes_of(x, a.in.rank());
  w.args.x = dense.raw();
  w.args.result = y.raw();
  kernels::avg_pool(x.device(), x.dtype(), w.args);
}

void avg_pool_grad_forward(Call& c) {
  c.require_dtype(0);
  const auto& a = c.attrs<PoolAttrs>();
  const Tensor& g = c.in(0);
  const Tensor& dx = c.out(0, with_spatial(g.sizes(), a.in), g.dtype());
  if (c.meta() || dx.numel() == 0) return;
  Windows w(a);
  const Tensor dense = contiguous_raw(g);
  w.args.planes = planes_of(g, a.in.rank());
  w.args.x = dense.raw();
  w.args.result = dx.raw();
  kernels::avg_pool_grad(g.device(), g.dtype(), w.args);
}

extern const OpRecord kAvgPoolGrad;
extern const OpRecord kAvgPool;

void avg_pool_backward(Backward& b) {
  b.set(0, run(kAvgPoolGrad, {b.upstream()}, b.attrs<PoolAttrs>()));
}
void avg_pool_grad_backward(Backward& b) {
  b.set(0, run(kAvgPool, {b.upstream()}, b.attrs<PoolAttrs>()));
}

// ---- as nodes of ONNX

void onnx_pool(OnnxCall& c, bool max) {
  PoolAttrs a = c.attrs<PoolAttrs>();
  const int n = a.in.rank();
  if (a.divisor != 0) c.refuse("has no equivalent in ONNX with another divisor");
  if (a.adaptive) {
    a.padding = Shape::filled(n, 0);
    a.dilation = Shape::filled(n, 1);
    for (int d = 0; d < n; ++d) {
      if (a.out[d] < 1 || a.in[d] % a.out[d] != 0) {
        c.refuse("has an equivalent in ONNX only where the output divides the input");
      }
      a.kernel.push_back(a.in[d] / a.out[d]);
    }
    a.stride = a.kernel;
  }
  int ceil_mode = 0;
  Shape pads = a.padding;
  for (int d = 0; d < n; ++d) {
    const int64_t span = a.in[d] + 2 * a.padding[d] - a.dilation[d] * (a.kernel[d] - 1) - 1;
    ceil_mode |= a.out[d] > span / a.stride[d] + 1;
    pads.push_back(a.padding[d]);
  }
  onnx::Attributes attributes{
      {"kernel_shape", a.kernel}, {"strides", a.stride}, {"pads", pads}, {"ceil_mode", ceil_mode}};
  if (max) {
    attributes.emplace_back("dilations", a.dilation);
  } else {
    attributes.emplace_back("count_include_pad", int(a.include_pad));
  }
  const bool single = c.in().dim() == n + 1;
  const std::string x = single ? c.node("Unsqueeze", {c.name(0), c.list({0})}) : c.name(0);
  const std::string y = c.node(max ? "MaxPool" : "AveragePool", {x}, attributes);
  c.result(single ? c.node("Squeeze", {y, c.list({0})}) : y);
}

const OpRecord kMaxPool{
    .name = "max_pool",
    .signature = "max_pool{1,2,3}d(x, {kernel, stride, padding, dilation, ceil_mode}) → y, indices",
    .meaning = "Largest value of each window, and where it stands.",
    .formula = "y[o] = max over the window of o of x",
    .shapes = "x [N,C,in…]   y [N,C,out…]   indices i64 [N,C,out…]",
    .outputs = 2,
    .save_outputs = 0b10,
    .forward = max_pool_forward,
    .backward_text = "dx[indices[o]] += g[o]",
    .backward = max_pool_backward,
    .samples = max_pool_samples,
    .onnx =
        [](OnnxCall& c) {
          onnx_pool(c, true);
          c.no_result(1, "ONNX counts the places of maxima otherwise");
        },
};
const OpRecord kPlaneScatter{
    .name = "max_unpool",
    .signature = "max_unpool(g, indices, sizes) → x",
    .meaning = "Adds each value at its flat position of a plane of zeros: the adjoint of max_pool.",
    .formula = "x[p, i] = Σ_{o: indices[p,o] = i} g[p, o]",
    .shapes = "g [N,C,out…]   indices i64 [N,C,out…]   x [N,C,in…]",
    .save_inputs = 0b10,
    .forward = plane_scatter_forward,
    .backward_text = "dg[o] = v[indices[o]]",
    .backward =
        [](Backward& b) {
          const auto& a = b.attrs<PlaneAttrs>();
          if (b.needs(0)) b.set(0, plane_gather(b.upstream(), b.input(1), a));
        },
    .samples = plane_scatter_samples,
};
const OpRecord kPlaneGather{
    .name = "max_pool_gather",
    .signature = "max_pool_gather(x, indices) → y",
    .meaning =
        "Reads flat positions of each plane: the linear map of a max_pool whose indices are fixed.",
    .formula = "y[p, o] = x[p, indices[p, o]]",
    .shapes = "x [N,C,in…]   indices i64 [N,C,out…]   y [N,C,out…]",
    .save_inputs = 0b10,
    .forward = plane_gather_forward,
    .backward_text = "dx[indices[o]] += g[o]",
    .backward =
        [](Backward& b) {
          if (b.needs(0)) b.set(0, plane_scatter(b.upstream(), b.input(1), b.attrs<PlaneAttrs>()));
        },
    .samples = plane_gather_samples,
};
const OpRecord kAvgPool{
    .name = "avg_pool",
    .signature =
        "avg_pool{1,2,3}d(x, {kernel, stride, padding, …}), adaptive_avg_pool{1,2,3}d(x, size) → y",
    .meaning = "Mean of each window.",
    .formula = "y[o] = Σ over the window of o of x / divisor(o)",
    .shapes = "x [N,C,in…]   y [N,C,out…]",
    .forward = avg_pool_forward,
    .backward_text = "dx = avg_pool_grad(g)",
    .backward = avg_pool_backward,
    .samples = avg_pool_samples,
    .onnx = [](OnnxCall& c) { onnx_pool(c, false); },
};
const OpRecord kAvgPoolGrad{
    .name = "avg_pool_grad",
    .signature = "avg_pool_grad(g) → x",
    .meaning = "Spreads each value over its window: the adjoint of avg_pool.",
    .formula = "x[i] = Σ over windows o that hold i of g[o] / divisor(o)",
    .shapes = "g [N,C,out…]   x [N,C,in…]",
    .forward = avg_pool_grad_forward,
    .backward_text = "dg = avg_pool(v)",
    .backward = avg_pool_grad_backward,
    .samples = avg_pool_grad_samples,
};

void require_rank(const char* op, const Tensor& x, int spatial) {
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2) {
    throw ShapeError(op, fmt::format("needs [N,C,{0} sizes] or [C,{0} sizes]; got {1}", spatial,
                                     to_string(x.sizes())));
  }
}

PoolAttrs window_attrs(const char* op, const Tensor& x, const PoolOptions& o, int spatial) {
  require_rank(op, x, spatial);
  PoolAttrs a;
  a.kernel = o.kernel.expand(op, spatial);
  a.stride = o.stride ? o.stride->expand(op, spatial) : a.kernel;
  a.padding = o.padding.expand(op, spatial);
  a.dilation = o.dilation.expand(op, spatial);
  a.include_pad = o.count_include_pad;
  if (o.divisor_override) {
    if (*o.divisor_override == 0) throw ValueError(op, "divisor_override must not be 0");
    a.divisor = *o.divisor_override;
  }
  a.in = x.sizes().slice(x.dim() - spatial, x.dim());
  for (int d = 0; d < spatial; ++d) {
    const int64_t k = a.kernel[d], s = a.stride[d], p = a.padding[d],
                  reach = a.dilation[d] * (k - 1) + 1;
    if (k < 1 || s < 1 || a.dilation[d] < 1) {
      throw ValueError(
          op, fmt::format("kernel, stride and dilation must be ≥ 1; got {}, {}, {}",
                          to_string(a.kernel), to_string(a.stride), to_string(a.dilation)));
    }
    if (p < 0 || 2 * p > k) {
      throw ValueError(
          op,
          fmt::format("padding must be between 0 and half the kernel; got padding {}, kernel {}",
                      to_string(a.padding), to_string(a.kernel)));
    }
    const int64_t span = a.in[d] + 2 * p - reach;
    if (span < 0) {
      throw ShapeError(
          op,
          fmt::format("the window must fit into the padded input; got {}, kernel {}, padding {}",
                      to_string(x.sizes()), to_string(a.kernel), to_string(a.padding)));
    }
    int64_t out = (o.ceil_mode ? (span + s - 1) / s : span / s) + 1;
    // A window that begins in the padding behind the input would hold nothing.
    if (o.ceil_mode && (out - 1) * s >= a.in[d] + p) --out;
    a.out.push_back(out);
  }
  return a;
}

PoolAttrs adaptive_attrs(const char* op, const Tensor& x, const Dims& output, int spatial) {
  require_rank(op, x, spatial);
  PoolAttrs a;
  a.adaptive = true;
  a.out = output.expand(op, spatial);
  a.in = x.sizes().slice(x.dim() - spatial, x.dim());
  for (int d = 0; d < spatial; ++d) {
    if (a.out[d] < 0 || a.in[d] < 1) {
      throw ShapeError(op, fmt::format("needs sizes ≥ 1 and an output ≥ 0; got {}, output {}",
                                       to_string(x.sizes()), to_string(a.out)));
    }
  }
  return a;
}

Tensors max_pool_nd(const char* op, TensorArg x, const PoolOptions& o, int spatial) {
  CallScope scope(x.site);
  return run_many(kMaxPool, {*x}, window_attrs(op, *x, o, spatial), x.site);
}
Tensor avg_pool_nd(const char* op, TensorArg x, const PoolOptions& o, int spatial) {
  CallScope scope(x.site);
  if (o.dilation.expand(op, spatial) != Shape::filled(spatial, 1))
    throw ValueError(op, "average pooling has no dilation");
  return run(kAvgPool, {x}, window_attrs(op, *x, o, spatial));
}
Tensor adaptive_avg_nd(const char* op, TensorArg x, const Dims& out, int spatial) {
  CallScope scope(x.site);
  return run(kAvgPool, {x}, adaptive_attrs(op, *x, out, spatial));
}
Tensors adaptive_max_nd(const char* op, TensorArg x, const Dims& out, int spatial) {
  CallScope scope(x.site);
  return run_many(kMaxPool, {*x}, adaptive_attrs(op, *x, out, spatial), x.site);
}

}  // namespace

Tensors max_pool_with_indices(TensorArg x, const PoolOptions& o, int spatial) {
  return max_pool_nd("max_pool", x, o, spatial);
}
Tensor max_unpool(TensorArg values, TensorArg indices, const Shape& sizes, int spatial) {
  return plane_scatter(values, indices, {sizes, spatial});
}
Tensor max_pool_gather(TensorArg x, TensorArg indices, int spatial) {
  return plane_gather(x, indices, {x->sizes(), spatial});
}
Tensor avg_pool_grad(TensorArg g, const Shape& x_sizes, const PoolOptions& o, int spatial) {
  const Tensor like = empty(x_sizes, {.dtype = g->dtype(), .device = kMeta});
  return run(kAvgPoolGrad, {g}, window_attrs("avg_pool_grad", like, o, spatial));
}
Tensor max_pool1d(TensorArg x, const PoolOptions& o) {
  return max_pool_nd("max_pool1d", x, o, 1)[0];
}
Tensor max_pool2d(TensorArg x, const PoolOptions& o) {
  return max_pool_nd("max_pool2d", x, o, 2)[0];
}
Tensor max_pool3d(TensorArg x, const PoolOptions& o) {
  return max_pool_nd("max_pool3d", x, o, 3)[0];
}
Tensor avg_pool1d(TensorArg x, const PoolOptions& o) { return avg_pool_nd("avg_pool1d", x, o, 1); }
Tensor avg_pool2d(TensorArg x, const PoolOptions& o) { return avg_pool_nd("avg_pool2d", x, o, 2); }
Tensor avg_pool3d(TensorArg x, const PoolOptions& o) { return avg_pool_nd("avg_pool3d", x, o, 3); }
Tensor adaptive_avg_pool1d(TensorArg x, Dims n) {
  return adaptive_avg_nd("adaptive_avg_pool1d", x, n, 1);
}
Tensor adaptive_avg_pool2d(TensorArg x, Dims n) {
  return adaptive_avg_nd("adaptive_avg_pool2d", x, n, 2);
}
Tensor adaptive_avg_pool3d(TensorArg x, Dims n) {
  return adaptive_avg_nd("adaptive_avg_pool3d", x, n, 3);
}
Tensors adaptive_max_pool_with_indices(TensorArg x, Dims n, int spatial) {
  return adaptive_max_nd("adaptive_max_pool", x, n, spatial);
}
Tensor adaptive_max_pool1d(TensorArg x, Dims n) {
  return adaptive_max_nd("adaptive_max_pool1d", x, n, 1)[0];
}
Tensor adaptive_max_pool2d(TensorArg x, Dims n) {
  return adaptive_max_nd("adaptive_max_pool2d", x, n, 2)[0];
}
Tensor adaptive_max_pool3d(TensorArg x, Dims n) {
  return adaptive_max_nd("adaptive_max_pool3d", x, n, 3)[0];
}

void register_pool_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kMaxPool, &kPlaneScatter, &kPlaneGather, &kAvgPool, &kAvgPoolGrad});
}

}  // namespace cutaway
