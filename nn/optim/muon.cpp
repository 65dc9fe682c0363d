#include <cutaway/nn/optim/muon.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/record/hook.h>

namespace cutaway::optim {
namespace {

void require(bool good, const char* what, double got, const char* need) {
  if (!good)
    throw ValueError("Muon", fmt::format("{} is out of range; got {}, need {}", what, got, need));
}

}  // namespace

Tensor orthogonalized(const Tensor& x, int steps) {
  if (x.dim() != 2) {
    throw ShapeError("orthogonalized",
                     fmt::format("the matrix must be 2-D; got {}", to_string(x.sizes())));
  }
  if (steps < 0) {
    throw ValueError("orthogonalized", fmt::format("steps must be ≥ 0; got {}", steps));
  }
  if (x.numel() == 0) return x.clone();
  // The products are smaller with the short side first.
  const bool tall = x.size(0) > x.size(1);
  Tensor y = tall ? x.t().contiguous() : x;
  y = y / (norm(y) + 1e-7);
  for (int i = 0; i < steps; ++i) {
    const Tensor a = matmul(y, y.t());
    const Tensor b = a * -4.775 + matmul(a, a) * 2.0315;
    y = y * 3.4445 + matmul(b, y);
  }
  return tall ? y.t().contiguous() : y;
}

Muon::Muon(NamedTensors parameters, MuonOptions o)
    : Optimizer(std::move(parameters), o.lr), options_(std::move(o)) {
  const MuonOptions& p = options_;
  require(p.momentum >= 0 && p.momentum < 1, "momentum", p.momentum, "[0, 1)");
  require(p.weight_decay >= 0, "weight_decay", p.weight_decay, "≥ 0");
  require(p.steps >= 1, "steps", p.steps, "≥ 1");
  require(p.adam_lr_factor >= 0 && std::isfinite(p.adam_lr_factor), "adam_lr_factor",
          p.adam_lr_factor, "a finite number ≥ 0");
  require(p.beta1 >= 0 && p.beta1 < 1, "beta1", p.beta1, "[0, 1)");
  require(p.beta2 >= 0 && p.beta2 < 1, "beta2", p.beta2, "[0, 1)");
  require(p.eps >= 0, "eps", p.eps, "≥ 0");
}

bool Muon::is_matrix(const Named& p) const {
  return p.value.dim() == 2 &&
         std::none_of(options_.adam_names.begin(), options_.adam_names.end(),
                      [&](const std::string& n) { return matches(n.c_str(), p.name.c_str()); });
}

std::vector<const char*> Muon::moment_names_of(const Named& p) const {
  if (is_matrix(p)) return {"momentum_buffer"};
  return moment_names();
}

// A step of plain SGD along the direction decays the weights apart from it.
Kernel<OptimListArgs>& Muon::kernel_of(const Named& p) const {
  return is_matrix(p) ? kernels::sgd_step : kernels::adam_step;
}

Tensor Muon::direction(const Named& p, const Tensor& grad, State& s) {
  if (!is_matrix(p)) return grad;
  Tensor& buffer = s.moments[0];
  if (!buffer.defined()) buffer = zero_moment(p.value);
  const double mu = options_.momentum;
  Tensor g = grad.to(buffer.dtype()).clone();
  if (recording::active()) {
    recording::renew_next([this](void* args) {
      static_cast<PointwiseArgs*>(args)->scalar[0] = grad_scale_;
      return true;
    });
  }
  g.mul_(grad_scale_);
  buffer.mul_(mu).add_(g, 1 - mu);
  const Tensor u = options_.nesterov ? g * (1 - mu) + buffer * mu : buffer;
  const double rows = double(grad.size(0)), columns = double(grad.size(1));
  const double scale = columns > 0 ? std::sqrt(std::max(1.0, rows / columns)) : 1;
  return (orthogonalized(u, options_.steps) * scale).to(grad.dtype());
}

OptimArgs Muon::arguments(const Tensor& p, const Tensor& g, State& s) {
  OptimArgs a{.n = p.numel(), .param = p.raw(), .grad = g.raw()};
  a.lr = lr_;
  a.weight_decay = options_.weight_decay;
  // direction() has made the one moment of a matrix, and applied the gradient's scale.
  if (s.moments[0].defined() && !s.moments[1].defined()) return a;
  for (size_t k = 0; k < 2; ++k) {
    if (!s.moments[k].defined()) s.moments[k] = zero_moment(p);
    a.state[k] = s.moments[k].raw();
  }
  a.lr *= options_.adam_lr_factor;
  a.beta1 = options_.beta1;
  a.beta2 = options_.beta2;
  a.eps = options_.eps;
  a.correction1 = bias_correction(options_.beta1, double(s.step));
  a.correction2 = bias_correction(options_.beta2, double(s.step));
  a.decoupled = true;
  a.grad_scale = grad_scale_;
  return a;
}

}  // namespace cutaway::optim
