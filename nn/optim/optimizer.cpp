#include <cutaway/nn/optim/optimizer.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/record/hook.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/core/trace.h>

namespace cutaway::optim {
namespace {

void require(bool good, const char* op, const char* what, double got, const char* need) {
  if (!good)
    throw ValueError(op, fmt::format("{} is out of range; got {}, need {}", what, got, need));
}

[[noreturn]] void throw_other_device(const Named& p, Device device) {
  throw DeviceError("optimizer",
                    fmt::format("a capturable optimiser keeps its scalars on one device; got "
                                "\"{}\" on {}, need {}",
                                p.name, to_string(p.value.device()), to_string(device)),
                    "call set_capturable after the module was moved");
}

// Steps that wait to be run by one kernel call: of one type and device, and of storages that
// differ.
class Batch {
 public:
  // renew(i, args) gives the arguments of the i-th parameter in a replay of a recorded step.
  using Renew = std::function<void(size_t i, OptimArgs& args)>;
  explicit Batch(Renew renew) : renew_(std::move(renew)) {}

  void add(Kernel<OptimListArgs>& kernel, size_t index, const Tensor& p, const Tensor& grad,
           const OptimArgs& args) {
    const bool joins =
        list_.empty() || (kernel_ == &kernel && p.dtype() == alive_.front().dtype() &&
                          p.device() == alive_.front().device());
    if (!joins || !storages_.insert(p.storage()).second) run();
    storages_.insert(p.storage());
    kernel_ = &kernel;
    alive_.push_back(p);
    alive_.push_back(grad);
    list_.push_back(args);
    indices_.push_back(index);
  }
  void run() {
    if (list_.empty()) return;
    if (recording::active()) {
      recording::renew_next([renew = renew_, indices = indices_](void* args) {
        const auto& a = *static_cast<const OptimListArgs*>(args);
        for (size_t k = 0; k < indices.size(); ++k) {
          renew(indices[k], const_cast<OptimArgs&>(a.list[k]));
        }
        return true;
      });
    }
    (*kernel_)(alive_.front().device(), alive_.front().dtype(),
               {list_.data(), static_cast<int64_t>(list_.size())});
    list_.clear();
    indices_.clear();
    alive_.clear();
    storages_.clear();
  }

