#pragma once
#include <atomic>

#include <Eigen/Dense>

#include <cutaway/core/linalg/dense.h>
#include <cutaway/core/parallel.h>

// What the sources of this folder share: row-major maps and the loop over a batch.
namespace cutaway::dense {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Dense = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

template <class T>
Eigen::Map<const RowMajor<T>> matrix(const T* p, int64_t i, int64_t rows, int64_t columns) {
  return {p + i * rows * columns, rows, columns};
}
template <class T>
Eigen::Map<RowMajor<T>> matrix(T* p, int64_t i, int64_t rows, int64_t columns) {
  return {p + i * rows * columns, rows, columns};
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
