#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::sched {

// A factor on the base learning rate as a function of the step (or epoch) 0, 1, 2, …. A pure
// function of the counter: resuming needs the counter only. Composes by times() and then().
class Schedule {
 public:
  explicit Schedule(std::function<double(int64_t)> factor) : factor_(std::move(factor)) {}
  double operator()(int64_t step) const { return factor_(step); }
  Schedule times(const Schedule& other) const;
  // This schedule for `steps` steps, then `next` from its own step 0.
  Schedule then(int64_t steps, const Schedule& next) const;

 private:
  std::function<double(int64_t)> factor_;
};

Schedule constant(double factor = 1);
Schedule step(int64_t size, double gamma = 0.1);  // gamma^⌊t/size⌋
Schedule multi_step(std::vector<int64_t> milestones, double gamma = 0.1);
Schedule exponential(double gamma);  // gamma^t
// min + (1 − min)(1 + cos(πt/T))/2; periodic after T as PyTorch's closed form. min is a factor of
// the base lr.
Schedule cosine(int64_t t_max, double min_factor = 0);
// Cosine cycles of length t0, t0·mult, t0·mult², … (Loshchilov & Hutter 2017).
Schedule cosine_restarts(int64_t t0, int64_t mult = 1, double min_factor = 0);
// start + (end − start)·t/n up to t = n, then end.
Schedule linear(int64_t n, double start, double end = 1);
// Linear from `start` over n steps, then `rest` from its own beginning.
Schedule warmup(int64_t n, double start, const Schedule& rest);
Schedule polynomial(int64_t total, double power = 1);  // (1 − min(t,T)/T)^power

// Drives the learning rate of an optimiser: lr = base · schedule(counter).
class Scheduler {
 public:
  Scheduler(optim::Optimizer& optimizer, Schedule schedule);
  void step() { set_counter(counter_ + 1); }
  int64_t counter() const { return counter_; }
  void set_counter(int64_t counter);  // resume

 private:
  optim::Optimizer& optimizer_;
  Schedule schedule_;
  double base_;
  int64_t counter_ = 0;
};

}  // namespace cutaway::sched
