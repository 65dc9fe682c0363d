#include <cutaway/nn/sched/schedule.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/error.h>

namespace cutaway::sched {
namespace {

void require_positive(const char* op, const char* what, int64_t n) {
  if (n < 1) throw ValueError(op, fmt::format("{} must be at least 1; got {}", what, n));
}

double cosine_factor(double t, double period, double min_factor) {
  return min_factor + (1 - min_factor) * (1 + std::cos(M_PI * t / period)) / 2;
}

}  // namespace

Schedule Schedule::times(const Schedule& other) const {
  return Schedule([a = *this, b = other](int64_t t) { return a(t) * b(t); });
}
Schedule Schedule::then(int64_t steps, const Schedule& next) const {
  if (steps < 0) throw ValueError("then", fmt::format("steps must be ≥ 0; got {}", steps));
  return Schedule(
      [a = *this, b = next, steps](int64_t t) { return t < steps ? a(t) : b(t - steps); });
}

Schedule constant(double factor) {
  return Schedule([factor](int64_t) { return factor; });
}
Schedule step(int64_t size, double gamma) {
  require_positive("step", "size", size);
  return Schedule([size, gamma](int64_t t) { return std::pow(gamma, double(t / size)); });
}
Schedule multi_step(std::vector<int64_t> milestones, double gamma) {
  std::sort(milestones.begin(), milestones.end());
  return Schedule([milestones, gamma](int64_t t) {
    const auto passed =
        std::upper_bound(milestones.begin(), milestones.end(), t) - milestones.begin();
    return std::pow(gamma, double(passed));
  });
}
Schedule exponential(double gamma) {
  return Schedule([gamma](int64_t t) { return std::pow(gamma, double(t)); });
}
Schedule cosine(int64_t t_max, double min_factor) {
  require_positive("cosine", "t_max", t_max);
  return Schedule([=](int64_t t) { return cosine_factor(double(t), double(t_max), min_factor); });
}
Schedule cosine_restarts(int64_t t0, int64_t mult, double min_factor) {
  require_positive("cosine_restarts", "t0", t0);
  require_positive("cosine_restarts", "mult", mult);
  return Schedule([=](int64_t t) {
    int64_t length = t0;
    if (mult == 1) {
      t %= t0;
    } else {
      while (t >= length) {
        t -= length;
        length *= mult;
      }
    }
    return cosine_factor(double(t), double(length), min_factor);
  });
}
Schedule linear(int64_t n, double start, double end) {
  require_positive("linear", "n", n);
  return Schedule(
      [=](int64_t t) { return start + (end - start) * double(std::min(t, n)) / double(n); });
}
Schedule warmup(int64_t n, double start, const Schedule& rest) {
  return linear(n, start).then(n, rest);
}
Schedule polynomial(int64_t total, double power) {
  require_positive("polynomial", "total", total);
  return Schedule(
      [=](int64_t t) { return std::pow(1 - double(std::min(t, total)) / double(total), power); });
}

Schedule one_cycle(int64_t total, OneCycleOptions o) {
  require_positive("one_cycle", "total", total);
  const double last = double(total - 1), up = o.pct_start * double(total) - 1;
  const double begin_down = o.three_phase ? 2 * up : up;
  if (!(o.pct_start > 0) || !(up > 0) || !(begin_down < last)) {
    throw ValueError(
        "one_cycle",
        fmt::format("no room for all phases; got pct_start {} of {} steps", o.pct_start, total));
  }
  if (!(o.div_factor > 0) || !(o.final_div_factor > 0)) {
    throw ValueError("one_cycle", fmt::format("the divisors must be positive; got {} and {}",
                                              o.div_factor, o.final_div_factor));
  }
  return Schedule([=](int64_t step) {
    const double low = 1 / o.div_factor, least = low / o.final_div_factor;
    const double t = std::min(double(step), last);
    const auto piece = [&](double begin, double end, double from, double to) {
      double part = (t - begin) / (end - begin);
      if (!o.linear) part = (1 - std::cos(M_PI * part)) / 2;
      return from + (to - from) * part;
    };
    if (t <= up) return piece(0, up, low, 1);
    if (!o.three_phase) return piece(up, last, 1, least);
    return t <= 2 * up ? piece(up, 2 * up, 1, low) : piece(2 * up, last, low, least);
  });
}
Schedule inverse_sqrt(int64_t n) {
  require_positive("inverse_sqrt", "n", n);
  return Schedule([n](int64_t t) {
    const double s = double(t) + 1;
    return std::min(s / double(n), std::sqrt(double(n) / s));
  });
}
Schedule cyclic(int64_t up, int64_t down, double low, double gamma) {
  require_positive("cyclic", "up", up);
  if (down == 0) down = up;
  require_positive("cyclic", "down", down);
  return Schedule([=](int64_t t) {
    const int64_t cycle = t / (up + down), at = t % (up + down);
    const double height = at <= up ? double(at) / double(up) : 1 - double(at - up) / double(down);
    return low + (1 - low) * height * std::pow(gamma, double(cycle));
  });
}
Schedule warmup_stable_decay(int64_t warm, int64_t stable, int64_t decay) {
  require_positive("warmup_stable_decay", "warm", warm);
  require_positive("warmup_stable_decay", "decay", decay);
  if (stable < 0) {
    throw ValueError("warmup_stable_decay", fmt::format("stable must be ≥ 0; got {}", stable));
  }
  return Schedule([=](int64_t t) {
    if (t < warm) return double(t + 1) / double(warm);
    if (t < warm + stable) return 1.0;
    return 1 - std::sqrt(std::min(double(t - warm - stable) / double(decay), 1.0));
  });
}
Schedule lambda(std::function<double(int64_t)> factor) {
  if (!factor) throw ValueError("lambda", "there is no function");
  return Schedule(std::move(factor));
}

Scheduler::Scheduler(optim::Optimizer& optimizer, Schedule schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)), base_(optimizer.lr()) {
  set_counter(0);
}
void Scheduler::set_counter(int64_t counter) {
  counter_ = counter;
  optimizer_.set_lr(base_ * schedule_(counter));
}

}  // namespace cutaway::sched
