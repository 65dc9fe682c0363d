#include <cutaway/models/bayes_attention/family.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};

Tensor last_sum(const Tensor& x) { return sum(x, -1); }

// xᵀ M x over the last dimension.
Tensor quadratic(const Tensor& x, const Tensor& m) { return last_sum(matmul(x, m) * x); }

}  // namespace

Family Family::gaussian(const Tensor& sigma) {
  if (sigma.dim() != 2 || sigma.size(0) != sigma.size(1)) {
    throw ValueError("family", "Σ must be a square matrix; got " + to_string(sigma.sizes()));
  }
  Family f;
  f.kind = Kind::gaussian;
  f.sigma = sigma.to(DType::f64);
  const double skew = max(abs(f.sigma - f.sigma.t())).item();
  if (!(skew <= 1e-12 * max(abs(f.sigma)).item())) {
    throw ValueError("family", fmt::format("Σ must be symmetric; Σ − Σᵀ reaches {:g}", skew));
  }
  const double least = min(linalg::eigvalsh(f.sigma)).item();
  if (!(least > 0)) {
    throw ValueError("family",
                     fmt::format("Σ must be positive definite; least eigenvalue {:g}", least));
  }
  f.precision_ = linalg::inverse(f.sigma);
  f.factor_ = linalg::cholesky(f.sigma);
  return f;
}

Family Family::named(const std::string& name, int64_t d) {
  if (name == "gauss") return gaussian(eye(d, kF64));
  Family f;
  if (name == "bern") {
    f.kind = Kind::bernoulli;
  } else if (name == "pois") {
    f.kind = Kind::poisson;
  } else if (name == "cat") {
    f.kind = Kind::categorical;
  } else {
    throw ValueError("family", "there is no \"" + name + "\"; known are gauss, bern, pois, cat");
  }
  return f;
}

std::string Family::name() const {
  switch (kind) {
    case Kind::gaussian:
      return "gauss";
    case Kind::bernoulli:
      return "bern";
    case Kind::poisson:
      return "pois";
    default:
      return "cat";
  }
}

Tensor Family::link(const Tensor& mu) const {
  if (kind == Kind::gaussian) return matmul(mu, precision_);
  if (kind == Kind::bernoulli) return log(mu) - log1p(-mu);
  return log(mu);
}

Tensor Family::log_partition(const Tensor& mu) const {
  switch (kind) {
    case Kind::gaussian:
      return quadratic(mu, precision_) * 0.5;
    case Kind::bernoulli:
      return last_sum(-log1p(-mu));
    case Kind::poisson:
      return last_sum(mu);
    default:
      return log(last_sum(mu));
  }
}

Tensor Family::potential(const Tensor& mu) const {
  switch (kind) {
    case Kind::gaussian:
      return quadratic(mu, precision_) * 0.5;
    case Kind::bernoulli:
      return last_sum(xlogy(mu, mu) + xlogy(1 - mu, 1 - mu));
    case Kind::poisson:
      return last_sum(xlogy(mu, mu) - mu);
    default:
      return last_sum(xlogy(mu, mu));
  }
}

Tensor Family::divergence(const Tensor& t, const Tensor& mu) const {
  switch (kind) {
    case Kind::gaussian:
      return quadratic(t - mu, precision_) * 0.5;
    case Kind::bernoulli:
      return last_sum(xlogy(t, t / mu) + xlogy(1 - t, (1 - t) / (1 - mu)));
    case Kind::poisson:
      return last_sum(xlogy(t, t / mu) - t + mu);
    default:
      return last_sum(xlogy(t, t / mu));
  }
}

Tensor Family::hessian(const Tensor& mu) const {
  switch (kind) {
    case Kind::gaussian: {
      Shape sizes = mu.sizes();
      sizes.push_back(mu.size(-1));
      return precision_.expand(sizes);
    }
    case Kind::bernoulli:
      return diag_embed(1 / (mu * (1 - mu)));
    default:
      return diag_embed(1 / mu);
  }
}

double Family::third_derivative(double low, double high) const {
  if (kind == Kind::gaussian) return 0;
  if (kind != Kind::bernoulli) return 1 / (low * low);  // φ'' = 1/μ
  // φ'' = 1/μ + 1/(1 − μ): |φ'''| grows towards both ends.
  const auto third = [](double x) { return std::fabs(1 / ((1 - x) * (1 - x)) - 1 / (x * x)); };
  return std::max(third(low), third(high));
}

double Family::arc(double mu) const {
  if (kind == Kind::gaussian) return mu;
  return kind == Kind::bernoulli ? std::asin(std::sqrt(mu)) : std::sqrt(mu);
}
double Family::from_arc(double s) const {
  if (kind == Kind::gaussian) return s;
  return kind == Kind::bernoulli ? std::sin(s) * std::sin(s) : s * s;
}

void Family::check_means(const Tensor& mu) const {
  const std::vector<double> v = mu.to_vector();
  const size_t d = size_t(mu.size(-1));
  for (size_t i = 0; i < v.size(); ++i) {
    const bool low = kind == Kind::gaussian || v[i] > 0;
    const bool high = kind != Kind::bernoulli || v[i] < 1;
    if (std::isfinite(v[i]) && low && high) continue;
    const char* need = kind == Kind::gaussian    ? "a finite number"
                       : kind == Kind::bernoulli ? "between 0 and 1, both left out"
                                                 : "above 0";
    throw ValueError("codebook", fmt::format("mean {} of key {} must be {}; got {:g}", i % d + 1,
                                             i / d + 1, need, v[i]));
  }
  if (kind != Kind::categorical) return;
  for (size_t k = 0; k < v.size() / d; ++k) {
    double total = 0;
    for (size_t i = 0; i < d; ++i) total += v[k * d + i];
    if (std::fabs(total - 1) > 1e-6) {
      throw ValueError("codebook", fmt::format("probabilities of key {} must sum to 1; got {:.9g}",
                                               k + 1, total));
    }
  }
}

Tensor Family::clip(const Tensor& mu) const {
  switch (kind) {
    case Kind::gaussian:
      return mu;
    case Kind::bernoulli:
      return clamp(mu, 0.02, 0.98);
    case Kind::poisson:
      return clamp(mu, 0.1, 20.0);
    default:
      return clamp_min(mu, 1e-3);
  }
}

void Family::observe(const double* mu, int64_t d, int64_t m, Draws& draws, double* t) const {
  std::fill(t, t + d, 0.0);
  const double* l = kind == Kind::gaussian ? factor_.data<double>() : nullptr;
  std::vector<double> z(static_cast<size_t>(d));
  for (int64_t i = 0; i < m; ++i) {
    if (kind == Kind::categorical) {
      t[draws.category(mu, d)] += 1;
      continue;
    }
    for (int64_t j = 0; j < d && l; ++j) z[size_t(j)] = draws.normal();
    for (int64_t j = 0; j < d; ++j) {
      if (kind == Kind::bernoulli) t[j] += draws.uniform() < mu[j] ? 1 : 0;
      if (kind == Kind::poisson) t[j] += double(draws.poisson(mu[j]));
      if (!l) continue;
      t[j] += mu[j];
      for (int64_t k = 0; k <= j; ++k) t[j] += l[j * d + k] * z[size_t(k)];
    }
  }
  for (int64_t j = 0; j < d; ++j) t[j] /= double(m);
}

}  // namespace cutaway::bayes
