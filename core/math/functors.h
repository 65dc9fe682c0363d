#pragma once
#include <type_traits>

#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/math/config.h>
#include <cutaway/core/math/integer.h>
#include <cutaway/core/math/rounding.h>

// Functors of elementwise kernels on numbers of any kind: T is f64, f32 or an integer type. A
// functor with a constructor takes its constants from the call's PointwiseArgs. Integers wrap
// (integer.h).

namespace cutaway::math::functor {

// Constant number `i` of a call, in the arithmetic type.
template <class T>
CUTAWAY_HD T constant(const PointwiseArgs& a, int i) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(a.scalar[i]);
  } else {
    return static_cast<T>(a.integer[i]);
  }
}

template <class T>
inline constexpr bool kFloat = std::is_floating_point_v<T>;

template <class T>
CUTAWAY_HD T add(T a, T b) {
  if constexpr (kFloat<T>)
    return a + b;
  else
    return wrap_add(a, b);
}
template <class T>
CUTAWAY_HD T sub(T a, T b) {
  if constexpr (kFloat<T>)
    return a - b;
  else
    return wrap_sub(a, b);
}
template <class T>
CUTAWAY_HD T mul(T a, T b) {
  if constexpr (kFloat<T>)
    return a * b;
  else
    return wrap_mul(a, b);
}

// Quotient rounded toward −inf, and the remainder with the sign of the divisor. The integer divisor
// 0, which callers exclude, gives 0.
template <class T>
CUTAWAY_HD T floor_divide(T a, T b) {
  if constexpr (kFloat<T>)
    return math::floor_div(a, b);
  else
    return b == 0 ? T(0) : floor_div_int(a, b);
}
template <class T>
CUTAWAY_HD T remainder(T a, T b) {
  if constexpr (kFloat<T>)
    return math::remainder(a, b);
  else
    return b == 0 ? T(0) : floor_mod_int(a, b);
}

template <class T>
struct Add {
  CUTAWAY_HD T operator()(T a, T b) const { return add(a, b); }
};
template <class T>
struct Sub {
  CUTAWAY_HD T operator()(T a, T b) const { return sub(a, b); }
};
template <class T>
struct Mul {
  CUTAWAY_HD T operator()(T a, T b) const { return mul(a, b); }
};
template <class T>
struct Div {
  CUTAWAY_HD T operator()(T a, T b) const { return a / b; }
};
template <class T>
struct FloorDivide {
  CUTAWAY_HD T operator()(T a, T b) const { return floor_divide(a, b); }
};
template <class T>
struct Remainder {
  CUTAWAY_HD T operator()(T a, T b) const { return remainder(a, b); }
};
template <class T>
struct Maximum {
  CUTAWAY_HD T operator()(T a, T b) const { return math::max(a, b); }
};
template <class T>
struct Minimum {
  CUTAWAY_HD T operator()(T a, T b) const { return math::min(a, b); }
};
// The number if one operand is NaN.
template <class T>
struct Fmax {
  CUTAWAY_HD T operator()(T a, T b) const { return b != b || a > b ? a : b; }
};
template <class T>
struct Fmin {
  CUTAWAY_HD T operator()(T a, T b) const { return b != b || a < b ? a : b; }
};

// ---- with a constant s
template <class T>
struct WithConstant {
  T s;
  CUTAWAY_HD explicit WithConstant(const PointwiseArgs& a) : s(constant<T>(a, 0)) {}
};
#define CUTAWAY_CONSTANT_FUNCTOR(Name, ...)                    \
  template <class T>                                           \
  struct Name : WithConstant<T> {                              \
    using WithConstant<T>::WithConstant;                       \
    using WithConstant<T>::s;                                  \
    CUTAWAY_HD T operator()(T x) const { return __VA_ARGS__; } \
  };
CUTAWAY_CONSTANT_FUNCTOR(AddScalar, add(x, s))
CUTAWAY_CONSTANT_FUNCTOR(RsubScalar, sub(s, x))
CUTAWAY_CONSTANT_FUNCTOR(MulScalar, mul(x, s))
CUTAWAY_CONSTANT_FUNCTOR(DivScalar, x / s)
CUTAWAY_CONSTANT_FUNCTOR(RdivScalar, s / x)
CUTAWAY_CONSTANT_FUNCTOR(FloorDivideScalar, floor_divide(x, s))
CUTAWAY_CONSTANT_FUNCTOR(RemainderScalar, remainder(x, s))
#undef CUTAWAY_CONSTANT_FUNCTOR

// a + s·b.
template <class T>
struct AddScaled : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T a, T b) const { return add(a, mul(this->s, b)); }
};

template <class T>
struct Neg {
  CUTAWAY_HD T operator()(T x) const {
    if constexpr (kFloat<T>)
      return -x;
    else
      return wrap_neg(x);
  }
};
template <class T>
struct Abs {
  CUTAWAY_HD T operator()(T x) const {
    if constexpr (kFloat<T>)
      return detail::abs_of(x);
    else
      return wrap_abs(x);
  }
};
// −1, 0 or 1; NaN stays.
template <class T>
struct Sign {
  CUTAWAY_HD T operator()(T x) const {
    if constexpr (kFloat<T>)
      return math::sign(x);
    else
      return integer_sign(x);
  }
};
template <class T>
struct Square {
  CUTAWAY_HD T operator()(T x) const { return mul(x, x); }
};

