#include <cutaway/models/bayes_attention/converse.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <memory>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/bayes_attention/atlas.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};

// Statistics T ~ N(0, I) and a true head whose keys span `rank` dimensions.
struct Truth {
  Tensor t, keys, bias, p;  // [N,d], [K,d], [K], [N,K]
  Tensor basis;             // orthonormal rows of the span of key differences [rank,d]
  double smallest;          // least nonzero singular value of the centred keys
  double sigma2;            // least eigenvalue of Cov(T)
};

Tensor centred(const Tensor& keys) { return keys - mean(keys, 0, {.keepdim = true}); }

Truth make_truth(const ConverseOptions& o) {
  if (o.rank < 1 || o.rank >= o.dim || o.rank >= o.keys || o.keys < 2) {
    throw ValueError("converse",
                     fmt::format("needs 1 ≤ rank < d, rank < K; got rank {}, d {}, K {}", o.rank,
                                 o.dim, o.keys));
  }
  Generator g{.seed = o.seed, .stream = 5};
  Truth truth;
  truth.t = randn({o.statistics, o.dim}, kF64, &g);
  const Tensor span = linalg::qr(randn({o.dim, o.rank}, kF64, &g)).q;
  truth.keys = matmul(randn({o.keys, o.rank}, kF64, &g), span.t()) * 0.7;
  truth.bias = randn({o.keys}, kF64, &g) * 0.3;
  truth.p = softmax(matmul(truth.t, truth.keys.t()) + truth.bias, 1);
  const linalg::Svd svd = linalg::svd(centred(truth.keys));
  truth.basis = svd.vh.slice(0, 0, o.rank);
  truth.smallest = svd.s.select(0, o.rank - 1).item();
  const Tensor c = centred(truth.t);
  truth.sigma2 =
      min(linalg::eigvalsh(matmul(c, c, {.transpose_a = true}) / double(o.statistics))).item();
  return truth;
}

// Note: the constant of T8. With logits a, b of p, q and δ = a − b, KL(p||q) is the Bregman
// divergence of log-sum-exp, so KL ≥ ½ p_min |δ − δ̄|², p_min a lower bound of both posteriors (and
// of those between them). Its mean over T is at least ½ p_min σ² |D̂ − D|²_F for centred keys D.
// And sinΘ ≤ |D V̂⊥| / s_r ≤ (|E| + s_{r+1}(D̂)) / s_r ≤ 2 |E| / s_r for E = D̂ − D. Together
// sinΘ ≤ √(8 ε / (p_min σ²)) / s_r, which is below a bound of the form √(C ε) / (p_min σ s_r) with
// C = 8.
ConversePoint measure(const Truth& truth, const Tensor& keys, const Tensor& bias) {
  const Tensor log_q = log_softmax(matmul(truth.t, keys.t()) + bias, 1);
  ConversePoint point;
  point.excess = mean_kl(truth.p, log_q);
  const int64_t rank = truth.basis.size(0);
  const Tensor v = linalg::svd(centred(keys)).vh.slice(0, 0, rank);
  // Sines of the principal angles are the singular values of what the true subspace leaves of V̂.
  const Tensor rest = v - matmul(matmul(v, truth.basis.t()), truth.basis);
  point.sin_theta = max(linalg::svdvals(rest)).item();
  const double p_min = std::min(min(truth.p).item(), std::exp(min(log_q).item()));
  const double bound =
      std::sqrt(8 * std::max(point.excess, 0.0) / (p_min * truth.sigma2)) / truth.smallest;
  point.ratio = point.sin_theta / bound;
  return point;
}

std::vector<ConversePoint> perturbed(const Truth& truth, const ConverseOptions& o) {
  Generator g{.seed = o.seed, .stream = 6};
  std::vector<ConversePoint> points;
  for (int i = 0; i < 60; ++i) {
    const double size = std::pow(10, -3 + 2.7 * i / 59);
    points.push_back(measure(truth, truth.keys + randn(truth.keys.sizes(), kF64, &g) * size,
                             truth.bias + randn(truth.bias.sizes(), kF64, &g) * size));
  }
  return points;
}

// Trained as heads are: at fresh statistics on symbols drawn from the true posterior – on p plus
// the noise that the mean of 16 symbols has, which reaches small ε sooner – with a rate that falls
// as 1/t. Full-batch descent on the exact loss would leave each direction at its own speed, and
// sinΘ would say which directions are slow, not how large the error is.
std::vector<ConversePoint> trained(const Truth& truth, const ConverseOptions& o, bool adam) {
  Generator g{.seed = o.seed, .stream = 7};
  const Tensor keys = (randn(truth.keys.sizes(), kF64, &g) * 0.5).detach().set_requires_grad();
  const Tensor bias = zeros({o.keys}, kF64).set_requires_grad();
  const nn::NamedTensors parameters{{"keys", keys}, {"bias", bias}};
  std::unique_ptr<optim::Optimizer> optimizer;
  const double lr = adam ? 0.05 : 4;
  if (adam) {
    optimizer = std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = lr});
  } else {
    optimizer = std::make_unique<optim::Sgd>(parameters, optim::SgdOptions{.lr = lr});
  }
  std::vector<ConversePoint> points;
  double next = 1;
  for (int64_t step = 1; step <= o.steps; ++step) {
    const Tensor t = randn({o.statistics, o.dim}, kF64, &g);
    const Tensor p = softmax(matmul(t, truth.keys.t()) + truth.bias, 1);
    const Tensor symbols = one_hot(multinomial(p, 1, {}, &g).squeeze(1), o.keys, DType::f64);
    cross_entropy(matmul(t, keys.t()) + bias, p + (symbols - p) * 0.25).backward();
    optimizer->set_lr(lr / (1 + double(step) / 40));
    optimizer->step_and_zero();
    if (double(step) < next) continue;
    next *= 1.12;
    NoGradGuard no_grad;
    points.push_back(measure(truth, keys.detach(), bias.detach()));
  }
  return points;
}

}  // namespace

std::vector<ConversePoint> converse(const std::string& way, const ConverseOptions& o) {
  const Truth truth = make_truth(o);
  if (way == "perturb") return perturbed(truth, o);
  if (way == "adam") return trained(truth, o, true);
  if (way == "sgd") return trained(truth, o, false);
  throw ValueError("converse", "ways are perturb, adam and sgd; got " + way);
}

Converse summarise(const std::vector<ConversePoint>& points, double from, double to) {
  Converse c;
  std::vector<double> x, y;
  for (const ConversePoint& p : points) {
    // Below 1e-13 the divergence is rounding; above the window sinΘ saturates at 1.
    if (p.excess > 1e-13) c.max_ratio = std::max(c.max_ratio, p.ratio);
    if (p.excess < from || p.excess > to || !(p.sin_theta > 0)) continue;
    x.push_back(p.excess);
    y.push_back(p.sin_theta);
    c.constant = std::max(c.constant, p.sin_theta / std::sqrt(p.excess));
  }
  if (x.size() < 3) return c;
  c.slope = log_slope(x, y);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  c.decades = std::log10(*high / *low);
  return c;
}

}  // namespace cutaway::bayes
