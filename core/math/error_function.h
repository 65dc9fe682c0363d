#pragma once
#include <cutaway/core/math/exponential.h>

// erf, the normal distribution function and the two GELUs, in the manner of exponential.h.

namespace cutaway::math {
namespace detail {

inline constexpr float kInvSqrt2Pi = 0.398942280f;

// Φ(−a) and φ(a) of the standard normal for 0 ≤ a, without their common factor
// e^(−a²/2) = scale.mantissa · scale.scale1 · scale.scale2: tail = Φ(−a) e^(a²/2).
struct NormalTail {
  float tail;
  ExpParts scale;
};
CUTAWAY_HD NormalTail normal_tail(float a) {
  constexpr float kC[] = {0.28266266f, 0.1734768f, 0.052794788f, -0.00369436247f, -0.00655442243f, 0.000640372804f, 0.00100937358f, -0.000273743062f, -0.000124411803f, 6.2944353e-05f};
  const float u = 1.0f / madd(a, 0.4f, 1.0f);
  const float t = madd(u, 2.0f, -1.0f);
  // a²/2 with its rounding error, which e^ would magnify.
  const double square = static_cast<double>(a) * a * 0.5;
  const float high = static_cast<float>(square);
  const float low = static_cast<float>(square - high);
  ExpParts e = exp_parts(-high);
  e.mantissa = madd(e.mantissa, -low, e.mantissa);
  return {u * poly(t, kC), e};
}

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

// Distribution function Φ(x) of the standard normal; accurate in the left tail too.
CUTAWAY_HD float normal_cdf(float x) {
  const float a = detail::abs_of(x);
  const detail::NormalTail n = detail::normal_tail(a > 20.0f ? 20.0f : a);
  const float q = n.tail * n.scale.mantissa * n.scale.scale1 * n.scale.scale2;
  return x < 0.0f ? q : 1.0f - q;
}
CUTAWAY_HD double normal_cdf(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }

// GELU, erf form: x · Φ(x).
CUTAWAY_HD float gelu(float x) {
  const float c = x < -16.0f ? -16.0f : x;
  const float a = detail::abs_of(c);
  const detail::NormalTail n = detail::normal_tail(a > 16.0f ? 16.0f : a);
  const float m = n.tail * n.scale.mantissa;
  const float low = c * m * n.scale.scale1 * n.scale.scale2;
  const float high = c * (1.0f - m * n.scale.scale1 * n.scale.scale2);
  return x < 0.0f ? low : high;
}
CUTAWAY_HD double gelu(double x) {
  const double c = x < -40.0 ? -40.0 : x;
  return c * normal_cdf(c);
}

// Derivative of gelu: Φ(x) + x φ(x).
CUTAWAY_HD float gelu_grad(float x) {
  float c = x < -16.0f ? -16.0f : x;
  c = c > 16.0f ? 16.0f : c;
  const detail::NormalTail n = detail::normal_tail(detail::abs_of(c));
  const float slope = c * detail::kInvSqrt2Pi;
  const bool left = x < 0.0f;
  const float sum = left ? slope + n.tail : slope - n.tail;
  const float y = sum * n.scale.mantissa * n.scale.scale1 * n.scale.scale2;
  return left ? y : 1.0f + y;
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
  const float high = static_cast<float>(z);
  const float low = static_cast<float>(z - high);
  ExpParts e = exp_parts(-high);
  e.mantissa = madd(e.mantissa, -low, e.mantissa);
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
