#pragma once
#include <cutaway/core/math/rounding.h>

#include <cmath>

// f32 functions that are computed in f64 throughout: within 0.51 ulp with short polynomials, at
// half the speed of f32 vectors. Powers, logarithms of other bases, hyperbolic functions.

namespace cutaway::math {
namespace detail {

inline constexpr double kRoundD = 0x1.8p52;
inline constexpr double kLog2ED = 0x1.71547652b82fep0, kLn2D = 0x1.62e42fefa39efp-1;

// x = 2^e · m, m in [√½, √2), for normal positive x.
struct Split {
  double e, m;
};
CUTAWAY_HD Split split(double x) {
  constexpr uint64_t kFrom = 0x3fe6a09e667f3bcdu;  // √½
  const uint64_t from = bits(x) - kFrom;
  const double m = from_bits((from & 0xfffffffffffffu) + kFrom);
  // The signed exponent field, offset by 2^11, becomes a double through the low bits of 2^52.
  const double e = from_bits(((from >> 52) ^ 0x800u) | 0x4330000000000000u) - (0x1p52 + 0x800);
  return {e, m};
}
// log2((1 + s) / (1 − s)) for |s| ≤ 0.1716, relative error 2^-45.
CUTAWAY_HD double log2_ratio(double s) {
  constexpr double kC[] = {2.8853900817778499,  0.96179669411347746, 0.57707794232014475,
                           0.41220925732738722, 0.31990547832060368, 0.28290348671447357};
  return s * poly(s * s, kC);
}
CUTAWAY_HD double log2_wide(double x) {
  const Split p = split(x);
  return p.e + log2_ratio((p.m - 1.0) / (p.m + 1.0));
}
// ln(1 + x) for 0 ≤ x < 2^1000, also for tiny x.
CUTAWAY_HD double log1p_wide(double x) {
  const Split p = split(1.0 + x);
  const double f = p.e == 0.0 ? x : p.m - 1.0;
  return kLn2D * (p.e + log2_ratio(f / (f + 2.0)));
}
// 2^x for |x| ≤ 1000, relative error 2^-34.
CUTAWAY_HD double exp2_wide(double x) {
  constexpr double kC[] = {0.99999999996162148,   0.69314718072871429,   0.24022651198754233,
                           0.055504103528383808,  0.0096180271728090322, 0.0013333922850296007,
                           0.00015469317286243304, 1.5201902180181053e-05};
  const double t = x + kRoundD, f = x - (t - kRoundD);
  return poly(f, kC) * from_bits((bits(t) << 52) + 0x3ff0000000000000u);
}
CUTAWAY_HD double exp_wide(double x) { return exp2_wide(x * kLog2ED); }

// log2 of an f32, with −inf at 0, inf at inf, NaN below 0 and at NaN.
CUTAWAY_HD double log2_full(float x) {
  double r = log2_wide(x);
  r = x == 0.0f ? -kInfD : r;
  r = x < 0.0f ? static_cast<double>(kNanF) : r;
  return x == kInfF || x != x ? static_cast<double>(x) : r;
}

}  // namespace detail

// 2^x.
CUTAWAY_HD float exp2(float x) {
  const float c = clamp(x, -200.0f, 200.0f);
  return static_cast<float>(detail::exp2_wide(c));
}
CUTAWAY_HD double exp2(double x) { return std::exp2(x); }

// Logarithms to base 2 and 10; −inf at ±0, NaN below.
CUTAWAY_HD float log2(float x) { return static_cast<float>(detail::log2_full(x)); }
CUTAWAY_HD double log2(double x) { return std::log2(x); }
CUTAWAY_HD float log10(float x) {
  return static_cast<float>(detail::log2_full(x) * 0.30102999566398119521);
}
CUTAWAY_HD double log10(double x) { return std::log10(x); }

// x^y, special values as in C99: pow(x, 0) = pow(1, y) = 1 even for NaN; a negative base needs an
// integral exponent, else NaN.
CUTAWAY_HD float pow(float x, float y) {
  using namespace detail;
  const float a = abs_of(x);
  const double w = static_cast<double>(y) * log2_full(a);
  const double c = w > 200.0 ? 200.0 : w;
  float r = static_cast<float>(exp2_wide(c < -200.0 ? -200.0 : c));
  const float half = y * 0.5f;
  // One selection a step: chains of conditions would keep loops from vectorising.
  const float fraction = floor(y) == y ? 0.0f : kNanF;  // 0 for ±inf
  r += x < 0.0f ? (a == kInfF ? 0.0f : fraction) : 0.0f;
  const uint32_t odd = floor(half) != half ? 0x80000000u : 0u;
  const uint32_t flip = fraction == 0.0f ? odd : 0u;
  r = from_bits(bits(r) ^ (bits(x) & flip));
  r = x == -1.0f ? (abs_of(y) == kInfF ? 1.0f : r) : r;
  r = x == 1.0f ? 1.0f : r;
  return y == 0.0f ? 1.0f : r;
}
CUTAWAY_HD double pow(double x, double y) { return std::pow(x, y); }

// Hyperbolic sine and cosine; inf beyond ±89.4.
CUTAWAY_HD float sinh(float x) {
  const double a = detail::abs_of(clamp(x, -100.0f, 100.0f)), q = a * a;
  constexpr double kC[] = {1.0, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880};
  const double e = detail::exp_wide(a);
  const double r = a < 0.5 ? a * detail::poly(q, kC) : 0.5 * e - 0.5 / e;
  return detail::with_sign(static_cast<float>(r), x);
}
CUTAWAY_HD double sinh(double x) { return std::sinh(x); }
CUTAWAY_HD float cosh(float x) {
  const double e = detail::exp_wide(clamp(x, -100.0f, 100.0f));
  return static_cast<float>(0.5 * e + 0.5 / e);
}
CUTAWAY_HD double cosh(double x) { return std::cosh(x); }

// Inverse hyperbolic functions. acosh: NaN below 1; atanh: ±inf at ±1, NaN beyond.
CUTAWAY_HD float asinh(float x) {
  const double a = detail::abs_of(x);
  const double root = detail::sqrt_of(detail::madd(a, a, 1.0));
  const float r = static_cast<float>(detail::log1p_wide(a + a * a / (1.0 + root)));
  const bool special = detail::abs_of(x) == detail::kInfF || x != x || x == 0.0f;
  return special ? x : detail::with_sign(r, x);
}
CUTAWAY_HD double asinh(double x) { return std::asinh(x); }
CUTAWAY_HD float acosh(float x) {
  const double t = static_cast<double>(x) - 1.0;
  const double d = t < 0.0 ? 0.0 : t;
  const float r = static_cast<float>(detail::log1p_wide(d + detail::sqrt_of(d * (d + 2.0))));
  return x < 1.0f ? detail::kNanF : (x == detail::kInfF || x != x ? x : r);
}
CUTAWAY_HD double acosh(double x) { return std::acosh(x); }
CUTAWAY_HD float atanh(float x) {
  const double a = detail::abs_of(x);
  const double d = a < 1.0 ? a : 0.0;
  float r = static_cast<float>(0.5 * detail::log1p_wide(2.0 * d / (1.0 - d)));
  r = a == 1.0 ? detail::kInfF : (a > 1.0 ? detail::kNanF : r);
  return x != x || x == 0.0f ? x : detail::with_sign(r, x);
}
CUTAWAY_HD double atanh(double x) { return std::atanh(x); }

}  // namespace cutaway::math
