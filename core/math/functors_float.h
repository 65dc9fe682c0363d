#pragma once
#include <cmath>

#include <cutaway/core/math/elementary.h>
#include <cutaway/core/math/functors.h>
#include <cutaway/core/math/gamma.h>

// Functors of elementwise kernels on floats: T is float or double. The formulas are in
// elementary.h.

namespace cutaway::math::functor {

#define CUTAWAY_FUNCTOR1(Name, ...)                            \
  template <class T>                                           \
  struct Name {                                                \
    CUTAWAY_HD T operator()(T x) const { return __VA_ARGS__; } \
  };
CUTAWAY_LANES1(Exp, exp)
CUTAWAY_FUNCTOR1(Exp2, math::exp2(x))
CUTAWAY_FUNCTOR1(Expm1, math::expm1(x))
CUTAWAY_LANES1(Log, log)
CUTAWAY_FUNCTOR1(Log2, math::log2(x))
CUTAWAY_FUNCTOR1(Log10, math::log10(x))
CUTAWAY_FUNCTOR1(Log1p, math::log1p(x))
CUTAWAY_FUNCTOR1(Sqrt, math::sqrt(x))
CUTAWAY_FUNCTOR1(Rsqrt, math::rsqrt(x))
CUTAWAY_FUNCTOR1(Sin, math::sin(x))
CUTAWAY_FUNCTOR1(Cos, math::cos(x))
CUTAWAY_FUNCTOR1(Tan, math::tan(x))
CUTAWAY_FUNCTOR1(Asin, math::asin(x))
CUTAWAY_FUNCTOR1(Acos, math::acos(x))
CUTAWAY_FUNCTOR1(Atan, math::atan(x))
CUTAWAY_FUNCTOR1(Sinh, math::sinh(x))
CUTAWAY_FUNCTOR1(Cosh, math::cosh(x))
CUTAWAY_LANES1(Tanh, tanh)
CUTAWAY_FUNCTOR1(Asinh, math::asinh(x))
CUTAWAY_FUNCTOR1(Acosh, math::acosh(x))
CUTAWAY_FUNCTOR1(Atanh, math::atanh(x))
CUTAWAY_LANES1(Sigmoid, sigmoid)
CUTAWAY_FUNCTOR1(Erf, math::erf(x))
CUTAWAY_FUNCTOR1(Erfc, math::erfc(x))
CUTAWAY_FUNCTOR1(Lgamma, T(math::lgamma(double(x))))
CUTAWAY_FUNCTOR1(Floor, math::floor(x))
CUTAWAY_FUNCTOR1(Ceil, math::ceil(x))
CUTAWAY_FUNCTOR1(Round, math::round(x))
CUTAWAY_FUNCTOR1(Trunc, math::trunc(x))
CUTAWAY_FUNCTOR1(Frac, x - math::trunc(x))
#undef CUTAWAY_FUNCTOR1

#define CUTAWAY_FUNCTOR2(Name, ...)                                 \
  template <class T>                                                \
  struct Name {                                                     \
    CUTAWAY_HD T operator()(T a, T b) const { return __VA_ARGS__; } \
  };
CUTAWAY_FUNCTOR2(Pow, math::pow(a, b))
CUTAWAY_FUNCTOR2(Atan2, math::atan2(a, b))
CUTAWAY_FUNCTOR2(Copysign, detail::with_sign(a, b))
// a ln b, 0 at a = 0.
CUTAWAY_FUNCTOR2(Xlogy, a == 0 && b == b ? T(0) : a * math::log(b))
// ln(eᵃ + eᵇ).
CUTAWAY_FUNCTOR2(Logaddexp, a == b
                                ? a + T(0.69314718055994530942)
                                : math::max(a, b) + math::log1p(math::exp(-detail::abs_of(a - b))))
#undef CUTAWAY_FUNCTOR2

// √(a² + b²) without overflow on the way; inf if one is infinite.
template <class T>
struct Hypot {
  CUTAWAY_HD T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 4) {
      const double x = a, y = b;
      const float h = float(math::sqrt(x * x + y * y));
      const bool inf = detail::abs_of(a) == detail::kInfF || detail::abs_of(b) == detail::kInfF;
      return inf ? detail::kInfF : h;
    } else {
      return std::hypot(a, b);
    }
  }
};

// x^s, and the exponents ½ and 3 by other means that give the same special values.
template <class T>
struct PowScalar : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x) const { return math::pow(x, this->s); }
};
template <class T>
struct PowHalf {
  CUTAWAY_HD T operator()(T x) const { return x == -T(detail::kInfD) ? -x : math::sqrt(x + T(0)); }
};
template <class T>
struct Cube {
  CUTAWAY_HD T operator()(T x) const { return x * x * x; }
};
template <class T>
struct RpowScalar : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x) const { return math::pow(this->s, x); }
};
// For integers: the exponent is not negative.
template <class T>
struct PowInteger {
  CUTAWAY_HD T operator()(T a, T b) const { return wrap_pow(a, b); }
};
template <class T>
struct PowIntegerScalar {
  int64_t s;
  CUTAWAY_HD explicit PowIntegerScalar(const PointwiseArgs& a) : s(a.integer[0]) {}
  CUTAWAY_HD T operator()(T x) const {
    T result = 1;
    for (int64_t e = s; e > 0; e >>= 1) {
      if (e & 1) result = wrap_mul(result, x);
      x = wrap_mul(x, x);
    }
    return result;
  }
};
// Partial derivatives of a^b times g: g b a^(b−1), and g a^b ln a where y = a^b. 0 where the power
// is constant: at b = 0, and at a = 0 with b ≥ 0.
template <class T>
struct PowGradBase {
  CUTAWAY_HD T operator()(T g, T a, T b) const {
    return b == 0 ? T(0) : g * (b * math::pow(a, b - 1));
  }
};
template <class T>
struct PowGradExponent {
  CUTAWAY_HD T operator()(T g, T a, T b) const {
    return a == 0 && b >= 0 ? T(0) : g * (math::pow(a, b) * math::log(a));
  }
};

template <class T>
struct Polygamma {
  int n;
  CUTAWAY_HD explicit Polygamma(const PointwiseArgs& a) : n(int(a.integer[0])) {}
  CUTAWAY_HD T operator()(T x) const { return T(math::polygamma(n, double(x))); }
};

// ln(p / (1 − p)), p = x limited to [s, 1 − s] (not limited for s < 0).
template <class T>
struct Logit : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x) const {
    const T s = this->s;
    const T p = s < 0 ? x : math::clamp(x, s, 1 - s);
    return math::log(p) - math::log1p(-p);
  }
};

// NaN, inf, −inf replaced by the three constants.
template <class T>
struct NanToNum {
  T nan, high, low;
  CUTAWAY_HD explicit NanToNum(const PointwiseArgs& a)
      : nan(constant<T>(a, 0)), high(constant<T>(a, 1)), low(constant<T>(a, 2)) {}
  CUTAWAY_HD T operator()(T x) const {
    const T inf = T(detail::kInfD);
    const T r = x == inf ? high : x;
    return x != x ? nan : (x == -inf ? low : r);
  }
};

}  // namespace cutaway::math::functor
