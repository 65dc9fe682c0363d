#pragma once
#include <optional>

#include <cutaway/autograd/op.h>
#include <cutaway/core/kernels/index.h>

namespace cutaway {

// Ops with indices (i64 or i32). Every index is checked before anything is written; one outside of
// its dimension raises IndexError naming value, position and size. Gradients of repeated indices
// add up.

// y[i, j, …] = x[index[i, j, …], j, …] for dim 0, and so on. x and index have the same number of
// dimensions; index may be smaller outside of dim. Sizes of y are those of index.
Tensor gather(TensorArg x, int64_t dim, TensorArg index);
// As gather, but x and index are broadcast against each other outside of dim.
Tensor take_along_dim(TensorArg x, TensorArg index, int64_t dim);
// y[…, k, …] = x[…, index[k], …] for index [K].
Tensor index_select(TensorArg x, int64_t dim, TensorArg index);

// A copy of x with y[index[i, j, …], j, …] = src[i, j, …] (dim 0). Where indices repeat, the last
// one in row-major order wins, and the gradient goes to it. src is at least as large as index.
Tensor scatter(TensorArg x, int64_t dim, TensorArg index, TensorArg src);
// The same with one value for all places.
Tensor scatter(TensorArg x, int64_t dim, TensorArg index, Scalar value);
// A copy of x with src added at the places of index.
Tensor scatter_add(TensorArg x, int64_t dim, TensorArg index, TensorArg src);
struct ScatterReduceOptions {
  ScatterMode mode = ScatterMode::sum;
  bool include_self = true;  // does the old value of a place that is hit count
};
// A copy of x with the values that meet at a place reduced to their sum, mean, product, maximum or
// minimum. Places that are not hit keep their value. The gradient of amax and amin is shared by
// ties.
Tensor scatter_reduce(TensorArg x, int64_t dim, TensorArg index, TensorArg src,
                      ScatterReduceOptions options);

// A copy of x with y[…, index[k], …] += src[…, k, …], for index [K].
Tensor index_add(TensorArg x, int64_t dim, TensorArg index, TensorArg src);
// A copy of x with y[…, index[k], …] = src[…, k, …]; the last k wins.
Tensor index_copy(TensorArg x, int64_t dim, TensorArg index, TensorArg src);

// Sums over the rows of each segment: x [N,...], ids [N] in any order, y [segments,...]. Zero for
// empty segments.
Tensor segment_sum(TensorArg x, TensorArg ids, int64_t segments);
Tensor segment_mean(TensorArg x, TensorArg ids, int64_t segments);
// Largest and smallest; the gradient is shared by ties.
Tensor segment_max(TensorArg x, TensorArg ids, int64_t segments);
Tensor segment_min(TensorArg x, TensorArg ids, int64_t segments);

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  // this row is read, but gets no gradient
};
// Rows of a table: weight [V,D], ids [...] → y [...,D].
Tensor embedding(TensorArg weight, TensorArg ids, EmbeddingOptions options = {});
enum class BagMode : uint8_t { sum, mean, max };
struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  std::optional<int64_t> padding_idx = {};  // such ids do not count
  Tensor offsets = {};                      // [B] for ids [K]: where each bag begins, ascending
  Tensor weights = {};                      // like ids: factors of the rows, mode sum only
};
// Rows of a table reduced over bags: ids [B,L], or [K] with offsets → y [B,D]. Zero for empty bags.
Tensor embedding_bag(TensorArg weight, TensorArg ids, const EmbeddingBagOptions& options = {});
// One column for each class: ids [...] → y [..., classes], 1 at the id. classes -1: largest id + 1.
Tensor one_hot(TensorArg ids, int64_t classes = -1, DType dtype = DType::i64);
// How often each number occurs: x integers [N] → y [max(max(x) + 1, least)], i64.
Tensor bincount(TensorArg x, int64_t least = 0);

// Indices of the elements that are not zero, in row-major order: [count, dimensions], i64.
Tensor nonzero(TensorArg x);
// The same as one vector for each dimension.
Tensors where(TensorArg condition);
// Elements of x where mask is true, in row-major order; x and mask are broadcast. y [count].
Tensor masked_select(TensorArg x, TensorArg mask);
// A copy of x whose places with true mask get the elements of src, in order. Raises ShapeError when
// src has too few.
Tensor masked_scatter(TensorArg x, TensorArg mask, TensorArg src);

}  // namespace cutaway
