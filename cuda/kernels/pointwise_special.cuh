#pragma once
#include <cutaway/core/math/functors_float.h>
#include <cutaway/core/math/pointwise_table.h>
#include <cutaway/cuda/kernels/pointwise_loop.cuh>

// Powers, functions of two floats, and special functions.

namespace cutaway::cuda::CUTAWAY_TARGET {

void register_pointwise_special_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_SPECIAL(CUTAWAY_SET)
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
