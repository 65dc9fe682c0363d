#pragma once
#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/reduce.h>

namespace cutaway {

// Order: NaN is greater than everything, -0 equals +0, equal elements keep their order (stable).

struct SortOptions {
  bool descending = false;
};
// Elements along `dim` in order, and where each stood (i64). The gradient follows the elements.
ValuesIndices sort(TensorArg x, int64_t dim = -1, SortOptions options = {});
// The indices only.
Tensor argsort(TensorArg x, int64_t dim = -1, SortOptions options = {});

struct TopkOptions {
  bool largest = true;
};
// The k largest (or smallest) elements along `dim`, best first. x [..., n, ...] → [..., k, ...].
// Raises ValueError for k outside of 0 … n.
ValuesIndices topk(TensorArg x, int64_t k, int64_t dim = -1, TopkOptions options = {});
// The k-th smallest element along `dim`, k from 1; the dimension is removed.
ValuesIndices kthvalue(TensorArg x, int64_t k, int64_t dim = -1);

struct UniqueResult {
  Tensor values;   // [groups], ascending
  Tensor inverse;  // sizes of x: x[i] = values[inverse[i]]
  Tensor counts;   // [groups]
};
// The different elements of x. Each NaN is different from every other; -0 and +0 are the same.
UniqueResult unique(TensorArg x);

struct SearchOptions {
  bool right = false;  // behind equal elements instead of before them
};
// Where values would have to be inserted to keep `sorted` [n], or [..., n] with the leading sizes
// of values [..., m], ascending: i64 with the sizes of values.
Tensor searchsorted(TensorArg sorted, TensorArg values, SearchOptions options = {});

}  // namespace cutaway
