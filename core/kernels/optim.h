#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/math/config.h>

namespace cutaway {

// Places of a row of scalars in device memory: what changes from step to step, for steps that are
// recorded once and replayed.
inline constexpr int kScalarLr = 0, kScalarCorrection1 = 1, kScalarCorrection2 = 2;
inline constexpr int kScalarGradScale = 3;
inline constexpr int kScalarSteps = 4;     // steps begun so far, the present one included
inline constexpr int kScalarLrFactor = 5;  // of the parameter's group; written by the host only
inline constexpr int kOptimScalars = 6;

// 1 − βᵗ for t = steps ≥ 0, the same bits on every device: products of rounded squares, with no
// call of a library's pow.
CUTAWAY_HD double bias_correction(double beta, double steps) {
  double power = 1;
  for (auto n = static_cast<int64_t>(steps); n > 0; n >>= 1) {
    if (n & 1) power = math::detail::mul_rounded(power, beta);
    beta = math::detail::mul_rounded(beta, beta);
  }
  return 1 - power;
}
// Divisor of the learning rate in step `steps` when it falls as 1/(1 + (steps − 1)·decay), or a
// bias correction where the decay is 0; the same bits on every device.
CUTAWAY_HD double lr_divisor(double beta, double decay, double steps) {
  return bias_correction(beta, steps) + math::detail::mul_rounded(decay, steps - 1);
}

// One optimiser step of one parameter. All arrays hold n elements, row-major: param and grad in the
// table's type, states in f64 for f64 parameters and f32 otherwise. Unused states are null.
struct OptimArgs {
  int64_t n = 0;
  void* param = nullptr;
  const void* grad = nullptr;
  // SGD: momentum buffer. Adam: first moment, second moment, largest second moment. RMSprop: mean
  // square, mean gradient (centred), momentum buffer. Adagrad: sum of squares. Lion: first moment.
  void* state[3] = {};
  double lr = 0, weight_decay = 0;
  double momentum = 0, dampening = 0;    // SGD; RMSprop: momentum
  double beta1 = 0, beta2 = 0, eps = 0;  // Adam, Lion; RMSprop: beta2 is alpha
  double correction1 = 1, correction2 = 1;  // Adam: 1 − β₁ᵗ, 1 − β₂ᵗ; Adagrad: 1 + (t − 1)·decay
  double grad_scale = 1;                    // clipping factor, applied to the gradient first
  bool nesterov = false, maximize = false, decoupled = false, first = false;
  // Not null: kOptimScalars numbers that take the places of lr, correction1, correction2 and
  // grad_scale, and first is true when steps is 1.
  const double* scalars = nullptr;
};

// Steps of several parameters of one type and device; no two of them share memory.
struct OptimListArgs {
  const OptimArgs* list = nullptr;  // host
  int64_t count = 0;
};

// Begins a step of `count` parameters, each with a row of kOptimScalars in `rows`: one step more,
// the corrections for it, lr = common[0] · factor of the row and grad_scale = common[1]. Always
// f64.
struct OptimScalarsArgs {
  int64_t count = 0;
  double* rows = nullptr;
  const double* common = nullptr;
  double beta1 = 0, beta2 = 0, lr_decay = 0;
};

inline void visit_args(ArgumentVisitor& v, OptimListArgs& a) {
  v.host(a.list, a.count);
  int64_t elements = 0;
  for (int64_t i = 0; i < a.count; ++i) {
    OptimArgs& one = const_cast<OptimArgs&>(a.list[i]);
    elements += one.n;
    v.changes(one.param);
    v.reads(one.grad);
    v.reads(one.scalars);
    for (void*& state : one.state) v.changes(state);
  }
  v.numbers({{"parameters", a.count}, {"elements", elements}});
}
inline void visit_args(ArgumentVisitor& v, OptimScalarsArgs& a) {
  v.numbers({{"parameters", a.count}});
  v.changes(a.rows);
  v.reads(a.common);
}

namespace kernels {
inline constinit Kernel<OptimListArgs> sgd_step{"sgd_step"};
inline constinit Kernel<OptimListArgs> adam_step{"adam_step"};
inline constinit Kernel<OptimListArgs> rmsprop_step{"rmsprop_step"};
inline constinit Kernel<OptimListArgs> adagrad_step{"adagrad_step"};
inline constinit Kernel<OptimListArgs> lion_step{"lion_step"};
inline constinit Kernel<OptimScalarsArgs> optim_scalars{"optim_scalars"};
}  // namespace kernels

}  // namespace cutaway
