#pragma once
#include <cutaway/core/math/functors_activation.h>
#include <cutaway/core/math/pointwise_table.h>
#include <cutaway/cuda/kernels/pointwise_loop.cuh>

// Activation functions and their one-pass derivatives.

namespace cutaway::cuda::CUTAWAY_TARGET {

void register_pointwise_activation_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_ACTIVATION(CUTAWAY_SET)
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
