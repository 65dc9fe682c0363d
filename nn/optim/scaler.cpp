#include <cutaway/nn/optim/scaler.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

constexpr double kLargest = 0x1p120;  // keeps scaled losses inside f32

[[noreturn]] void fail(const std::string& rule) { throw ValueError("GradScaler", rule); }

Tensor number(double v) { return full({}, v, {.dtype = DType::f64}); }

}  // namespace

GradScaler::GradScaler(GradScalerOptions o) : options_(o), scale_(o.init_scale) {
  if (!(o.init_scale > 0 && o.init_scale <= kLargest)) {
    fail(fmt::format("init_scale must be above 0 and at most 2^120; got {}", o.init_scale));
  }
  if (!(o.growth >= 1) || !std::isfinite(o.growth) || !(o.backoff > 0 && o.backoff <= 1)) {
    fail(fmt::format("growth must be at least 1 and backoff in (0, 1]; got {} and {}", o.growth,
                     o.backoff));
  }
  if (o.growth_interval < 1) {
    fail(fmt::format("growth_interval must be at least 1; got {}", o.growth_interval));
  }
}

Tensor GradScaler::scale(const Tensor& loss) const {
  const bool half = loss.dtype() == DType::f16 || loss.dtype() == DType::bf16;
  return (half ? loss.to(DType::f32) : loss) * scale_;
}

bool GradScaler::unscale(Optimizer& optimizer) {
  if (unscaled_) fail("the gradients are divided by the scale already");
  NoGradGuard no_grad;
  finite_ =
      std::isfinite(grad_norm(optimizer.parameters(), std::numeric_limits<double>::infinity()));
  for (const Named& p : optimizer.parameters()) {
    if (Tensor g = p.value.grad(); g.defined() && finite_) g.mul_(1 / scale_);
  }
  unscaled_ = true;
  return finite_;
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!unscaled_) unscale(optimizer);
  unscaled_ = false;
  if (!finite_) {
    scale_ = std::max(scale_ * options_.backoff, 0x1p-100);
    good_ = 0;
    ++skipped_;
    return false;
  }
  optimizer.step();
  if (++good_ >= options_.growth_interval) {
    scale_ = std::min(scale_ * options_.growth, kLargest);
    good_ = 0;
  }
  return true;
}

nn::NamedTensors GradScaler::state_dict() const {
  return {{"scale", number(scale_)},
          {"good_steps", number(double(good_))},
          {"skipped", number(double(skipped_))}};
}

void GradScaler::load_state_dict(const nn::NamedTensors& state) {
  std::map<std::string, double> given;
  for (const nn::Named& n : state) {
    if (n.value.numel() != 1) fail(fmt::format("\"{}\" must be one number", n.name));
    given[n.name] = n.value.to(DType::f64).item();
  }
  if (state.size() != 3 || !given.contains("scale") || !given.contains("good_steps") ||
      !given.contains("skipped")) {
    fail("a state has exactly scale, good_steps and skipped");
  }
  const auto count = [](double v) { return v >= 0 && v <= 0x1p53 && v == std::floor(v); };
  const double scale = given["scale"], good = given["good_steps"], skipped = given["skipped"];
  if (!(scale > 0 && scale <= kLargest) || !count(good) || !count(skipped)) {
    fail(fmt::format("no scaler has scale {}, good_steps {}, skipped {}", scale, good, skipped));
  }
  scale_ = scale;
  good_ = int64_t(good);
  skipped_ = int64_t(skipped);
  unscaled_ = false;
}

}  // namespace cutaway::optim
