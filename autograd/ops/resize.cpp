#include <cutaway/autograd/ops/resize.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/op.h>
#include <cutaway/core/kernels/resize.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: resize_samples.cpp.
void interpolate_samples(SampleList&);
void interpolate_grad_samples(SampleList&);

namespace {

struct ResizeAttrs {
  Shape in, out;        // spatial sizes
  double step[3] = {};  // input positions for one output position
  Resize mode = Resize::nearest;
  bool align_corners = false;
};

struct Tables {
  std::vector<int64_t> low[3], high[3];
  std::vector<double> share[3];
  ResizeArgs args;

  explicit Tables(const ResizeAttrs& a) {
    const int spatial = a.in.rank(), lead = 3 - spatial;
    for (int d = 0; d < 3; ++d) {
      if (d < lead) {
        add(d, 0, 0, 0);
      } else {
        args.in[d] = a.in[d - lead];
        args.out[d] = a.out[d - lead];
        for (int64_t o = 0; o < args.out[d]; ++o) position(a, d, a.step[d - lead], o);
      }
      args.low[d] = low[d].data();
      args.high[d] = high[d].data();
      args.share[d] = share[d].data();
    }
  }

 private:
  void add(int d, int64_t l, int64_t h, double s) {
    low[d].push_back(l);
    high[d].push_back(h);
    share[d].push_back(s);
  }
  void position(const ResizeAttrs& a, int d, double step, int64_t o) {
    const int64_t last = args.in[d] - 1;
    if (a.mode != Resize::linear) {
      const double shift = a.mode == Resize::nearest_exact ? 0.5 : 0;
      const int64_t i = std::min(int64_t(std::floor((double(o) + shift) * step)), last);
      return add(d, i, i, 0);
    }
    const double at =
        a.align_corners ? double(o) * step : std::max(0.0, (double(o) + 0.5) * step - 0.5);
    const int64_t l = std::min(int64_t(at), last);
    add(d, l, std::min(l + 1, last), l == last ? 0 : at - double(l));
  }
};

Shape with_spatial(const Shape& sizes, const Shape& spatial) {
  Shape s = sizes.slice(0, 2);
  for (int64_t n : spatial) s.push_back(n);
  return s;
}

void run_kernel(Call& c, Kernel<ResizeArgs>& kernel, const Shape& result) {
  c.require_dtype(0);
  const auto& a = c.attrs<ResizeAttrs>();
  const Tensor& from = c.in(0);
  const Tensor& out = c.out(0, with_spatial(from.sizes(), result), from.dtype());
  if (c.meta() || out.numel() == 0) return;
  Tables tables(a);
  const Tensor dense = contiguous_raw(from);
  tables.args.planes = from.size(0) * from.size(1);
  tables.args.from = dense.raw();
  tables.args.result = out.raw();
  kernel(out.device(), out.dtype(), tables.args);
}

extern const OpRecord kInterpolateGrad;

void onnx_interpolate(OnnxCall& c) {
  const auto& a = c.attrs<ResizeAttrs>();
  for (int d = 0; d < a.in.rank(); ++d) {
    const double step = double(a.in[d]) / double(a.out[d]);
    if (!a.align_corners && std::abs(a.step[d] - step) > 1e-12 * step) {
      c.refuse("has an equivalent in ONNX only where the factor divides the sizes evenly");
    }
  }
  const bool linear = a.mode == Resize::linear, exact = a.mode == Resize::nearest_exact;
  const char* places = a.align_corners   ? "align_corners"
                       : linear || exact ? "half_pixel"
                                         : "asymmetric";
  c.result(c.node("Resize", {c.name(0), "", "", c.list(c.out().sizes())},
                  {{"mode", linear ? "linear" : "nearest"},
                   {"coordinate_transformation_mode", places},
                   {"nearest_mode", exact ? "round_prefer_ceil" : "floor"}}));
}

const OpRecord kInterpolate{
    .name = "interpolate",
    .signature = "interpolate(x, {size | scale, mode, align_corners}) → y",
    .meaning =
        "Resizes the spatial dimensions by the nearest or by linear mixes of the neighbours.",
    .formula = "y[o] = Σ_corners w(o, i) x[i]",
    .shapes = "x [N,C,in…]   y [N,C,out…]",
    .forward = [](Call& c) { run_kernel(c, kernels::resize, c.attrs<ResizeAttrs>().out); },
    .backward_text = "dx = interpolate_grad(g)",
    .backward =
        [](Backward& b) {
          b.set(0, run(kInterpolateGrad, {b.upstream()}, b.attrs<ResizeAttrs>()));
        },
    .samples = interpolate_samples,
    .onnx = onnx_interpolate,
};
const OpRecord kInterpolateGrad{
    .name = "interpolate_grad",
    .signature = "interpolate_grad(g) → x",
    .meaning = "The adjoint of interpolate: each value added back with the same weights.",
    .formula = "x[i] = Σ_o w(o, i) g[o]",
    .shapes = "g [N,C,out…]   x [N,C,in…]",
    .forward = [](Call& c) { run_kernel(c, kernels::resize_grad, c.attrs<ResizeAttrs>().in); },
    .backward_text = "dg = interpolate(v)",
    .backward =
        [](Backward& b) { b.set(0, run(kInterpolate, {b.upstream()}, b.attrs<ResizeAttrs>())); },
    .samples = interpolate_grad_samples,
};

// Result size and coordinate step of one dimension.
void choose(const char* op, const InterpolateOptions& o, int d, int64_t n, ResizeAttrs& a) {
  const int spatial = a.in.rank();
  int64_t m = 0;
  double factor = 0;
  if (o.size) {
    m = o.size->expand(op, spatial)[d];
  } else {
    const auto& s = *o.scale;
    factor = s.size() == 1 ? s[0] : s[size_t(d)];
    const double wanted = std::floor(double(n) * factor);
    if (!(factor > 0) || !(wanted < 1e12)) {
      throw ValueError(op, fmt::format("factors must be positive and finite; got {}", factor));
    }
    m = int64_t(wanted);
  }
  if (m < 1 || n < 1) {
    throw ShapeError(op, fmt::format("sizes must be at least 1; got {} → {}", n, m));
  }
  a.out.push_back(m);
  if (a.align_corners) {
    a.step[d] = m > 1 ? double(n - 1) / double(m - 1) : 0;
  } else {
    a.step[d] = o.scale && !o.recompute_scale ? 1 / factor : double(n) / double(m);
  }
}

ResizeAttrs make_attrs(const char* op, const Shape& x, const InterpolateOptions& o) {
  if (x.rank() < 3 || x.rank() > 5) {
    throw ShapeError(op, fmt::format("needs x [N,C,1 to 3 sizes]; got {}", to_string(x)));
  }
  if (bool(o.size) == bool(o.scale)) {
    throw ValueError(op, "needs either size or scale", "size gives the exact result");
  }
  if (o.align_corners && o.mode != Resize::linear) {
    throw ValueError(op, "align_corners belongs to the linear mode");
  }
  ResizeAttrs a;
  a.in = x.slice(2, x.rank());
  a.mode = o.mode;
  a.align_corners = o.align_corners;
  if (o.scale && o.scale->size() != 1 && int(o.scale->size()) != a.in.rank()) {
    throw ValueError(op,
                     fmt::format("needs one factor or {}; got {}", a.in.rank(), o.scale->size()));
  }
  for (int d = 0; d < a.in.rank(); ++d) choose(op, o, d, a.in[d], a);
  return a;
}

}  // namespace

Tensor interpolate(TensorArg x, const InterpolateOptions& o) {
  CallScope scope(x.site);
  return run(kInterpolate, {x}, make_attrs("interpolate", x->sizes(), o));
}

Tensor interpolate_grad(TensorArg g, const Shape& x_sizes, const InterpolateOptions& o) {
  CallScope scope(g.site);
  const ResizeAttrs a = make_attrs("interpolate_grad", x_sizes, o);
  if (g->sizes() != with_spatial(x_sizes, a.out)) {
    throw ShapeError("interpolate_grad",
                     fmt::format("the gradient must have the sizes of the result; got {}, need {}",
                                 to_string(g->sizes()), to_string(with_spatial(x_sizes, a.out))));
  }
  return run(kInterpolateGrad, {g}, a);
}

void register_resize_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kInterpolate, &kInterpolateGrad});
}

}  // namespace cutaway
