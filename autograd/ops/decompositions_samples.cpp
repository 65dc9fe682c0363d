#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops/compare.h>
#include <cutaway/autograd/ops/decompositions.h>
#include <cutaway/autograd/ops/elementary.h>
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/ops/shape.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

// What depends on no choice of vectors: u diag(f(s)) vᵀ.
Tensor composed(const Tensor& u, const Tensor& s, const Tensor& vh) {
  return matmul(u * s.unsqueeze(-2), vh);
}

// Columns made orthogonal by plane rotations (one-sided Jacobi): x [rows, n] becomes u diag(s) and
// v [n, n] collects the rotations.
struct Rotated {
  int64_t rows, n;
  std::vector<double> x, v;
};

Rotated rotate_columns(int64_t rows, int64_t n, std::vector<double> x) {
  Rotated r{rows, n, std::move(x), std::vector<double>(size_t(n * n))};
  for (int64_t i = 0; i < n; ++i) r.v[size_t(i * n + i)] = 1;
  const auto turn = [n](std::vector<double>& m, int64_t count, int64_t p, int64_t q, double c,
                        double s) {
    for (int64_t i = 0; i < count; ++i) {
      double &a = m[size_t(i * n + p)], &b = m[size_t(i * n + q)];
      const double old = a;
      a = c * old - s * b;
      b = s * old + c * b;
    }
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < rows; ++i) {
          const double a = r.x[size_t(i * n + p)], b = r.x[size_t(i * n + q)];
          pp += a * a;
          qq += b * b;
          pq += a * b;
        }
        if (pq == 0) continue;
        const double angle = 0.5 * std::atan2(2 * pq, qq - pp);
        turn(r.x, rows, p, q, std::cos(angle), std::sin(angle));
        turn(r.v, n, p, q, std::cos(angle), std::sin(angle));
      }
    }
  }
  return r;
}

double column_length(const Rotated& r, int64_t j) {
  double sum = 0;
  for (int64_t i = 0; i < r.rows; ++i) sum += r.x[size_t(i * r.n + j)] * r.x[size_t(i * r.n + j)];
  return std::sqrt(sum);
}

// Singular values, descending, of every matrix of x.
Ref singular_values(const Tensor& t) {
  const Ref x(t);
  const int rank = x.sizes.rank();
  const int64_t m = x.sizes[rank - 2], n = x.sizes[rank - 1], k = std::min(m, n);
  Shape sizes = x.sizes.slice(0, rank - 2);
  const int64_t batch = sizes.numel();
  sizes.push_back(k);
  Ref out(sizes);
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<double> part(x.v.begin() + b * m * n, x.v.begin() + (b + 1) * m * n), s;
    const Rotated r = rotate_columns(m, n, part);
    for (int64_t j = 0; j < n; ++j) s.push_back(column_length(r, j));
    std::sort(s.rbegin(), s.rend());
    for (int64_t j = 0; j < k; ++j) out.v[size_t(b * k + j)] = s[size_t(j)];
  }
  return out;
}

// Eigenvalues, ascending, of the symmetric part: shifted by its norm it is positive definite, and
// then they are singular values.
Ref eigenvalues(const Tensor& t) {
  const Ref x(t);
  const int64_t n = x.sizes.back();
  double shift = 1;
  for (double v : x.v) shift += std::fabs(v);
  Ref shifted = x;
  for (size_t i = 0; i < x.v.size(); ++i) {
    const int64_t row = int64_t(i) / n % n, column = int64_t(i) % n;
    const size_t mirror = i - size_t(row * n + column) + size_t(column * n + row);
    shifted.v[i] = (x.v[i] + x.v[mirror]) / 2 + (row == column ? shift : 0);
  }
  Ref s = singular_values(shifted.tensor());
  for (size_t at = 0; n > 0 && at < s.v.size(); at += size_t(n)) {
    std::reverse(s.v.begin() + int64_t(at), s.v.begin() + int64_t(at) + n);
  }
  for (double& v : s.v) v -= shift;
  return s;
}

Ref symmetric_part(const Tensor& t) {
  Ref x(t);
  const Ref from = x;
  const int64_t n = x.sizes.back();
  for (size_t i = 0; i < x.v.size(); ++i) {
    const int64_t row = int64_t(i) / n % n, column = int64_t(i) % n;
    x.v[i] = (from.v[i] + from.v[i - size_t(row * n + column) + size_t(column * n + row)]) / 2;
  }
  return x;
}

