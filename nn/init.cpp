#include <cutaway/nn/init.h>

#include <fmt/format.h>
#include <cmath>
#include <utility>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops/random.h>
#include <cutaway/core/error.h>
#include <cutaway/core/math/random_normal.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>

namespace cutaway::nn::init {
namespace {

void require_floating(const char* op, const Tensor& t) {
  if (!t.is_floating()) {
    throw DTypeError(op, fmt::format("parameters are floating; got {}", name_of(t.dtype())));
  }
}
void require(bool good, const char* op, const char* rule, double got) {
  if (!good) throw ValueError(op, fmt::format("{}; got {}", rule, got));
}

// Writes make(i), i the row-major position, into t.
template <class F>
void fill(Tensor t, F&& make) {
  const Tensor values = empty(t.sizes(), {.dtype = DType::f64});
  double* out = values.data<double>();
  parallel_for(t.numel(), kGrain / 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = make(uint64_t(i));
  });
  NoGradGuard no_grad;
  t.copy_(values.to(t.device()));
}

Tensor fill_normal(const char* op, Tensor t, double mean, double std) {
  require_floating(op, t);
  NoGradGuard no_grad;
  return t.is_meta() ? t : random_normal_(t, mean, std);
}
Tensor fill_uniform(const char* op, Tensor t, double lo, double hi) {
  require_floating(op, t);
  NoGradGuard no_grad;
  return t.is_meta() ? t : random_uniform_(t, lo, hi);
}

double normal_cdf(double z) { return std::erfc(-z * M_SQRT1_2) / 2; }

// z with Φ(z) = p between lo and hi, by bisection.
double normal_quantile(double p, double lo, double hi) {
  for (int step = 0; step < 80; ++step) {
    const double middle = (lo + hi) / 2;
    (normal_cdf(middle) < p ? lo : hi) = middle;
  }
  return (lo + hi) / 2;
}

// Rows of [rows, cols] made orthonormal one after the other; each is cleaned twice, which suffices
// for rounding (Giraud et al. 2005).
void orthonormalise(std::vector<double>& m, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    double* row = m.data() + r * cols;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < r; ++k) {
        const double* other = m.data() + k * cols;
        double dot = 0;
        for (int64_t c = 0; c < cols; ++c) dot += row[c] * other[c];
        for (int64_t c = 0; c < cols; ++c) row[c] -= dot * other[c];
      }
    }
    double norm = 0;
    for (int64_t c = 0; c < cols; ++c) norm += row[c] * row[c];
    norm = std::sqrt(norm);
    for (int64_t c = 0; c < cols; ++c) row[c] /= norm;
  }
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu:
      return 0.75;
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      break;
  }
  return 1;
}

Fans fans(const Tensor& weight) {
  const Shape& s = weight.sizes();
  if (s.rank() < 2) {
    throw ShapeError(
        "init", fmt::format("fans need a weight with at least 2 dimensions; got {}", to_string(s)));
  }
  const int64_t kernel = s.slice(2, s.rank()).numel();
  return {s[1] * kernel, s[0] * kernel};
}

Tensor constant_(Tensor t, double value) {
  NoGradGuard no_grad;
  t.fill_(value);
  return t;
}

Tensor uniform_(Tensor t, double lo, double hi) {
  require(lo <= hi, "uniform_", "lo must not exceed hi", lo - hi);
  return fill_uniform("uniform_", t, lo, hi);
}

Tensor normal_(Tensor t, double mean, double std) {
  require(std >= 0, "normal_", "std must not be negative", std);
  return fill_normal("normal_", t, mean, std);
}

Tensor trunc_normal_(Tensor t, const TruncNormalOptions& o) {
  require(o.std > 0, "trunc_normal_", "std must be positive", o.std);
  require(o.lo < o.hi, "trunc_normal_", "lo must be below hi; hi − lo", o.hi - o.lo);
  const double lo = (o.lo - o.mean) / o.std, hi = (o.hi - o.mean) / o.std;
  const double below = normal_cdf(lo), mass = normal_cdf(hi) - below;
  require_floating("trunc_normal_", t);
  if (t.is_meta()) return t;
  const Generator g = draw(t.numel());
  fill(t, [&](uint64_t i) {
    double z = 0;
    if (mass > 0.1) {
      uint64_t seed = g.seed;
      do {
        z = math::normal_f64(seed, g.stream, g.offset, i);
        seed += 0x9E3779B97F4A7C15u;
      } while (z < lo || z > hi);
    } else {
      const uint64_t word = math::random_u64(g.seed, g.stream, g.offset, i);
      z = normal_quantile(below + mass * math::uniform_f64(word), lo, hi);
    }
    return std::min(std::max(o.mean + o.std * z, o.lo), o.hi);
  });
  return t;
}

Tensor xavier_uniform_(Tensor t, double gain) {
  const Fans f = fans(t);
  const double bound = gain * std::sqrt(6.0 / double(f.in + f.out));
  return fill_uniform("xavier_uniform_", t, -bound, bound);
}
Tensor xavier_normal_(Tensor t, double gain) {
  const Fans f = fans(t);
  return fill_normal("xavier_normal_", t, 0, gain * std::sqrt(2.0 / double(f.in + f.out)));
}

namespace {
double kaiming_std(const Tensor& t, const KaimingOptions& o) {
  const Fans f = fans(t);
  const double n = double(o.mode == Fan::in ? f.in : f.out);
  return n > 0 ? calculate_gain(o.nonlinearity, o.a) / std::sqrt(n) : 0;
}
}  // namespace

Tensor kaiming_uniform_(Tensor t, const KaimingOptions& o) {
  const double bound = std::sqrt(3.0) * kaiming_std(t, o);
  return fill_uniform("kaiming_uniform_", t, -bound, bound);
}
Tensor kaiming_normal_(Tensor t, const KaimingOptions& o) {
  return fill_normal("kaiming_normal_", t, 0, kaiming_std(t, o));
}

Tensor orthogonal_(Tensor t, double gain) {
  require_floating("orthogonal_", t);
  if (t.dim() < 2) {
    throw ShapeError("orthogonal_",
                     fmt::format("needs at least 2 dimensions; got {}", to_string(t.sizes())));
  }
  if (t.is_meta() || t.numel() == 0) return t;
  const int64_t rows = t.size(0), cols = t.numel() / rows;
  const int64_t few = std::min(rows, cols), many = std::max(rows, cols);
  const Generator g = draw(t.numel());
  std::vector<double> m(size_t(t.numel()));
  for (size_t i = 0; i < m.size(); ++i) m[i] = math::normal_f64(g.seed, g.stream, g.offset, i);
  orthonormalise(m, few, many);
  const bool across = rows > cols;  // columns are the orthonormal ones
  fill(t, [&](uint64_t i) {
    const int64_t r = int64_t(i) / cols, c = int64_t(i) % cols;
    return gain * m[size_t(across ? c * many + r : r * many + c)];
  });
  return t;
}

Tensor eye_(Tensor t) {
  if (t.dim() != 2) {
    throw ShapeError("eye_", fmt::format("needs a matrix; got {}", to_string(t.sizes())));
  }
  NoGradGuard no_grad;
  t.copy_(eye(t.size(0), t.size(1), {.dtype = t.dtype(), .device = t.device()}));
  return t;
}

}  // namespace cutaway::nn::init