 private:
  Kernel<OptimListArgs>* kernel_ = nullptr;
  Renew renew_;
  std::vector<OptimArgs> list_;
  std::vector<size_t> indices_;
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
  settings_.resize(parameters_.size());
  set_lr(lr);
}

void Optimizer::set_lr(double lr) {
  require(lr >= 0 && std::isfinite(lr), "optimizer", "lr", lr, "a finite number ≥ 0");
  lr_ = lr;
  if (capturable()) common_.select(0, 0).fill_(lr);
}

void Optimizer::set_grad_scale(double scale) {
  grad_scale_ = scale;
  if (capturable()) common_.select(0, 1).fill_(scale);
}

void Optimizer::set_capturable(bool on) {
  if (on == capturable()) return;
  if (!can_be_capturable())
    throw ValueError("optimizer", fmt::format("{} has no capturable mode", name()));
  if (!on) {
    const std::vector<int64_t> counts = step_counts();
    for (size_t i = 0; i < states_.size(); ++i) states_[i].step = counts[i];
    scalars_ = common_ = Tensor();
    return;
  }
  const Device device = parameters_.empty() ? kCpu : parameters_.front().value.device();
  for (const Named& p : parameters_) {
    if (p.value.device() != device) throw_other_device(p, device);
  }
  const int64_t n = int64_t(parameters_.size());
  const Tensor common = tensor({lr_, grad_scale_}, {.dtype = DType::f64}).to(device);
  scalars_ = zeros({n, kOptimScalars}, {DType::f64, device});
  common_ = common;
  write_scalars(states_);
}

bool Optimizer::matches(const char* pattern, const char* name) {
  for (; *pattern && *pattern != '*'; ++pattern, ++name) {
    if (!*name || (*pattern != '?' && *pattern != *name)) return false;
  }
  if (!*pattern) return !*name;
  while (*pattern == '*') ++pattern;
  if (!*pattern) return true;
  for (; *name; ++name) {
    if (matches(pattern, name)) return true;
  }
  return false;
}

namespace {

void require_group(double lr_factor, std::optional<double> decay) {
  const auto good = [](double v) { return v >= 0 && std::isfinite(v); };
  require(good(lr_factor), "set_groups", "lr_factor", lr_factor, "a finite number ≥ 0");
  require(!decay || good(*decay), "set_groups", "weight_decay", decay.value_or(0),
          "a finite number ≥ 0");
}

}  // namespace

void Optimizer::set_groups(const std::vector<ParamGroup>& groups) {
  std::vector<GroupSetting> settings(parameters_.size());
  for (const ParamGroup& group : groups) {
    require_group(group.lr_factor, group.weight_decay);
    for (const std::string& pattern : group.names) {
      bool found = false;
      for (size_t i = 0; i < parameters_.size(); ++i) {
        if (!matches(pattern.c_str(), parameters_[i].name.c_str())) continue;
        found = true;
        if (!settings[i].in_group) settings[i] = {true, group.lr_factor, group.weight_decay};
      }
      if (!found) {
        throw ValueError("set_groups", fmt::format("no parameter is named \"{}\"", pattern));
      }
    }
  }
  settings_ = std::move(settings);
  if (!capturable()) return;
  std::vector<State> states = states_;
  const std::vector<int64_t> counts = step_counts();
  for (size_t i = 0; i < states.size(); ++i) states[i].step = counts[i];
  write_scalars(states);
}

double Optimizer::lr_of(const std::string& parameter) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == parameter) return lr_ * settings_[i].lr_factor;
  }
  throw ValueError("lr_of", fmt::format("no parameter is named \"{}\"", parameter));
}

void Optimizer::append_groups(NamedTensors& out) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const GroupSetting& s = settings_[i];
    if (!s.in_group) continue;
    const std::string& name = parameters_[i].name;
    out.push_back({name + ".lr_factor", scalar_tensor(s.lr_factor, {.dtype = DType::f64})});
    if (!s.weight_decay) continue;
    out.push_back({name + ".group_decay", scalar_tensor(*s.weight_decay, {.dtype = DType::f64})});
  }
}

std::vector<Optimizer::GroupSetting> Optimizer::take_groups(
    std::map<std::string, Tensor>& given) const {
  std::vector<GroupSetting> settings(parameters_.size());
  bool any = false;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto factor = given.find(parameters_[i].name + ".lr_factor");
    if (factor == given.end()) continue;
    any = true;
    settings[i] = {true, factor->second.item(), std::nullopt};
    given.erase(factor);
    const auto decay = given.find(parameters_[i].name + ".group_decay");
    if (decay != given.end()) {
      settings[i].weight_decay = decay->second.item();
      given.erase(decay);
    }
    require_group(settings[i].lr_factor, settings[i].weight_decay);
  }
  return any ? settings : settings_;
}

OptimArgs Optimizer::group_arguments(size_t i, const Tensor& p, const Tensor& grad) {
  OptimArgs args = arguments(p, grad, states_[i]);
  args.lr *= settings_[i].lr_factor;
  if (settings_[i].weight_decay) args.weight_decay = *settings_[i].weight_decay;
  return args;
}

double* Optimizer::scalar_row(size_t parameter) const {
  return static_cast<double*>(scalars_.raw()) + parameter * kOptimScalars;
}

void Optimizer::write_scalars(const std::vector<State>& states) {
  std::vector<double> values(states.size() * kOptimScalars);
  for (size_t i = 0; i < states.size(); ++i) {
    values[i * kOptimScalars + kScalarSteps] = double(states[i].step);
    values[i * kOptimScalars + kScalarLrFactor] = settings_[i].lr_factor;
  }
  const Tensor rows = tensor(std::span<const double>(values), {.dtype = DType::f64});
  scalars_.copy_(rows.reshape(scalars_.sizes()).to(scalars_.device()));
}

