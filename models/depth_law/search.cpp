#include <cutaway/models/depth_law/search.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/report/svg.h>

namespace cutaway::depth {
namespace {

constexpr int kBootstrap = 200;

// Index of the least mean, and the vertex of the parabola of log loss through it and its
// neighbours.
struct Vertex {
  size_t best;
  double rate;
};
Vertex least(const std::vector<double>& rates, const std::vector<double>& mean) {
  size_t k = 0;
  for (size_t i = 1; i < mean.size(); ++i) {
    if (mean[i] < mean[k]) k = i;
  }
  if (k == 0 || k + 1 == mean.size() || !std::isfinite(mean[k + 1]) ||
      !std::isfinite(mean[k - 1])) {
    return {k, rates[k]};
  }
  const double x0 = std::log(rates[k - 1]), x1 = std::log(rates[k]), x2 = std::log(rates[k + 1]);
  const double y0 = std::log(mean[k - 1]), y1 = std::log(mean[k]), y2 = std::log(mean[k + 1]);
  const double a = (x1 - x0) * (y1 - y2), b = (x1 - x2) * (y1 - y0);
  if (std::fabs(a - b) < 1e-14) return {k, rates[k]};
  const double x = x1 - 0.5 * ((x1 - x0) * a - (x1 - x2) * b) / (a - b);
  return {k, std::exp(std::clamp(x, x0, x2))};
}

std::vector<double> log_grid(double low, double high, int64_t n) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) {
    v.push_back(low * std::pow(high / low, n == 1 ? 0 : double(i) / double(n - 1)));
  }
  return v;
}

std::vector<double> means(const std::vector<std::vector<double>>& losses,
                          const std::vector<size_t>& trials) {
  std::vector<double> out;
  for (const auto& row : losses) {
    double total = 0;
    for (size_t t : trials) total += row[t] / double(trials.size());
    out.push_back(total);
  }
  return out;
}

void bootstrap(Optimum& o, const SearchOptions& options) {
  Generator g{.seed = options.seed, .stream = 40};
  const size_t trials = size_t(options.trials);
  const std::vector<double> picks =
      rand({kBootstrap * options.trials}, {.dtype = DType::f64}, &g).to_vector();
  std::vector<double> logs;
  for (size_t b = 0; b < kBootstrap; ++b) {
    std::vector<size_t> chosen;
    for (size_t t = 0; t < trials; ++t) {
      chosen.push_back(size_t(picks[b * trials + t] * double(trials)));
    }
    logs.push_back(std::log(least(o.rates, means(o.losses, chosen)).rate));
  }
  std::sort(logs.begin(), logs.end());
  o.low = std::exp(logs[kBootstrap / 20]);
  o.high = std::exp(logs[kBootstrap - 1 - kBootstrap / 20]);
  double mean = 0;
  for (double l : logs) mean += l / kBootstrap;
  for (double l : logs) o.log_variance += (l - mean) * (l - mean) / kBootstrap;
}

}  // namespace

namespace {

// Weights and their update rule.
class Stepper {
 public:
  Stepper(Tensors weights, Optimizer kind) : weights_(std::move(weights)), kind_(kind) {
    if (kind_ == Optimizer::sgd) return;
    for (const Tensor& w : weights_) {
      mean_.push_back(zeros_like(w.detach()));
      square_.push_back(zeros_like(w.detach()));
    }
  }
  const Tensors& weights() const { return weights_; }
  void step(const Tensors& g, double rate, const std::vector<double>& layer_rates) {
    NoGradGuard no_grad;
    ++steps_;
    for (size_t k = 0; k < weights_.size(); ++k) {
      const double own = rate * (k < layer_rates.size() ? layer_rates[k] : 1);
      if (kind_ == Optimizer::sgd) {
        weights_[k].add_(g[k], -own);
        continue;
      }
      mean_[k].mul_(kBeta1).add_(g[k], 1 - kBeta1);
      square_[k].mul_(kBeta2).add_(square(g[k]), 1 - kBeta2);
      const double c1 = 1 - std::pow(kBeta1, steps_), c2 = 1 - std::pow(kBeta2, steps_);
      weights_[k].add_(mean_[k] / (sqrt(square_[k] * (1 / c2)) + kEps), -own / c1);
    }
  }

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  Tensors weights_, mean_, square_;
  Optimizer kind_;
  int steps_ = 0;
};

}  // namespace

