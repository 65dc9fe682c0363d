#pragma once
#include <cutaway/core/math/elementary.h>
#include <cutaway/core/math/functors.h>

// Activation functions and their derivatives in one pass: Name(x), and NameGrad(g, x) or, where the
// derivative is shorter in terms of the result, NameGrad(g, y). T is float or double.

namespace cutaway::math::functor {

#define CUTAWAY_FUNCTOR1(Name, ...)                            \
  template <class T>                                           \
  struct Name {                                                \
    CUTAWAY_HD T operator()(T x) const { return __VA_ARGS__; } \
  };
#define CUTAWAY_GRAD(Name, value, ...)                                  \
  template <class T>                                                    \
  struct Name {                                                         \
    CUTAWAY_HD T operator()(T g, T value) const { return __VA_ARGS__; } \
  };
// g times a function that is written in lanes.
#define CUTAWAY_LANES_GRAD(Name, f)                                    \
  template <class T>                                                   \
  struct Name {                                                        \
    CUTAWAY_HD T operator()(T g, T x) const { return g * math::f(x); } \
    template <class V>                                                 \
    CUTAWAY_HD static V lanes(V g, V x) {                              \
      return g * math::lanes::f(x);                                    \
    }                                                                  \
  };
CUTAWAY_FUNCTOR1(Relu, x <= 0 ? T(0) : x)
CUTAWAY_GRAD(ReluGrad, y, y <= 0 ? T(0) : g)
CUTAWAY_GRAD(TanhGrad, y, g*(1 - y * y))
CUTAWAY_GRAD(SigmoidGrad, y, g*(y*(1 - y)))
CUTAWAY_FUNCTOR1(LogSigmoid, -math::softplus(-x))
CUTAWAY_GRAD(LogSigmoidGrad, x, g* math::sigmoid(-x))
CUTAWAY_LANES1(Silu, silu)
CUTAWAY_LANES_GRAD(SiluGrad, silu_grad)
CUTAWAY_LANES1(Gelu, gelu)
CUTAWAY_LANES_GRAD(GeluGrad, gelu_grad)
CUTAWAY_LANES1(GeluTanh, gelu_tanh)
CUTAWAY_LANES_GRAD(GeluTanhGrad, gelu_tanh_grad)
CUTAWAY_FUNCTOR1(Softsign, x / (1 + detail::abs_of(x)))
CUTAWAY_FUNCTOR1(Hardsigmoid, math::clamp(x / 6 + T(0.5), T(0), T(1)))
CUTAWAY_GRAD(HardsigmoidGrad, x, x > -3 && x < 3 ? g / 6 : T(0))
CUTAWAY_FUNCTOR1(Hardswish, x* math::clamp(x / 6 + T(0.5), T(0), T(1)))
CUTAWAY_GRAD(HardswishGrad, x, x <= -3 ? T(0) : (x >= 3 ? g : g * (x / 3 + T(0.5))))
#undef CUTAWAY_FUNCTOR1
#undef CUTAWAY_GRAD
#undef CUTAWAY_LANES_GRAD

// 1 / (1 + |x|)² · g.
template <class T>
struct SoftsignGrad {
  CUTAWAY_HD T operator()(T g, T x) const {
    const T d = 1 + detail::abs_of(x);
    return g / (d * d);
  }
};

// x tanh(softplus(x)). With e = eˣ, n = e(e + 2) the factor is n / (n + 2).
template <class T>
struct Mish {
  CUTAWAY_HD T operator()(T x) const { return x * math::tanh(math::softplus(x)); }
};
template <class T>
struct MishGrad {
  CUTAWAY_HD T operator()(T g, T x) const {
    const T t = math::tanh(math::softplus(x));
    return g * (t + x * math::sigmoid(x) * (1 - t * t));
  }
};

// x for x > 0, else s x.
template <class T>
struct LeakyRelu : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x) const { return x > 0 ? x : this->s * x; }
};
template <class T>
struct LeakyReluGrad : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T g, T x) const { return x > 0 ? g : this->s * g; }
};

// ln(1 + e^(s x)) / s.
template <class T>
struct Softplus : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T x) const { return math::softplus(x * this->s) / this->s; }
};
template <class T>
struct SoftplusGrad : WithConstant<T> {
  using WithConstant<T>::WithConstant;
  CUTAWAY_HD T operator()(T g, T x) const { return g * math::sigmoid(x * this->s); }
};

// scale · (x > 0 ? x : alpha (e^(rate x) − 1)): ELU, SELU, CELU.
template <class T>
struct Elu {
  T alpha, scale, rate;
  CUTAWAY_HD explicit Elu(const PointwiseArgs& a)
      : alpha(constant<T>(a, 0)), scale(constant<T>(a, 1)), rate(constant<T>(a, 2)) {}
  CUTAWAY_HD T operator()(T x) const { return scale * (x > 0 ? x : alpha * math::expm1(rate * x)); }
};
template <class T>
struct EluGrad {
  T alpha, scale, rate;
  CUTAWAY_HD explicit EluGrad(const PointwiseArgs& a)
      : alpha(constant<T>(a, 0)), scale(constant<T>(a, 1)), rate(constant<T>(a, 2)) {}
  CUTAWAY_HD T operator()(T g, T x) const {
    return g * (x > 0 ? scale : scale * alpha * rate * math::exp(rate * x));
  }
};

// g strictly between the bounds, else 0: what hardtanh passes back.
template <class T>
struct HardtanhGrad {
  T lo, hi;
  CUTAWAY_HD explicit HardtanhGrad(const PointwiseArgs& a)
      : lo(constant<T>(a, 0)), hi(constant<T>(a, 1)) {}
  CUTAWAY_HD T operator()(T g, T x) const { return x <= lo || x >= hi ? T(0) : g; }
};

}  // namespace cutaway::math::functor