std::vector<int64_t> Optimizer::step_counts() const {
  std::vector<int64_t> counts;
  if (!capturable()) {
    for (const State& s : states_) counts.push_back(s.step);
    return counts;
  }
  for (const double steps : scalars_.select(1, kScalarSteps).to_vector()) {
    counts.push_back(static_cast<int64_t>(steps));
  }
  return counts;
}

void Optimizer::advance_scalars() {
  const auto steps = [&](size_t i) { return parameters_[i].value.grad().defined(); };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (steps(i) && parameters_[i].value.device() != scalars_.device()) {
      throw_other_device(parameters_[i], scalars_.device());
    }
  }
  for (size_t i = 0, end = 0; i < parameters_.size(); i = end + 1) {
    for (end = i; end < parameters_.size() && steps(end);) ++end;
    if (end == i) continue;
    kernels::optim_scalars(scalars_.device(), DType::f64,
                           {.count = int64_t(end - i),
                            .rows = scalar_row(i),
                            .common = static_cast<const double*>(common_.raw()),
                            .beta1 = betas().beta1,
                            .beta2 = betas().beta2,
                            .lr_decay = betas().lr_decay});
  }
}

Tensor Optimizer::zero_moment(const Tensor& p) {
  return zeros(p.sizes(), {p.dtype() == DType::f64 ? DType::f64 : DType::f32, p.device()});
}

void Optimizer::step() {
  const trace::Range range(name());
  NoGradGuard no_grad;
  if (capturable()) advance_scalars();
  Batch batch([this](size_t i, OptimArgs& args) { renew_arguments(i, args); });
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i].value;
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    ++states_[i].step;
    const Tensor grad = contiguous_raw(direction(parameters_[i], g, states_[i]));
    const Tensor dense = contiguous_raw(p);
    OptimArgs args = group_arguments(i, dense, grad);
    if (capturable()) args.scalars = scalar_row(i);
    batch.add(kernel_of(parameters_[i]), i, dense, grad, args);
    if (!p.is_contiguous()) {
      batch.run();
      copy_elements(p, dense);
    }
    p.storage()->bump(name());
  }
  batch.run();
}

// Scalars and states may have changed since the step was recorded, memory of the others has not.
void Optimizer::renew_arguments(size_t i, OptimArgs& args) {
  const Tensor& p = parameters_[i].value;
  ++states_[i].step;
  void* const param = args.param;
  const void* const grad = args.grad;
  const double* const scalars = args.scalars;
  args = group_arguments(i, p, p);
  args.scalars = scalars;
  args.param = param;
  args.grad = grad;
}

void Optimizer::zero_grad() {
  for (Named& p : parameters_) p.value.zero_grad();
}

NamedTensors Optimizer::state_dict() const {
  NamedTensors out;
  const std::vector<int64_t> counts = step_counts();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const State& s = states_[i];
    if (counts[i] == 0) continue;
    const auto names = moment_names_of(parameters_[i]);
    out.push_back({parameters_[i].name + ".step", scalar_tensor(counts[i], {.dtype = DType::i64})});
    for (size_t k = 0; k < names.size(); ++k) {
      if (s.moments[k].defined())
        out.push_back({parameters_[i].name + "." + names[k], s.moments[k]});
    }
  }
  append_groups(out);
  return out;
}

void Optimizer::load_state_dict(const NamedTensors& state) {
  std::map<std::string, Tensor> given;
  for (const Named& s : state) given[s.name] = s.value;
  std::vector<State> loaded(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, value] = parameters_[i];
    const auto names = moment_names_of(parameters_[i]);
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
  std::vector<GroupSetting> settings = take_groups(given);
  if (!given.empty()) {
    throw ValueError(
        "load_state_dict",
        fmt::format("\"{}\" belongs to no parameter of this optimiser", given.begin()->first));
  }
  settings_ = std::move(settings);
  if (capturable()) {
    keep_moments(loaded);
    write_scalars(loaded);
  }
  states_ = std::move(loaded);
}

