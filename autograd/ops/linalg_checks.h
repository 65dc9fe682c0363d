#pragma once
#include <cutaway/autograd/op.h>
#include <cutaway/core/linalg/dense.h>
#include <cutaway/core/tensor_ops.h>

// Shared by linalg.cpp and decompositions.cpp.
namespace cutaway::linalg {

inline Shape batch_of(const Tensor& x) { return x.sizes().slice(0, x.dim() - 2); }
inline Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

// Raises DTypeError, ShapeError for less than two dimensions, DeviceError where there is no kernel.
void check_matrix(const Call& c, int i);
// And ShapeError for a matrix that is not square.
void check_square(const Call& c, int i);
// Raises ValueError when `fault` names a matrix.
void check_fault(const char* op, dense::Fault fault, const char* rule, const Tensor& x,
                 const char* hint);

// f(double{}) or f(float{}).
template <class F>
void by_type(DType t, F&& f) {
  if (t == DType::f64) {
    f(double{});
  } else {
    f(float{});
  }
}

}  // namespace cutaway::linalg
