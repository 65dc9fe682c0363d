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

struct OneCycleOptions {
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  bool linear = false, three_phase = false;
};
// From 1/div_factor up to 1 in pct_start of `total` steps, then down to 1/(div_factor ·
// final_div_factor) at step total − 1, where it stays (Smith & Topin 2018); cosine pieces, or
// linear.
Schedule one_cycle(int64_t total, OneCycleOptions options = {});
Schedule inverse_sqrt(int64_t n);  // min((t+1)/n, √(n/(t+1))): linear warm-up, then 1/√t
// Triangles between `low` and 1, up over `up` steps and down over `down` (0: as `up`); the height
// of cycle k times gamma^k (Smith 2017).
Schedule cyclic(int64_t up, int64_t down, double low, double gamma = 1);
// Warm-up, stable, decay: (t+1)/warm up to 1, 1 for `stable` steps, then 1 − √(u/decay) to 0
// (Hägele et al. 2024).
Schedule warmup_stable_decay(int64_t warm, int64_t stable, int64_t decay);
Schedule lambda(std::function<double(int64_t)> factor);  // any function of the step

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
