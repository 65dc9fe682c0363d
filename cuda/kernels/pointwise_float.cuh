#pragma once
#include <cutaway/core/math/functors_float.h>
#include <cutaway/core/math/pointwise_table.h>
#include <cutaway/cuda/kernels/pointwise_loop.cuh>

// Elementary functions of floats.

namespace cutaway::cuda::CUTAWAY_TARGET {

void register_pointwise_float_kernels() {
  using namespace math::functor;
  set_floats<Sin, 1>(kernels::sin);
  set_floats<Cos, 1>(kernels::cos);
  CUTAWAY_POINTWISE_ELEMENTARY(CUTAWAY_SET)
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
