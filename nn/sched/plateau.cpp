#include <cutaway/nn/sched/plateau.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::sched {
namespace {

[[noreturn]] void fail(const std::string& rule) { throw ValueError("Plateau", rule); }

double value_of(const nn::NamedTensors& state, const char* name) {
  for (const nn::Named& n : state) {
    if (n.name == name && n.value.numel() == 1) return n.value.to(DType::f64).item();
  }
  fail(fmt::format("the state lacks the number \"{}\"", name));
}

}  // namespace

Plateau::Plateau(PlateauOptions o) : options_(o) {
  if (!(o.factor > 0 && o.factor < 1) || !(o.min_factor >= 0 && o.min_factor <= 1)) {
    fail(fmt::format("factor must be in (0, 1) and min_factor in [0, 1]; got {} and {}", o.factor,
                     o.min_factor));
  }
  if (o.patience < 0 || !(o.threshold >= 0 && o.threshold < 1)) {
    fail(fmt::format("patience must not be negative and threshold in [0, 1); got {} and {}",
                     o.patience, o.threshold));
  }
}

double Plateau::step(double loss) {
  const double least = std::isfinite(best_) ? options_.threshold * std::fabs(best_) : 0;
  if (loss < best_ - least) {
    best_ = loss;
    waited_ = 0;
  } else if (++waited_ > options_.patience) {
    factor_ = std::max(factor_ * options_.factor, options_.min_factor);
    waited_ = 0;
  }
  return factor_;
}

nn::NamedTensors Plateau::state_dict() const {
  const auto number = [](double v) { return full({}, v, {.dtype = DType::f64}); };
  return {
      {"factor", number(factor_)}, {"best", number(best_)}, {"waited", number(double(waited_))}};
}

void Plateau::load_state_dict(const nn::NamedTensors& state) {
  const double factor = value_of(state, "factor"), best = value_of(state, "best"),
               waited = value_of(state, "waited");
  if (state.size() != 3 || !(factor >= 0 && factor <= 1) || std::isnan(best) ||
      !(waited >= 0 && waited <= 0x1p53)) {
    fail(fmt::format("no such state: factor {}, best {}, waited {}", factor, best, waited));
  }
  factor_ = factor;
  best_ = best;
  waited_ = int64_t(waited);
}

}  // namespace cutaway::sched
