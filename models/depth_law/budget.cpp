#include <cutaway/models/depth_law/budget.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::depth {
namespace {

// A network at its start with one batch: gradient of the loss, and units.
struct Start {
  Network net;
  Tensor x, residual;  // f − y
  Tensors gradient, units;

  Start(const Spec& spec, uint64_t seed, int64_t batch, DType dtype) : net(spec, seed, dtype) {
    Generator g{.seed = seed, .stream = 21};
    x = net.random_input(batch, g);
    const Tensor y =
        where(rand({batch, 1}, {.dtype = dtype}, &g) < 0.5, ones({batch, 1}, {.dtype = dtype}), -1);
    const Tensor f = net.forward(x, &units);
    residual = (f - y).detach();
    gradient = grad(mean(square(f - y)) * 0.5, net.weights(), {.retain_graph = true});
  }
};

// J_ℓ v of all units at once. For z_ℓ(θ) and free u_ℓ, w(u) = Σ_ℓ J_ℓᵀ u_ℓ is one backward pass,
// and the gradient of ⟨w(u), v⟩ with respect to u_ℓ is J_ℓ v.
Tensors unit_jvp(const Start& start, Network& net, const Tensors& v) {
  Tensors u;
  for (const Tensor& z : start.units) u.push_back(zeros_like(z.detach()).set_requires_grad());
  const Tensors w =
      grad(start.units, net.weights(), {.create_graph = true, .allow_unused = true}, u);
  Tensor product;
  for (size_t i = 0; i < w.size(); ++i) {
    if (!w[i].defined()) continue;
    const Tensor term = sum(w[i] * v[i]);
    product = product.defined() ? product + term : term;
  }
  return grad(Tensors{product}, u, {.allow_unused = true});
}

double mean_square(const Tensor& x) { return mean(square(x.to(DType::f64))).item(); }

}  // namespace

Step first_order_step(const Spec& spec, uint64_t seed, int64_t batch) {
  Start start(spec, seed, batch, DType::f32);
  const double scale = batch == 1 ? std::pow(start.residual.item(), 2) : 1;
  Step step;
  for (const Tensor& change : unit_jvp(start, start.net, start.gradient)) {
    step.s.push_back(change.defined() ? mean_square(change) / scale : 0);
    step.a += step.s.back() / double(spec.depth);
  }
  return step;
}

JvpCheck check_jvp(const Spec& spec, uint64_t seed) {
  Start start(spec, seed, 1, DType::f64);
  Tensors before;
  for (const Tensor& z : start.units) before.push_back(z.detach());
  const Tensors product = unit_jvp(start, start.net, start.gradient);
  double a = 0;
  for (const Tensor& p : product) a += mean_square(p) / double(product.size());
  const Tensors weights = [&] {
    Tensors list;
    for (const Tensor& w : start.net.weights()) list.push_back(w.detach().clone());
    return list;
  }();
  JvpCheck check;
  NoGradGuard no_grad;
  for (double factor : {1e-6, 1e-5, 1e-4, 1e-3}) {
    const double rate = factor / std::sqrt(a);
    for (size_t i = 0; i < weights.size(); ++i) {
      start.net.weights()[i].copy_(weights[i] - start.gradient[i] * rate);
    }
    Tensors after;
    start.net.forward(start.x, &after);
    double off = 0, size = 0, moved = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      const Tensor change = (before[i] - after[i]) / rate;  // along +g, as the product
      off += sum(square(change - product[i])).item();
      size += sum(square(product[i])).item();
      moved += mean_square(change) / double(after.size());
    }
    if (factor == 1e-4) check.difference = std::sqrt(off / size);
    check.quadratic.push_back(moved / a);
  }
  return check;
}

double Budget::rate() const { return 1 / std::sqrt(a); }

Budget measure_budget(const Spec& spec, const BudgetOptions& o) {
  Budget b;
  b.depth = spec.depth;
  b.profile.assign(size_t(spec.depth), 0);
  std::vector<double> all;
  for (int64_t i = 0; i < o.draws; ++i) {
    const Step step = first_order_step(spec, o.seed * 100003 + uint64_t(i), o.batch);
    for (size_t l = 0; l < step.s.size(); ++l) b.profile[l] += step.s[l] / double(o.draws);
    all.push_back(step.a);
    b.a += step.a / double(o.draws);
  }
  for (double a : all) b.error += (a - b.a) * (a - b.a);
  b.error = std::sqrt(b.error / std::max<double>(double(o.draws - 1), 1) / double(o.draws));
  std::sort(all.begin(), all.end());
  b.median = (all[all.size() / 2] + all[(all.size() - 1) / 2]) / 2;
  return b;
}

double exact_unit(int64_t unit, bool relu) {
  const double l = double(unit), pairs = (l - 1) * l * (2 * l - 1);
  // Σ_{k,k'} 1 + c·min(m, m') with c = 2 for ReLU, 1 for linear products of m layers, and the mean
  // square of a ReLU's derivative ½ in front.
  return relu ? 0.5 * (l * l + pairs / 3) : l * l + pairs / 6;
}

double exact_budget(int64_t depth, bool relu) {
  double total = 0;
  for (int64_t l = 1; l <= depth; ++l) total += exact_unit(l, relu);
  return total / double(depth);
}

double SlopeFit::at(double depth) const { return std::exp(intercept + slope * std::log(depth)); }

SlopeFit fit_slope(const std::vector<double>& depths, const std::vector<double>& rates,
                   const std::vector<double>& variances) {
  if (std::set<double>(depths.begin(), depths.end()).size() < 3) {
    throw ValueError("depthlaw", "a slope needs three different depths at least");
  }
  double w_sum = 0, mx = 0, my = 0, xx = 0, xy = 0;
  const size_t n = depths.size();
  const auto weight = [&](size_t i) {
    return i < variances.size() ? 1 / std::max(variances[i], 1e-6) : 1;
  };
  for (size_t i = 0; i < n; ++i) {
    w_sum += weight(i);
    mx += weight(i) * std::log(depths[i]);
    my += weight(i) * std::log(rates[i]);
  }
  mx /= w_sum;
  my /= w_sum;
  for (size_t i = 0; i < n; ++i) {
    const double u = std::log(depths[i]) - mx;
    xx += weight(i) * u * u;
    xy += weight(i) * u * (std::log(rates[i]) - my);
  }
  SlopeFit fit{xy / xx, my - xy / xx * mx, 0};
  double residual = 0;
  for (size_t i = 0; i < n; ++i) {
    const double r = std::log(rates[i]) - fit.intercept - fit.slope * std::log(depths[i]);
    residual += weight(i) * r * r;
  }
  fit.error = std::sqrt(residual / double(n - 2) / xx);
  return fit;
}

double paper_factor(double from, double to) { return std::pow(to / from, -1.5); }

double exact_factor(int64_t from, int64_t to) {
  return std::sqrt(exact_budget(from, true) / exact_budget(to, true));
}

double pathsum_factor(int64_t from, int64_t to) {
  const auto paths = [](double k) { return k * k * (k + 3) * std::exp2(k - 3); };
  return std::sqrt(paths(double(from)) / paths(double(to)));
}

}  // namespace cutaway::depth
