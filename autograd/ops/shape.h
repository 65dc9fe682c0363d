#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// Ops that only say how elements are walked. Results share the storage of x, unless said otherwise;
// a write into one is seen by the other.

// x under new sizes, in row-major order; one size may be -1. Shares storage where possible, copies
// otherwise. x [n elements], y `sizes`. Raises ShapeError when the number of elements differs.
Tensor reshape(TensorArg x, const Shape& sizes);
// As reshape, but never copies: raises ShapeError when the strides of x do not allow it.
Tensor view(TensorArg x, const Shape& sizes);
// Dimensions from … to (inclusive) joined into one. Raises IndexError, and ShapeError for from >
// to.
Tensor flatten(TensorArg x, int64_t from = 0, int64_t to = -1);
// Dimension `dim` cut into `sizes`, one of which may be -1.
Tensor unflatten(TensorArg x, int64_t dim, const Shape& sizes);

// y.size(i) = x.size(dims[i]). Raises ShapeError unless dims is a permutation.
Tensor permute(TensorArg x, const Shape& dims);
// Dimensions a and b exchanged.
Tensor transpose(TensorArg x, int64_t a, int64_t b);
// The transpose of a matrix, x [n,m] → y [m,n]. Raises ShapeError for other ranks.
Tensor t(TensorArg x);
// Dimension from[i] moved to place to[i]; the others keep their order.
Tensor movedim(TensorArg x, const Shape& from, const Shape& to);
inline Tensor movedim(TensorArg x, int64_t from, int64_t to) {
  return movedim(x, Shape{from}, Shape{to});
}

// Size-1 dimensions repeated, and new ones added in front; -1 keeps a size. Raises ShapeError.
Tensor expand(TensorArg x, const Shape& sizes);
// As expand, with every size given.
Tensor broadcast_to(TensorArg x, const Shape& sizes);

// All size-1 dimensions removed.
Tensor squeeze(TensorArg x);
// Dimension `dim` removed if its size is 1.
Tensor squeeze(TensorArg x, int64_t dim);
// A dimension of size 1 inserted before place `dim`. Raises ShapeError beyond 8 dimensions.
Tensor unsqueeze(TensorArg x, int64_t dim);

// Upper bound of a slice that runs to the end.
inline constexpr int64_t kEnd = INT64_MAX;

// Elements begin, begin+step, … below end of dimension `dim`; bounds count from the end when
// negative and are clamped, as in Python. Raises ValueError for step < 1 (flip() reverses).
Tensor slice(TensorArg x, int64_t dim, int64_t begin, int64_t end = kEnd, int64_t step = 1);
// Elements start … start+length-1. Raises IndexError when they are not all there.
Tensor narrow(TensorArg x, int64_t dim, int64_t start, int64_t length);
// Dimension `dim` fixed at `index` and removed. Raises IndexError.
Tensor select(TensorArg x, int64_t dim, int64_t index);
// Which diagonal: offset > 0 above, < 0 below the main one of the matrices in (dim1, dim2).
struct DiagonalOptions {
  int64_t offset = 0;
  int64_t dim1 = 0;
  int64_t dim2 = 1;
};
// The diagonal of (dim1, dim2) as new last dimension.
Tensor diagonal(TensorArg x, DiagonalOptions options = {});

// x with the elements of that slice replaced by src (same type; sizes of the slice). A new tensor.
Tensor slice_scatter(TensorArg x, TensorArg src, int64_t dim, int64_t begin, int64_t end = kEnd,
                     int64_t step = 1);
// x with x[…, index, …] replaced by src. A new tensor.
Tensor select_scatter(TensorArg x, TensorArg src, int64_t dim, int64_t index);
// x with that diagonal replaced by src. A new tensor.
Tensor diagonal_scatter(TensorArg x, TensorArg src, DiagonalOptions options = {});

// Matrices in the two last places (or dim1, dim2) with x on the diagonal, zero elsewhere:
// x [..., n] → y [..., n+|offset|, n+|offset|]. A new tensor.
Tensor diag_embed(TensorArg x, DiagonalOptions options = {.dim1 = -2, .dim2 = -1});
// A vector as diagonal matrix; the diagonal of a matrix. Raises ShapeError for other ranks.
Tensor diag(TensorArg x, int64_t offset = 0);
// The lower triangle: elements with column > row + diagonal are zero. x [...,n,m]. A new tensor.
Tensor tril(TensorArg x, int64_t diagonal = 0);
// The upper triangle: elements with column < row + diagonal are zero.
Tensor triu(TensorArg x, int64_t diagonal = 0);

// Along `dim`, at every step-th place a window of `size` elements, which become a new last
// dimension: x [..., n, ...] → y [..., (n-size)/step+1, ..., size]. Shares storage.
Tensor unfold(TensorArg x, int64_t dim, int64_t size, int64_t step);
// The adjoint of unfold: windows added into zeros of `sizes`. A new tensor.
Tensor unfold_adjoint(TensorArg windows, const Shape& sizes, int64_t dim, int64_t size,
                      int64_t step);

}  // namespace cutaway
