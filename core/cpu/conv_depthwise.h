#pragma once
#include <algorithm>

#include <cutaway/core/kernels/conv.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

// Positions [first, last) of an output row whose input lies inside [0, n): x = o·stride + shift.
inline void valid_range(int64_t n, int64_t outputs, int64_t stride, int64_t shift, int64_t& first,
                        int64_t& last) {
  first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  last = n - shift <= 0 ? 0 : (n - shift + stride - 1) / stride;
  first = std::min(first, outputs);
  last = std::clamp(last, first, outputs);
}

// Depthwise convolution (groups == c), float or double: the result, the gradients of input and
// weight.
template <class T>
void depthwise_forward(const ConvArgs& a);
template <class T>
void depthwise_input_grad(const ConvArgs& a);
template <class T>
void depthwise_weight_grad(const ConvArgs& a);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
