#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct LinearOptions {
  int64_t in = 0, out = 0;
  bool bias = true;
};
// y = x Wᵀ + b: x [..., in] → [..., out]. weight [out, in], bias [out]; both uniform in ±1/√in.
class Linear : public Module {
 public:
  explicit Linear(const LinearOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;
};

struct BilinearOptions {
  int64_t in1 = 0, in2 = 0, out = 0;
  bool bias = true;
};
// y_o = Σ_ij a_i W_oij b_j + b_o: a [..., in1], b [..., in2] → [..., out]. weight [out, in1, in2].
class Bilinear : public Module {
 public:
  explicit Bilinear(const BilinearOptions& options);
  Tensor operator()(const Tensor& a, const Tensor& b);

  Tensor weight, bias;
};

// y = x.
class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

}  // namespace cutaway::nn
