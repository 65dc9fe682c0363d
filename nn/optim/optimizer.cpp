#include <cutaway/nn/optim/optimizer.h>

#include <fmt/format.h>
#include <cmath>
#include <map>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/core/trace.h>

namespace cutaway::optim {
namespace {

void require(bool good, const char* op, const char* what, double got, const char* need) {
  if (!good)
    throw ValueError(op, fmt::format("{} is out of range; got {}, need {}", what, got, need));
}

// Steps that wait to be run by one kernel call: of one type and device, and of storages that
// differ.
class Batch {
 public:
  explicit Batch(Kernel<OptimListArgs>& kernel) : kernel_(kernel) {}

  void add(const Tensor& p, const Tensor& grad, const OptimArgs& args) {
    const bool joins = list_.empty() || (p.dtype() == alive_.front().dtype() &&
                                         p.device() == alive_.front().device());
    if (!joins || !storages_.insert(p.storage()).second) run();
    storages_.insert(p.storage());
    alive_.push_back(p);
    alive_.push_back(grad);
    list_.push_back(args);
  }
  void run() {
    if (list_.empty()) return;
    kernel_(alive_.front().device(), alive_.front().dtype(),
            {list_.data(), static_cast<int64_t>(list_.size())});
    list_.clear();
    alive_.clear();
    storages_.clear();
  }

 private:
  Kernel<OptimListArgs>& kernel_;
  std::vector<OptimArgs> list_;
  std::vector<Tensor> alive_;
  std::set<const void*> storages_;
};

}  // namespace

Optimizer::Optimizer(NamedTensors parameters, double lr)
    : lr_(0), parameters_(std::move(parameters)) {
  std::set<std::string> names;
  for (const Named& p : parameters_) {
    if (!names.insert(p.name).second) {
      throw ValueError("optimizer", fmt::format("the parameter name \"{}\" occurs twice", p.name),
                       "names are the identity of a parameter's state");
    }
    if (!p.value.is_leaf()) {
      throw AutogradError("optimizer",
                          fmt::format("\"{}\" is the result of an op, not a leaf", p.name));
    }
  }
  states_.resize(parameters_.size());
  set_lr(lr);
}

void Optimizer::set_lr(double lr) {
  require(lr >= 0 && std::isfinite(lr), "optimizer", "lr", lr, "a finite number ≥ 0");
  lr_ = lr;
}

Tensor Optimizer::zero_moment(const Tensor& p) {
  return zeros(p.sizes(), {p.dtype() == DType::f64 ? DType::f64 : DType::f32, p.device()});
}

void Optimizer::step() {
  const trace::Range range(name());
  NoGradGuard no_grad;
  Batch batch(kernel());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i].value;
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    ++states_[i].step;
    const Tensor grad = contiguous_raw(g);
    if (p.is_contiguous()) {
      batch.add(p, grad, arguments(p, grad, states_[i]));
    } else {
      const Tensor dense = contiguous_raw(p);
      batch.add(dense, grad, arguments(dense, grad, states_[i]));
      batch.run();
      copy_elements(p, dense);
    }
    p.storage()->bump(name());
  }
  batch.run();
}

void Optimizer::zero_grad() {
  for (Named& p : parameters_) p.value.zero_grad();
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors out;
  const auto names = moment_names();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const State& s = states_[i];
    if (s.step == 0) continue;
    out.push_back({parameters_[i].name + ".step", scalar_tensor(s.step, {.dtype = DType::i64})});
    for (size_t k = 0; k < names.size(); ++k) {
      if (s.moments[k].defined())
        out.push_back({parameters_[i].name + "." + names[k], s.moments[k]});
    }
  }
  return out;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  std::map<std::string, Tensor> given;
  for (const Named& s : state) given[s.name] = s.value;
  std::vector<State> loaded(parameters_.size());
  const auto names = moment_names();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, value] = parameters_[i];
    const auto count = given.find(name + ".step");
    if (count == given.end()) continue;
    loaded[i].step = count->second.item<int64_t>();
    if (loaded[i].step < 0 || loaded[i].step > int64_t(1) << 53) {
      throw ValueError("load_state_dict", fmt::format("\"{}\" has the step count {}; need 0 … 2^53",
                                                      name, loaded[i].step));
    }
    given.erase(count);
    for (size_t k = 0; k < names.size(); ++k) {
      const auto moment = given.find(name + "." + names[k]);
      if (moment == given.end()) {
        throw ValueError("load_state_dict",
                         fmt::format("the state of \"{}\" lacks {}", name, names[k]),
                         "was it saved by another optimiser?");
      }
      if (moment->second.sizes() != value.sizes()) {
        throw ShapeError(
            "load_state_dict",
            fmt::format("{} of \"{}\" has other sizes; got {}, need {}", names[k], name,
                        to_string(moment->second.sizes()), to_string(value.sizes())));
      }
      Tensor own = zero_moment(value);
      own.copy_(moment->second);
      loaded[i].moments[k] = own;
      given.erase(moment);
    }
  }
  if (!given.empty()) {
    throw ValueError(
        "load_state_dict",
        fmt::format("\"{}\" belongs to no parameter of this optimiser", given.begin()->first));
  }
  states_ = std::move(loaded);
}

