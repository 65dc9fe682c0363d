#pragma once
#include <cutaway/core/math/config.h>

// Note: lanes. The functions of exponential.h and error_function.h that training spends its time in
// are written once, for V = float and for a vector of floats: a loop over floats that g++
// vectorises has no instruction for a minimum or for scaling by a power of two. Lanes<V> is the
// arithmetic that differs; the CPU's vectors are in core/cpu/vector_math.h. Every lane has the bits
// of the scalar.

namespace cutaway::math {

template <class V>
struct Lanes;

template <>
struct Lanes<float> {
  CUTAWAY_HD static float all(float x) { return x; }
  CUTAWAY_HD static float madd(float a, float b, float c) { return detail::madd(a, b, c); }
  // x, but at most or at least `limit`; NaN stays.
  CUTAWAY_HD static float at_most(float limit, float x) { return limit < x ? limit : x; }
  CUTAWAY_HD static float at_least(float limit, float x) { return limit > x ? limit : x; }
  CUTAWAY_HD static float select(bool take, float a, float b) { return take ? a : b; }
  CUTAWAY_HD static float abs(float x) { return detail::abs_of(x); }
  CUTAWAY_HD static float with_sign(float magnitude, float sign) {
    return detail::with_sign(magnitude, sign);
  }
  // a·b − p, rounded once: what rounding lost if p is the rounded product.
  CUTAWAY_HD static float product_rest(float a, float b, float p) {
#if defined(__CUDA_ARCH__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return detail::madd(a, b, -p);
#else
    return static_cast<float>(static_cast<double>(a) * b - p);
#endif
  }
  // x · 2^k for k = t − 1.5 · 2^23, rounded once if 0.5 ≤ |x| < 2 and −252 ≤ k ≤ 254: 2^k in two
  // factors.
  CUTAWAY_HD static float scale(float x, float t) {
    const uint32_t k = detail::bits(t) - 0x4b400000u;
    const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(k) >> 1);
    return x * power(half) * power(k - half);
  }
  // The exponent e of x · 2^−e in [√½, √2), x normal, and that number less 1.
  CUTAWAY_HD static float split(float x, float& rest) {
    const uint32_t from = detail::bits(x) - 0x3f3504f3u;  // √½
    rest = detail::from_bits((from & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    return static_cast<float>(static_cast<int32_t>(from) >> 23);
  }

 private:
  CUTAWAY_HD static float power(uint32_t k) { return detail::from_bits((k + 127u) << 23); }
};

namespace detail {
// Polynomial c[0] + c[1]·x + … by Horner's rule, in lanes.
template <class V, int N>
CUTAWAY_HD V lane_poly(V x, const float (&c)[N]) {
  V sum = Lanes<V>::all(c[N - 1]);
  CUTAWAY_UNROLL
  for (int i = N - 2; i >= 0; --i) sum = Lanes<V>::madd(sum, x, Lanes<V>::all(c[i]));
  return sum;
}
}  // namespace detail

}  // namespace cutaway::math

// A functor of elementwise kernels: function f, which is written in lanes too.
#define CUTAWAY_LANES1(Name, f)                               \
  template <class T>                                          \
  struct Name {                                               \
    CUTAWAY_HD T operator()(T x) const { return math::f(x); } \
    template <class V>                                        \
    CUTAWAY_HD static V lanes(V x) {                          \
      return math::lanes::f(x);                               \
    }                                                         \
  };
