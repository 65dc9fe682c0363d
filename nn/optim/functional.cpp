#include <cutaway/nn/optim/functional.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::optim::functional {
namespace {

State checked(const char* op, const Tensors& parameters, const Tensors& gradients, State state) {
  if (state.empty()) state.resize(parameters.size());
  if (gradients.size() != parameters.size() || state.size() != parameters.size()) {
    throw ValueError(op, fmt::format("the lists must have one length; got {} parameters, {} "
                                     "gradients, {} states",
                                     parameters.size(), gradients.size(), state.size()));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].defined() && gradients[i].sizes() != parameters[i].sizes()) {
      throw ShapeError(
          op, fmt::format("gradient {} has other sizes; got {}, need {}", i,
                          to_string(gradients[i].sizes()), to_string(parameters[i].sizes())));
    }
  }
  return state;
}

// decay · before + share · now, where nothing before is 0.
Tensor blend(const Tensor& before, double decay, const Tensor& now, double share) {
  return before.defined() ? before * decay + now * share : now * share;
}

// √v whose derivative at 0 is 0.
Tensor root(const Tensor& v) {
  const Tensor positive = v > 0.0;
  const Tensor one = ones(v.sizes(), {v.dtype(), v.device()});
  const Tensor zero = zeros(v.sizes(), {v.dtype(), v.device()});
  return where(positive, sqrt(where(positive, v, one)), zero);
}

}  // namespace

Stepped sgd_step(const Tensors& parameters, const Tensors& gradients, const State& state,
                 const SgdOptions& o) {
  Sgd({}, o);  // checks the options
  Stepped out{parameters, checked("functional.sgd_step", parameters, gradients, state)};
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor& p = parameters[i];
    ParameterState& s = out.state[i];
    ++s.step;
    Tensor g = o.maximize ? gradients[i] * -1.0 : gradients[i];
    if (o.weight_decay != 0) g = g + p * o.weight_decay;
    if (o.momentum != 0) {
      Tensor& buffer = s.moments[0];
      buffer = buffer.defined() ? buffer * o.momentum + g * (1 - o.dampening) : g;
      g = o.nesterov ? g + buffer * o.momentum : buffer;
    }
    out.parameters[i] = p - g * o.lr;
  }
  return out;
}

Stepped adam_step(const Tensors& parameters, const Tensors& gradients, const State& state,
                  const AdamOptions& o, bool decoupled) {
  Adam({}, o);  // checks the options
  Stepped out{parameters, checked("functional.adam_step", parameters, gradients, state)};
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor& p = parameters[i];
    ParameterState& s = out.state[i];
    ++s.step;
    Tensor g = o.maximize ? gradients[i] * -1.0 : gradients[i];
    if (o.weight_decay != 0 && !decoupled) g = g + p * o.weight_decay;
    s.moments[0] = blend(s.moments[0], o.beta1, g, 1 - o.beta1);
    s.moments[1] = blend(s.moments[1], o.beta2, g * g, 1 - o.beta2);
    Tensor second = s.moments[1];
    if (o.amsgrad) {
      Tensor& largest = s.moments[2];
      largest = largest.defined() ? where(second > largest, second, largest) : second;
      second = largest;
    }
    const double step = o.lr / bias_correction(o.beta1, double(s.step));
    const double root2 = std::sqrt(bias_correction(o.beta2, double(s.step)));
    const Tensor kept = decoupled ? p * (1 - o.lr * o.weight_decay) : p;
    out.parameters[i] = kept - s.moments[0] * step / (root(second) / root2 + o.eps);
  }
  return out;
}

}  // namespace cutaway::optim::functional
