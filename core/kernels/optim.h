#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// One optimiser step of one parameter. All arrays hold n elements, row-major: param and grad in the
// table's type, states in f64 for f64 parameters and f32 otherwise. Unused states are null.
struct OptimArgs {
  int64_t n = 0;
  void* param = nullptr;
  const void* grad = nullptr;
  void* state[3] =
      {};  // SGD: momentum buffer. Adam: first moment, second moment, largest second moment
  double lr = 0, weight_decay = 0;
  double momentum = 0, dampening = 0;       // SGD
  double beta1 = 0, beta2 = 0, eps = 0;     // Adam
  double correction1 = 1, correction2 = 1;  // Adam: 1 − β₁ᵗ, 1 − β₂ᵗ
  double grad_scale = 1;                    // clipping factor, applied to the gradient first
  bool nesterov = false, maximize = false, decoupled = false, first = false;
};

// Steps of several parameters of one type and device; no two of them share memory.
struct OptimListArgs {
  const OptimArgs* list = nullptr;  // host
  int64_t count = 0;
};

namespace kernels {
inline constinit Kernel<OptimListArgs> sgd_step{"sgd_step"};
inline constinit Kernel<OptimListArgs> adam_step{"adam_step"};
}  // namespace kernels

}  // namespace cutaway
