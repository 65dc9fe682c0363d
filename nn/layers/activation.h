#pragma once
#include <cutaway/autograd/ops/activation.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/softmax.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

// Activations as layers; meaning and options are those of the functions of the same names.
class ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
};
class ReLU6 : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu6(x); }
};
class SELU : public Module {
 public:
  Tensor forward(const Tensor& x) override { return selu(x); }
};
class SiLU : public Module {
 public:
  Tensor forward(const Tensor& x) override { return silu(x); }
};
class Mish : public Module {
 public:
  Tensor forward(const Tensor& x) override { return mish(x); }
};
class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) override { return tanh(x); }
};
class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
};
class LogSigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override { return log_sigmoid(x); }
};
class Softsign : public Module {
 public:
  Tensor forward(const Tensor& x) override { return softsign(x); }
};
class Hardsigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override { return hardsigmoid(x); }
};
class Hardswish : public Module {
 public:
  Tensor forward(const Tensor& x) override { return hardswish(x); }
};
struct LeakyReLUOptions {
  double negative_slope = 0.01;
};
class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(const LeakyReLUOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return leaky_relu(x, options_.negative_slope); }

 private:
  LeakyReLUOptions options_;
};
struct ELUOptions {
  double alpha = 1;
};
class ELU : public Module {
 public:
  explicit ELU(const ELUOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return elu(x, options_.alpha); }

 private:
  ELUOptions options_;
};
struct CELUOptions {
  double alpha = 1;
};
class CELU : public Module {
 public:
  explicit CELU(const CELUOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return celu(x, options_.alpha); }

 private:
  CELUOptions options_;
};
struct SoftplusOptions {
  double beta = 1;
};
class Softplus : public Module {
 public:
  explicit Softplus(const SoftplusOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return softplus(x, options_.beta); }

 private:
  SoftplusOptions options_;
};
struct HardtanhOptions {
  double min_val = -1;
  double max_val = 1;
};
class Hardtanh : public Module {
 public:
  explicit Hardtanh(const HardtanhOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override {
    return hardtanh(x, options_.min_val, options_.max_val);
  }

 private:
  HardtanhOptions options_;
};
// x Φ(x), or its approximation by tanh.
struct GELUOptions {
  bool tanh = false;
};
class GELU : public Module {
 public:
  explicit GELU(const GELUOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return options_.tanh ? gelu_tanh(x) : gelu(x); }

 private:
  GELUOptions options_;
};
// max(x, 0) + weight · min(x, 0), one weight, or one a channel of x [N,C,…].
struct PReLUOptions {
  int64_t num_parameters = 1;
  double init = 0.25;
};
class PReLU : public Module {
 public:
  explicit PReLU(const PReLUOptions& options = {});
  Tensor forward(const Tensor& x) override;

  Tensor weight;
};
struct SoftmaxOptions {
  int64_t dim = -1;
};
class Softmax : public Module {
 public:
  explicit Softmax(const SoftmaxOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return softmax(x, options_.dim); }

 private:
  SoftmaxOptions options_;
};
class LogSoftmax : public Module {
 public:
  explicit LogSoftmax(const SoftmaxOptions& options = {}) : options_(options) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, options_.dim); }

 private:
  SoftmaxOptions options_;
};

}  // namespace cutaway::nn
