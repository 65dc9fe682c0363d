#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// y = x wᵀ + bias over the last dimension: x [..., in], weight [out, in], bias [out] or undefined,
// y [..., out]. Weight is stored as PyTorch stores it. Raises ShapeError when sizes differ,
// DTypeError when types differ.
Tensor linear(TensorArg x, TensorArg weight, TensorArg bias = Tensor());
// y_o = Σ_ij a_i w_oij b_j + bias_o: a [..., n], b [..., m], weight [out, n, m], bias [out] or
// undefined, y [..., out].
Tensor bilinear(TensorArg a, TensorArg b, TensorArg weight, TensorArg bias = Tensor());

}  // namespace cutaway
