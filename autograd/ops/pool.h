#pragma once
#include <optional>

#include <cutaway/autograd/ops/conv.h>

namespace cutaway {

struct PoolOptions {
  Dims kernel = 2;
  std::optional<Dims> stride;  // default: kernel
  Dims padding = 0;
  Dims dilation = 1;           // max pooling only
  bool ceil_mode = false;
  bool count_include_pad = true;            // average pooling only
  std::optional<int64_t> divisor_override;  // average pooling only
};

// Largest value of each window; x [N,C,spatial…] or [C,spatial…]. Padding never wins; NaN wins; the first of equal values
// gets the gradient.
Tensor max_pool1d(TensorArg x, const PoolOptions& options);
Tensor max_pool2d(TensorArg x, const PoolOptions& options);
Tensor max_pool3d(TensorArg x, const PoolOptions& options);
inline Tensor max_pool2d(TensorArg x, int64_t kernel) { return max_pool2d(x, PoolOptions{.kernel = kernel}); }
// The same with the flat position of each maximum in its (unpadded) spatial input: {values, i64 indices}.
Tensors max_pool_with_indices(TensorArg x, const PoolOptions& options, int spatial);
// Mean of each window.
Tensor avg_pool1d(TensorArg x, const PoolOptions& options);
Tensor avg_pool2d(TensorArg x, const PoolOptions& options);
Tensor avg_pool3d(TensorArg x, const PoolOptions& options);
inline Tensor avg_pool2d(TensorArg x, int64_t kernel) { return avg_pool2d(x, PoolOptions{.kernel = kernel}); }
// Pools to a given size: bin i covers [⌊i·n/m⌋, ⌈(i+1)·n/m⌉).
Tensor adaptive_avg_pool1d(TensorArg x, Dims output);
Tensor adaptive_avg_pool2d(TensorArg x, Dims output);
Tensor adaptive_avg_pool3d(TensorArg x, Dims output);
Tensor adaptive_max_pool1d(TensorArg x, Dims output);
Tensor adaptive_max_pool2d(TensorArg x, Dims output);
Tensor adaptive_max_pool3d(TensorArg x, Dims output);

enum class Resize { nearest, nearest_exact, linear };
struct InterpolateOptions {
  std::optional<Dims> size;                   // either the result's spatial size …
  std::optional<std::vector<double>> scale;   // … or factors: size = ⌊n·scale⌋ in f64
  Resize mode = Resize::nearest;              // linear: bilinear in 2-d, trilinear in 3-d
  bool align_corners = false;
  bool recompute_scale = false;               // use m/n instead of the given factor for the coordinates
};
// Resizes the spatial dimensions of x [N,C,spatial…], as torch.nn.functional.interpolate.
Tensor interpolate(TensorArg x, const InterpolateOptions& options);
// Samples x [N,C,H,W] at grid [N,Ho,Wo,2] of (x, y) in [-1, 1], bilinear, zeros outside.
Tensor grid_sample(TensorArg x, TensorArg grid, bool align_corners = false);

}  // namespace cutaway
