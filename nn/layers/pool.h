#pragma once
#include <cutaway/autograd/ops/pool.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

// Pooling as layers; options and meaning are those of the functions of the same names.
//   nn::MaxPool2d pool{{.kernel = 3, .stride = 2}};
class PoolLayer : public Module {
 public:
  using Fn = Tensor (*)(TensorArg, const PoolOptions&);
  Tensor forward(const Tensor& x) override { return fn_(x, options_); }

 protected:
  PoolLayer(Fn fn, const PoolOptions& options) : options_(options), fn_(fn) {}

  PoolOptions options_;

 private:
  Fn fn_;
};
// Values of pooling and the flat position (i64) of each in its unpadded spatial input.
struct PooledIndices {
  Tensor values, indices;
};
class MaxPoolLayer : public PoolLayer {
 public:
  // With positions, as torch.nn's return_indices.
  PooledIndices with_indices(const Tensor& x) {
    Scope scope(*this);
    const Tensors both = max_pool_with_indices(x, options_, spatial_);
    return {scope.done(both[0]), both[1]};
  }

 protected:
  MaxPoolLayer(Fn fn, int spatial, const PoolOptions& options)
      : PoolLayer(fn, options), spatial_(spatial) {}

 private:
  int spatial_;
};
class MaxPool1d : public MaxPoolLayer {
 public:
  explicit MaxPool1d(const PoolOptions& options) : MaxPoolLayer(max_pool1d, 1, options) {}
};
class MaxPool2d : public MaxPoolLayer {
 public:
  explicit MaxPool2d(const PoolOptions& options) : MaxPoolLayer(max_pool2d, 2, options) {}
};
class MaxPool3d : public MaxPoolLayer {
 public:
  explicit MaxPool3d(const PoolOptions& options) : MaxPoolLayer(max_pool3d, 3, options) {}
};
class AvgPool1d : public PoolLayer {
 public:
  explicit AvgPool1d(const PoolOptions& options) : PoolLayer(avg_pool1d, options) {}
};
class AvgPool2d : public PoolLayer {
 public:
  explicit AvgPool2d(const PoolOptions& options) : PoolLayer(avg_pool2d, options) {}
};
class AvgPool3d : public PoolLayer {
 public:
  explicit AvgPool3d(const PoolOptions& options) : PoolLayer(avg_pool3d, options) {}
};

// Pooling to a given size: nn::AdaptiveAvgPool2d pool{1}.
class AdaptivePoolLayer : public Module {
 public:
  using Fn = Tensor (*)(TensorArg, Dims);
  Tensor forward(const Tensor& x) override { return fn_(x, output_); }

 protected:
  AdaptivePoolLayer(Fn fn, const Dims& output) : output_(output), fn_(fn) {}

  Dims output_;

 private:
  Fn fn_;
};
class AdaptiveMaxPoolLayer : public AdaptivePoolLayer {
 public:
  PooledIndices with_indices(const Tensor& x) {
    Scope scope(*this);
    const Tensors both = adaptive_max_pool_with_indices(x, output_, spatial_);
    return {scope.done(both[0]), both[1]};
  }

 protected:
  AdaptiveMaxPoolLayer(Fn fn, int spatial, const Dims& output)
      : AdaptivePoolLayer(fn, output), spatial_(spatial) {}

 private:
  int spatial_;
};
class AdaptiveMaxPool1d : public AdaptiveMaxPoolLayer {
 public:
  explicit AdaptiveMaxPool1d(const Dims& output)
      : AdaptiveMaxPoolLayer(adaptive_max_pool1d, 1, output) {}
};
class AdaptiveMaxPool2d : public AdaptiveMaxPoolLayer {
 public:
  explicit AdaptiveMaxPool2d(const Dims& output)
      : AdaptiveMaxPoolLayer(adaptive_max_pool2d, 2, output) {}
};
class AdaptiveMaxPool3d : public AdaptiveMaxPoolLayer {
 public:
  explicit AdaptiveMaxPool3d(const Dims& output)
      : AdaptiveMaxPoolLayer(adaptive_max_pool3d, 3, output) {}
};
class AdaptiveAvgPool1d : public AdaptivePoolLayer {
 public:
  explicit AdaptiveAvgPool1d(const Dims& output) : AdaptivePoolLayer(adaptive_avg_pool1d, output) {}
};
class AdaptiveAvgPool2d : public AdaptivePoolLayer {
 public:
  explicit AdaptiveAvgPool2d(const Dims& output) : AdaptivePoolLayer(adaptive_avg_pool2d, output) {}
};
class AdaptiveAvgPool3d : public AdaptivePoolLayer {
 public:
  explicit AdaptiveAvgPool3d(const Dims& output) : AdaptivePoolLayer(adaptive_avg_pool3d, output) {}
};

// Undoes max pooling as far as that can be: values at the positions of their maxima, zeros
// elsewhere. Raises ShapeError for other ranks.
struct UnpoolOptions {
  Dims kernel = 2;
  std::optional<Dims> stride;  // default: kernel
  Dims padding = 0;
};
class MaxUnpoolLayer : public Module {
 public:
  // values and indices as with_indices() gives them; `sizes` are the spatial sizes of the result,
  // by default (n − 1) · stride − 2 · padding + kernel.
  Tensor operator()(const Tensor& values, const Tensor& indices, const Shape& sizes = {});

 protected:
  MaxUnpoolLayer(const char* name, int spatial, const UnpoolOptions& options);

 private:
  const char* layer_;
  int spatial_;
  UnpoolOptions options_;
};
class MaxUnpool1d : public MaxUnpoolLayer {
 public:
  explicit MaxUnpool1d(const UnpoolOptions& o) : MaxUnpoolLayer("MaxUnpool1d", 1, o) {}
};
class MaxUnpool2d : public MaxUnpoolLayer {
 public:
  explicit MaxUnpool2d(const UnpoolOptions& o) : MaxUnpoolLayer("MaxUnpool2d", 2, o) {}
};
class MaxUnpool3d : public MaxUnpoolLayer {
 public:
  explicit MaxUnpool3d(const UnpoolOptions& o) : MaxUnpoolLayer("MaxUnpool3d", 3, o) {}
};

struct LpPoolOptions {
  double norm_type = 2;  // p
  Dims kernel = 2;
  std::optional<Dims> stride;  // default: kernel
  bool ceil_mode = false;
};
// (Σ x^p)^(1/p) over each window, of the sign of the sum: p = 1 is sum pooling, p → ∞ maximum
// pooling.
class LpPoolLayer : public Module {
 public:
  Tensor forward(const Tensor& x) override;

 protected:
  LpPoolLayer(const char* name, int spatial, const LpPoolOptions& options);

 private:
  int spatial_;
  LpPoolOptions options_;
  int64_t elements_ = 1;  // of a window
};
class LPPool1d : public LpPoolLayer {
 public:
  explicit LPPool1d(const LpPoolOptions& o) : LpPoolLayer("LPPool1d", 1, o) {}
};
class LPPool2d : public LpPoolLayer {
 public:
  explicit LPPool2d(const LpPoolOptions& o) : LpPoolLayer("LPPool2d", 2, o) {}
};
class LPPool3d : public LpPoolLayer {
 public:
  explicit LPPool3d(const LpPoolOptions& o) : LpPoolLayer("LPPool3d", 3, o) {}
};

}  // namespace cutaway::nn
