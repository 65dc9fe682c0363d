#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <cutaway/core/kernels/optim.h>
#include <cutaway/nn/module.h>

namespace cutaway::optim {

using nn::Named;
using nn::NamedTensors;

// Parameters whose step differs from the others'.
struct ParamGroup {
  // Names or patterns: * stands for any characters, ? for one.
  std::vector<std::string> names;
  double lr_factor = 1;                // of the optimiser's learning rate, whatever it is
  std::optional<double> weight_decay;  // in the place of the optimiser's own
};

// Base of the optimisers. State belongs to parameter names, never to positions, so files can be
// loaded into a model that lists its parameters in another order.
class Optimizer {
 public:
  explicit Optimizer(NamedTensors parameters, double lr);
  virtual ~Optimizer() = default;

  // Updates every parameter that has a gradient. One without a gradient is skipped: no decay, no
  // change of its moments, no step count.
  void step();
  void zero_grad();
  void step_and_zero() {
    step();
    zero_grad();
  }

  double lr() const { return lr_; }
  // Raises ValueError when negative or not finite.
  void set_lr(double lr);
  // Factor on all gradients in the next steps; clipping without a pass of its own.
  void set_grad_scale(double scale);
  // Keeps learning rate, gradient scale, step counts and bias corrections on the device of the
  // parameters, where kernels read and advance them, so that a step that was recorded as a graph
  // goes on counting when it is replayed and follows set_lr and set_grad_scale, called between
  // replays. The results have the bits of the ordinary mode. Raises DeviceError when the
  // parameters are on several devices, move a module before, and ValueError for Muon. Named as in
  // PyTorch.
  void set_capturable(bool on);
  bool capturable() const { return scalars_.defined(); }
  const NamedTensors& parameters() const { return parameters_; }
  // Replaces all groups; a parameter belongs to the first group that names it, or to none.
  // Schedules move the learning rate of all groups together, so the ratios stay. Raises ValueError
  // for a name or pattern that no parameter has and for factors and decays that are negative or not
  // finite.
  void set_groups(const std::vector<ParamGroup>& groups);
  double lr_of(const std::string& parameter) const;

  // Moments as "<parameter>.<moment>" and step counts as "<parameter>.step" (i64, 0-d); of members
  // of groups also "<parameter>.lr_factor" and "<parameter>.group_decay" (f64, 0-d).
  NamedTensors state_dict() const;
  // Loads what state_dict gave; names and sizes are checked before anything is written. A parameter
  // that has a count but lacks a moment, or an unknown name, raises ValueError. Groups of a state
  // that has any take the places of all present ones; otherwise those stay.
  void load_state_dict(const NamedTensors& state);

 protected:
  struct State {
    int64_t step = 0;
    Tensor moments[3];
  };
  virtual const char* name() const = 0;
  virtual std::vector<const char*> moment_names() const = 0;
  // What the kernel is to do for one parameter; makes its moments when they are missing.
  virtual OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) = 0;
  virtual Kernel<OptimListArgs>& kernel() const = 0;
  // For optimisers that treat parameters in several ways.
  virtual Kernel<OptimListArgs>& kernel_of(const Named&) const { return kernel(); }
  virtual std::vector<const char*> moment_names_of(const Named&) const { return moment_names(); }
  // What the kernel gets in the place of the gradient; called before arguments().
  virtual Tensor direction(const Named&, const Tensor& grad, State&) { return grad; }
  virtual bool can_be_capturable() const { return true; }
  // Whether a name is the pattern: * stands for any characters, ? for one.
  static bool matches(const char* pattern, const char* name);
  // What makes the corrections: bases of the bias corrections, 0 where there are none, and the
  // decay of the learning rate.
  struct Betas {
    double beta1 = 0, beta2 = 0, lr_decay = 0;
  };
  virtual Betas betas() const { return {}; }
  // A zero tensor of the state type, shaped like the parameter.
  static Tensor zero_moment(const Tensor& parameter);
  // What the elements of a moment are before the first step.
  virtual double initial_moment() const { return 0; }

  double lr_;
  double grad_scale_ = 1;

 private:
  // Rows of parameters with a gradient begin their next step, on the device.
  void advance_scalars();
  // What arguments() gives, with the settings of the parameter's group.
  OptimArgs group_arguments(size_t i, const Tensor& p, const Tensor& grad);
  double* scalar_row(size_t parameter) const;
  std::vector<int64_t> step_counts() const;
  void write_scalars(const std::vector<State>& states);
  // Copies into the moments there are, whose memory a recorded step holds.
  void keep_moments(std::vector<State>& loaded);
  // Scalars and states for a replay of a recorded step.
  void renew_arguments(size_t i, OptimArgs& args);

  NamedTensors parameters_;
  struct GroupSetting {
    bool in_group = false;
    double lr_factor = 1;
    std::optional<double> weight_decay;
  };
  void append_groups(NamedTensors& out) const;
  std::vector<GroupSetting> take_groups(std::map<std::string, Tensor>& given) const;

  std::vector<State> states_;
  std::vector<GroupSetting> settings_;
  Tensor scalars_;  // [parameters, kOptimScalars], f64; undefined in the ordinary mode
  Tensor common_;   // [2], f64: lr, grad_scale
};

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
// b ← μ b + (1 − d) g (first step: b = g);  x ← x − lr · (nesterov ? g + μ b : b), with g ← g + λ x
// before. As torch.optim.SGD. Raises ValueError for options outside their range.
class Sgd : public Optimizer {
 public:
  Sgd(NamedTensors parameters, SgdOptions options);

 protected:
  const char* name() const override { return "SGD"; }
  std::vector<const char*> moment_names() const override;
  OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) override;
  Kernel<OptimListArgs>& kernel() const override { return kernels::sgd_step; }

 private:
  SgdOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
// m ← β₁ m + (1−β₁) g;  v ← β₂ v + (1−β₂) g²;  x ← x − lr · m̂ / (√v̂ + eps), m̂ = m/(1−β₁ᵗ), v̂ =
// v/(1−β₂ᵗ) (Kingma & Ba 2015, Algorithm 1). weight_decay adds λ x to g. As torch.optim.Adam.
class Adam : public Optimizer {
 public:
  Adam(NamedTensors parameters, AdamOptions options, bool decoupled = false);

 protected:
  const char* name() const override { return decoupled_ ? "AdamW" : "Adam"; }
  std::vector<const char*> moment_names() const override;
  OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) override;
  Kernel<OptimListArgs>& kernel() const override { return kernels::adam_step; }
  Betas betas() const override { return {options_.beta1, options_.beta2}; }

 private:
  AdamOptions options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01;
  bool amsgrad = false, maximize = false;
};
// Adam with the decay apart from the gradient: x ← (1 − lr λ) x first (Loshchilov & Hutter 2019,
// Algorithm 2).
class AdamW : public Adam {
 public:
  AdamW(NamedTensors parameters, AdamWOptions o)
      : Adam(std::move(parameters),
             {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize}, true) {}
};

// Norm of all gradients together (2-norm; p = infinity: largest absolute value). 0 when there are
// none.
double grad_norm(const NamedTensors& parameters, double p = 2);
// Scales gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm before. A norm that is
// not finite raises ValueError when error_if_nonfinite, otherwise leaves gradients as they are.
double clip_grad_norm(const NamedTensors& parameters, double max_norm, double p = 2,
                      bool error_if_nonfinite = false);
// Clamps every gradient element to [-limit, limit].
void clip_grad_value(const NamedTensors& parameters, double limit);

}  // namespace cutaway::optim
