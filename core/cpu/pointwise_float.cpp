#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_float.h>

// Elementary functions of floats.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_float_kernels() {
  using namespace math::functor;
  set_floats<Exp, 1>(kernels::exp);
  set_floats<Expm1, 1>(kernels::expm1);
  set_floats<Log, 1>(kernels::log);
  set_floats<Log1p, 1>(kernels::log1p);
  set_floats<Sqrt, 1>(kernels::sqrt);
  set_floats<Rsqrt, 1>(kernels::rsqrt);
  set_floats<Tanh, 1>(kernels::tanh);
  set_floats<Sigmoid, 1>(kernels::sigmoid);
  set_floats<Erf, 1>(kernels::erf);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