double training_loss(const Spec& spec, const TrainData& data, double rate, uint64_t trial,
                     const SearchOptions& o, const std::vector<double>& layer_rates) {
  const int64_t n = data.x.size(0);
  if (o.batch < 1 || o.batch > n) {
    throw ValueError(
        "depthlaw",
        fmt::format("--batch must be 1 to {}, the size of the data; got {}", n, o.batch));
  }
  Network net(spec, o.seed * 7919 + trial);
  Tensors weights = net.weights();
  weights.push_back(net.readout());
  Stepper stepper(weights, o.optimizer);
  Generator order{.seed = o.seed * 7919 + trial, .stream = 41};
  const std::vector<int64_t> rows = permutation(n, order);
  const int64_t batches = std::min(o.batches, n / o.batch);
  double total = 0, first = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const Tensor index = index_tensor({rows.data() + i * o.batch, size_t(o.batch)});
    const Tensor loss =
        cross_entropy(net.forward(index_select(data.x, 0, index)), index_select(data.y, 0, index));
    const double value = loss.item();
    if (i == 0) first = value;
    if (!std::isfinite(value) || value > 3 * first) return INFINITY;
    total += value / double(batches);
    stepper.step(grad(loss, stepper.weights()), rate, layer_rates);
  }
  return total;
}

Optimum find_optimum(const Spec& spec, const TrainData& data, const SearchOptions& o) {
  if (!(o.low > 0) || !(o.high > o.low) || o.points < 3) {
    throw ValueError("depthlaw", "--grid needs low:high:points with 0 < low < high and 3 points");
  }
  Optimum best;
  best.depth = spec.depth;
  const auto add = [&](double rate) {
    const auto at = std::lower_bound(best.rates.begin(), best.rates.end(), rate * (1 - 1e-9));
    const auto place = at - best.rates.begin();
    if (at != best.rates.end() && *at < rate * (1 + 1e-9)) return;
    std::vector<double> row;
    for (int64_t t = 0; t < o.trials; ++t) {
      row.push_back(training_loss(spec, data, rate, uint64_t(t), o));
    }
    best.rates.insert(best.rates.begin() + place, rate);
    best.losses.insert(best.losses.begin() + place, row);
  };
  std::vector<size_t> all;
  for (int64_t t = 0; t < o.trials; ++t) all.push_back(size_t(t));
  for (double rate : log_grid(o.low, o.high, o.points)) add(rate);
  best.mean = means(best.losses, all);
  const size_t k = least(best.rates, best.mean).best;
  if (!std::isfinite(best.mean[k])) {
    throw ValueError("depthlaw", fmt::format("every rate from {:g} to {:g} diverged at depth {}: "
                                             "start the grid lower, at {:g}",
                                             o.low, o.high, spec.depth, o.low / 100));
  }
  if (k == 0 || k + 1 == best.rates.size()) {
    throw ValueError(
        "depthlaw",
        fmt::format("the best rate at depth {} is at the edge of the grid, {:g}: extend "
                    "the grid to {:g}",
                    spec.depth, best.rates[k], k == 0 ? o.low / 10 : o.high * 10));
  }
  const double low = best.rates[k - 1], high = best.rates[k + 1];
  if (o.refine > 0) {
    for (double rate : log_grid(low, high, o.refine)) add(rate);
  }
  best.mean = means(best.losses, all);
  const Vertex v = least(best.rates, best.mean);
  best.rate = v.rate;
  best.loss = best.mean[v.best];
  bootstrap(best, o);
  return best;
}

std::vector<double> zero_shot_errors(const std::vector<Optimum>& optima) {
  std::vector<double> errors;
  if (optima.size() < 3) return errors;
  const auto constant = [](const Optimum& o) { return o.rate * std::pow(double(o.depth), 1.5); };
  const double k = (constant(optima[0]) + constant(optima[1])) / 2;
  for (size_t i = 2; i < optima.size(); ++i) {
    errors.push_back(k / constant(optima[i]) - 1);
  }
  return errors;
}

