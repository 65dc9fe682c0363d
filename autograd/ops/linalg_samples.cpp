#include <cmath>

#include <cutaway/autograd/ops/linalg.h>
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

// One matrix in plain form.
struct Grid {
  int64_t rows, columns;
  std::vector<double> v;
  Grid(int64_t r, int64_t c) : rows(r), columns(c), v(size_t(r * c)) {}
  double& at(int64_t i, int64_t j) { return v[size_t(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return v[size_t(i * columns + j)]; }
};

Grid matrix_of(const Ref& x, int64_t index) {
  const int rank = x.sizes.rank();
  Grid g(x.sizes[rank - 2], x.sizes[rank - 1]);
  for (size_t i = 0; i < g.v.size(); ++i) g.v[i] = x.v[size_t(index) * g.v.size() + i];
  return g;
}

// f on every matrix of x; results [batch…, rows, columns].
template <class F>
Tensors each_matrix(const Tensor& x, int64_t rows, int64_t columns, F&& f) {
  const Ref in(x);
  Shape sizes = in.sizes.slice(0, in.sizes.rank() - 2);
  const int64_t count = sizes.numel();
  sizes.push_back(rows);
  sizes.push_back(columns);
  Ref out(sizes);
  for (int64_t n = 0; n < count; ++n) {
    const Grid y = f(matrix_of(in, n), n);
    for (size_t i = 0; i < y.v.size(); ++i) out.v[size_t(n) * y.v.size() + i] = y.v[i];
  }
  return {out.tensor()};
}

// a⁻¹ b by elimination, each step with the largest pivot.
Grid eliminate(Grid a, Grid b) {
  const int64_t n = a.rows;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::fabs(a.at(i, k)) > std::fabs(a.at(best, k))) best = i;
    }
    for (int64_t j = 0; j < n; ++j) std::swap(a.at(k, j), a.at(best, j));
    for (int64_t j = 0; j < b.columns; ++j) std::swap(b.at(k, j), b.at(best, j));
    for (int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a.at(i, k) / a.at(k, k);
      for (int64_t j = 0; j < n; ++j) a.at(i, j) -= factor * a.at(k, j);
      for (int64_t j = 0; j < b.columns; ++j) b.at(i, j) -= factor * b.at(k, j);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) b.at(i, j) /= a.at(i, i);
  }
  return b;
}

// Expansion along the first row.
double expand(const Grid& a) {
  if (a.rows == 0) return 1;
  double sum = 0;
  for (int64_t c = 0; c < a.rows; ++c) {
    Grid minor(a.rows - 1, a.rows - 1);
    for (int64_t i = 1; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.rows; ++j) {
        if (j != c) minor.at(i - 1, j - (j > c)) = a.at(i, j);
      }
    }
    sum += (c % 2 ? -1 : 1) * a.at(0, c) * expand(minor);
  }
  return sum;
}

Grid factor(const Grid& x) {
  const int64_t n = x.rows;
  Grid l(n, n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      double sum = (x.at(i, j) + x.at(j, i)) / 2;
      for (int64_t k = 0; k < j; ++k) sum -= l.at(i, k) * l.at(j, k);
      l.at(i, j) = i == j ? std::sqrt(sum) : sum / l.at(j, j);
    }
  }
  return l;
}

// Well-conditioned: noise plus a multiple of the unit matrix.
Tensor regular(SampleList& list, const Shape& sizes) {
  return list.uniform(sizes, -1, 1) + eye(sizes.back(), {.dtype = DType::f64}) * 3.0;
}

void loosened(Sample& s) {
  s.loosen = 4;
  s.why = "errors grow with the condition number";
}

