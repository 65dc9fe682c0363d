#include <fmt/format.h>

#include <algorithm>

#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/rearrange.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: unfold_samples.cpp.
void unfold_samples(SampleList&);
void unfold_adjoint_samples(SampleList&);
void unfold2d_samples(SampleList&);
void fold2d_samples(SampleList&);

namespace {

struct UnfoldAttrs {
  int64_t dim, size, step;
  Shape sizes = {};  // of x; for the adjoint only
};
struct Unfold2dAttrs {
  Window2d window;
  int64_t sizes[2] = {};  // of the image; for fold2d only
};

// ---- windows along one dimension

struct Windows {
  int dim;
  int64_t count;
};

Windows windows_of(const char* op, const Shape& sizes, const UnfoldAttrs& a) {
  if (sizes.rank() == 0 || sizes.rank() == kMaxRank) {
    throw ShapeError(
        op, fmt::format("needs 1 to {} dimensions; got {}", kMaxRank - 1, to_string(sizes)));
  }
  const int dim = normalize_dim(op, a.dim, sizes.rank());
  if (a.step < 1 || a.size < 0 || a.size > sizes[dim]) {
    throw ValueError(op, fmt::format("needs step >= 1 and 0 <= size <= {}; got size {} and step {} "
                                     "for dimension {} of {}",
                                     sizes[dim], a.size, a.step, dim, to_string(sizes)));
  }
  return {dim, (sizes[dim] - a.size) / a.step + 1};
}

void unfold_forward(Call& c) {
  const Tensor& x = c.in(0);
  const auto& a = c.attrs<UnfoldAttrs>();
  const auto [dim, count] = windows_of(c.op.name, x.sizes(), a);
  Layout layout = x.layout();
  const int64_t stride = layout.strides[dim];
  layout.sizes[dim] = count;
  // A single window makes no step; the product could leave the range.
  layout.strides[dim] = count > 1 ? stride * a.step : stride;
  layout.sizes.push_back(a.size);
  layout.strides.push_back(stride);
  c.view(0, x, layout);
}

void unfold_backward(Backward& b) {
  const auto& a = b.attrs<UnfoldAttrs>();
  b.set(0, unfold_adjoint(b.upstream(), b.input_sizes(0), a.dim, a.size, a.step));
}

void unfold_adjoint_forward(Call& c) {
  const Tensor& g = c.in(0);
  c.require_dtype(0);
  const auto& a = c.attrs<UnfoldAttrs>();
  const auto [dim, count] = windows_of(c.op.name, a.sizes, a);
  Shape want = a.sizes;
  want[dim] = count;
  want.push_back(a.size);
  if (g.sizes() != want) {
    throw ShapeError(c.op.name, fmt::format("needs the sizes of the windows; got {}, need {}",
                                            to_string(g.sizes()), to_string(want)));
  }
  Tensor& out = c.out(0, a.sizes, g.dtype());
  if (c.meta() || out.numel() == 0) return;
  const Tensor dense = contiguous_raw(g);
  WindowSumArgs w;
  w.in = dense.raw();
  w.out = out.raw();
  w.outer = a.sizes.slice(0, dim).numel();
  w.n = a.sizes[dim];
  w.inner = a.sizes.slice(dim + 1, a.sizes.rank()).numel();
  w.windows = count;
  w.size = a.size;
  w.step = a.step;
  kernels::window_sum(g.device(), g.dtype(), w);
}

void unfold_adjoint_backward(Backward& b) {
  const auto& a = b.attrs<UnfoldAttrs>();
  b.set(0, unfold(b.upstream(), a.dim, a.size, a.step));
}

// ---- windows of images

ColumnsArgs columns_args(const char* op, int64_t height, int64_t width, const Window2d& w) {
  ColumnsArgs a;
  const int64_t size[2] = {height, width};
  int64_t count[2];
  for (int i = 0; i < 2; ++i) {
    constexpr int64_t kMost = int64_t(1) << 31;
    const bool good = w.kernel[i] >= 1 && w.stride[i] >= 1 && w.padding[i] >= 0 &&
                      w.dilation[i] >= 1 && w.kernel[i] < kMost && w.padding[i] < kMost &&
                      w.dilation[i] < kMost;
    if (!good) {
      throw ValueError(op, fmt::format("needs kernel, stride, dilation >= 1 and padding >= 0; got "
                                       "{}x{}, {}x{}, {}x{}, {}x{}",
                                       w.kernel[0], w.kernel[1], w.stride[0], w.stride[1],
                                       w.dilation[0], w.dilation[1], w.padding[0], w.padding[1]));
    }
    const int64_t free = size[i] + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
    if (free < 0) {
      throw ShapeError(
          op, fmt::format("the window is larger than the padded image; got image {}x{}, "
                          "padding {}x{}, kernel {}x{}, dilation {}x{}",
                          height, width, w.padding[0], w.padding[1], w.kernel[0], w.kernel[1],
                          w.dilation[0], w.dilation[1]));
    }
    count[i] = free / w.stride[i] + 1;
    a.kernel[i] = w.kernel[i];
    a.stride[i] = w.stride[i];
    a.padding[i] = w.padding[i];
    a.dilation[i] = w.dilation[i];
  }
  a.height = height;
  a.width = width;
  a.out_h = count[0];
  a.out_w = count[1];
  return a;
}

void unfold2d_forward(Call& c) {
  const Tensor& x = c.in(0);
  if (x.dim() != 4) {
    throw ShapeError(c.op.name, "needs images; got x " + to_string(x.sizes()) + ", need [N,C,H,W]");
  }
  ColumnsArgs a = columns_args(c.op.name, x.size(2), x.size(3), c.attrs<Unfold2dAttrs>().window);
  Tensor& out =
      c.out(0, {x.size(0), x.size(1) * a.kernel[0] * a.kernel[1], a.out_h * a.out_w}, x.dtype());
  if (c.meta() || out.numel() == 0) return;
  const Tensor dense = contiguous_raw(x);
  a.planes = x.size(0) * x.size(1);
  a.in = dense.raw();
  a.out = out.raw();
  kernels::image_to_columns(x.device(), x.dtype(), a);
}

void unfold2d_backward(Backward& b) {
  const Shape& sizes = b.input_sizes(0);
  b.set(0, fold2d(b.upstream(), sizes.slice(2, 4), b.attrs<Unfold2dAttrs>().window));
}

void fold2d_forward(Call& c) {
  const Tensor& x = c.in(0);
  c.require_dtype(0);
  const auto& attrs = c.attrs<Unfold2dAttrs>();
  const int64_t height = attrs.sizes[0], width = attrs.sizes[1];
  ColumnsArgs a = columns_args(c.op.name, height, width, attrs.window);
  const int64_t taps = a.kernel[0] * a.kernel[1];
  if (x.dim() != 3 || x.size(1) % taps != 0 || x.size(2) != a.out_h * a.out_w) {
    throw ShapeError(c.op.name,
                     fmt::format("columns and windows must agree; got x {}, need "
                                 "[N, C·{}, {}] for images {}x{}",
                                 to_string(x.sizes()), taps, a.out_h * a.out_w, height, width));
  }
  Tensor& out = c.out(0, {x.size(0), x.size(1) / taps, height, width}, x.dtype());
  if (c.meta() || out.numel() == 0) return;
  const Tensor dense = contiguous_raw(x);
  a.planes = x.size(0) * (x.size(1) / taps);
  a.in = dense.raw();
  a.out = out.raw();
  kernels::columns_to_image(x.device(), x.dtype(), a);
}

void fold2d_backward(Backward& b) {
  b.set(0, unfold2d(b.upstream(), b.attrs<Unfold2dAttrs>().window));
}

const OpRecord kUnfold{.name = "unfold",
                       .signature = "unfold(x, dim, size, step) → y",
                       .meaning = "Overlapping windows of one dimension, as a view.",
                       .formula = "y[…, w, …, k] = x[…, w·step + k, …]",
                       .shapes = "x [..., n, ...]   y [..., (n-size)/step+1, ..., size]",
                       .dtypes = kAllTypes,
                       .forward = unfold_forward,
                       .backward_text = "dx_p = Σ g over the windows that hold p",
                       .backward = unfold_backward,
                       .samples = unfold_samples};

const OpRecord kUnfoldAdjoint{.name = "unfold_adjoint",
                              .signature = "unfold_adjoint(windows, sizes, dim, size, step) → y",
                              .meaning = "Adds overlapping windows up.",
                              .formula = "y_p = Σ over windows w that hold p of x[w, p - w·step]",
                              .shapes = "x [..., windows, ..., size]   y sizes",
                              .dtypes = kNumbers,
                              .forward = unfold_adjoint_forward,
                              .backward_text = "dx = unfold(g, dim, size, step)",
                              .backward = unfold_adjoint_backward,
                              .samples = unfold_adjoint_samples};

const OpRecord kUnfold2d{
    .name = "unfold2d",
    .signature = "unfold2d(x, {kernel, stride, padding, dilation}) → y",
    .meaning = "Every window of an image as a column.",
    .formula = "y[n, (c·kh+a)·kw+b, l] = x[n, c, i·s - p + a·d, j·s - p + b·d]",
    .shapes = "x [N,C,H,W]   y [N, C·kh·kw, windows]",
    .dtypes = kAllTypes,
    .forward = unfold2d_forward,
    .backward_text = "dx = fold2d(g, sizes of x)",
    .backward = unfold2d_backward,
    .samples = unfold2d_samples};

const OpRecord kFold2d{.name = "fold2d",
                       .signature = "fold2d(x, sizes, {kernel, stride, padding, dilation}) → y",
                       .meaning = "Adds windows, given as columns, up to images.",
                       .formula = "y[n, c, h, w] = Σ of the x[n, (c·kh+a)·kw+b, l] that lie there",
                       .shapes = "x [N, C·kh·kw, windows]   y [N,C,H,W]",
                       .dtypes = kNumbers,
                       .forward = fold2d_forward,
                       .backward_text = "dx = unfold2d(g)",
                       .backward = fold2d_backward,
                       .samples = fold2d_samples};

}  // namespace

Tensor unfold(TensorArg x, int64_t dim, int64_t size, int64_t step) {
  return run(kUnfold, {x}, UnfoldAttrs{dim, size, step});
}
Tensor unfold_adjoint(TensorArg windows, const Shape& sizes, int64_t dim, int64_t size,
                      int64_t step) {
  return run(kUnfoldAdjoint, {windows}, UnfoldAttrs{dim, size, step, sizes});
}
Tensor unfold2d(TensorArg x, const Window2d& window) {
  return run(kUnfold2d, {x}, Unfold2dAttrs{window});
}
Tensor fold2d(TensorArg x, const Shape& sizes, const Window2d& window) {
  if (sizes.rank() != 2) {
    const CallScope scope(x.site);
    throw ShapeError("fold2d", "needs height and width of the images; got " + to_string(sizes));
  }
  return run(kFold2d, {x}, Unfold2dAttrs{window, {sizes[0], sizes[1]}});
}

void register_unfold_ops(std::vector<const OpRecord*>& list) {
  list.insert(list.end(), {&kUnfold, &kUnfoldAdjoint, &kUnfold2d, &kFold2d});
}

}  // namespace cutaway
