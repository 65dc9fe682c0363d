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

Scheduler::Scheduler(optim::Optimizer& optimizer, Schedule schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)), base_(optimizer.lr()) {
  set_counter(0);
}
void Scheduler::set_counter(int64_t counter) {
  counter_ = counter;
  optimizer_.set_lr(base_ * schedule_(counter));
}

}  // namespace cutaway::sched
