#pragma once
#include <cutaway/core/math/exponential.h>
#include <cutaway/cuda/device/numbers.h>

namespace cutaway::cuda::CUTAWAY_TARGET {

#if defined(__CUDACC__)
// 2^x to about 2 units in the last place, by the special function unit.
DEVICE float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
inline float exp2_approximate(float x) { return std::exp2(x); }
#endif

// e^x for elements that are stored as T: a 16-bit result needs few of the bits, and the arithmetic
// of the exact form would take longer than moving the data.
template <class T>
DEVICE ComputeOf<T> exp_for(ComputeOf<T> x) {
  if constexpr (kIsHalf<T>) {
    return exp2_approximate(x * 1.44269504f);
  } else {
    return math::exp(x);
  }
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
