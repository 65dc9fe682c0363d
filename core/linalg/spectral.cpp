#include <cutaway/core/linalg/eigen_maps.h>

namespace cutaway::dense {

template <class T>
void qr(int64_t batch, int64_t m, int64_t n, const T* a, T* q, T* r) {
  const int64_t k = m < n ? m : n;
  if (k == 0) return;
  each(batch, m < n ? n : m, [&](int64_t i) {
    const Eigen::HouseholderQR<Dense<T>> h{Dense<T>(matrix(a, i, m, n))};
    Dense<T> left = h.householderQ() * Dense<T>::Identity(m, k);
    Dense<T> right = h.matrixQR().topRows(k).template triangularView<Eigen::Upper>();
    for (int64_t j = 0; j < k; ++j) {
      if (!(right(j, j) < 0)) continue;
      right.row(j) = -right.row(j);
      left.col(j) = -left.col(j);
    }
    matrix(q, i, m, k) = left;
    matrix(r, i, k, n) = right;
    return true;
  });
}

template <class T>
Fault eigh(int64_t batch, int64_t n, const T* a, T* w, T* v) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const auto x = matrix(a, i, n, n);
    if (!x.allFinite()) return false;
    const Dense<T> symmetric = (x + x.transpose()) / T(2);
    const Eigen::SelfAdjointEigenSolver<Dense<T>> solver(symmetric);
    if (solver.info() != Eigen::Success) return false;
    matrix(w, i, n, 1) = solver.eigenvalues();
    matrix(v, i, n, n) = solver.eigenvectors();
    return true;
  });
}

template <class T>
Fault svd(int64_t batch, int64_t m, int64_t n, const T* a, T* u, T* s, T* vh) {
  const int64_t k = m < n ? m : n;
  if (k == 0) return -1;
  return each(batch, m < n ? n : m, [&](int64_t i) {
    const Dense<T> x = matrix(a, i, m, n);
    if (!x.allFinite()) return false;
    const Eigen::BDCSVD<Dense<T>> solver(x, Eigen::ComputeThinU | Eigen::ComputeThinV);
    if (solver.info() != Eigen::Success) return false;
    matrix(u, i, m, k) = solver.matrixU();
    matrix(s, i, k, 1) = solver.singularValues();
    matrix(vh, i, k, n) = solver.matrixV().transpose();
    return true;
  });
}

#define CUTAWAY_INSTANTIATE(T)                                      \
  template void qr<T>(int64_t, int64_t, int64_t, const T*, T*, T*); \
  template Fault eigh<T>(int64_t, int64_t, const T*, T*, T*);       \
  template Fault svd<T>(int64_t, int64_t, int64_t, const T*, T*, T*, T*);
CUTAWAY_INSTANTIATE(double)
CUTAWAY_INSTANTIATE(float)
#undef CUTAWAY_INSTANTIATE

}  // namespace cutaway::dense
