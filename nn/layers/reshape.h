#pragma once
#include <optional>
#include <vector>

#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/resize.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
};
// Dimensions start_dim … end_dim (inclusive) joined into one; the batch stays.
class Flatten : public Module {
 public:
  explicit Flatten(const FlattenOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  FlattenOptions options_;
};

struct UnflattenOptions {
  int64_t dim = 1;
  Shape sizes;  // one may be -1
};
// Dimension dim cut into sizes.
class Unflatten : public Module {
 public:
  explicit Unflatten(const UnflattenOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  UnflattenOptions options_;
};

struct UpsampleOptions {
  std::optional<Dims> size;                  // either the spatial sizes of the result …
  std::optional<std::vector<double>> scale;  // … or factors, one for all dimensions or one each
  Resize mode = Resize::nearest;             // linear: bilinear in 2-d, trilinear in 3-d
  bool align_corners = false;                // linear only
  bool recompute_scale = false;  // coordinates use the ratio of the sizes, not the given factor
};
// Resizes the spatial dimensions of x [N,C,spatial…], see interpolate(). Raises ValueError unless
// one of size and scale is given.
class Upsample : public Module {
 public:
  explicit Upsample(const UpsampleOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  UpsampleOptions options_;
};

struct PixelShuffleOptions {
  int64_t factor = 2;  // r
};
// Channels become pixels: x [...,C·r²,H,W] → y [...,C,H·r,W·r],
// y[c, h·r + i, w·r + j] = x[c·r² + i·r + j, h, w] (Shi et al. 2016). Raises ShapeError.
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(const PixelShuffleOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  int64_t factor_;
};
// The inverse: x [...,C,H·r,W·r] → y [...,C·r²,H,W]. Raises ShapeError.
class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(const PixelShuffleOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  int64_t factor_;
};

struct ChannelShuffleOptions {
  int64_t groups = 1;
};
// Channels of x [N,C,…] dealt out anew: channel g·(C/groups) + i goes to place i·groups + g (Zhang
// et al. 2018). Raises ShapeError unless groups divides C.
class ChannelShuffle : public Module {
 public:
  explicit ChannelShuffle(const ChannelShuffleOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  int64_t groups_;
};

struct UnfoldOptions {
  Dims kernel = 1;
  Dims dilation = 1, padding = 0, stride = 1;
};
// Every window of x [N,C,H,W] as a column, see unfold2d(). x may lack the batch dimension.
class Unfold : public Module {
 public:
  explicit Unfold(const UnfoldOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  Window2d window_;
};
struct FoldOptions {
  Dims output = 1;  // height and width
  Dims kernel = 1;
  Dims dilation = 1, padding = 0, stride = 1;
};
// The adjoint of Unfold: windows added up, see fold2d(). x may lack the batch dimension.
class Fold : public Module {
 public:
  explicit Fold(const FoldOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  Shape output_;
  Window2d window_;
};

struct UpsamplingOptions {
  std::optional<Dims> size;                  // either the spatial sizes of the result …
  std::optional<std::vector<double>> scale;  // … or factors, one for both dimensions or one each
};
// Upsample of x [N,C,H,W] by the nearest pixel.
class UpsamplingNearest2d : public Upsample {
 public:
  explicit UpsamplingNearest2d(const UpsamplingOptions& o)
      : Upsample({.size = o.size, .scale = o.scale}) {}
};
// Upsample of x [N,C,H,W], bilinear with aligned corners.
class UpsamplingBilinear2d : public Upsample {
 public:
  explicit UpsamplingBilinear2d(const UpsamplingOptions& o)
      : Upsample(
            {.size = o.size, .scale = o.scale, .mode = Resize::linear, .align_corners = true}) {}
};

}  // namespace cutaway::nn
