#pragma once
#include <functional>
#include <string>

#include <cutaway/core/tensor.h>

namespace cutaway {

struct GradcheckOptions {
  double step = 1e-3;  // of the central differences, times max(1, |x|)
  double rtol = 1e-6;
  double atol = 1e-8;
  int64_t full_jacobian = 4096;  // entries; larger Jacobians are checked by random projections
  uint64_t seed = 1;
};
struct GradcheckReport {
  bool ok = true;
  double worst = 0;     // largest |analytic − numeric| / (atol/rtol + |numeric|)
  std::string message;  // the worst element: input, index, both values
};
using GradcheckFn = std::function<Tensors(const Tensors&)>;

// Compares first derivatives of `fn` with four-point central differences, in f64, for upstream
// gradients that are random (and each unit vector while the Jacobian is small). Inputs that require
// grad are varied; others are constants. Raises DTypeError when an input that requires grad is not
// f64.
GradcheckReport gradcheck(const GradcheckFn& fn, const Tensors& inputs,
                          const GradcheckOptions& = {});
// The same for the derivatives of the gradient, with respect to inputs and upstream gradients.
GradcheckReport gradgradcheck(const GradcheckFn& fn, const Tensors& inputs,
                              const GradcheckOptions& = {});

}  // namespace cutaway
