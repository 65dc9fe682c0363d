#pragma once
#include <deque>
#include <functional>
#include <vector>

#include <cutaway/nn/module.h>

namespace cutaway::optim {

struct LbfgsOptions {
  double lr = 1;
  int64_t max_iter = 20;
  int64_t max_eval = 0;  // calls of the closure in one step; 0: 5/4 · max_iter
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int64_t history_size = 100;
  bool strong_wolfe = false;  // line search; otherwise steps of length lr
};

// Quasi-Newton steps from the last differences of points and gradients (Liu & Nocedal 1989), with a
// line search for the strong Wolfe conditions (Nocedal & Wright 2006, Algorithms 3.5 and 3.6). Does
// what torch.optim.LBFGS does; the vectors are kept in f64 on the host. Raises ValueError for
// options outside their range, AutogradError for parameters that are no leaves.
class Lbfgs {
 public:
  Lbfgs(nn::NamedTensors parameters, LbfgsOptions options);

  // Forgets the gradients, computes the loss, calls backward and returns the loss.
  using Closure = std::function<Tensor()>;
  // Up to max_iter iterations; the loss of the first evaluation.
  double step(const Closure& closure);
  int64_t evaluations() const { return evaluations_; }
  int64_t iterations() const { return iterations_; }
  double lr() const { return options_.lr; }
  // Raises ValueError when negative or not finite.
  void set_lr(double lr);

  // "<parameter>.direction", ".gradient" and, with one row for each difference kept, ".points" and
  // ".gradients"; "progress" holds iterations, evaluations, step length, loss and the scale of the
  // first Hessian. All f64.
  nn::NamedTensors state_dict() const;
  // Loads what state_dict gave, after everything was checked; an unknown or missing name raises
  // ValueError, other sizes ShapeError.
  void load_state_dict(const nn::NamedTensors& state);

 private:
  using Vector = std::vector<double>;
  struct Pair {
    Vector s, y;  // differences of points and of gradients
    double rho;   // 1/(yᵀ s)
  };
  struct Point {
    double t = 0, f = 0, slope = 0;
    Vector g;
  };
  struct Bracket;

  double evaluate(const Closure& closure, Vector& gradient);
  Vector values() const;
  void move_to(const Vector& x, const Vector& d, double t);
  void learn(const Vector& gradient);
  void choose_direction(const Vector& gradient);
  Point search(const Closure& closure, const Vector& x, Point start, double t, int64_t& calls);
  bool narrow(Bracket& b, const Point& start, const std::function<Point(double)>& at,
              bool& stalled) const;

  nn::NamedTensors parameters_;
  LbfgsOptions options_;
  std::deque<Pair> history_;
  Vector direction_, last_gradient_;
  double t_ = 0, last_loss_ = 0, scale_ = 1;
  int64_t iterations_ = 0, evaluations_ = 0;
};

}  // namespace cutaway::optim