Tensors solve_reference(const Tensors& in, const linalg::TriangularOptions* o) {
  const Ref b(in[1]);
  const Ref a(in[0]);
  const bool shared = in[0].dim() < in[1].dim();
  return each_matrix(in[1], b.sizes[b.sizes.rank() - 2], b.sizes.back(),
                     [&](const Grid& right, int64_t n) {
                       Grid m = matrix_of(a, shared ? 0 : n);
                       if (o) {
                         for (int64_t i = 0; i < m.rows; ++i) {
                           for (int64_t j = 0; j < m.rows; ++j) {
                             if (o->upper ? j < i : j > i) m.at(i, j) = 0;
                             if (o->unit && i == j) m.at(i, j) = 1;
                           }
                         }
                         if (o->transpose) {
                           Grid t = m;
                           for (int64_t i = 0; i < m.rows; ++i) {
                             for (int64_t j = 0; j < m.rows; ++j) t.at(i, j) = m.at(j, i);
                           }
                           m = t;
                         }
                       }
                       return eliminate(m, right);
                     });
}

void square_errors(SampleList& list, Tensor (*op)(TensorArg), const std::string& name) {
  list.error(
      "rank", [op] { op(zeros({3})); }, "[" + name + "] needs at least two dimensions");
  list.error(
      "square",
      [op] {
        op(zeros({3, 2}));
      },
      "[" + name + "] matrices must be square");
  list.error(
      "type",
      [op] {
        op(zeros({2, 2}, {.dtype = DType::bf16}));
      },
      "[" + name + "] does not accept bf16");
}

}  // namespace

void cholesky_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes) {
    const Tensor a = list.uniform(sizes, -1, 1);
    const Tensor x = matmul(a, a, {.transpose_b = true}) + eye(sizes.back(), {.dtype = DType::f64});
    loosened(list.add(
        label, {x}, [](const Tensors& in) { return Tensors{linalg::cholesky(in[0])}; },
        [](const Tensors& in) {
          const int64_t n = in[0].size(-1);
          return each_matrix(in[0], n, n, [](const Grid& g, int64_t) { return factor(g); });
        }));
  };
  add("matrix", {3, 3});
  add("one element", {1, 1});
  add("batch", {2, 2, 2});
  add("empty", {0, 0});
  square_errors(list, linalg::cholesky, "cholesky");
  list.error(
      "indefinite", [] { linalg::cholesky(neg(eye(2))); },
      "[cholesky] x must be positive definite; got [2,2]");
}

void solve_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& a, const Shape& b) {
    loosened(list.add(
        label, {regular(list, a), list.randn(b)},
        [](const Tensors& in) { return Tensors{linalg::solve(in[0], in[1])}; },
        [](const Tensors& in) { return solve_reference(in, nullptr); }));
  };
  add("matrix", {3, 3}, {3, 2});
  add("one element", {1, 1}, {1, 1});
  add("batch", {2, 2, 2}, {2, 2, 3});
  add("one matrix for a batch", {2, 2}, {2, 2, 1});
  add("no columns", {2, 2}, {2, 0});
  list.error(
      "rows",
      [] {
        linalg::solve(eye(2), zeros({3, 1}));
      },
      "[solve] b must have as many rows as a; got a [2,2], b [3,1]");
  list.error(
      "square",
      [] {
        linalg::solve(zeros({2, 3}), zeros({3, 1}));
      },
      "must be square");
  list.error(
      "singular",
      [] {
        linalg::solve(ones({3, 2, 2}), ones({2, 1}));
      },
      "[solve] a must be regular, a pivot is 0; got [3,2,2], matrix 0 of the batch");
}

