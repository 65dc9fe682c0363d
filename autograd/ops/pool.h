#pragma once
#include <optional>
#include <vector>

#include <cutaway/autograd/ops/conv.h>

namespace cutaway {

struct PoolOptions {
  Dims kernel = 2;
  std::optional<Dims> stride;  // default: kernel
  Dims padding = 0;
  Dims dilation = 1;  // max pooling only
  bool ceil_mode = false;
  bool count_include_pad = true;            // average pooling only
  std::optional<int64_t> divisor_override;  // average pooling only
};

// Largest value of each window; x [N,C,spatial…] or [C,spatial…]. Padding never wins; NaN wins; the
// first of equal values gets the gradient.
Tensor max_pool1d(TensorArg x, const PoolOptions& options);
Tensor max_pool2d(TensorArg x, const PoolOptions& options);
Tensor max_pool3d(TensorArg x, const PoolOptions& options);
inline Tensor max_pool2d(TensorArg x, int64_t kernel) {
  return max_pool2d(x, PoolOptions{.kernel = kernel});
}
// The same with the flat position of each maximum in its (unpadded) spatial input: {values, i64
// indices}.
Tensors max_pool_with_indices(TensorArg x, const PoolOptions& options, int spatial);
// Each value added at its flat position of a plane of zeros of `sizes` (the adjoint of max
// pooling), and the values at fixed positions of each plane of x.
Tensor max_unpool(TensorArg values, TensorArg indices, const Shape& sizes, int spatial);
Tensor max_pool_gather(TensorArg x, TensorArg indices, int spatial);
// Mean of each window.
Tensor avg_pool1d(TensorArg x, const PoolOptions& options);
Tensor avg_pool2d(TensorArg x, const PoolOptions& options);
Tensor avg_pool3d(TensorArg x, const PoolOptions& options);
inline Tensor avg_pool2d(TensorArg x, int64_t kernel) {
  return avg_pool2d(x, PoolOptions{.kernel = kernel});
}
// Pools to a given size: bin i covers [⌊i·n/m⌋, ⌈(i+1)·n/m⌉).
Tensor adaptive_avg_pool1d(TensorArg x, Dims output);
Tensor adaptive_avg_pool2d(TensorArg x, Dims output);
Tensor adaptive_avg_pool3d(TensorArg x, Dims output);
Tensor adaptive_max_pool1d(TensorArg x, Dims output);
Tensor adaptive_max_pool2d(TensorArg x, Dims output);
Tensor adaptive_max_pool3d(TensorArg x, Dims output);
// The same with positions, as max_pool_with_indices.
Tensors adaptive_max_pool_with_indices(TensorArg x, Dims output, int spatial);

// The adjoint of average pooling of an input with sizes x_sizes.
Tensor avg_pool_grad(TensorArg g, const Shape& x_sizes, const PoolOptions& options, int spatial);

}  // namespace cutaway
