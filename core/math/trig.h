#pragma once
#include <cutaway/core/math/config.h>

#include <cmath>

// Trigonometric functions, right over the whole f32 range. The argument is an exact number, and so
// is the remainder modulo π/2 here: in f64 up to |x| = kTrigBound, by multiplication with a window
// of the bits of 2/π beyond. The second way needs a branch, so loops over sin, cos and tan do not
// vectorise; rows.h offers whole rows that do, from sin_bounded and cos_bounded, with the same
// bits.

namespace cutaway::math {

inline constexpr float kTrigBound = 0x1p27f;

namespace detail {

// x = quarter · π/2 + rest modulo 2π, |rest| ≤ π/4 and a little.
struct Reduced {
  double rest;
  uint32_t quarter;
};

// For |x| ≤ kTrigBound. π/2 in three parts; quarter times the first two is exact.
CUTAWAY_HD Reduced reduce_bounded(float x) {
  const double d = x, t = madd(d, 0x1.45f306dc9c883p-1, 0x1.8p52), n = t - 0x1.8p52;
  double r = madd(n, -0x1.921fb5p0, d);
  r = madd(n, -0x1.110b46p-26, r);
  r = madd(n, -0x1.1a62633145c06p-54, r);
  return {r, static_cast<uint32_t>(bits(t))};
}

// For finite |x| ≥ 2^26. With x = m · 2^s, m of 24 bits, the bits of 2/π that give whole turns drop
// out; the next 96 bits times m give the quarter and 62 bits of the fraction (Payne and Hanek,
// 1983).
CUTAWAY_HD Reduced reduce_large(float x) {
  constexpr uint32_t kTwoOverPi[] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                     0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
  const uint32_t u = bits(x) & 0x7fffffffu;
  const uint64_t m = (u & 0x7fffffu) | 0x800000u;
  const uint32_t skip = (u >> 23) - 152, word = skip / 32, shift = skip % 32;  // skip = s − 2
  uint32_t w[3] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t high = kTwoOverPi[word + i], low = kTwoOverPi[word + i + 1];
    w[i] = static_cast<uint32_t>((high << 32 | low) >> (32 - shift));
  }
  const uint64_t top = (m * w[0] << 32) + m * w[1] + (m * w[2] >> 32);
  const uint64_t quarter = (top + (uint64_t{1} << 61)) >> 62;
  const double rest =
      static_cast<double>(static_cast<int64_t>(top - (quarter << 62))) * 0x1.921fb54442d18p-62;
  const uint32_t q = static_cast<uint32_t>(quarter);
  return bits(x) >> 31 != 0 ? Reduced{-rest, 0u - q} : Reduced{rest, q};
}
CUTAWAY_HD Reduced reduce(float x) {
  const float a = abs_of(x);
  if (a > kTrigBound && a < kInfF) return reduce_large(x);
  return reduce_bounded(x);  // NaN for ±inf and NaN
}

// sin(rest + quarter · π/2).
CUTAWAY_HD float sin_of(Reduced a) {
  constexpr float kS[] = {-0x1.555556p-3f, 0x1.111174p-7f, -0x1.a05954p-13f, 0x1.7c2c4ep-19f};
  constexpr float kC[] = {0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80cp-16f};
  const float r = static_cast<float>(a.rest), q = r * r;
  const float s = madd(q * r, poly(q, kS), r);
  const float c = madd(q * q, poly(q, kC), madd(q, -0.5f, 1.0f));
  const float y = (a.quarter & 1u) != 0 ? c : s;
  return from_bits(bits(y) ^ ((a.quarter & 2u) << 30));
}
CUTAWAY_HD float tan_of(Reduced a) {
  constexpr double kS[] = {0.99999999999544575, -0.16666666630416963, 0.0083333286873485245,
                           -0.00019839177515707817, 2.7171450838543233e-06};
  constexpr double kC[] = {0.99999999999993427,   -0.49999999999270484,   0.041666666533580109,
                           -0.001388887992871639, 2.4798843102946573e-05, -2.7167899812111213e-07};
  const double q = a.rest * a.rest, s = a.rest * poly(q, kS), c = poly(q, kC);
  const bool odd = (a.quarter & 1u) != 0;
  return static_cast<float>((odd ? -c : s) / (odd ? s : c));
}

// atan(a / b) in [0, π/2] for a, b ≥ 0; 0 for 0/0 and π/4 for inf/inf.
CUTAWAY_HD double atan_quotient(double a, double b) {
  constexpr double kC[] = {0.99999999962823227,    -0.33333323935273257, 0.19999604636972851,
                           -0.1427915964617561,    0.1105450137189652,   -0.087987729944066867,
                           0.067161105236113058,   -0.04435754812706217, 0.022274407281736894,
                           -0.0071994114247659353, 0.0010911167650529525};
  const bool steep = a > b;
  const double top = steep ? b : a, below = steep ? a : b;
  double t = top / below;
  t = below == 0.0 ? 0.0 : t;
  t = top == kInfD ? 1.0 : t;
  const double r = t * poly(t * t, kC);
  return steep ? 0x1.921fb54442d18p0 - r : r;
}

}  // namespace detail

