#include <cutaway/models/bayes_attention/draws.h>

#include <cmath>

#include <cutaway/autograd/ops/random.h>

namespace cutaway::bayes {
namespace {

constexpr int64_t kBlock = 4096;

}  // namespace

double Draws::uniform() {
  if (next_uniform_ == uniforms_.size()) {
    uniforms_ = rand({kBlock}, {.dtype = DType::f64}, &generator_).to_vector();
    next_uniform_ = 0;
  }
  return uniforms_[next_uniform_++];
}

double Draws::normal() {
  if (next_normal_ == normals_.size()) {
    normals_ = randn({kBlock}, {.dtype = DType::f64}, &generator_).to_vector();
    next_normal_ = 0;
  }
  return normals_[next_normal_++];
}

double Draws::gamma(double a) {
  if (a < 1) return gamma(a + 1) * std::pow(1 - uniform(), 1 / a);
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

int64_t Draws::poisson(double lambda) {
  if (lambda >= 10) return transformed_rejection(lambda);
  double p = std::exp(-lambda), u = uniform();
  int64_t k = 0;
  while (u > p && k < 1000) {
    u -= p;
    p *= lambda / static_cast<double>(++k);
  }
  return k;
}

int64_t Draws::transformed_rejection(double lambda) {
  const double b = 0.931 + 2.53 * std::sqrt(lambda), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform() - 0.5, v = 1 - uniform(), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + lambda + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<int64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double accept = std::log(v * inverse_alpha / (a / (us * us) + b));
    if (accept <= k * std::log(lambda) - lambda - std::lgamma(k + 1))
      return static_cast<int64_t>(k);
  }
}

std::vector<double> Draws::dirichlet(int64_t k, double concentration) {
  std::vector<double> p(static_cast<size_t>(k));
  double total = 0;
  for (double& x : p) total += x = gamma(concentration);
  for (double& x : p) x /= total;
  return p;
}

int64_t Draws::category(const double* p, int64_t k) {
  double u = uniform();
  for (int64_t i = 0; i + 1 < k; ++i) {
    if (u < p[i]) return i;
    u -= p[i];
  }
  return k - 1;
}

}  // namespace cutaway::bayes