void solve_triangular_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& a, const Shape& b,
                       linalg::TriangularOptions o) {
    loosened(list.add(
        label, {regular(list, a), list.randn(b)},
        [o](const Tensors& in) { return Tensors{linalg::solve_triangular(in[0], in[1], o)}; },
        [o](const Tensors& in) { return solve_reference(in, &o); }));
  };
  add("lower", {3, 3}, {3, 2}, {});
  add("upper", {3, 3}, {3, 2}, {.upper = true});
  add("lower, transposed", {3, 3}, {3, 1}, {.transpose = true});
  add("upper, transposed", {2, 2}, {2, 2}, {.upper = true, .transpose = true});
  add("unit", {3, 3}, {3, 1}, {.unit = true});
  add("upper, unit, transposed", {3, 3}, {3, 1}, {.upper = true, .transpose = true, .unit = true});
  add("batch", {2, 2, 2}, {2, 2, 1}, {.upper = true});
  add("empty", {0, 0}, {0, 2}, {});
  list.error(
      "zero",
      [] {
        linalg::solve_triangular(zeros({2, 2}), ones({2, 1}));
      },
      "[solve_triangular] a must have no 0 on its diagonal; got [2,2]");
  list.error(
      "rows",
      [] {
        linalg::solve_triangular(eye(2), zeros({3, 1}));
      },
      "b must have as many rows as a");
}

void inverse_samples(SampleList& list) {
  for (const Shape& sizes : {Shape{3, 3}, Shape{1, 1}, Shape{2, 2, 2}, Shape{0, 0}}) {
    loosened(list.add(
        to_string(sizes), {regular(list, sizes)},
        [](const Tensors& in) { return Tensors{linalg::inverse(in[0])}; },
        [](const Tensors& in) {
          const int64_t n = in[0].size(-1);
          return each_matrix(in[0], n, n, [n](const Grid& g, int64_t) {
            Grid unit(n, n);
            for (int64_t i = 0; i < n; ++i) unit.at(i, i) = 1;
            return eliminate(g, unit);
          });
        }));
  }
  square_errors(list, linalg::inverse, "inverse");
  list.error(
      "singular",
      [] {
        linalg::inverse(ones({2, 2}));
      },
      "[inverse] x must be regular");
}

void det_samples(SampleList& list) {
  const auto add = [&](const char* label, Tensor x) {
    loosened(list.add(
        label, {std::move(x)}, [](const Tensors& in) { return Tensors{linalg::det(in[0])}; },
        [](const Tensors& in) {
          const Ref x(in[0]);
          Ref y(x.sizes.slice(0, x.sizes.rank() - 2));
          for (size_t n = 0; n < y.v.size(); ++n) y.v[n] = expand(matrix_of(x, int64_t(n)));
          return Tensors{y.tensor()};
        }));
  };
  add("3×3", list.randn({3, 3}));
  add("1×1", list.randn({1, 1}));
  add("batch", list.randn({2, 2, 2}));
  add("0×0", list.randn({0, 0}));
  const Opts f64{.dtype = DType::f64};
  add("singular", tensor({2, 3, 4, 6}, {2, 2}, f64));
  add("zero", zeros({3, 3}, f64));
  add("1×1 zero", zeros({1, 1}, f64));
  add("rank 1 in a batch", tensor({1, 2, 2, 4, 1, 0, 0, 1}, {2, 2, 2}, f64));
  add("rank 2 of 3", tensor({1, 2, 3, 0, 0, 0, 4, 5, 7}, {3, 3}, f64));
  square_errors(list, linalg::det, "det");
}

void slogdet_samples(SampleList& list) {
  for (const Shape& sizes : {Shape{3, 3}, Shape{1, 1}, Shape{2, 2, 2}, Shape{0, 0}}) {
    loosened(list.add(
        to_string(sizes), {regular(list, sizes)},
        [](const Tensors& in) {
          const auto r = linalg::slogdet(in[0]);
          return Tensors{r.sign, r.logabsdet};
        },
        [](const Tensors& in) {
          const Ref x(in[0]);
          Ref sign(x.sizes.slice(0, x.sizes.rank() - 2)), log(sign.sizes);
          for (size_t n = 0; n < sign.v.size(); ++n) {
            const double d = expand(matrix_of(x, int64_t(n)));
            sign.v[n] = d > 0 ? 1 : -1;
            log.v[n] = std::log(std::fabs(d));
          }
          return Tensors{sign.tensor(), log.tensor()};
        }));
  }
  square_errors(
      list, [](TensorArg x) { return linalg::slogdet(x).sign; }, "slogdet");
}

}  // namespace cutaway
