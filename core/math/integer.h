#pragma once
#include <cutaway/core/math/config.h>

#include <type_traits>

// Integer arithmetic without undefined behaviour, for i8, i32, i64 and u8. Results that do not fit
// wrap around, as in NumPy. Nothing here traps; a divisor of 0 must be refused by the caller.

namespace cutaway::math {
namespace detail {

// The unsigned type in which sums and products of T wrap; at least 32 bits wide.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
CUTAWAY_HD Wrapping<T> widen(T x) {
  return static_cast<Wrapping<T>>(x);
}

}  // namespace detail

template <class T>
CUTAWAY_HD T wrap_add(T a, T b) {
  return static_cast<T>(detail::widen(a) + detail::widen(b));
}
template <class T>
CUTAWAY_HD T wrap_sub(T a, T b) {
  return static_cast<T>(detail::widen(a) - detail::widen(b));
}
template <class T>
CUTAWAY_HD T wrap_mul(T a, T b) {
  return static_cast<T>(detail::widen(a) * detail::widen(b));
}
// −a; the most negative number is its own negative.
template <class T>
CUTAWAY_HD T wrap_neg(T a) {
  return static_cast<T>(0 - detail::widen(a));
}
// |a|; the most negative number stays as it is.
template <class T>
CUTAWAY_HD T wrap_abs(T a) {
  return a < T(0) ? wrap_neg(a) : a;
}
// base^exponent for exponent ≥ 0 (checked by the caller); 0^0 = 1.
template <class T>
CUTAWAY_HD T wrap_pow(T base, T exponent) {
  T result = 1;
  for (T e = exponent; e > 0; e = static_cast<T>(e >> 1)) {
    if (e & 1) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
  }
  return result;
}

// −1, 0 or 1.
template <class T>
CUTAWAY_HD T integer_sign(T a) {
  return static_cast<T>((a > T(0)) - (a < T(0)));
}

// Quotient rounded toward −inf, and the remainder with the sign of the divisor:
// a = floor_div(a, b) · b + floor_mod(a, b).  b ≠ 0.  The most negative number by −1 wraps to
// itself.
template <class T>
CUTAWAY_HD T floor_div_int(T a, T b) {
  const bool minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
  const T divisor = minus_one ? T(1) : b;
  const T q = static_cast<T>(a / divisor), r = static_cast<T>(a % divisor);
  const T floored = static_cast<T>(q - (r != 0 && (r < 0) != (b < 0)));
  return minus_one ? wrap_neg(a) : floored;
}
template <class T>
CUTAWAY_HD T floor_mod_int(T a, T b) {
  const bool minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
  const T r = static_cast<T>(a % (minus_one ? T(1) : b));
  return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}
// Quotient rounded toward 0, and C's remainder.
template <class T>
CUTAWAY_HD T trunc_div_int(T a, T b) {
  const bool minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
  return minus_one ? wrap_neg(a) : static_cast<T>(a / (minus_one ? T(1) : b));
}
template <class T>
CUTAWAY_HD T trunc_mod_int(T a, T b) {
  const bool minus_one = std::is_signed_v<T> && b == static_cast<T>(-1);
  return static_cast<T>(a % (minus_one ? T(1) : b));
}

// x as an integer of type T: rounded toward zero, saturated at the ends of T, 0 for NaN. The same
// on every path, where C++ leaves the conversion undefined.
template <class T, class F>
CUTAWAY_HD T saturate(F x) {
  static_assert(std::is_floating_point_v<F> && std::is_integral_v<T>);
  if constexpr (std::is_same_v<T, bool>) {
    return x != F(0);  // NaN is true
  } else {
    constexpr int kDigits = 8 * static_cast<int>(sizeof(T)) - (std::is_signed_v<T> ? 1 : 0);
    constexpr T kHigh = static_cast<T>((uint64_t{1} << (kDigits - 1)) * 2 - 1);
    constexpr T kLow = std::is_signed_v<T> ? static_cast<T>(-kHigh - 1) : T(0);
    // Both bounds are exact: the upper is the first power of two beyond T.
    constexpr F kAbove = F(kHigh / 2 + 1) * F(2), kLowest = F(kLow);
    const bool inside = x > kLowest - F(1) && x < kAbove;  // kLowest − 1 may round to kLowest
    const F safe = inside ? x : F(0);
    using Step = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    T r = static_cast<T>(static_cast<Step>(safe));
    r = x >= kAbove ? kHigh : r;
    return x <= kLowest ? kLow : r;
  }
}

}  // namespace cutaway::math
