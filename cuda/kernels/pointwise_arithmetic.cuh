#pragma once
#include <cutaway/core/math/functors.h>
#include <cutaway/core/math/pointwise_table.h>
#include <cutaway/cuda/kernels/pointwise_loop.cuh>

// Arithmetic on numbers of any kind.

namespace cutaway::cuda::CUTAWAY_TARGET {

void register_pointwise_arithmetic_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_ARITHMETIC(CUTAWAY_SET)
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
