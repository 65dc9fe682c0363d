#pragma once
#include <cmath>

#include <cutaway/core/math/elementary.h>
#include <cutaway/core/math/functors.h>

// Functors of elementwise kernels on floats: T is float or double. The formulas are in elementary.h.

namespace cutaway::math::functor {

#define CUTAWAY_FUNCTOR1(Name, ...)                                \
  template <class T> struct Name {                                 \
    CUTAWAY_HD T operator()(T x) const { return __VA_ARGS__; }     \
  };
CUTAWAY_FUNCTOR1(Exp, math::exp(x))
CUTAWAY_FUNCTOR1(Expm1, math::expm1(x))
CUTAWAY_FUNCTOR1(Log, math::log(x))
CUTAWAY_FUNCTOR1(Log1p, math::log1p(x))
CUTAWAY_FUNCTOR1(Sqrt, std::sqrt(x))
CUTAWAY_FUNCTOR1(Rsqrt, T(1) / std::sqrt(x))
CUTAWAY_FUNCTOR1(Tanh, math::tanh(x))
CUTAWAY_FUNCTOR1(Sigmoid, math::sigmoid(x))
CUTAWAY_FUNCTOR1(Erf, math::erf(x))
#undef CUTAWAY_FUNCTOR1

}  // namespace cutaway::math::functor
