#pragma once
#include <cmath>

#include <cutaway/core/math/config.h>

// The gamma function's logarithm and its derivatives, the polygamma functions
// ψ⁽ⁿ⁾(x) = dⁿ⁺¹/dxⁿ⁺¹ ln Γ(x). Computed in f64: recurrence up to large x, then the asymptotic
// series in Bernoulli numbers; negative arguments of ψ and ψ′ by reflection.

namespace cutaway::math {
namespace detail {

inline constexpr double kPi = 3.14159265358979323846;
// B₂ₖ for k = 1 … 10.
CUTAWAY_HD double bernoulli(int k) {
  constexpr double kNumbers[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330};
  return kNumbers[k - 1];
}

// ψ(x) for x > 0.
CUTAWAY_HD double digamma_positive(double x) {
  double sum = 0;
  for (; x < 12; x += 1) sum -= 1 / x;
  const double inverse = 1 / (x * x);
  double power = 1, series = 0;
  for (int k = 1; k <= 8; ++k) {
    power *= inverse;
    series += bernoulli(k) / (2 * k) * power;
  }
  return sum + std::log(x) - 0.5 / x - series;
}

// ψ⁽ⁿ⁾(x) for x > 0, n ≥ 1.
CUTAWAY_HD double polygamma_positive(int n, double x) {
  double factorial = 1;  // (n − 1)!
  for (int i = 2; i < n; ++i) factorial *= i;
  double sum = 0;
  const double from = 20.0 + n;
  for (; x < from; x += 1) sum += factorial * n * std::pow(x, -(n + 1));
  double term = factorial * std::pow(x, -n);
  sum += term + 0.5 * term * n / x;
  // (2k + n − 1)! / (2k)! · x^−(2k + n), step by step.
  const double inverse = 1 / (x * x);
  for (int k = 1; k <= 10; ++k) {
    term *= (2.0 * k + n - 2) * (2.0 * k + n - 1) / ((2.0 * k - 1) * (2.0 * k)) * inverse;
    sum += bernoulli(k) * term;
  }
  return n % 2 == 1 ? sum : -sum;
}

}  // namespace detail

// ln |Γ(x)|; inf at 0 and the negative integers.
CUTAWAY_HD double lgamma(double x) {
#if defined(__CUDA_ARCH__)
  return ::lgamma(x);
#else
  int sign;  // lgamma() itself writes a global variable
  return ::lgamma_r(x, &sign);
#endif
}

// ψ(x) = d/dx ln Γ(x); −inf at 0, NaN at the negative integers.
CUTAWAY_HD double digamma(double x) {
  if (x > 0) return detail::digamma_positive(x);
  if (x == 0) return -detail::with_sign(detail::kInfD, x);
  if (!(x > -detail::kInfD) || x == std::floor(x)) return __builtin_nan("");
  // ψ(1 − x) − ψ(x) = π cot πx; the tangent of the fraction only.
  return detail::digamma_positive(1 - x) -
         detail::kPi / std::tan(detail::kPi * (x - std::floor(x)));
}

// ψ⁽ⁿ⁾(x), n ≥ 0. For n ≥ 2 only x > 0 is supported, else NaN.
CUTAWAY_HD double polygamma(int n, double x) {
  if (n == 0) return digamma(x);
  if (x > 0) return x < detail::kInfD ? detail::polygamma_positive(n, x) : 0;
  if (n > 1 || x != x) return __builtin_nan("");
  if (x == std::floor(x)) return detail::kInfD;
  // ψ′(1 − x) + ψ′(x) = (π / sin πx)².
  const double s = detail::kPi / std::sin(detail::kPi * (x - std::floor(x)));
  return s * s - detail::polygamma_positive(1, 1 - x);
}

}  // namespace cutaway::math