void Optimizer::keep_moments(std::vector<State>& loaded) {
  for (size_t i = 0; i < states_.size(); ++i) {
    for (size_t k = 0; k < 3; ++k) {
      Tensor own = states_[i].moments[k];
      if (!own.defined()) continue;
      if (loaded[i].moments[k].defined()) {
        own.copy_(loaded[i].moments[k]);
      } else {
        own.fill_(initial_moment());
      }
      loaded[i].moments[k] = own;
    }
  }
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
  a.first = !s.moments[0].defined() || s.step == 1;
  // Without momentum the buffer is not used; it is kept only where it holds something.
  if (options_.momentum != 0) {
    if (!s.moments[0].defined()) s.moments[0] = zero_moment(p);
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
  a.correction1 = bias_correction(options_.beta1, double(s.step));
  a.correction2 = bias_correction(options_.beta2, double(s.step));
  a.maximize = options_.maximize;
  a.decoupled = decoupled_;
  a.grad_scale = grad_scale_;
  return a;
}

namespace {

// Norms of the single gradients, f64.
Tensors single_norms(const NamedTensors& parameters, double p) {
  if (!(p > 0)) throw ValueError("grad_norm", fmt::format("p must be positive; got {}", p));
  Tensors norms;
  for (const Named& named : parameters) {
    const Tensor g = named.value.grad();
    if (g.defined() && g.numel() > 0) norms.push_back(norm(g.to(DType::f64), {.p = p}));
  }
  return norms;
}

double joined_norm(const std::vector<double>& norms, double p) {
  double total = 0;
  for (const double n : norms) {
    if (std::isinf(p)) {
      total = n > total || std::isnan(n) ? n : total;
    } else {
      total += std::pow(n, p);
    }
  }
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

// What clipping found; renewed in every replay of a recorded step.
struct Clipping {
  double norm = 0, factor = 1;
};

Clipping clipping(double n, double max_norm, bool error_if_nonfinite) {
  if (std::isfinite(n)) return {n, max_norm / (n + 1e-6)};
  if (error_if_nonfinite) {
    throw ValueError("clip_grad_norm", fmt::format("the total norm of the gradients is {}", n),
                     "AnomalyGuard finds the op that made it");
  }
  return {n, 1};
}

}  // namespace

double grad_norm(const NamedTensors& parameters, double p) {
  NoGradGuard no_grad;
  std::vector<double> norms;
  for (const Tensor& n : single_norms(parameters, p)) norms.push_back(n.item());
  return joined_norm(norms, p);
}

double clip_grad_norm(const NamedTensors& parameters, double max_norm, double p,
                      bool error_if_nonfinite) {
  NoGradGuard no_grad;
  const Tensors norms = single_norms(parameters, p);
  const auto found = std::make_shared<Clipping>();
  std::vector<const Tensor*> reads;
  bool on_host = true;
  for (const Tensor& n : norms) {
    reads.push_back(&n);
    on_host = on_host && n.device() == kCpu;
  }
  if (on_host) {
    recording::each_time("clip_grad_norm", reads,
                         [=, count = norms.size()](const void* const* values) {
                           std::vector<double> v;
                           for (size_t i = 0; i < count; ++i) {
                             v.push_back(*static_cast<const double*>(values[i]));
                           }
                           *found = clipping(joined_norm(v, p), max_norm, error_if_nonfinite);
                         });
  } else {
    std::vector<double> v;
    for (const Tensor& n : norms) v.push_back(n.item());
    *found = clipping(joined_norm(v, p), max_norm, error_if_nonfinite);
  }
  const bool recorded = recording::active();
  if (found->factor >= 1 && !recorded) return found->norm;
  for (const Named& named : parameters) {
    Tensor g = named.value.grad();
    if (!g.defined()) continue;
    recording::renew_next([found](void* args) {
      static_cast<PointwiseArgs*>(args)->scalar[0] = found->factor;
      return found->factor < 1;
    });
    g.mul_(std::min(found->factor, 1.0));  // a factor of 1 keeps all bits
  }
  return found->norm;
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
