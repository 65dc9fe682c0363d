#pragma once
#include <initializer_list>

#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/tensor.h>

namespace cutaway {

// Args of an elementwise kernel: operands broadcast to out's sizes (checked by the caller), collapsed.
PointwiseArgs pointwise_args(const Tensor& out, std::initializer_list<const Tensor*> inputs);

}  // namespace cutaway
