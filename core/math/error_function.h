#pragma once
#include <cutaway/core/math/exponential.h>

// erf, the normal distribution function and the two GELUs, in the manner of exponential.h. Largest
// errors of the f32 forms: erf 1.2 ulp; erfc, normal_cdf, gelu 5.6 ulp, in the far left tail too;
// gelu_tanh 3.0 ulp; gelu_grad 1.4e−7 and gelu_tanh_grad 2.3e−7 absolute.

namespace cutaway::math {
namespace detail {

inline constexpr float kInvSqrt2Pi = 0.398942280f;

// Φ(−a) for a ≥ 1 without its factor e^(−a²/2), by a polynomial in (1 − 0.4 a) / (1 + 0.4 a).
template <class V>
CUTAWAY_HD V normal_tail(V a) {
  constexpr float kC[] = {0.28266266f,     0.173476875f,     0.0527950898f,
                          -0.00369614596f, -0.00656038383f,  0.000652425166f,
                          0.00105084688f,  -0.000286379858f, -0.000223579686f};
  using L = Lanes<V>;
  const V u = 1.0f / L::madd(a, L::all(0.4f), L::all(1.0f));
  return u * lane_poly(L::madd(u, L::all(2.0f), L::all(-1.0f)), kC);
}
// Φ(x) for |x| ≤ 1.
template <class V>
CUTAWAY_HD V normal_centre(V x) {
  constexpr float kC[] = {0.398942292f,    -0.0664905384f,  0.00997416209f,
                          -0.00118801475f, 0.000115010131f, -8.16509782e-06f};
  return Lanes<V>::madd(x, lane_poly(x * x, kC), Lanes<V>::all(0.5f));
}
// A number as a sum of two floats: rounding it to one would be magnified by an exponential.
template <class V>
struct TwoFloats {
  V high, low;
};
// a² · factor, factor a power of two.
template <class V>
CUTAWAY_HD TwoFloats<V> square(V a, float factor) {
  const V high = a * a;
  return {high * factor, Lanes<V>::product_rest(a, a, high) * factor};
}
// e^−z for 0 ≤ z < 150.
template <class V>
CUTAWAY_HD ExpParts<V> exp_minus(const TwoFloats<V>& z) {
  ExpParts<V> e = exp_parts(-z.high);
  e.mantissa = Lanes<V>::madd(e.mantissa, -z.low, e.mantissa);
  return e;
}

}  // namespace detail

// Error function 2/√π ∫₀ˣ e^(−t²) dt; keeps −0.
CUTAWAY_HD float erf(float x) {
  constexpr float kSmall[] = {0.128379166f,   -0.376126289f,    0.112836257f,   -0.0268557314f,
                              0.00519240508f, -0.000804976968f, 7.99664995e-05f};
  constexpr float kLarge[] = {-1.12864852f,    -0.635151207f,   -0.106237046f,   0.0237622019f,
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
  const ExpParts<float> e = exp_minus(square(a, 1.0f));
  const float tail = e.times(2.0f * normal_tail(1.41421356f * a) * e.mantissa);
  const float far = x < 0.0f ? 2.0f - tail : tail;
  return a < 0.6f ? 1.0f - erf(x) : far;
}
CUTAWAY_HD double erfc(double x) { return std::erfc(x); }

// Distribution function Φ(x) of the standard normal; accurate in the left tail too.
CUTAWAY_HD float normal_cdf(float x) {
  using namespace detail;
  float a = abs_of(x);
  a = a > 16.0f ? 16.0f : a;
  const ExpParts<float> e = exp_minus(square(a, 0.5f));
  const float tail = e.times(normal_tail(a) * e.mantissa);
  const float far = x < 0.0f ? tail : 1.0f - tail;
  return a < 1.0f ? normal_centre(x) : far;
}
CUTAWAY_HD double normal_cdf(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }

namespace lanes {
template <class V>
CUTAWAY_HD V gelu(V x) {
  using namespace detail;
  using L = Lanes<V>;
  const V c = L::at_least(L::all(-16.0f), x), a = L::at_most(L::all(16.0f), L::abs(c));
  const ExpParts<V> e = exp_minus(square(a, 0.5f));
  const V m = normal_tail(a) * e.mantissa;
  const V left = e.times(c * m);  // x first: the product may be subnormal
  const V right = L::select(a < 1.0f, normal_centre(c), 1.0f - e.times(m));
  return L::select(x <= -1.0f, left, c * right);
}
}  // namespace lanes
// GELU, erf form: x · Φ(x).
CUTAWAY_HD float gelu(float x) { return lanes::gelu(x); }
CUTAWAY_HD double gelu(double x) {
  const double c = x < -40.0 ? -40.0 : x;
  return c * normal_cdf(c);
}

namespace lanes {
template <class V>
CUTAWAY_HD V gelu_grad(V x) {
  using namespace detail;
  using L = Lanes<V>;
  const V c = L::at_most(L::all(16.0f), L::at_least(L::all(-16.0f), x)), a = L::abs(c);
  const ExpParts<V> e = exp_minus(square(a, 0.5f));
  const V power = e.value(), tail = normal_tail(a) * power;
  const V far = L::select(x < 0.0f, tail, 1.0f - tail);
  return L::madd(c * kInvSqrt2Pi, power, L::select(a < 1.0f, normal_centre(c), far));
}
}  // namespace lanes
// Derivative of gelu: Φ(x) + x φ(x).
CUTAWAY_HD float gelu_grad(float x) { return lanes::gelu_grad(x); }
CUTAWAY_HD double gelu_grad(double x) {
  double c = x < -40.0 ? -40.0 : x;
  c = c > 40.0 ? 40.0 : c;
  const double density = 0.39894228040143267794 * std::exp(-0.5 * c * c);
  return detail::madd(c, density, normal_cdf(c));
}

namespace detail {
inline constexpr double kGeluScale = 1.59576912160573071176;  // 2 √(2/π)
inline constexpr double kGeluCubic = 0.044715;
// a · K (1 + 0.044715 a²), K = 2 √(2/π), in two floats for |a| ≤ 16.
template <class V>
CUTAWAY_HD TwoFloats<V> gelu_argument(V a) {
  constexpr double kCubic = kGeluScale * kGeluCubic;
  constexpr float kLinear = static_cast<float>(kGeluScale);
  constexpr float kLinearRest = static_cast<float>(kGeluScale - kLinear);
  constexpr float kHigh = static_cast<float>(kCubic), kRest = static_cast<float>(kCubic - kHigh);
  using L = Lanes<V>;
  const V s = a * a, s_rest = L::product_rest(a, a, s);
  const V q = L::madd(s, L::all(kHigh), L::all(kLinear)), part = q - kLinear;
  // What is missing in q: of the sum, of s and of the constants.
  V rest = L::product_rest(s, L::all(kHigh), part) + (kLinear - (q - part));
  rest = L::madd(s_rest, L::all(kHigh), rest + kLinearRest);
  rest = L::madd(s, L::all(kRest), rest);
  const V z = a * q;
  return {z, L::madd(a, rest, L::product_rest(a, q, z))};
}
}  // namespace detail

namespace lanes {
template <class V>
CUTAWAY_HD V gelu_tanh(V x) {
  using namespace detail;
  using L = Lanes<V>;
  const V c = L::at_least(L::all(-16.0f), x), a = L::at_most(L::all(16.0f), L::abs(c));
  const ExpParts<V> e = exp_minus(gelu_argument(a));
  const V sum = 1.0f + e.value();
  const auto left = x < 0.0f;
  const V y = L::select(left, c * e.mantissa, c) / sum;
  return L::select(left, e.times(y), y);
}
}  // namespace lanes
// GELU, tanh form: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))) = x · σ(z), z = 2 √(2/π) (…).
CUTAWAY_HD float gelu_tanh(float x) { return lanes::gelu_tanh(x); }
CUTAWAY_HD double gelu_tanh(double x) {
  const double c = x < -40.0 ? -40.0 : x;
  return c * sigmoid(c * detail::kGeluScale * detail::madd(c * c, detail::kGeluCubic, 1.0));
}

namespace lanes {
template <class V>
CUTAWAY_HD V gelu_tanh_grad(V x) {
  using namespace detail;
  using L = Lanes<V>;
  constexpr float kScale = static_cast<float>(kGeluScale);
  constexpr float kCubic = static_cast<float>(3.0 * kGeluScale * kGeluCubic);
  const V c = L::at_most(L::all(16.0f), L::at_least(L::all(-16.0f), x));
  const V a = L::abs(c);
  const V e = exp_minus(gelu_argument(a)).value(), sum = 1.0f + e;
  const V near = 1.0f / sum, far = e / sum;
  const V dz = L::madd(c * c, L::all(kCubic), L::all(kScale));
  const auto left = x < 0.0f;
  return L::select(left, far, near) * L::madd(c * L::select(left, near, far), dz, L::all(1.0f));
}
}  // namespace lanes
// Derivative of gelu_tanh: σ(z) + x σ(z) σ(−z) z′, z′ = 2 √(2/π) (1 + 3 · 0.044715 x²).
CUTAWAY_HD float gelu_tanh_grad(float x) { return lanes::gelu_tanh_grad(x); }
CUTAWAY_HD double gelu_tanh_grad(double x) {
  using namespace detail;
  double c = x < -40.0 ? -40.0 : x;
  c = c > 40.0 ? 40.0 : c;
  const double z = c * kGeluScale * madd(c * c, kGeluCubic, 1.0);
  const double dz = kGeluScale * madd(c * c, 3.0 * kGeluCubic, 1.0);
  return sigmoid(z) * madd(c * sigmoid(-z), dz, 1.0);
}

}  // namespace cutaway::math
