#include <cutaway/models/bayes_attention/heads.h>

#include <fmt/format.h>
#include <Eigen/Dense>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/readers.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of(const Tensor& x) {
  const Tensor c = contiguous_raw(x.to(DType::f64));
  return Eigen::Map<const Matrix>(c.data<double>(), c.size(0), c.size(1));
}

Tensor tensor_of(const Matrix& x) {
  const std::span<const double> values(x.data(), size_t(x.size()));
  return tensor(values, kF64).reshape({x.rows(), x.cols()});
}

// Steps of the high parts of a split head: 12 bits each for |q| < 2¹⁰, |κ| < 2², products and their
// sums in 24.
constexpr double kQueryGrid = 0x1p-2, kKeyGrid = 0x1p-10;
Tensor on_grid(const Tensor& x, double step) { return round(x * (1 / step)) * step; }

long double logsumexp_of(const std::vector<long double>& s) {
  long double most = -INFINITY, total = 0;
  for (long double x : s) most = std::max(most, x);
  for (long double x : s) total += expl(x - most);
  return most + logl(total);
}

}  // namespace

Codebook make_codebook(const Family& family, const Tensor& mu, const Tensor& prior) {
  if (mu.dim() != 2 || prior.dim() != 1 || prior.size(0) != mu.size(0)) {
    throw ShapeError("codebook", "means [K,d] and prior [K] must fit; got " +
                                     to_string(mu.sizes()) + " and " + to_string(prior.sizes()));
  }
  if (mu.size(0) < 2) {
    throw ValueError("codebook", fmt::format("needs two keys at least; got {}", mu.size(0)));
  }
  family.check_means(mu);
  const std::vector<double> p = prior.to_vector();
  double total = 0;
  for (size_t k = 0; k < p.size(); ++k) {
    total += p[k];
    if (p[k] > 0 && std::isfinite(p[k])) continue;
    throw ValueError("codebook",
                     fmt::format("prior of key {} must be positive; got {:g}", k + 1, p[k]));
  }
  if (std::fabs(total - 1) > 1e-6) {
    throw ValueError("codebook", fmt::format("the prior must sum to 1; got {:.9g}", total));
  }
  return {family, mu.to(DType::f64), prior.to(DType::f64)};
}

Codebook draw_codebook(const Family& family, const CodebookOptions& o) {
  if (o.keys < 2) {
    throw ValueError("codebook", fmt::format("needs two keys at least; got {}", o.keys));
  }
  Draws draws(o.seed, 1);
  std::vector<double> mu;
  for (int64_t k = 0; k < o.keys; ++k) {
    if (family.kind == Kind::categorical) {
      for (double x : draws.dirichlet(o.dim, 1 + 1.0 / double(o.dim))) mu.push_back(x);
      continue;
    }
    for (int64_t i = 0; i < o.dim; ++i) {
      mu.push_back(family.kind == Kind::gaussian    ? draws.uniform(-2, 2)
                   : family.kind == Kind::bernoulli ? draws.uniform(0.05, 0.95)
                                                    : draws.uniform(0.3, 8));
    }
  }
  const std::vector<double> prior = draws.dirichlet(o.keys, 5);
  return make_codebook(family, tensor(mu, kF64).reshape({o.keys, o.dim}), tensor(prior, kF64));
}

Codebook read_codebook(const std::string& path, const std::string& family) {
  const data::CsvTable table = data::load_csv(path);
  const int64_t k = table.values.size(0), columns = table.values.size(1);
  for (size_t c = 0; c < table.categories.size(); ++c) {
    if (table.categories[c].empty()) continue;
    throw ValueError("codebook", fmt::format("{}: column '{}' holds text; need numbers", path,
                                             table.columns[c]));
  }
  const bool has_prior = table.columns[0] == "prior";
  if (columns <= (has_prior ? 1 : 0)) throw ValueError("codebook", path + ": has no means");
  const Tensor mu = table.values.slice(1, has_prior ? 1 : 0, columns).contiguous();
  const Tensor prior = has_prior ? table.values.select(1, 0).contiguous()
                                 : full({k}, 1.0 / double(std::max<int64_t>(k, 1)), kF64);
  return make_codebook(Family::named(family, mu.size(1)), mu, prior);
}

