#pragma once
#include <optional>
#include <vector>

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

}  // namespace cutaway::nn
