#pragma once
#include <type_traits>

#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/integer.h>
#include <cutaway/core/math/rounding.h>

// How elements are stored and what kernels compute in, the same on every device.

namespace cutaway::math {

// The type arithmetic is done in for elements of type S; booleans are bytes 0 and 1.
template <class S>
struct ComputeOf {
  using type = S;
};
template <>
struct ComputeOf<BFloat16> {
  using type = float;
};
template <>
struct ComputeOf<Float16> {
  using type = float;
};
template <>
struct ComputeOf<bool> {
  using type = uint8_t;
};
template <class S>
using Compute = typename ComputeOf<S>::type;

template <class S>
inline constexpr bool kIs16Bit = std::is_same_v<S, BFloat16> || std::is_same_v<S, Float16>;

// The functor of a call: made from its constants, if it has any.
template <class F>
CUTAWAY_HD F make_functor(const PointwiseArgs& args) {
  if constexpr (std::is_constructible_v<F, const PointwiseArgs&>) {
    return F(args);
  } else {
    return F();
  }
}

// Value of x in type To: nearest for floats, toward zero and saturating from float to integer (NaN
// gives 0), modulo 2^bits between integers.
template <class To, class From>
CUTAWAY_HD To convert(From x) {
  if constexpr (kIs16Bit<From>) {
    const float wide = static_cast<float>(x);
    if constexpr (std::is_integral_v<To>) {
      return math::saturate<To>(wide);
    } else {
      return To(wide);
    }
  } else if constexpr (std::is_same_v<From, bool>) {
    return To(x ? 1.0f : 0.0f);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return math::saturate<To>(x);
  } else {
    return To(x);
  }
}
// 1 where x is not 0.
template <class From>
CUTAWAY_HD uint8_t truth(From x) {
  if constexpr (kIs16Bit<From>) {
    return static_cast<float>(x) != 0;
  } else {
    return x != From(0);
  }
}

}  // namespace cutaway::math