// For |x| ≤ kTrigBound (NaN for infinities and NaN): no branch, for vector loops.
CUTAWAY_HD float sin_bounded(float x) {
  const float y = detail::sin_of(detail::reduce_bounded(x));
  return x == 0.0f ? x : y;
}
CUTAWAY_HD float cos_bounded(float x) {
  detail::Reduced a = detail::reduce_bounded(x);
  ++a.quarter;
  return detail::sin_of(a);
}

// Sine, cosine, tangent of x in radians; NaN for ±inf. Keep −0 where the function is odd.
CUTAWAY_HD float sin(float x) {
  const float y = detail::sin_of(detail::reduce(x));
  return x == 0.0f ? x : y;
}
CUTAWAY_HD double sin(double x) { return std::sin(x); }
CUTAWAY_HD float cos(float x) {
  detail::Reduced a = detail::reduce(x);
  ++a.quarter;
  return detail::sin_of(a);
}
CUTAWAY_HD double cos(double x) { return std::cos(x); }
CUTAWAY_HD float tan(float x) {
  const float y = detail::tan_of(detail::reduce(x));
  return x == 0.0f ? x : y;
}
CUTAWAY_HD double tan(double x) { return std::tan(x); }

// Angle of the point (x, y) in [−π, π], with the sign of y; IEEE rules for ±0 and infinities.
CUTAWAY_HD float atan2(float y, float x) {
  const double r = detail::atan_quotient(detail::abs_of(y), detail::abs_of(x));
  const double turned = detail::bits(x) >> 31 != 0 ? 0x1.921fb54442d18p1 - r : r;
  const float angle = detail::with_sign(static_cast<float>(turned), y);
  return x != x || y != y ? x + y : angle;
}
CUTAWAY_HD double atan2(double y, double x) { return std::atan2(y, x); }
CUTAWAY_HD float atan(float x) { return atan2(x, 1.0f); }
CUTAWAY_HD double atan(double x) { return std::atan(x); }

// Inverse sine and cosine; NaN beyond ±1.
CUTAWAY_HD float asin(float x) {
  const double a = detail::abs_of(x), side = detail::sqrt_of((1.0 - a) * (1.0 + a));
  const float r = detail::with_sign(static_cast<float>(detail::atan_quotient(a, side)), x);
  return a <= 1.0 ? r : detail::kNanF;
}
CUTAWAY_HD double asin(double x) { return std::asin(x); }
CUTAWAY_HD float acos(float x) {
  const double a = detail::abs_of(x), side = detail::sqrt_of((1.0 - a) * (1.0 + a));
  const double r = detail::atan_quotient(side, a);
  return a <= 1.0 ? static_cast<float>(x < 0.0f ? 0x1.921fb54442d18p1 - r : r) : detail::kNanF;
}
CUTAWAY_HD double acos(double x) { return std::acos(x); }

}  // namespace cutaway::math
