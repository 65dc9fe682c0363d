#pragma once
#include <cstdint>

#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::optim {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth = 2, backoff = 0.5;
  int64_t growth_interval = 2000;  // steps in a row without overflow before the scale grows
};

// Keeps gradients of f16 computations away from 0: the loss is multiplied by a large number before
// the backward pass and the gradients are divided by it before the step. A step with a gradient
// that is not finite is left out, and the number falls; after many good steps it grows
// (Micikevicius et al. 2018). Use with AutocastGuard(DType::f16):
//
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);       // leaves the step out when a gradient overflowed
//   optimizer.zero_grad();
//
// Raises ValueError for options outside their range.
class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});

  // loss · scale, in f32 at least.
  Tensor scale(const Tensor& loss) const;
  // Divides the gradients by the scale, for clipping; step() does it unless it was done. Returns
  // whether all are finite. Raises ValueError when called twice before a step.
  bool unscale(Optimizer& optimizer);
  // Steps unless a gradient is not finite, then adapts the scale; whether it has stepped.
  bool step(Optimizer& optimizer);

  double current_scale() const { return scale_; }
  int64_t skipped() const { return skipped_; }

  // "scale", "good_steps" and "skipped" (f64, 0-d).
  nn::NamedTensors state_dict() const;
  // Loads what state_dict gave; raises ValueError for missing or unknown names and for values that
  // no scaler has.
  void load_state_dict(const nn::NamedTensors& state);

 private:
  GradScalerOptions options_;
  double scale_;
  int64_t good_ = 0, skipped_ = 0;
  bool unscaled_ = false, finite_ = true;
};

}  // namespace cutaway::optim
