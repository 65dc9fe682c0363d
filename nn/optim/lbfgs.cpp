#include <cutaway/nn/optim/lbfgs.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::optim {
namespace {

using Vector = std::vector<double>;
constexpr double kDecrease = 1e-4, kCurvature = 0.9;  // of the Wolfe conditions
constexpr int kSearchSteps = 25;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
double largest(const Vector& a) {
  double most = 0;
  for (const double v : a) most = std::abs(v) > most || std::isnan(v) ? std::abs(v) : most;
  return most;
}
void add(Vector& a, double factor, const Vector& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}
Vector scaled(const Vector& a, double factor) {
  Vector out = a;
  for (double& v : out) v *= factor;
  return out;
}

// A point of the line and what was found there.
struct Sample {
  double t, f, slope;
};
// Minimum of the cubic through both samples, kept inside [low, high]; the middle when there is
// none.
double cubic_minimum(Sample a, Sample b, double low, double high) {
  if (a.t > b.t) std::swap(a, b);
  const double d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double at = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

void require(bool good, const char* what, double got, const char* need) {
  if (!good)
    throw ValueError("LBFGS", fmt::format("{} is out of range; got {}, need {}", what, got, need));
}

}  // namespace

// Ends of an interval that holds a good step; `low` is the end with the smaller loss.
struct Lbfgs::Bracket {
  Point end[2];
  int low = 0;
  void order() { low = end[0].f <= end[1].f ? 0 : 1; }
};

Lbfgs::Lbfgs(nn::NamedTensors parameters, LbfgsOptions o)
    : parameters_(std::move(parameters)), options_(o) {
  set_lr(o.lr);
  require(o.max_iter >= 1, "max_iter", double(o.max_iter), "≥ 1");
  require(o.max_eval >= 0, "max_eval", double(o.max_eval), "≥ 0");
  require(o.tolerance_grad >= 0, "tolerance_grad", o.tolerance_grad, "≥ 0");
  require(o.tolerance_change >= 0, "tolerance_change", o.tolerance_change, "≥ 0");
  require(o.history_size >= 1, "history_size", double(o.history_size), "≥ 1");
  if (o.max_eval == 0) options_.max_eval = o.max_iter * 5 / 4;
  std::set<std::string> names;
  for (const nn::Named& p : parameters_) {
    if (!names.insert(p.name).second) {
      throw ValueError("LBFGS", fmt::format("the parameter name \"{}\" occurs twice", p.name));
    }
    if (!p.value.is_leaf()) {
      throw AutogradError("LBFGS", fmt::format("\"{}\" is the result of an op", p.name));
    }
  }
}

void Lbfgs::set_lr(double lr) {
  require(lr >= 0 && std::isfinite(lr), "lr", lr, "a finite number ≥ 0");
  options_.lr = lr;
}

double Lbfgs::evaluate(const Closure& closure, Vector& gradient) {
  const double loss = closure().item();
  ++evaluations_;
  gradient.clear();
  for (const nn::Named& p : parameters_) {
    const Tensor g = p.value.grad();
    const Vector values = g.defined() ? g.to_vector() : Vector(size_t(p.value.numel()), 0.0);
    gradient.insert(gradient.end(), values.begin(), values.end());
  }
  return loss;
}

Vector Lbfgs::values() const {
  Vector out;
  for (const nn::Named& p : parameters_) {
    const Vector v = p.value.to_vector();
    out.insert(out.end(), v.begin(), v.end());
  }
  return out;
}

void Lbfgs::move_to(const Vector& x, const Vector& d, double t) {
  NoGradGuard no_grad;
  size_t at = 0;
  for (nn::Named& p : parameters_) {
    Vector v(size_t(p.value.numel()));
    for (double& e : v) {
      e = x[at] + t * d[at];
      ++at;
    }
    const Tensor moved = tensor(std::span<const double>(v), {.dtype = DType::f64});
    p.value.copy_(moved.reshape(p.value.sizes()).to(p.value.dtype()).to(p.value.device()));
  }
}

// Keeps what the last step says of the Hessian, where it curves upwards.
void Lbfgs::learn(const Vector& gradient) {
  Vector y = gradient;
  add(y, -1, last_gradient_);
  Vector s = scaled(direction_, t_);
  const double ys = dot(y, s);
  if (!(ys > 1e-10)) return;
  if (int64_t(history_.size()) == options_.history_size) history_.pop_front();
  scale_ = ys / dot(y, y);
  history_.push_back({std::move(s), std::move(y), 1 / ys});
}

// −H g by the two loops over the history.
void Lbfgs::choose_direction(const Vector& gradient) {
  direction_ = scaled(gradient, -1);
  std::vector<double> alpha(history_.size());
  for (size_t i = history_.size(); i-- > 0;) {
    alpha[i] = dot(history_[i].s, direction_) * history_[i].rho;
    add(direction_, -alpha[i], history_[i].y);
  }
  for (double& v : direction_) v *= scale_;
  for (size_t i = 0; i < history_.size(); ++i) {
    const double beta = dot(history_[i].y, direction_) * history_[i].rho;
    add(direction_, alpha[i] - beta, history_[i].s);
  }
}

// One step of making the bracket smaller; true when the step is found or no progress is possible.
bool Lbfgs::narrow(Bracket& b, const Point& start, const std::function<Point(double)>& at,
                   bool& stalled) const {
  const double low = std::min(b.end[0].t, b.end[1].t), high = std::max(b.end[0].t, b.end[1].t);
  if ((high - low) * largest(direction_) < options_.tolerance_change) return true;
  const auto sample = [](const Point& p) { return Sample{p.t, p.f, p.slope}; };
  double t = cubic_minimum(sample(b.end[0]), sample(b.end[1]), low, high);
  // Twice close to an end: go inside by a tenth.
  const double margin = 0.1 * (high - low);
  if (std::min(high - t, t - low) < margin) {
    if (stalled || t >= high || t <= low) {
      t = std::abs(t - high) < std::abs(t - low) ? high - margin : low + margin;
      stalled = false;
    } else {
      stalled = true;
    }
  } else {
    stalled = false;
  }
  Point p = at(t);
  Point &best = b.end[b.low], &other = b.end[1 - b.low];
  if (p.f > start.f + kDecrease * t * start.slope || p.f >= best.f) {
    other = std::move(p);
    b.order();
    return false;
  }
  const bool found = std::abs(p.slope) <= -kCurvature * start.slope;
  if (!found && p.slope * (other.t - best.t) >= 0) other = best;
  best = std::move(p);
  return found;
}

// A step along the direction that meets the strong Wolfe conditions, or the best one seen.
Lbfgs::Point Lbfgs::search(const Closure& closure, const Vector& x, Point start, double t,
                           int64_t& calls) {
  const std::function<Point(double)> at = [&](double where) {
    Point p{.t = where};
    move_to(x, direction_, where);
    p.f = evaluate(closure, p.g);
    p.slope = dot(p.g, direction_);
    ++calls;
    return p;
  };
  Point before = start, now = at(t);
  int steps = 0;
  for (; steps < kSearchSteps; ++steps) {
    const bool too_far =
        now.f > start.f + kDecrease * now.t * start.slope || (steps > 1 && now.f >= before.f);
    if (!too_far && std::abs(now.slope) <= -kCurvature * start.slope) return now;
    if (too_far || now.slope >= 0) break;
    const double next = cubic_minimum({before.t, before.f, before.slope}, {now.t, now.f, now.slope},
                                      now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = std::move(now);
    now = at(next);
  }
  Bracket b{{std::move(before), std::move(now)}};
  if (steps == kSearchSteps) b.end[0] = std::move(start);
  b.order();
  bool stalled = false;
  for (; steps < kSearchSteps; ++steps) {
    if (narrow(b, start, at, stalled)) break;
  }
  return b.end[b.low];
}

double Lbfgs::step(const Closure& closure) {
  const GradModeGuard with_gradients(true);
  Vector gradient;
  const double first_loss = evaluate(closure, gradient);
  double loss = first_loss;
  int64_t calls = 1;
  bool done = largest(gradient) <= options_.tolerance_grad;
  for (int64_t i = 1; i <= options_.max_iter && !done; ++i) {
    const bool first = ++iterations_ == 1;
    if (!first) learn(gradient);
    choose_direction(gradient);
    last_gradient_ = gradient;
    last_loss_ = loss;
    t_ = options_.lr;
    if (first) {
      double sum = 0;
      for (const double g : gradient) sum += std::abs(g);
      t_ *= std::min(1.0, 1 / sum);
    }
    const double slope = dot(gradient, direction_);
    if (!(slope <= -options_.tolerance_change)) break;
    const Vector x = values();
    if (options_.strong_wolfe) {
      Point found = search(closure, x, {0, loss, slope, gradient}, t_, calls);
      t_ = found.t;
      loss = found.f;
      gradient = std::move(found.g);
      move_to(x, direction_, t_);
    } else {
      move_to(x, direction_, t_);
      if (i == options_.max_iter) break;
      loss = evaluate(closure, gradient);
      ++calls;
    }
    done = calls >= options_.max_eval || largest(gradient) <= options_.tolerance_grad ||
           largest(direction_) * t_ <= options_.tolerance_change ||
           std::abs(loss - last_loss_) < options_.tolerance_change;
  }
  return first_loss;
}

nn::NamedTensors Lbfgs::state_dict() const {
  if (iterations_ == 0) return {};
  nn::NamedTensors out;
  const Opts f64{.dtype = DType::f64};
  const Vector progress{double(iterations_), double(evaluations_), t_, last_loss_, scale_};
  out.push_back({"progress", tensor(std::span<const double>(progress), f64)});
  size_t begin = 0;
  for (const nn::Named& p : parameters_) {
    const size_t n = size_t(p.value.numel());
    const auto part = [&](const Vector& v) { return std::span(v).subspan(begin, n); };
    out.push_back({p.name + ".direction", tensor(part(direction_), f64)});
    out.push_back({p.name + ".gradient", tensor(part(last_gradient_), f64)});
    Vector s, y;
    for (const Pair& pair : history_) {
      s.insert(s.end(), part(pair.s).begin(), part(pair.s).end());
      y.insert(y.end(), part(pair.y).begin(), part(pair.y).end());
    }
    const Shape rows{int64_t(history_.size()), int64_t(n)};
    out.push_back({p.name + ".points", tensor(std::span<const double>(s), f64).reshape(rows)});
    out.push_back({p.name + ".gradients", tensor(std::span<const double>(y), f64).reshape(rows)});
    begin += n;
  }
  return out;
}

void Lbfgs::load_state_dict(const nn::NamedTensors& state) {
  Lbfgs loaded(parameters_, options_);
  std::map<std::string, Tensor> given;
  for (const nn::Named& s : state) given[s.name] = s.value;
  const auto take = [&](const std::string& name, const Shape& sizes) {
    const auto found = given.find(name);
    if (found == given.end()) throw ValueError("LBFGS", fmt::format("the state lacks {}", name));
    if (found->second.sizes() != sizes) {
      throw ShapeError("LBFGS", fmt::format("{} has other sizes; got {}, need {}", name,
                                            to_string(found->second.sizes()), to_string(sizes)));
    }
    Vector values = found->second.to_vector();
    given.erase(found);
    return values;
  };
  if (!given.empty() && !parameters_.empty()) {
    const Vector progress = take("progress", {5});
    const auto points = given.find(parameters_.front().name + ".points");
    const int64_t rows =
        points != given.end() && points->second.dim() == 2 ? points->second.size(0) : 0;
    loaded.iterations_ = int64_t(progress[0]);
    loaded.evaluations_ = int64_t(progress[1]);
    loaded.t_ = progress[2];
    loaded.last_loss_ = progress[3];
    loaded.scale_ = progress[4];
    loaded.history_.resize(size_t(rows));
    for (const nn::Named& p : parameters_) {
      const int64_t n = p.value.numel();
      const auto append = [](Vector& to, const Vector& from, int64_t row, int64_t width) {
        to.insert(to.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
      };
      append(loaded.direction_, take(p.name + ".direction", {n}), 0, n);
      append(loaded.last_gradient_, take(p.name + ".gradient", {n}), 0, n);
      const Vector s = take(p.name + ".points", {rows, n});
      const Vector y = take(p.name + ".gradients", {rows, n});
      for (int64_t r = 0; r < rows; ++r) {
        append(loaded.history_[size_t(r)].s, s, r, n);
        append(loaded.history_[size_t(r)].y, y, r, n);
      }
    }
    for (Pair& pair : loaded.history_) pair.rho = 1 / dot(pair.y, pair.s);
  }
  if (!given.empty()) {
    throw ValueError("LBFGS", fmt::format("\"{}\" is unknown", given.begin()->first));
  }
  *this = std::move(loaded);
}

}  // namespace cutaway::optim
