#pragma once
#include <cutaway/core/math/functors.h>
#include <cutaway/core/math/pointwise_table.h>
#include <cutaway/cuda/kernels/pointwise_loop.cuh>

// Comparisons, logic and bits.

namespace cutaway::cuda::CUTAWAY_TARGET {

void register_pointwise_compare_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_COMPARE(CUTAWAY_SET)
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
