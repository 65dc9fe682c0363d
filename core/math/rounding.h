#pragma once
#include <cutaway/core/math/config.h>

#include <cmath>

// Exact functions: rounding, signs, choice, roots, quotients. All f32 forms but the quotients
// vectorise on every CPU variant.

namespace cutaway::math {

CUTAWAY_HD float abs(float x) { return detail::abs_of(x); }
CUTAWAY_HD double abs(double x) { return detail::abs_of(x); }

// To the nearest integer, ties to even; keeps −0, so round(−0.5) = −0.
CUTAWAY_HD float round(float x) {
#if defined(__SSE4_1__) || defined(__CUDA_ARCH__)
  return __builtin_rintf(x);
#else
  const float a = detail::abs_of(x), r = (a + 0x1p23f) - 0x1p23f;
  return detail::with_sign(a < 0x1p23f ? r : a, x);
#endif
}
CUTAWAY_HD double round(double x) {
#if defined(__SSE4_1__) || defined(__CUDA_ARCH__)
  return __builtin_rint(x);
#else
  const double a = detail::abs_of(x), r = (a + 0x1p52) - 0x1p52;
  return detail::with_sign(a < 0x1p52 ? r : a, x);
#endif
}

// Largest integer not above x; keeps −0 and NaN.
template <class T>
CUTAWAY_HD T floor(T x) {
  const T r = round(x);
  return detail::with_sign(r > x ? r - T(1) : r, x);
}
// Smallest integer not below x; ceil(−0.5) = −0.
template <class T>
CUTAWAY_HD T ceil(T x) {
  const T r = round(x);
  return detail::with_sign(r < x ? r + T(1) : r, x);
}
// Toward zero.
template <class T>
CUTAWAY_HD T trunc(T x) {
  const T a = detail::abs_of(x), r = round(a);
  return detail::with_sign(r > a ? r - T(1) : r, x);
}

// −1, 0 or 1; 0 for ±0, NaN for NaN.
template <class T>
CUTAWAY_HD T sign(T x) {
  const T r = x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
  return x != x ? x : r;
}

// The larger and the smaller of two; NaN when either is NaN (unlike std::fmax). ±0 count as equal.
template <class T>
CUTAWAY_HD T max(T a, T b) {
  const T r = a > b ? a : b;  // b when b is NaN
  return a != a ? a : r;
}
template <class T>
CUTAWAY_HD T min(T a, T b) {
  const T r = a < b ? a : b;
  return a != a ? a : r;
}
// min(max(x, low), high); NaN when any of the three is NaN.
template <class T>
CUTAWAY_HD T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
// max(x, 0), with NaN for NaN and 0 for −0.
template <class T>
CUTAWAY_HD T relu(T x) {
  return x <= T(0) ? T(0) : x;
}

// Correctly rounded root; sqrt(−0) = −0, NaN below.
CUTAWAY_HD float sqrt(float x) { return detail::sqrt_of(x); }
CUTAWAY_HD double sqrt(double x) { return detail::sqrt_of(x); }
// 1 / √x within 1.5 ulp; ±inf at ±0.
template <class T>
CUTAWAY_HD T rsqrt(T x) {
  return T(1) / detail::sqrt_of(x);
}

// Remainder with the sign of the dividend (C's fmod), exact.
CUTAWAY_HD float fmod(float x, float y) { return std::fmod(x, y); }
CUTAWAY_HD double fmod(double x, double y) { return std::fmod(x, y); }
// Remainder with the sign of the divisor: x − floor(x / y) y.
template <class T>
CUTAWAY_HD T remainder(T x, T y) {
  const T r = fmod(x, y);
  return r != T(0) && (r < T(0)) != (y < T(0)) ? r + y : r;
}
// floor of the exact quotient, consistent with remainder; x / 0 is ±inf or NaN.
template <class T>
CUTAWAY_HD T floor_div(T x, T y) {
  if (y == T(0)) return x / y;
  const T r = fmod(x, y);
  T q = (x - r) / y;  // an integer up to rounding
  if (r != T(0) && (r < T(0)) != (y < T(0))) q -= T(1);
  return q == T(0) ? detail::with_sign(T(0), x / y) : round(q);
}

}  // namespace cutaway::math
