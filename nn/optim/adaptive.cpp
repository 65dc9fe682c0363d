#include <cutaway/nn/optim/adaptive.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::optim {
namespace {

void require_not_negative(const char* op, const char* what, double got) {
  if (!(got >= 0 && std::isfinite(got)))
    throw ValueError(
        op, fmt::format("{} is out of range; got {}, need a finite number ≥ 0", what, got));
}
void require_below_one(const char* op, const char* what, double got) {
  if (!(got >= 0 && got < 1))
    throw ValueError(op, fmt::format("{} is out of range; got {}, need [0, 1)", what, got));
}

}  // namespace

Rmsprop::Rmsprop(NamedTensors parameters, RmspropOptions o)
    : Optimizer(std::move(parameters), o.lr), options_(o) {
  require_not_negative("RMSprop", "alpha", o.alpha);
  require_not_negative("RMSprop", "eps", o.eps);
  require_not_negative("RMSprop", "momentum", o.momentum);
  require_not_negative("RMSprop", "weight_decay", o.weight_decay);
}

std::vector<const char*> Rmsprop::moment_names() const {
  std::vector<const char*> names{"square_avg"};
  if (options_.centered) names.push_back("grad_avg");
  if (options_.momentum != 0) names.push_back("momentum_buffer");
  return names;
}

OptimArgs Rmsprop::arguments(const Tensor& p, const Tensor& g, State& s) {
  OptimArgs a{.n = p.numel(), .param = p.raw(), .grad = g.raw()};
  a.lr = lr_;
  a.weight_decay = options_.weight_decay;
  a.momentum = options_.momentum;
  a.beta2 = options_.alpha;
  a.eps = options_.eps;
  a.maximize = options_.maximize;
  a.grad_scale = grad_scale_;
  const bool used[] = {true, options_.centered, options_.momentum != 0};
  size_t next = 0;
  for (size_t k = 0; k < 3; ++k) {
    if (!used[k]) continue;
    Tensor& moment = s.moments[next++];
    if (!moment.defined()) moment = zero_moment(p);
    a.state[k] = moment.raw();
  }
  return a;
}

Adagrad::Adagrad(NamedTensors parameters, AdagradOptions o)
    : Optimizer(std::move(parameters), o.lr), options_(o) {
  require_not_negative("Adagrad", "lr_decay", o.lr_decay);
  require_not_negative("Adagrad", "weight_decay", o.weight_decay);
  require_not_negative("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
  require_not_negative("Adagrad", "eps", o.eps);
}

OptimArgs Adagrad::arguments(const Tensor& p, const Tensor& g, State& s) {
  OptimArgs a{.n = p.numel(), .param = p.raw(), .grad = g.raw()};
  if (!s.moments[0].defined()) {
    s.moments[0] = zero_moment(p);
    s.moments[0].fill_(options_.initial_accumulator_value);
  }
  a.state[0] = s.moments[0].raw();
  a.lr = lr_;
  a.weight_decay = options_.weight_decay;
  a.eps = options_.eps;
  a.correction1 = lr_divisor(0, options_.lr_decay, double(s.step));
  a.maximize = options_.maximize;
  a.grad_scale = grad_scale_;
  return a;
}

Lion::Lion(NamedTensors parameters, LionOptions o)
    : Optimizer(std::move(parameters), o.lr), options_(o) {
  require_below_one("Lion", "beta1", o.beta1);
  require_below_one("Lion", "beta2", o.beta2);
  require_not_negative("Lion", "weight_decay", o.weight_decay);
}

OptimArgs Lion::arguments(const Tensor& p, const Tensor& g, State& s) {
  OptimArgs a{.n = p.numel(), .param = p.raw(), .grad = g.raw()};
  if (!s.moments[0].defined()) s.moments[0] = zero_moment(p);
  a.state[0] = s.moments[0].raw();
  a.lr = lr_;
  a.weight_decay = options_.weight_decay;
  a.beta1 = options_.beta1;
  a.beta2 = options_.beta2;
  a.maximize = options_.maximize;
  a.grad_scale = grad_scale_;
  return a;
}

}  // namespace cutaway::optim
