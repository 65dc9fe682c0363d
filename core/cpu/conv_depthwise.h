#pragma once
#include <cutaway/core/kernels/conv.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

// Depthwise convolution (groups == c), float or double: the result, the gradients of input and
// weight.
template <class T>
void depthwise_forward(const ConvArgs& a);
template <class T>
void depthwise_input_grad(const ConvArgs& a);
template <class T>
void depthwise_weight_grad(const ConvArgs& a);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