// x limited to [scalar 0, scalar 1]; NaN in x or in a bound gives NaN.
template <class T>
struct Clamp {
  T lo, hi;
  CUTAWAY_HD explicit Clamp(const PointwiseArgs& a)
      : lo(constant<T>(a, 0)), hi(constant<T>(a, 1)) {}
  CUTAWAY_HD T operator()(T x) const { return math::clamp(x, lo, hi); }
};
template <class T>
struct ClampTensors {
  CUTAWAY_HD T operator()(T x, T lo, T hi) const { return math::clamp(x, lo, hi); }
};
// g where lo ≤ x ≤ hi, else 0.
template <class T>
struct ClampGrad {
  T lo, hi;
  CUTAWAY_HD explicit ClampGrad(const PointwiseArgs& a)
      : lo(constant<T>(a, 0)), hi(constant<T>(a, 1)) {}
  CUTAWAY_HD T operator()(T g, T x) const { return x < lo || x > hi ? T(0) : g; }
};

// ---- three operands
template <class T>
struct Where {
  CUTAWAY_HD T operator()(uint8_t c, T a, T b) const { return c ? a : b; }
};
// The constant where the mask is set.
template <class T>
struct MaskedFill : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(uint8_t mask, T x) const { return mask ? this->s : x; }
};
template <class T>
struct Lerp {
  CUTAWAY_HD T operator()(T a, T b, T w) const {
    return w < T(0.5) ? a + w * (b - a) : b - (b - a) * (1 - w);
  }
};
template <class T>
struct Addcmul : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x, T a, T b) const { return add(x, mul(this->s, mul(a, b))); }
};
template <class T>
struct Addcdiv : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x, T a, T b) const { return x + this->s * (a / b); }
};

// ---- comparisons and logic: results are booleans, stored as bytes 0 and 1
template <class T>
struct Eq {
  CUTAWAY_HD bool operator()(T a, T b) const { return a == b; }
};
template <class T>
struct Ne {
  CUTAWAY_HD bool operator()(T a, T b) const { return a != b; }
};
template <class T>
struct Lt {
  CUTAWAY_HD bool operator()(T a, T b) const { return a < b; }
};
template <class T>
struct Le {
  CUTAWAY_HD bool operator()(T a, T b) const { return a <= b; }
};
#define CUTAWAY_COMPARE_FUNCTOR(Name, op)                          \
  template <class T>                                               \
  struct Name : WithConstant<T> {                                  \
    using WithConstant<T>::WithConstant;                           \
    CUTAWAY_HD bool operator()(T x) const { return x op this->s; } \
  };
CUTAWAY_COMPARE_FUNCTOR(EqScalar, ==)
CUTAWAY_COMPARE_FUNCTOR(NeScalar, !=)
CUTAWAY_COMPARE_FUNCTOR(LtScalar, <)
CUTAWAY_COMPARE_FUNCTOR(LeScalar, <=)
CUTAWAY_COMPARE_FUNCTOR(GtScalar, >)
CUTAWAY_COMPARE_FUNCTOR(GeScalar, >=)
#undef CUTAWAY_COMPARE_FUNCTOR

template <class T>
struct LogicalAnd {
  CUTAWAY_HD bool operator()(T a, T b) const { return a && b; }
};
template <class T>
struct LogicalOr {
  CUTAWAY_HD bool operator()(T a, T b) const { return a || b; }
};
template <class T>
struct LogicalXor {
  CUTAWAY_HD bool operator()(T a, T b) const { return !a != !b; }
};
template <class T>
struct LogicalNot {
  CUTAWAY_HD bool operator()(T x) const { return !x; }
};
template <class T>
struct IsNan {
  CUTAWAY_HD bool operator()(T x) const { return x != x; }
};
template <class T>
struct IsInf {
  CUTAWAY_HD bool operator()(T x) const { return detail::abs_of(x) == T(__builtin_inf()); }
};
template <class T>
struct IsFinite {
  CUTAWAY_HD bool operator()(T x) const { return x - x == 0; }
};

template <class T>
struct BitAnd {
  CUTAWAY_HD T operator()(T a, T b) const { return T(a & b); }
};
template <class T>
struct BitOr {
  CUTAWAY_HD T operator()(T a, T b) const { return T(a | b); }
};
template <class T>
struct BitXor {
  CUTAWAY_HD T operator()(T a, T b) const { return T(a ^ b); }
};
template <class T>
struct BitNot {
  CUTAWAY_HD T operator()(T x) const { return T(~x); }
};
// Shifts by a count outside [0, bits): all bits leave; to the right the sign stays.
template <class T>
struct ShiftLeft {
  CUTAWAY_HD T operator()(T x, T n) const {
    const bool inside = n >= 0 && n < T(8 * sizeof(T));
    return inside ? T(std::make_unsigned_t<T>(x) << (inside ? n : 0)) : T(0);
  }
};
template <class T>
struct ShiftRight {
  CUTAWAY_HD T operator()(T x, T n) const {
    const bool inside = n >= 0 && n < T(8 * sizeof(T));
    return T(x >> (inside ? n : T(8 * sizeof(T) - 1))) * T(inside || x < 0);
  }
};

}  // namespace cutaway::math::functor