Statistics draw_statistics(const Codebook& c, int64_t n, int64_t m, uint64_t seed) {
  Draws draws(seed, 2);
  const Tensor t = empty({n, c.dim()}, kF64), symbols = empty({n}, {.dtype = DType::i64});
  const Tensor mu = contiguous_raw(c.mu), prior = contiguous_raw(c.prior);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = draws.category(prior.data<double>(), c.keys());
    symbols.data<int64_t>()[i] = k;
    c.family.observe(mu.data<double>() + k * c.dim(), c.dim(), m, draws,
                     t.data<double>() + i * c.dim());
  }
  return {t, symbols};
}

Tensor Head::queries(const Tensor& t) const {
  const Tensor q = (t.to(DType::f64) - origin) * m;
  if (split) {
    const Tensor one = ones({q.size(0), 1}, kF64), high = on_grid(q, kQueryGrid);
    const Tensor shift = (family.potential(t) - mv(t - origin, eta_origin)) * m - constant;
    const Tensor lower = -on_grid(shift, kQueryGrid * kKeyGrid).unsqueeze(1);
    return cat({high, one, lower, high, q - high, one}, 1).to(keys.dtype());
  }
  if (keys.size(1) == q.size(1)) return q.to(keys.dtype());
  return cat({q, ones({q.size(0), 1}, kF64)}, 1).to(keys.dtype());  // folded: [q, 1]
}

Head plain_head(const Codebook& c, int64_t m, double offset, DType type) {
  const Tensor bias = log(c.prior) - c.family.log_partition(c.mu) * double(m) + offset;
  return {c.family.link(c.mu).to(type), bias.to(type), zeros({c.dim()}, kF64), double(m)};
}

Head exact_head(const Codebook& c, int64_t m, DType type, double offset) {
  const Tensor eta = c.family.link(c.mu);
  const auto middle = [](const Tensor& x) { return (amax(x, 0) + amin(x, 0)) * 0.5; };
  // Counts less a whole number of them stay whole.
  const Tensor origin = round(middle(c.mu) * double(m)) / double(m), keys = eta - middle(eta);
  // ⟨mT̄, η_k⟩ = ⟨m(T̄ − t0), η_k − η0⟩ + m⟨t0, η_k⟩ + a part equal for all keys.
  const Tensor at_origin = matmul(eta, origin) - c.family.log_partition(c.mu);
  Tensor bias = log(c.prior) + at_origin * double(m) + offset;
  const double most = max(bias).item();
  bias = bias - most;
  if (type == DType::f32) {
    const Tensor high = on_grid(keys, kKeyGrid), b = bias.unsqueeze(1), one = ones_like(b);
    const Tensor b_high = on_grid(b, kQueryGrid * kKeyGrid);
    const Tensor split = cat({high, b_high, one, keys - high, keys, b - b_high}, 1);
    return {split.to(type), {}, origin, double(m), true, c.family, middle(eta), most - offset};
  }
  return {keys.to(type), bias.to(type), origin, double(m)};
}

Head folded_head(const Head& h) {
  const double root = std::sqrt(double(h.keys.size(1) + 1));
  return {cat({h.keys, h.bias.unsqueeze(1)}, 1) * root, {}, h.origin, h.m};
}

Tensor attend(const Head& h, const Tensor& t, const Tensor& values) {
  AttentionOptions options;  // a folded head takes the default scale 1/√d
  if (h.bias.defined()) options.mask = h.bias.unsqueeze(0);
  if (h.bias.defined() || h.split) options.scale = 1;
  const Tensor q = h.queries(t).to(h.keys.device());
  return scaled_dot_product_attention(q, h.keys, values.to(h.keys.dtype()), options);
}

Tensor posterior(const Head& h, const Tensor& t) {
  return attend(h, t, eye(h.keys.size(0), {.dtype = h.keys.dtype(), .device = h.keys.device()}));
}

