#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct DropoutOptions {
  double p = 0.5;  // share of elements that is dropped, in [0, 1]
};
// In training, elements become 0 with probability p and the others grow by 1/(1 − p); in eval mode
// y = x. Draws from the default generator. Raises ValueError for p outside [0, 1].
class Dropout : public Module {
 public:
  explicit Dropout(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

// The same for whole channels: x [N,C,spatial…].
class Dropout2d : public Module {
 public:
  explicit Dropout2d(const DropoutOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

}  // namespace cutaway::nn
