#pragma once
#include <cutaway/core/math/exponential.h>

// erf, the normal distribution function and the two GELUs, in the manner of exponential.h. Largest
// errors of the f32 forms: erf 1.2 ulp; erfc, normal_cdf, gelu 5.6 ulp, in the far left tail too;
// gelu_tanh 3.0 ulp; gelu_grad 1.4e−7 and gelu_tanh_grad 2.3e−7 absolute.

namespace cutaway::math {
namespace detail {

inline constexpr float kInvSqrt2Pi = 0.398942280f;

// Φ(−a) for a ≥ 1 without its factor e^(−a²/2), by a polynomial in (1 − 0.4 a) / (1 + 0.4 a).
CUTAWAY_HD float normal_tail(float a) {
  constexpr float kC[] = {0.28266266f,      0.173476875f,     0.0527950898f,
                          -0.00369614596f,  -0.00656038383f,  0.000652425166f,
                          0.00105084688f,   -0.000286379858f, -0.000223579686f};
  const float u = 1.0f / madd(a, 0.4f, 1.0f);
  return u * poly(madd(u, 2.0f, -1.0f), kC);
}
// Φ(x) for |x| ≤ 1.
CUTAWAY_HD float normal_centre(float x) {
  constexpr float kC[] = {0.398942292f,   -0.0664905384f,  0.00997416209f,
                          -0.00118801475f, 0.000115010131f, -8.16509782e-06f};
  return madd(x, poly(x * x, kC), 0.5f);
}
// e^−z for 0 ≤ z < 150, z given in f64: its rounding to f32 would be magnified by z.
CUTAWAY_HD ExpParts exp_minus(double z) {
  const float high = static_cast<float>(z);
  const float low = static_cast<float>(z - high);
  ExpParts e = exp_parts(-high);
  e.mantissa = madd(e.mantissa, -low, e.mantissa);
  return e;
}
CUTAWAY_HD double half_square(float a) { return static_cast<double>(a) * a * 0.5; }

}  // namespace detail

// Error function 2/√π ∫₀ˣ e^(−t²) dt; keeps −0.
CUTAWAY_HD float erf(float x) {
  constexpr float kSmall[] = {0.128379166f,     -0.376126289f,   0.112836257f,  -0.0268557314f,
                              0.00519240508f, -0.000804976968f, 7.99664995e-05f};
  constexpr float kLarge[] = {-1.12864852f,    -0.635151207f,     -0.106237046f,  0.0237622019f,
                              -0.00364251831f, 0.000322815264f, -1.12331491e-05f};
  using namespace detail;
  float a = abs_of(x);
  a = a > 4.0f ? 4.0f : a;
  const float s = a * a;
  const float small = madd(a, poly(s, kSmall), a);
  const float large = 1.0f - exp(a * poly(a, kLarge));  // erfc(a) = e^(a·P(a))
  return with_sign(a < 0.92f ? small : large, x);
}
CUTAWAY_HD double erf(double x) { return std::erf(x); }

// 1 − erf(x), accurate for large x too.
CUTAWAY_HD float erfc(float x) {
  using namespace detail;
  float a = abs_of(x);
  a = a > 12.0f ? 12.0f : a;
  const ExpParts e = exp_minus(2.0 * half_square(a));
  const float tail = 2.0f * normal_tail(1.41421356f * a) * e.mantissa * e.scale1 * e.scale2;
  const float far = x < 0.0f ? 2.0f - tail : tail;
  return a < 0.6f ? 1.0f - erf(x) : far;
}
CUTAWAY_HD double erfc(double x) { return std::erfc(x); }

// Distribution function Φ(x) of the standard normal; accurate in the left tail too.
CUTAWAY_HD float normal_cdf(float x) {
  using namespace detail;
  float a = abs_of(x);
  a = a > 16.0f ? 16.0f : a;
  const ExpParts e = exp_minus(half_square(a));
  const float tail = normal_tail(a) * e.mantissa * e.scale1 * e.scale2;
  const float far = x < 0.0f ? tail : 1.0f - tail;
  return a < 1.0f ? normal_centre(x) : far;
}
CUTAWAY_HD double normal_cdf(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }

// GELU, erf form: x · Φ(x).
CUTAWAY_HD float gelu(float x) {
  using namespace detail;
  const float c = x < -16.0f ? -16.0f : x;
  float a = abs_of(c);
  a = a > 16.0f ? 16.0f : a;
  const ExpParts e = exp_minus(half_square(a));
  const float m = normal_tail(a) * e.mantissa;
  const float left = c * m * e.scale1 * e.scale2;  // x first: the product may be subnormal
  const float right = a < 1.0f ? normal_centre(c) : 1.0f - m * e.scale1 * e.scale2;
  return x <= -1.0f ? left : c * right;
}
CUTAWAY_HD double gelu(double x) {
  const double c = x < -40.0 ? -40.0 : x;
  return c * normal_cdf(c);
}

// Derivative of gelu: Φ(x) + x φ(x).
CUTAWAY_HD float gelu_grad(float x) {
  using namespace detail;
  float c = x < -16.0f ? -16.0f : x;
  c = c > 16.0f ? 16.0f : c;
  const float a = abs_of(c);
  const ExpParts e = exp_minus(half_square(a));
  const float power = e.mantissa * e.scale1 * e.scale2;
  const float tail = normal_tail(a) * power;
  const float far = x < 0.0f ? tail : 1.0f - tail;
  return madd(c * kInvSqrt2Pi, power, a < 1.0f ? normal_centre(c) : far);
}
CUTAWAY_HD double gelu_grad(double x) {
  double c = x < -40.0 ? -40.0 : x;
  c = c > 40.0 ? 40.0 : c;
  const double density = 0.39894228040143267794 * std::exp(-0.5 * c * c);
  return detail::madd(c, density, normal_cdf(c));
}

namespace detail {
inline constexpr double kGeluScale = 1.59576912160573071176;  // 2 √(2/π)
inline constexpr double kGeluCubic = 0.044715;
}  // namespace detail

// GELU, tanh form: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))) = x · σ(z), z = 2 √(2/π) (…).
CUTAWAY_HD float gelu_tanh(float x) {
  using namespace detail;
  const float c = x < -16.0f ? -16.0f : x;
  float a = abs_of(c);
  a = a > 16.0f ? 16.0f : a;
  const double d = a;
  const double z = d * kGeluScale * madd(d * d, kGeluCubic, 1.0);
  const ExpParts e = exp_minus(z);
  const float sum = 1.0f + e.mantissa * e.scale1 * e.scale2;
  const bool left = x < 0.0f;
  const float y = (left ? c * e.mantissa : c) / sum;
  return y * (left ? e.scale1 : 1.0f) * (left ? e.scale2 : 1.0f);
}
CUTAWAY_HD double gelu_tanh(double x) {
  const double c = x < -40.0 ? -40.0 : x;
  return c * sigmoid(c * detail::kGeluScale * detail::madd(c * c, detail::kGeluCubic, 1.0));
}

// Derivative of gelu_tanh: σ(z) + x σ(z) σ(−z) z′, z′ = 2 √(2/π) (1 + 3 · 0.044715 x²).
CUTAWAY_HD float gelu_tanh_grad(float x) {
  using namespace detail;
  float c = x < -16.0f ? -16.0f : x;
  c = c > 16.0f ? 16.0f : c;
  const double d = c;
  const float z = static_cast<float>(d * kGeluScale * madd(d * d, kGeluCubic, 1.0));
  const float e = exp(-abs_of(z)), sum = 1.0f + e;
  const float near = 1.0f / sum, far = e / sum;
  const float dz = static_cast<float>(kGeluScale * madd(d * d, 3.0 * kGeluCubic, 1.0));
  const bool left = x < 0.0f;
  return (left ? far : near) * madd(c * (left ? near : far), dz, 1.0f);
}
CUTAWAY_HD double gelu_tanh_grad(double x) {
  using namespace detail;
  double c = x < -40.0 ? -40.0 : x;
  c = c > 40.0 ? 40.0 : c;
  const double z = c * kGeluScale * madd(c * c, kGeluCubic, 1.0);
  const double dz = kGeluScale * madd(c * c, 3.0 * kGeluCubic, 1.0);
  return sigmoid(z) * madd(c * sigmoid(-z), dz, 1.0);
}

}  // namespace cutaway::math
