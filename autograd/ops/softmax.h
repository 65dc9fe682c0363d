#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// y_i = exp(x_i) / Σ_j exp(x_j) along `dim`, without overflow. A list of only −inf gives NaN.
// Floating types; raises IndexError for a dimension out of range.
Tensor softmax(TensorArg x, int64_t dim);
// y_i = x_i − log Σ_j exp(x_j) along `dim`; finite where log(softmax(x)) is not.
Tensor log_softmax(TensorArg x, int64_t dim);
// softmax(−x).
Tensor softmin(TensorArg x, int64_t dim);

}  // namespace cutaway
