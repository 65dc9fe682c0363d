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

// Note: linear algebra on devices. The routines run on the host; for another device operands are
// copied there and results back.

// Where a routine writes `out`: itself on cpu, else room in host memory, which deliver() copies.
inline Tensor host_room(const Tensor& out) {
  return out.device() == kCpu ? out : empty(out.sizes(), {.dtype = out.dtype()});
}
inline void deliver(const Tensor& out, const Tensor& room) {
  if (out.is_same(room) || out.numel() == 0) return;
  backend(out.device().kind)
      .copy_from_host(out.device().index, out.raw(), room.raw(),
                      out.numel() * size_of(out.dtype()));
}

// Raises DTypeError, ShapeError for less than two dimensions.
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
