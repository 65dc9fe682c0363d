#include <cutaway/nn/optim/ema.h>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

DType kept_in(const Tensor& t) { return t.dtype() == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace

Ema::Ema(nn::NamedTensors weights, EmaOptions o) : weights_(std::move(weights)), options_(o) {
  if (!(o.decay >= 0 && o.decay < 1)) {
    throw ValueError("Ema", fmt::format("decay is out of range; got {}, need [0, 1)", o.decay));
  }
  NoGradGuard no_grad;
  std::set<std::string> names;
  for (const nn::Named& w : weights_) {
    if (!names.insert(w.name).second) {
      throw ValueError("Ema", fmt::format("the name \"{}\" occurs twice", w.name));
    }
    Tensor average = zeros(w.value.sizes(), {kept_in(w.value), w.value.device()});
    average.copy_(w.value);
    averages_.push_back({w.name, average});
  }
}

void Ema::update() {
  NoGradGuard no_grad;
  ++updates_;
  const double t = double(updates_);
  const double decay =
      options_.warmup ? std::min(options_.decay, (1 + t) / (10 + t)) : options_.decay;
  for (size_t i = 0; i < weights_.size(); ++i) {
    Tensor& average = averages_[i].value;
    // A weight that does not change keeps its average bit by bit.
    average.add_(weights_[i].value.to(average.dtype()) - average, 1 - decay);
  }
}

Ema::Swap::Swap(Ema& ema) : ema_(ema) {
  NoGradGuard no_grad;
  for (const nn::Named& w : ema_.weights_) own_.push_back(w.value.detach().clone());
  for (size_t i = 0; i < own_.size(); ++i) {
    ema_.weights_[i].value.copy_(ema_.averages_[i].value);
  }
}
Ema::Swap::~Swap() {
  NoGradGuard no_grad;
  for (size_t i = 0; i < own_.size(); ++i) ema_.weights_[i].value.copy_(own_[i]);
}

nn::NamedTensors Ema::state_dict() const {
  nn::NamedTensors out{{"updates", scalar_tensor(updates_, {.dtype = DType::i64})}};
  for (const nn::Named& a : averages_) out.push_back({a.name + ".average", a.value});
  return out;
}

void Ema::load_state_dict(const nn::NamedTensors& state) {
  std::map<std::string, Tensor> given;
  for (const nn::Named& s : state) given[s.name] = s.value;
  const auto take = [&](const std::string& name) {
    const auto found = given.find(name);
    if (found == given.end()) {
      throw ValueError("Ema", fmt::format("the state lacks \"{}\"", name));
    }
    const Tensor value = found->second;
    given.erase(found);
    return value;
  };
  const int64_t updates = take("updates").item<int64_t>();
  if (updates < 0) {
    throw ValueError("Ema", fmt::format("updates must be ≥ 0; got {}", updates));
  }
  Tensors values;
  for (const nn::Named& a : averages_) {
    values.push_back(take(a.name + ".average"));
    if (values.back().sizes() != a.value.sizes()) {
      throw ShapeError("Ema",
                       fmt::format("the average of \"{}\" has other sizes; got {}, need {}", a.name,
                                   to_string(values.back().sizes()), to_string(a.value.sizes())));
    }
  }
  if (!given.empty()) {
    throw ValueError("Ema", fmt::format("\"{}\" belongs to no weight", given.begin()->first));
  }
  NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i) {
    averages_[i].value.copy_(values[i].to(averages_[i].value.device()));
  }
  updates_ = updates;
}

}  // namespace cutaway::optim
