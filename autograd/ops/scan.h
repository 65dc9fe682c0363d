#pragma once
#include <cutaway/autograd/ops/reduce.h>

namespace cutaway {

// Running results along one dimension; y has the sizes of x. `dim` counts from the end when
// negative (IndexError when out of range).
struct ScanOptions {
  bool reverse = false;    // run from the last element to the first
  bool exclusive = false;  // element i does not take part in result i
};

// y_i = Σ_{j≤i} x_j. Floating types accumulate in f64, each result rounds once; integers and bool
// give i64 (wrapping).
Tensor cumsum(TensorArg x, int64_t dim, ScanOptions options = {});
// y_i = Π_{j≤i} x_j. The derivative is right for zeros in x, in every order.
Tensor cumprod(TensorArg x, int64_t dim, ScanOptions options = {});
// y_i = log Σ_{j≤i} exp(x_j), without overflow. Floating types.
Tensor logcumsumexp(TensorArg x, int64_t dim);
// Largest element so far and its index (i64), the last one of equal elements; NaN wins. The
// gradient goes to the index.
ValuesIndices cummax(TensorArg x, int64_t dim);
ValuesIndices cummin(TensorArg x, int64_t dim);

struct LinearScanOptions {
  bool reverse = false;  // t_i depends on t_{i+1}
  bool shifted = false;  // the factor stands at the element before: t_i = b_i + a_{i−1} t_{i−1}
};
// First-order linear recurrence t_i = b_i + a_i t_{i−1} with t_{−1} = 0. a and b have equal sizes
// and type (floating). Raises ShapeError.
Tensor linear_scan(TensorArg a, TensorArg b, int64_t dim, LinearScanOptions options = {});

}  // namespace cutaway