Tensor direct_bayes(const Codebook& c, const Tensor& t, int64_t m) {
  const int64_t n = t.size(0), k = c.keys(), d = c.dim();
  const std::vector<double> eta = c.family.link(c.mu).to_vector(), stats = t.to_vector(),
                            a = c.family.log_partition(c.mu).to_vector(),
                            prior = c.prior.to_vector();
  const Tensor p = empty({n, k}, kF64);
  std::vector<long double> s(static_cast<size_t>(k));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      long double product = 0;
      for (int64_t e = 0; e < d; ++e) {
        product += (long double)(eta[size_t(j * d + e)]) * stats[size_t(i * d + e)];
      }
      s[size_t(j)] = logl(prior[size_t(j)]) + double(m) * (product - a[size_t(j)]);
    }
    const long double z = logsumexp_of(s);
    for (int64_t j = 0; j < k; ++j) p.data<double>()[i * k + j] = double(expl(s[size_t(j)] - z));
  }
  return p;
}

double mean_kl(const Tensor& p, const Tensor& log_q) {
  return mean(sum(xlogy(p, p) - where(p > 0, p * log_q, 0), 1)).item();
}

Fit least_squares(const Tensor& a, const Tensor& b) {
  const Matrix x = matrix_of(a), y = matrix_of(b);
  const Matrix w = x.completeOrthogonalDecomposition().solve(y);
  return {tensor_of(w), (x * w - y).squaredNorm()};
}

Defect metric_defect(const Tensor& mu, const Tensor& eta) {
  const int64_t keys = mu.size(0), d = mu.size(1), unknowns = d * (d + 1) / 2;
  const Matrix m = matrix_of(mu), e = matrix_of(eta);
  const int64_t rows = keys * (keys - 1) / 2 * d;
  Matrix a = Matrix::Zero(rows, unknowns), b = Matrix::Zero(rows, 1);
  int64_t row = 0;
  for (int64_t k = 0; k < keys; ++k) {
    for (int64_t j = k + 1; j < keys; ++j) {
      for (int64_t i = 0; i < d; ++i, ++row) {
        b(row, 0) = e(k, i) - e(j, i);
        for (int64_t c = 0; c < d; ++c) {  // M_ic stands at the place of the upper triangle
          const int64_t low = std::min(i, c), high = std::max(i, c);
          a(row, low * d - low * (low - 1) / 2 + high - low) += m(k, c) - m(j, c);
        }
      }
    }
  }
  const Matrix x = a.completeOrthogonalDecomposition().solve(b);
  Matrix metric(d, d);
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t c = i; c < d; ++c) {
      metric(i, c) = metric(c, i) = x(i * d - i * (i - 1) / 2 + c - i, 0);
    }
  }
  return {(a * x - b).squaredNorm() / b.squaredNorm(), tensor_of(metric)};
}

double log_linear_residual(const Tensor& p, const Tensor& t) {
  if (p.size(0) != t.size(0)) {
    throw ShapeError("log-linearity",
                     "posteriors [N,K] and statistics [N,d] must have equal N; "
                     "got " +
                         to_string(p.sizes()) + " and " + to_string(t.sizes()));
  }
  if (!(min(p).item() > 0)) {
    throw ValueError("log-linearity", "every posterior must be positive",
                     "rows with a probability of 0 have no logarithm: leave them out");
  }
  const Tensor y = log(p.slice(1, 1, p.size(1))) - log(p.slice(1, 0, 1));
  const Tensor design = cat({ones({t.size(0), 1}, kF64), t.to(DType::f64)}, 1);
  const Tensor centred = y - mean(y, 0, {.keepdim = true});
  return least_squares(design, y).residual / sum(centred * centred).item();
}

Tensor mixture_posterior(const Codebook& a, const Codebook& b, const Tensor& t, int64_t m) {
  const auto log_likelihood = [&](const Codebook& c) {
    return (matmul(t, c.family.link(c.mu).t()) - c.family.log_partition(c.mu)) * double(m);
  };
  return softmax(logaddexp(log_likelihood(a), log_likelihood(b)) + log(a.prior), 1);
}

}  // namespace cutaway::bayes
