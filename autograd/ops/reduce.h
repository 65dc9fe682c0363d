#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// Reductions. Each comes in three forms: over all dimensions, over a list of them, over one.
// Dimensions count from the end when negative; a list may have any order but no repetition
// (ValueError); an empty list reduces nothing. With keepdim, reduced dimensions stay as size 1.
struct ReduceOptions {
  bool keepdim = false;
};

// y = Σ x. Floating types accumulate in f64 and round once; integers and bool give i64 (wrapping).
// The sum of nothing is 0.
Tensor sum(TensorArg x, ReduceOptions options = {});
Tensor sum(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor sum(TensorArg x, int64_t dim, ReduceOptions options = {});
// The sum over every dimension in which x is larger than `sizes`, right-aligned: undoes
// broadcasting. x [..., sizes], y `sizes`. Raises ShapeError when `sizes` does not broadcast to x.
Tensor sum_to(TensorArg x, const Shape& sizes);

// y = Σ x / n, divided before rounding, so that it overflows only with its value. Floating types.
// The mean of nothing is NaN.
Tensor mean(TensorArg x, ReduceOptions options = {});
Tensor mean(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor mean(TensorArg x, int64_t dim, ReduceOptions options = {});

// y = Π x; integers and bool give i64 (wrapping). The product of nothing is 1. The derivative is
// right for zeros in x, in every order.
Tensor prod(TensorArg x, ReduceOptions options = {});
Tensor prod(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor prod(TensorArg x, int64_t dim, ReduceOptions options = {});

struct VarOptions {
  double correction = 1;  // divides by n − correction: 1 unbiased, 0 biased
  bool keepdim = false;
};
struct VarMean {
  Tensor var, mean;
};
// y = Σ (x − mean)² / (n − correction), in two passes in f64. NaN when n ≤ correction. Floating
// types.
Tensor var(TensorArg x, VarOptions options = {});
Tensor var(TensorArg x, const Shape& dims, VarOptions options = {});
Tensor var(TensorArg x, int64_t dim, VarOptions options = {});
inline Tensor var(TensorArg x, std::initializer_list<int64_t> dims, VarOptions options = {}) {
  return var(x, Shape(dims), options);  // {0, 1} could be options as well
}
// The square root of var. Its derivative at 0 is taken as 0.
Tensor std(TensorArg x, VarOptions options = {});
Tensor std(TensorArg x, const Shape& dims, VarOptions options = {});
Tensor std(TensorArg x, int64_t dim, VarOptions options = {});
inline Tensor std(TensorArg x, std::initializer_list<int64_t> dims, VarOptions options = {}) {
  return std(x, Shape(dims), options);  // {0, 1} could be options as well
}
VarMean var_mean(TensorArg x, VarOptions options = {});
VarMean var_mean(TensorArg x, const Shape& dims, VarOptions options = {});

// Largest element; NaN wins. The gradient is shared evenly among equal largest elements. Raises
// ShapeError when nothing is reduced into an element. All types.
Tensor amax(TensorArg x, ReduceOptions options = {});
Tensor amax(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor amax(TensorArg x, int64_t dim, ReduceOptions options = {});
Tensor amin(TensorArg x, ReduceOptions options = {});
Tensor amin(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor amin(TensorArg x, int64_t dim, ReduceOptions options = {});

// An element along a dimension, and where it stands (i64).
struct ValuesIndices {
  Tensor values, indices;
};
// Largest element along one dimension with its first index; the gradient goes to that index. The
// form without a dimension is amax.
Tensor max(TensorArg x);
ValuesIndices max(TensorArg x, int64_t dim, ReduceOptions options = {});
Tensor min(TensorArg x);
ValuesIndices min(TensorArg x, int64_t dim, ReduceOptions options = {});

// Index (i64) of the first largest element: of the first NaN if there is one. Without a dimension x
// counts as flattened. All types; no gradient.
Tensor argmax(TensorArg x);
Tensor argmax(TensorArg x, int64_t dim, ReduceOptions options = {});
Tensor argmin(TensorArg x);
Tensor argmin(TensorArg x, int64_t dim, ReduceOptions options = {});

// Lower middle element, not a mean of two; NaN wins. The value-only form shares its gradient evenly
// among equal elements, the other gives it to the index. nanmedian skips NaN.
Tensor median(TensorArg x);
ValuesIndices median(TensorArg x, int64_t dim, ReduceOptions options = {});
Tensor nanmedian(TensorArg x);
ValuesIndices nanmedian(TensorArg x, int64_t dim, ReduceOptions options = {});

// y = log Σ exp(x), without overflow; −inf for nothing or only −inf, with gradient 0 there (other
// libraries give NaN). Floating types.
Tensor logsumexp(TensorArg x, ReduceOptions options = {});
Tensor logsumexp(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor logsumexp(TensorArg x, int64_t dim, ReduceOptions options = {});

// Is any element not zero (NaN is not)? Gives bool; false for nothing. All types; no gradient.
Tensor any(TensorArg x, ReduceOptions options = {});
Tensor any(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor any(TensorArg x, int64_t dim, ReduceOptions options = {});
// Are all elements not zero? True for nothing.
Tensor all(TensorArg x, ReduceOptions options = {});
Tensor all(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor all(TensorArg x, int64_t dim, ReduceOptions options = {});
// Number of elements that are not zero, as i64.
Tensor count_nonzero(TensorArg x, ReduceOptions options = {});
Tensor count_nonzero(TensorArg x, const Shape& dims, ReduceOptions options = {});
Tensor count_nonzero(TensorArg x, int64_t dim, ReduceOptions options = {});

struct NormOptions {
  double p = 2;  // order: 0 counts, ±inf take the extreme of |x|
  bool keepdim = false;
};
// y = (Σ |x|^p)^(1/p) of the elements as one vector. The derivative at the zero vector is taken as
// 0. Floating types. Raises ValueError when p is NaN, ShapeError for −inf over nothing.
Tensor norm(TensorArg x, NormOptions options = {});
Tensor norm(TensorArg x, const Shape& dims, NormOptions options = {});
Tensor norm(TensorArg x, int64_t dim, NormOptions options = {});
inline Tensor norm(TensorArg x, std::initializer_list<int64_t> dims, NormOptions options = {}) {
  return norm(x, Shape(dims), options);  // {0, 1} could be options as well
}

struct NormalizeOptions {
  double p = 2;
  double eps = 1e-12;  // smallest norm to divide by
};
// y = x / max(norm(x), eps) along one dimension.
Tensor normalize(TensorArg x, int64_t dim, NormalizeOptions options = {});

}  // namespace cutaway
