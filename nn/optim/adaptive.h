#pragma once
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::optim {

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99, eps = 1e-8;
  double weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
// v ← α v + (1−α) g²;  b ← μ b + g / (√v + eps);  x ← x − lr · b, with g ← g + λ x before (Hinton
// 2012, lecture 6e). Centred: v − m², m ← α m + (1−α) g, in the place of v, not below 0 (Graves
// 2013, equations 38 to 45). As torch.optim.RMSprop. Raises ValueError for options outside their
// range.
class Rmsprop : public Optimizer {
 public:
  Rmsprop(NamedTensors parameters, RmspropOptions options);

 protected:
  const char* name() const override { return "RMSprop"; }
  std::vector<const char*> moment_names() const override;
  OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) override;
  Kernel<OptimListArgs>& kernel() const override { return kernels::rmsprop_step; }

 private:
  RmspropOptions options_;
};

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
// s ← s + g²;  x ← x − lr / (1 + (t−1) · lr_decay) · g / (√s + eps), with g ← g + λ x before (Duchi
// et al. 2011, the diagonal form). As torch.optim.Adagrad. Raises ValueError for options outside
// their range.
class Adagrad : public Optimizer {
 public:
  Adagrad(NamedTensors parameters, AdagradOptions options);

 protected:
  const char* name() const override { return "Adagrad"; }
  std::vector<const char*> moment_names() const override { return {"sum"}; }
  OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) override;
  Kernel<OptimListArgs>& kernel() const override { return kernels::adagrad_step; }
  Betas betas() const override { return {.lr_decay = options_.lr_decay}; }
  double initial_moment() const override { return options_.initial_accumulator_value; }

 private:
  AdagradOptions options_;
};

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  bool maximize = false;
};
// x ← (1 − lr λ) x − lr · sign(β₁ m + (1−β₁) g);  m ← β₂ m + (1−β₂) g (Chen et al. 2023, Algorithm
// 2). Raises ValueError for options outside their range.
class Lion : public Optimizer {
 public:
  Lion(NamedTensors parameters, LionOptions options);

 protected:
  const char* name() const override { return "Lion"; }
  std::vector<const char*> moment_names() const override { return {"exp_avg"}; }
  OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) override;
  Kernel<OptimListArgs>& kernel() const override { return kernels::lion_step; }

 private:
  LionOptions options_;
};

}  // namespace cutaway::optim
