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
  PoolLayer(Fn fn, const PoolOptions& options) : fn_(fn), options_(options) {}

 private:
  Fn fn_;
  PoolOptions options_;
};
class MaxPool1d : public PoolLayer {
 public:
  explicit MaxPool1d(const PoolOptions& options) : PoolLayer(max_pool1d, options) {}
};
class MaxPool2d : public PoolLayer {
 public:
  explicit MaxPool2d(const PoolOptions& options) : PoolLayer(max_pool2d, options) {}
};
class MaxPool3d : public PoolLayer {
 public:
  explicit MaxPool3d(const PoolOptions& options) : PoolLayer(max_pool3d, options) {}
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
  AdaptivePoolLayer(Fn fn, const Dims& output) : fn_(fn), output_(output) {}

 private:
  Fn fn_;
  Dims output_;
};
class AdaptiveMaxPool1d : public AdaptivePoolLayer {
 public:
  explicit AdaptiveMaxPool1d(const Dims& output) : AdaptivePoolLayer(adaptive_max_pool1d, output) {}
};
class AdaptiveMaxPool2d : public AdaptivePoolLayer {
 public:
  explicit AdaptiveMaxPool2d(const Dims& output) : AdaptivePoolLayer(adaptive_max_pool2d, output) {}
};
class AdaptiveMaxPool3d : public AdaptivePoolLayer {
 public:
  explicit AdaptiveMaxPool3d(const Dims& output) : AdaptivePoolLayer(adaptive_max_pool3d, output) {}
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

}  // namespace cutaway::nn
