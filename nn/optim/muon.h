#pragma once
#include <string>
#include <vector>

#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::optim {

struct MuonOptions {
  double lr = 0.02;
  double momentum = 0.95, weight_decay = 0;
  bool nesterov = true;
  int steps = 5;  // of the Newton–Schulz iteration
  // Of all parameters that are not 2-D, and of those with these names or patterns (as in
  // ParamGroup), such as embeddings and the last layer: AdamW with lr · adam_lr_factor.
  std::vector<std::string> adam_names;
  double adam_lr_factor = 0.05, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
};

// The nearest matrix with singular values of about 1, by steps X ← a X + (b A + c A²) X, A = X Xᵀ,
// from X/‖X‖ with a, b, c = 3.4445, −4.775, 2.0315, which bring all singular values near 1 (0.7 …
// 1.2) without settling there. Raises ShapeError unless x is 2-D, ValueError for steps < 0.
Tensor orthogonalized(const Tensor& x, int steps = 5);

// b ← μ b + (1 − μ) g;  u = nesterov ? (1 − μ) g + μ b : b;  x ← (1 − lr λ) x − lr · √max(1, rows/
// columns) · orthogonalized(u) for 2-D weights (Jordan et al. 2024), AdamW for the others. Has no
// capturable mode. Raises ValueError for options outside their range.
class Muon : public Optimizer {
 public:
  Muon(NamedTensors parameters, MuonOptions options);

 protected:
  const char* name() const override { return "Muon"; }
  std::vector<const char*> moment_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  std::vector<const char*> moment_names_of(const Named& p) const override;
  OptimArgs arguments(const Tensor& parameter, const Tensor& grad, State& state) override;
  Tensor direction(const Named& p, const Tensor& grad, State& state) override;
  Kernel<OptimListArgs>& kernel() const override { return kernels::adam_step; }
  Kernel<OptimListArgs>& kernel_of(const Named& p) const override;
  bool can_be_capturable() const override { return false; }

 private:
  bool is_matrix(const Named& p) const;

  MuonOptions options_;
};

}  // namespace cutaway::optim
