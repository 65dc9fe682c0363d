#include <cutaway/nn/layers/reshape.h>

#include <cutaway/autograd/ops/shape.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

// x [...,A,B,C] as [batch,A,B,C]; raises ShapeError for fewer dimensions.
Tensor as_planes(const char* layer, const Tensor& x) {
  if (x.dim() < 3) {
    throw ShapeError(layer, fmt::format("x must have channels, height and width; got {}, need "
                                        "[...,C,H,W]",
                                        to_string(x.sizes())));
  }
  const Shape batch = x.sizes().slice(0, x.dim() - 3);
  return reshape(x, {batch.numel(), x.size(-3), x.size(-2), x.size(-1)});
}

// y [batch,C,H,W] with the leading dimensions of x.
Tensor like_batch(const Tensor& y, const Tensor& x) {
  Shape sizes = x.sizes().slice(0, x.dim() - 3);
  for (int d = 1; d < 4; ++d) sizes.push_back(y.size(d));
  return reshape(y, sizes);
}

Window2d window(const char* layer, const Dims& kernel, const Dims& stride, const Dims& padding,
                const Dims& dilation) {
  const Shape k = kernel.expand(layer, 2), s = stride.expand(layer, 2),
              p = padding.expand(layer, 2), d = dilation.expand(layer, 2);
  return {{k[0], k[1]}, {s[0], s[1]}, {p[0], p[1]}, {d[0], d[1]}};
}

}  // namespace

Tensor Flatten::forward(const Tensor& x) {
  return flatten(x, options_.start_dim, options_.end_dim);
}
Tensor Unflatten::forward(const Tensor& x) { return unflatten(x, options_.dim, options_.sizes); }

Upsample::Upsample(const UpsampleOptions& options) : options_(options) {
  if (bool(options.size) == bool(options.scale)) {
    throw ValueError("Upsample", "needs either .size or .scale", "size gives the exact result");
  }
}
Tensor Upsample::forward(const Tensor& x) {
  return interpolate(x, {.size = options_.size,
                         .scale = options_.scale,
                         .mode = options_.mode,
                         .align_corners = options_.align_corners,
                         .recompute_scale = options_.recompute_scale});
}

PixelShuffle::PixelShuffle(const PixelShuffleOptions& options) : factor_(options.factor) {
  require_at_least("PixelShuffle", "factor", factor_, 1);
}
Tensor PixelShuffle::forward(const Tensor& x) {
  const Tensor planes = as_planes("PixelShuffle", x);
  const int64_t r = factor_, n = planes.size(0), h = planes.size(2), w = planes.size(3);
  if (planes.size(1) % (r * r) != 0) {
    throw ShapeError("PixelShuffle",
                     fmt::format("channels must be a multiple of .factor² = {}; got x {}", r * r,
                                 to_string(x.sizes())));
  }
  const int64_t channels = planes.size(1) / (r * r);
  const Tensor y = permute(reshape(planes, {n, channels, r, r, h, w}), {0, 1, 4, 2, 5, 3});
  return like_batch(reshape(y, {n, channels, h * r, w * r}), x);
}

PixelUnshuffle::PixelUnshuffle(const PixelShuffleOptions& options) : factor_(options.factor) {
  require_at_least("PixelUnshuffle", "factor", factor_, 1);
}
Tensor PixelUnshuffle::forward(const Tensor& x) {
  const Tensor planes = as_planes("PixelUnshuffle", x);
  const int64_t r = factor_, n = planes.size(0), channels = planes.size(1);
  if (planes.size(2) % r != 0 || planes.size(3) % r != 0) {
    throw ShapeError("PixelUnshuffle",
                     fmt::format("height and width must be multiples of .factor = {}; got x {}", r,
                                 to_string(x.sizes())));
  }
  const int64_t h = planes.size(2) / r, w = planes.size(3) / r;
  const Tensor y = permute(reshape(planes, {n, channels, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  return like_batch(reshape(y, {n, channels * r * r, h, w}), x);
}

ChannelShuffle::ChannelShuffle(const ChannelShuffleOptions& options) : groups_(options.groups) {
  require_at_least("ChannelShuffle", "groups", groups_, 1);
}
Tensor ChannelShuffle::forward(const Tensor& x) {
  if (x.dim() < 2 || x.size(1) % groups_ != 0) {
    throw ShapeError("ChannelShuffle",
                     fmt::format("channels must be a multiple of .groups {}; got {}", groups_,
                                 to_string(x.sizes())));
  }
  const Tensor parts = unflatten(x, 1, {groups_, x.size(1) / groups_});
  return reshape(transpose(parts, 1, 2), x.sizes());
}

Unfold::Unfold(const UnfoldOptions& o)
    : window_(window("Unfold", o.kernel, o.stride, o.padding, o.dilation)) {}
Tensor Unfold::forward(const Tensor& x) {
  return x.dim() == 3 ? squeeze(unfold2d(unsqueeze(x, 0), window_), 0) : unfold2d(x, window_);
}

Fold::Fold(const FoldOptions& o)
    : output_(o.output.expand("Fold", 2)),
      window_(window("Fold", o.kernel, o.stride, o.padding, o.dilation)) {}
Tensor Fold::forward(const Tensor& x) {
  return x.dim() == 2 ? squeeze(fold2d(unsqueeze(x, 0), output_, window_), 0)
                      : fold2d(x, output_, window_);
}

}  // namespace cutaway::nn
