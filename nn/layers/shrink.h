#pragma once
#include <cutaway/autograd/ops/activation.h>
#include <cutaway/autograd/ops/softmax.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

// Activations that are made of other functions.

struct DimOptions {
  int64_t dim = -1;
};
// The first half along dim times σ of the second: x [...,2n,...] → [...,n,...] (Dauphin et al.
// 2016). Raises ShapeError for an odd size.
class GLU : public Module {
 public:
  explicit GLU(const DimOptions& options = {}) : dim_(options.dim) {}
  Tensor forward(const Tensor& x) override;

 private:
  int64_t dim_;
};
class Softmin : public Module {
 public:
  explicit Softmin(const DimOptions& options = {}) : dim_(options.dim) {}
  Tensor forward(const Tensor& x) override { return softmin(x, dim_); }

 private:
  int64_t dim_;
};
// softmax over the channels of x [N,C,H,W] or [C,H,W]. Raises ShapeError for other ranks.
class Softmax2d : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};
struct ShrinkOptions {
  double lambd = 0.5;  // λ ≥ 0
};
// x where |x| > λ, else 0. Raises ValueError for λ < 0.
class Hardshrink : public Module {
 public:
  explicit Hardshrink(const ShrinkOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double lambd_;
};
// x − λ above λ, x + λ below −λ, else 0. Raises ValueError for λ < 0.
class Softshrink : public Module {
 public:
  explicit Softshrink(const ShrinkOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double lambd_;
};
// x − tanh x.
class Tanhshrink : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};
struct ThresholdOptions {
  double threshold = 0, value = 0;
};
// x where it is above the threshold, else the value.
class Threshold : public Module {
 public:
  explicit Threshold(const ThresholdOptions& options) : options_(options) {}
  Tensor forward(const Tensor& x) override;

 private:
  ThresholdOptions options_;
};
struct RReLUOptions {
  double lower = 1.0 / 8, upper = 1.0 / 3;
};
// x, but a · x below 0: in training a is drawn for each element, uniform in [lower, upper), in eval
// mode it is their mean (Xu et al. 2015). Raises ValueError for lower > upper.
class RReLU : public Module {
 public:
  explicit RReLU(const RReLUOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  RReLUOptions options_;
};

}  // namespace cutaway::nn
