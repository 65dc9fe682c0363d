#pragma once
#include <atomic>

#include <Eigen/Dense>

#include <cutaway/core/linalg/dense.h>
#include <cutaway/core/parallel.h>

// What the sources of this folder share: row-major maps and the loop over a batch.
namespace cutaway::dense {

// Note: precision. Everything is computed in f64; f32 is converted on the way in and out. That is
// more exact, and Eigen's templates are compiled once.
using Matrix = Eigen::MatrixXd;

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Matrix number i of a batch.
template <class T>
Matrix load(const T* p, int64_t i, int64_t rows, int64_t columns) {
  return Eigen::Map<const RowMajor<T>>(p + i * rows * columns, rows, columns)
      .template cast<double>();
}
template <class T>
void store(T* p, int64_t i, const Matrix& x) {
  Eigen::Map<RowMajor<T>>(p + i * x.size(), x.rows(), x.cols()) = x.template cast<T>();
}

// Calls one(i) → ok for every matrix, several at a time when they are many. Returns the first that
// was not ok.
template <class F>
Fault each(int64_t batch, int64_t n, F&& one) {
  std::atomic<Fault> first{batch};
  parallel_for(batch, 1 + kGrain / (n * n * n + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (one(i)) continue;
      for (Fault seen = first; i < seen && !first.compare_exchange_weak(seen, i);) {
      }
      return;
    }
  });
  return first < batch ? first.load() : -1;
}

}  // namespace cutaway::dense