std::vector<Rule> transfer_rules(const Spec& from, int64_t to, double rate, double measured_slope,
                                 uint64_t seed) {
  const double ratio = double(to) / double(from.depth);
  std::vector<Rule> rules{{"none", rate, {}},
                          {"paper", rate * paper_factor(double(from.depth), double(to)), {}},
                          {"measured", rate * std::pow(ratio, measured_slope), {}},
                          {"exact", rate * exact_factor(from.depth, to), {}},
                          {"pathsum", rate * pathsum_factor(from.depth, to), {}},
                          {"inverse", rate / ratio, {}},
                          {"root", rate / std::sqrt(ratio), {}}};
  if (from.arch != Arch::mlp && from.arch != Arch::cnn) return rules;
  // Per-layer μP: every S_ℓ takes the budget that the shallow network had.
  Spec shallow = from, deep = from;
  deep.depth = to;
  shallow.outputs = deep.outputs = 1;
  const Budget a = measure_budget(shallow, {.draws = 20, .seed = seed}),
               b = measure_budget(deep, {.draws = 20, .seed = seed});
  Rule layerwise{"layerwise", rate, {}};
  for (double s : b.profile) layerwise.layer_rates.push_back(std::sqrt(a.a / s));
  rules.push_back(layerwise);
  return rules;
}

std::string loss_plot(const std::vector<Optimum>& optima, const std::string& title) {
  std::vector<report::Line> lines;
  double most = 0;
  for (const Optimum& o : optima) {
    for (double m : o.mean) {
      if (std::isfinite(m)) most = std::max(most, m);
    }
  }
  for (const Optimum& o : optima) {
    report::Line line{fmt::format("L = {}", o.depth)};
    line.dashed = lines.size() % 2;
    for (size_t i = 0; i < o.rates.size(); ++i) {
      if (!std::isfinite(o.mean[i])) continue;
      line.x.push_back(o.rates[i]);
      line.y.push_back(o.mean[i]);
    }
    lines.push_back(line);
  }
  report::Line best;
  best.points = true;
  for (const Optimum& o : optima) {
    best.x.push_back(o.rate);
    best.y.push_back(o.loss);
  }
  lines.push_back(best);
  return report::line_plot(lines, {.title = title,
                                   .x_label = "learning rate η",
                                   .y_label = "mean training loss, nats",
                                   .log_x = true});
}

std::string slope_plot(const std::vector<RatePoint>& points, const SlopeFit& fit, bool exact,
                       const std::string& title) {
  report::Line measured{""}, fitted{fmt::format("fit {:.2f}", fit.slope)}, law{"−3/2"},
      finite{"exact"};
  measured.points = true;
  fitted.shade = law.shade = finite.shade = 0;
  law.dashed = true;
  finite.shade = 3;
  const double first = points.front().depth, start = fit.at(first);
  for (const RatePoint& p : points) {
    measured.x.push_back(p.depth);
    measured.y.push_back(p.rate);
    measured.low.push_back(p.low);
    measured.high.push_back(p.high);
    fitted.x.push_back(p.depth);
    fitted.y.push_back(fit.at(p.depth));
    law.x.push_back(p.depth);
    law.y.push_back(start * paper_factor(first, p.depth));
    finite.x.push_back(p.depth);
    finite.y.push_back(1 / std::sqrt(exact_budget(int64_t(p.depth), true)));
  }
  std::vector<report::Line> lines{measured};
  if (exact) lines.push_back(finite);  // from the highest to the lowest end, as labels are placed
  lines.push_back(fitted);
  lines.push_back(law);
  return report::line_plot(lines, {.title = title,
                                   .x_label = "effective depth L",
                                   .y_label = "learning rate η*",
                                   .log_x = true,
                                   .log_y = true});
}

std::string csv_of(const std::vector<Optimum>& optima) {
  std::string csv = "depth,rate,trial,loss\n";
  for (const Optimum& o : optima) {
    for (size_t i = 0; i < o.rates.size(); ++i) {
      for (size_t t = 0; t < o.losses[i].size(); ++t) {
        csv += fmt::format("{},{:.9g},{},{:.9g}\n", o.depth, o.rates[i], t, o.losses[i][t]);
      }
    }
  }
  return csv;
}

}  // namespace cutaway::depth
