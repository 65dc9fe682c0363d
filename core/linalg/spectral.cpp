#include <algorithm>

#include <cutaway/core/linalg/eigen_maps.h>

namespace cutaway::dense {

namespace {

struct Factors {
  Matrix q, r;
};

// The diagonal of r is made not negative.
Factors factor(const Matrix& x) {
  const int64_t k = std::min(x.rows(), x.cols());
  const Eigen::HouseholderQR<Matrix> h(x);
  Factors f{h.householderQ() * Matrix::Identity(x.rows(), k),
            h.matrixQR().topRows(k).triangularView<Eigen::Upper>()};
  for (int64_t j = 0; j < k; ++j) {
    if (!(f.r(j, j) < 0)) continue;
    f.r.row(j) = -f.r.row(j);
    f.q.col(j) = -f.q.col(j);
  }
  return f;
}

using SymmetricSolver = Eigen::SelfAdjointEigenSolver<Matrix>;
using SvdSolver = Eigen::BDCSVD<Matrix>;

}  // namespace

template <class T>
void qr(int64_t batch, int64_t m, int64_t n, const T* a, T* q, T* r) {
  if (m == 0 || n == 0) return;
  each(batch, std::max(m, n), [&](int64_t i) {
    const Factors f = factor(load(a, i, m, n));
    store(q, i, f.q);
    store(r, i, f.r);
    return true;
  });
}

template <class T>
Fault eigh(int64_t batch, int64_t n, const T* a, T* w, T* v) {
  if (n == 0) return -1;
  return each(batch, n, [&](int64_t i) {
    const Matrix x = load(a, i, n, n);
    if (!x.allFinite()) return false;
    const SymmetricSolver solver((x + x.transpose()) / 2);
    if (solver.info() != Eigen::Success) return false;
    store(w, i, solver.eigenvalues());
    store(v, i, solver.eigenvectors());
    return true;
  });
}

template <class T>
Fault svd(int64_t batch, int64_t m, int64_t n, const T* a, T* u, T* s, T* vh) {
  if (m == 0 || n == 0) return -1;
  return each(batch, std::max(m, n), [&](int64_t i) {
    const Matrix x = load(a, i, m, n);
    if (!x.allFinite()) return false;
    const SvdSolver solver(x, Eigen::ComputeThinU | Eigen::ComputeThinV);
    if (solver.info() != Eigen::Success) return false;
    store(u, i, solver.matrixU());
    store(s, i, solver.singularValues());
    store(vh, i, solver.matrixV().transpose());
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
