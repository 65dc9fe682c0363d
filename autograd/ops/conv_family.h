#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// The three members of the convolution family, closed under differentiation: each is bilinear, and
// its derivatives are the other two. Sizes of stride, padding and dilation give the number of
// spatial dimensions.
struct ConvGeometry {
  Shape stride, padding, dilation;
  int64_t groups = 1;
};
// y = conv(x, weight) without bias.
Tensor conv_forward_family(TensorArg x, TensorArg weight, const ConvGeometry& geometry);
// The adjoint in x: the gradient of an input with sizes x_sizes.
Tensor conv_input_grad(TensorArg g, TensorArg weight, const ConvGeometry& geometry,
                       const Shape& x_sizes);
// The adjoint in weight.
Tensor conv_weight_grad(TensorArg x, TensorArg g, const ConvGeometry& geometry,
                        const Shape& weight_sizes);

}  // namespace cutaway