// Gram–Schmidt, column after column.
Tensors gram_schmidt(const Tensors& in) {
  const Ref x(in[0]);
  const int rank = x.sizes.rank();
  const int64_t m = x.sizes[rank - 2], n = x.sizes[rank - 1], k = std::min(m, n);
  Shape q_sizes = x.sizes, r_sizes = x.sizes;
  q_sizes[rank - 1] = k;
  r_sizes[rank - 2] = k;
  Ref q(q_sizes), r(r_sizes);
  const int64_t batch = x.sizes.slice(0, rank - 2).numel();
  for (int64_t b = 0; b < batch; ++b) {
    double* qb = q.v.data() + b * m * k;
    double* rb = r.v.data() + b * k * n;
    for (int64_t j = 0; j < n; ++j) {
      std::vector<double> column;
      for (int64_t i = 0; i < m; ++i) column.push_back(x.v[size_t((b * m + i) * n + j)]);
      for (int64_t p = 0; p < std::min(j, k); ++p) {
        double along = 0;
        for (int64_t i = 0; i < m; ++i) along += qb[i * k + p] * column[size_t(i)];
        for (int64_t i = 0; i < m; ++i) column[size_t(i)] -= along * qb[i * k + p];
        rb[p * n + j] = along;
      }
      if (j >= k) continue;
      double length = 0;
      for (double v : column) length += v * v;
      rb[j * n + j] = std::sqrt(length);
      for (int64_t i = 0; i < m; ++i) qb[i * k + j] = column[size_t(i)] / rb[j * n + j];
    }
  }
  return {q.tensor(), r.tensor()};
}

void loosened(Sample& s) {
  s.loosen = 20;
  s.why = "iterations stop at a few rounding steps, and references differ in their order";
}

}  // namespace

void qr_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes) -> Sample& {
    Sample& s = list.add(
        label, {list.randn(sizes)},
        [](const Tensors& in) {
          const auto r = linalg::qr(in[0]);
          return Tensors{r.q, r.r};
        },
        gram_schmidt);
    loosened(s);
    return s;
  };
  add("square", {3, 3});
  add("tall", {4, 2});
  add("wide", {2, 3}).grad = false;
  add("one element", {1, 1});
  add("batch", {2, 3, 2});
  add("empty", {0, 0});
  list.error(
      "rank", [] { linalg::qr(zeros({3})); }, "[qr] needs at least two dimensions; got [3]");
  list.error(
      "wide gradient",
      [] {
        const Tensor x = ones({2, 3}, {.requires_grad = true});
        linalg::qr(x).q.backward(ones({2, 2}));
      },
      "[qr] the derivative needs at least as many rows as columns");
}

void eigh_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes) {
    loosened(list.add(
        label, {list.randn(sizes)},
        [](const Tensors& in) {
          const auto r = linalg::eigh(in[0]);
          return Tensors{r.values, composed(r.vectors, r.values, r.vectors.transpose(-2, -1))};
        },
        [](const Tensors& in) {
          return Tensors{eigenvalues(in[0]).tensor(), symmetric_part(in[0]).tensor()};
        }));
  };
  add("matrix", {3, 3});
  add("one element", {1, 1});
  add("batch", {2, 2, 2});
  add("empty", {0, 0});
  list.error(
      "square",
      [] {
        linalg::eigh(zeros({2, 3}));
      },
      "[eigh] matrices must be square");
  list.error(
      "not finite",
      [] {
        linalg::eigh(full({2, 2}, INFINITY));
      },
      "[eigh] x must be finite");
  list.error(
      "equal values",
      [] {
        const Tensor x = eye(2, {.dtype = DType::f64}).set_requires_grad();
        linalg::eigh(x).vectors.backward(tensor({1, 2, 3, 4}, {2, 2}, {.dtype = DType::f64}));
      },
      "[eigh] two eigenvalues are equal");
}

void svd_samples(SampleList& list) {
  // Singular values far from 0 and from each other: |s| has a kink at 0.
  const auto add = [&](const char* label, const Shape& sizes) {
    Tensor x = list.uniform(sizes, -0.3, 0.3);
    const int64_t n = x.size(-1), step = n + 1;
    for (int64_t at = 0; at < x.numel(); ++at) {
      const int64_t within = at % (x.size(-2) * n);
      if (within % step == 0) x.data<double>()[at] += 1 + double(within / step);
    }
    loosened(list.add(
        label, {x},
        [](const Tensors& in) {
          const auto r = linalg::svd(in[0]);
          return Tensors{r.s, composed(r.u, r.s, r.vh)};
        },
        [](const Tensors& in) {
          return Tensors{singular_values(in[0]).tensor(), Ref(in[0]).tensor()};
        }));
  };
  add("square", {3, 3});
  add("tall", {4, 2});
  add("wide", {2, 3});
  add("one element", {1, 1});
  add("batch", {2, 2, 2});
  add("empty", {0, 2});
  list.error(
      "rank", [] { linalg::svd(zeros({3})); }, "[svd] needs at least two dimensions");
  list.error(
      "not finite",
      [] {
        linalg::svd(full({2, 2}, NAN));
      },
      "[svd] x must be finite");
}

}  // namespace cutaway
