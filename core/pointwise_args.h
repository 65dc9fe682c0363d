#pragma once
#include <initializer_list>

#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/tensor.h>

namespace cutaway {

// Args of an elementwise kernel: operands broadcast to out's sizes (checked by the caller),
// collapsed.
PointwiseArgs pointwise_args(const Tensor& out, const Tensor* const* inputs, int n);
inline PointwiseArgs pointwise_args(const Tensor& out,
                                    std::initializer_list<const Tensor*> inputs) {
  return pointwise_args(out, inputs.begin(), int(inputs.size()));
}

}  // namespace cutaway