Sgd::Sgd(NamedTensors parameters, SgdOptions o)
    : Optimizer(std::move(parameters), o.lr), options_(o) {
  require(o.momentum >= 0, "SGD", "momentum", o.momentum, "≥ 0");
  require(o.weight_decay >= 0, "SGD", "weight_decay", o.weight_decay, "≥ 0");
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0)) {
    throw ValueError("SGD", "Nesterov needs momentum > 0 and no dampening");
  }
}

std::vector<const char*> Sgd::moment_names() const {
  if (options_.momentum == 0) return {};
  return {"momentum_buffer"};
}

OptimArgs Sgd::arguments(const Tensor& p, const Tensor& g, State& s) {
  OptimArgs a{.n = p.numel(), .param = p.raw(), .grad = g.raw()};
  a.lr = lr_;
  a.weight_decay = options_.weight_decay;
  a.momentum = options_.momentum;
  a.dampening = options_.dampening;
  a.nesterov = options_.nesterov;
  a.maximize = options_.maximize;
  a.grad_scale = grad_scale_;
  a.first = !s.moments[0].defined();
  // Without momentum the buffer is not used; it is kept only where it holds something.
  if (options_.momentum != 0) {
    if (a.first) s.moments[0] = zero_moment(p);
    a.state[0] = s.moments[0].raw();
  }
  return a;
}

Adam::Adam(NamedTensors parameters, AdamOptions o, bool decoupled)
    : Optimizer(std::move(parameters), o.lr), options_(o), decoupled_(decoupled) {
  require(o.beta1 >= 0 && o.beta1 < 1, "Adam", "beta1", o.beta1, "[0, 1)");
  require(o.beta2 >= 0 && o.beta2 < 1, "Adam", "beta2", o.beta2, "[0, 1)");
  require(o.eps >= 0, "Adam", "eps", o.eps, "≥ 0");
  require(o.weight_decay >= 0, "Adam", "weight_decay", o.weight_decay, "≥ 0");
}

std::vector<const char*> Adam::moment_names() const {
  if (options_.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

OptimArgs Adam::arguments(const Tensor& p, const Tensor& g, State& s) {
  OptimArgs a{.n = p.numel(), .param = p.raw(), .grad = g.raw()};
  for (size_t k = 0; k < moment_names().size(); ++k) {
    if (!s.moments[k].defined()) s.moments[k] = zero_moment(p);
    a.state[k] = s.moments[k].raw();
  }
  a.lr = lr_;
  a.weight_decay = options_.weight_decay;
  a.beta1 = options_.beta1;
  a.beta2 = options_.beta2;
  a.eps = options_.eps;
  a.correction1 = 1 - std::pow(options_.beta1, double(s.step));
  a.correction2 = 1 - std::pow(options_.beta2, double(s.step));
  a.maximize = options_.maximize;
  a.decoupled = decoupled_;
  a.grad_scale = grad_scale_;
  return a;
}

double grad_norm(const NamedTensors& parameters, double p) {
  NoGradGuard no_grad;
  if (!(p > 0)) throw ValueError("grad_norm", fmt::format("p must be positive; got {}", p));
  double total = 0;
  for (const Named& named : parameters) {
    const Tensor g = named.value.grad();
    if (!g.defined() || g.numel() == 0) continue;
    const double n = norm(g.to(DType::f64), {.p = p}).item();
    if (std::isinf(p)) {
      total = n > total || std::isnan(n) ? n : total;
    } else {
      total += std::pow(n, p);
    }
  }
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

double clip_grad_norm(const NamedTensors& parameters, double max_norm, double p,
                      bool error_if_nonfinite) {
  const double n = grad_norm(parameters, p);
  if (!std::isfinite(n)) {
    if (error_if_nonfinite) {
      throw ValueError("clip_grad_norm", fmt::format("the total norm of the gradients is {}", n),
                       "AnomalyGuard finds the op that made it");
    }
    return n;
  }
  const double factor = max_norm / (n + 1e-6);
  if (factor >= 1) return n;
  NoGradGuard no_grad;
  for (const Named& named : parameters) {
    Tensor g = named.value.grad();
    if (g.defined()) g.mul_(factor);
  }
  return n;
}

void clip_grad_value(const NamedTensors& parameters, double limit) {
  NoGradGuard no_grad;
  if (!(limit >= 0))
    throw ValueError("clip_grad_value", fmt::format("the limit must be ≥ 0; got {}", limit));
  for (const Named& named : parameters) {
    Tensor g = named.value.grad();
    if (g.defined()) g.copy_(clamp(g, -limit, limit));
  }
}

}  // namespace cutaway::optim
