#include <cmath>
#include <limits>

#include <cutaway/core/linalg/eigen_maps.h>

namespace cutaway::dense {
namespace {

template <class T>
using Lu = Eigen::PartialPivLU<Dense<T>>;

template <class T>
bool has_zero_pivot(const Lu<T>& lu) {
  return (lu.matrixLU().diagonal().array() == T(0)).any();
}

// Ratio of the smallest to the largest pivot, 0 for a singular matrix.
template <class T>
T pivot_ratio(const Lu<T>& lu) {
  const auto pivots = lu.matrixLU().diagonal().array().abs();
  const T largest = pivots.maxCoeff();
  return largest > 0 ? pivots.minCoeff() / largest : T(0);
}

// Below it the inverse is not trusted for the gradient of a determinant.
template <class T>
T least_ratio() {
  return std::sqrt(std::numeric_limits<T>::epsilon());
}

// From a = u diag(s) vᵀ: det(u) det(v) · u diag(∏_{j≠i} s_j) vᵀ. No division, so rank does not
// matter.
template <class T>
Dense<T> cofactor_by_svd(const Dense<T>& a) {
  const Eigen::JacobiSVD<Dense<T>> svd(a, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const auto& s = svd.singularValues();
  Eigen::Matrix<T, Eigen::Dynamic, 1> others(s.size());
  for (Eigen::Index i = 0; i < s.size(); ++i) {
    T product = 1;
    for (Eigen::Index j = 0; j < s.size(); ++j) product *= j == i ? T(1) : s[j];
    others[i] = product;
  }
  const T sign = svd.matrixU().determinant() * svd.matrixV().determinant() > 0 ? T(1) : T(-1);
  return sign * (svd.matrixU() * others.asDiagonal() * svd.matrixV().transpose());
}

}  // namespace

template <class T>
Fault cholesky(int64_t batch, int64_t n, const T* a, T* l) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const auto x = matrix(a, i, n, n);
    const Dense<T> symmetric = (x + x.transpose()) / T(2);
    const Eigen::LLT<Dense<T>> llt(symmetric);
    matrix(l, i, n, n) = Dense<T>(llt.matrixL());
    return llt.info() == Eigen::Success;
  });
}

template <class T>
Fault solve(int64_t batch, int64_t n, int64_t columns, const T* a, const T* b, T* x) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const Lu<T> lu{Dense<T>(matrix(a, i, n, n))};
    if (has_zero_pivot(lu)) return false;
    if (columns > 0) matrix(x, i, n, columns) = lu.solve(Dense<T>(matrix(b, i, n, columns)));
    return true;
  });
}

template <class T>
Fault solve_triangular(int64_t batch, int64_t n, int64_t columns, const Triangle& form, const T* a,
                       const T* b, T* x) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const auto stored = matrix(a, i, n, n);
    if (!form.unit && (stored.diagonal().array() == T(0)).any()) return false;
    if (columns == 0) return true;
    const Dense<T> m = form.transpose ? Dense<T>(stored.transpose()) : Dense<T>(stored);
    Dense<T> y = matrix(b, i, n, columns);
    const bool upper = form.upper != form.transpose;
    if (upper && form.unit) m.template triangularView<Eigen::UnitUpper>().solveInPlace(y);
    if (upper && !form.unit) m.template triangularView<Eigen::Upper>().solveInPlace(y);
    if (!upper && form.unit) m.template triangularView<Eigen::UnitLower>().solveInPlace(y);
    if (!upper && !form.unit) m.template triangularView<Eigen::Lower>().solveInPlace(y);
    matrix(x, i, n, columns) = y;
    return true;
  });
}

template <class T>
Fault inverse(int64_t batch, int64_t n, const T* a, T* y) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const Lu<T> lu{Dense<T>(matrix(a, i, n, n))};
    if (has_zero_pivot(lu)) return false;
    matrix(y, i, n, n) = lu.inverse();
    return true;
  });
}

template <class T>
void det(int64_t batch, int64_t n, const T* a, T* d) {
  each(batch, n, [&](int64_t i) {
    d[i] = n == 0 ? T(1) : Lu<T>{Dense<T>(matrix(a, i, n, n))}.determinant();
    return true;
  });
}

template <class T>
void slogdet(int64_t batch, int64_t n, const T* a, T* sign, T* log) {
  each(batch, n, [&](int64_t i) {
    sign[i] = 1;
    log[i] = 0;
    if (n == 0) return true;
    const Lu<T> lu{Dense<T>(matrix(a, i, n, n))};
    T s = T(lu.permutationP().determinant());
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const T pivot = lu.matrixLU()(k, k);
      s = pivot == 0 ? T(0) : pivot < 0 ? -s : s;
      sum += std::log(std::fabs(double(pivot)));
    }
    sign[i] = s;
    log[i] = T(sum);
    return true;
  });
}

template <class T>
void cofactor(int64_t batch, int64_t n, const T* a, T* c) {
  if (n == 0) return;
  each(batch, n, [&](int64_t i) {
    const Dense<T> x = matrix(a, i, n, n);
    const Lu<T> lu(x);
    const T determinant = lu.determinant();
    const bool regular = pivot_ratio(lu) > least_ratio<T>() &&
                         std::fabs(determinant) > std::numeric_limits<T>::min();
    matrix(c, i, n, n) =
        regular ? Dense<T>(determinant * lu.inverse().transpose()) : cofactor_by_svd<T>(x);
    return true;
  });
}

template <class T>
bool nearly_singular(int64_t batch, int64_t n, const T* a) {
  if (n == 0) return false;
  return each(batch, n, [&](int64_t i) {
           const Lu<T> lu{Dense<T>(matrix(a, i, n, n))};
           return pivot_ratio(lu) > least_ratio<T>();
         }) >= 0;
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
