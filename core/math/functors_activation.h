#pragma once
#include <cutaway/core/math/elementary.h>
#include <cutaway/core/math/functors.h>

// Activation functions and their derivatives in one pass: Name(x) and NameGrad(g, x), or
// NameGrad(g, y) where the derivative is shorter in terms of the result. T is float or double.

namespace cutaway::math::functor {

#define CUTAWAY_FUNCTOR1(Name, ...)                                \
  template <class T> struct Name {                                 \
    CUTAWAY_HD T operator()(T x) const { return __VA_ARGS__; }     \
  };
#define CUTAWAY_GRAD(Name, value, ...)                                    \
  template <class T> struct Name {                                        \
    CUTAWAY_HD T operator()(T g, T value) const { return __VA_ARGS__; }   \
  };
CUTAWAY_FUNCTOR1(Relu, x <= 0 ? T(0) : x)
CUTAWAY_GRAD(ReluGrad, y, y <= 0 ? T(0) : g)
CUTAWAY_GRAD(TanhGrad, y, g * (1 - y * y))
CUTAWAY_GRAD(SigmoidGrad, y, g * (y * (1 - y)))
#undef CUTAWAY_FUNCTOR1
#undef CUTAWAY_GRAD

}  // namespace cutaway::math::functor
