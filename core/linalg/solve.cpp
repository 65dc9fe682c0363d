#include <cmath>
#include <limits>

#include <cutaway/core/linalg/eigen_maps.h>

namespace cutaway::dense {
namespace {

using Lu = Eigen::PartialPivLU<Matrix>;

bool has_zero_pivot(const Lu& lu) { return (lu.matrixLU().diagonal().array() == 0).any(); }

// Ratio of the smallest to the largest pivot, 0 for a singular matrix.
double pivot_ratio(const Lu& lu) {
  const auto pivots = lu.matrixLU().diagonal().array().abs();
  const double largest = pivots.maxCoeff();
  return largest > 0 ? pivots.minCoeff() / largest : 0;
}

// Below it the inverse is not trusted for the gradient of a determinant.
template <class T>
double least_ratio() {
  return std::sqrt(double(std::numeric_limits<T>::epsilon()));
}

// From a = u diag(s) vᵀ: det(u) det(v) · u diag(∏_{j≠i} s_j) vᵀ. No division, so rank does not
// matter.
Matrix cofactor_by_svd(const Matrix& a) {
  const Eigen::JacobiSVD<Matrix> svd(a, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const auto& s = svd.singularValues();
  Eigen::VectorXd others(s.size());
  for (Eigen::Index i = 0; i < s.size(); ++i) {
    double product = 1;
    for (Eigen::Index j = 0; j < s.size(); ++j) product *= j == i ? 1 : s[j];
    others[i] = product;
  }
  const double sign = Lu(svd.matrixU()).determinant() * Lu(svd.matrixV()).determinant();
  return (sign > 0 ? 1 : -1) * (svd.matrixU() * others.asDiagonal() * svd.matrixV().transpose());
}

// Solves in place; `upper` says how m itself is.
void solve_in_place(const Matrix& m, bool upper, bool unit, Matrix& y) {
  if (upper && unit) m.triangularView<Eigen::UnitUpper>().solveInPlace(y);
  if (upper && !unit) m.triangularView<Eigen::Upper>().solveInPlace(y);
  if (!upper && unit) m.triangularView<Eigen::UnitLower>().solveInPlace(y);
  if (!upper && !unit) m.triangularView<Eigen::Lower>().solveInPlace(y);
}

}  // namespace

template <class T>
Fault cholesky(int64_t batch, int64_t n, const T* a, T* l) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const Matrix x = load(a, i, n, n);
    const Eigen::LLT<Matrix> llt((x + x.transpose()) / 2);
    store(l, i, llt.matrixL());
    return llt.info() == Eigen::Success;
  });
}

template <class T>
Fault solve(int64_t batch, int64_t n, int64_t columns, const T* a, const T* b, T* x) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const Lu lu(load(a, i, n, n));
    if (has_zero_pivot(lu)) return false;
    if (columns > 0) store(x, i, lu.solve(load(b, i, n, columns)));
    return true;
  });
}

template <class T>
Fault solve_triangular(int64_t batch, int64_t n, int64_t columns, const Triangle& form, const T* a,
                       const T* b, T* x) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    Matrix m = load(a, i, n, n);
    if (!form.unit && (m.diagonal().array() == 0).any()) return false;
    if (columns == 0) return true;
    if (form.transpose) m.transposeInPlace();
    Matrix y = load(b, i, n, columns);
    solve_in_place(m, form.upper != form.transpose, form.unit, y);
    store(x, i, y);
    return true;
  });
}

template <class T>
Fault inverse(int64_t batch, int64_t n, const T* a, T* y) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const Lu lu(load(a, i, n, n));
    if (has_zero_pivot(lu)) return false;
    store(y, i, lu.solve(Matrix::Identity(n, n)));
    return true;
  });
}

template <class T>
void det(int64_t batch, int64_t n, const T* a, T* d) {
  each(batch, n, [&](int64_t i) {
    d[i] = n == 0 ? T(1) : T(Lu(load(a, i, n, n)).determinant());
    return true;
  });
}

template <class T>
void slogdet(int64_t batch, int64_t n, const T* a, T* sign, T* log) {
  each(batch, n, [&](int64_t i) {
    sign[i] = 1;
    log[i] = 0;
    if (n == 0) return true;
    const Lu lu(load(a, i, n, n));
    double s = double(lu.permutationP().determinant()), sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double pivot = lu.matrixLU()(k, k);
      s = pivot == 0 ? 0 : pivot < 0 ? -s : s;
      sum += std::log(std::fabs(pivot));
    }
    sign[i] = T(s);
    log[i] = T(sum);
    return true;
  });
}

template <class T>
void cofactor(int64_t batch, int64_t n, const T* a, T* c) {
  if (n == 0) return;
  each(batch, n, [&](int64_t i) {
    const Matrix x = load(a, i, n, n);
    const Lu lu(x);
    const double determinant = lu.determinant();
    if (pivot_ratio(lu) > least_ratio<double>() &&
        std::fabs(determinant) > std::numeric_limits<double>::min()) {
      const Matrix inverse = lu.solve(Matrix::Identity(n, n));
      store(c, i, determinant * inverse.transpose());
    } else {
      store(c, i, cofactor_by_svd(x));
    }
    return true;
  });
}

template <class T>
bool nearly_singular(int64_t batch, int64_t n, const T* a) {
  if (n == 0) return false;
  return each(batch, n,
              [&](int64_t i) { return pivot_ratio(Lu(load(a, i, n, n))) > least_ratio<T>(); }) >= 0;
}

#define CUTAWAY_INSTANTIATE(T)                                                             \
  template Fault cholesky<T>(int64_t, int64_t, const T*, T*);                              \
  template Fault solve<T>(int64_t, int64_t, int64_t, const T*, const T*, T*);              \
  template Fault solve_triangular<T>(int64_t, int64_t, int64_t, const Triangle&, const T*, \
                                     const T*, T*);                                        \
  template Fault inverse<T>(int64_t, int64_t, const T*, T*);                               \
  template void det<T>(int64_t, int64_t, const T*, T*);                                    \
  template void slogdet<T>(int64_t, int64_t, const T*, T*, T*);                            \
  template void cofactor<T>(int64_t, int64_t, const T*, T*);                               \
  template bool nearly_singular<T>(int64_t, int64_t, const T*);
CUTAWAY_INSTANTIATE(double)
CUTAWAY_INSTANTIATE(float)
#undef CUTAWAY_INSTANTIATE

}  // namespace cutaway::dense
