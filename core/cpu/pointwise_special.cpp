#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_float.h>

// Powers, functions of two floats, and special functions.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_special_kernels() {
  using namespace math::functor;
  set_floats<Pow, 2>(kernels::pow);
  set_integers<PowInteger, 2>(kernels::pow);
  set_floats<PowScalar, 1>(kernels::pow_scalar);
  set_floats<PowHalf, 1>(kernels::pow_half);
  set_floats<Cube, 1>(kernels::cube);
  set_integers<PowIntegerScalar, 1>(kernels::pow_scalar);
  set_floats<RpowScalar, 1>(kernels::rpow_scalar);
  set_floats<PowGradBase, 3>(kernels::pow_grad_base);
  set_floats<PowGradExponent, 3>(kernels::pow_grad_exponent);
  set_floats<Atan2, 2>(kernels::atan2);
  set_floats<Copysign, 2>(kernels::copysign);
  set_floats<Xlogy, 2>(kernels::xlogy);
  set_floats<Logaddexp, 2>(kernels::logaddexp);
  set_floats<Hypot, 2>(kernels::hypot);
  set_floats<Lgamma, 1>(kernels::lgamma);
  set_floats<Polygamma, 1>(kernels::polygamma);
  set_floats<Logit, 1>(kernels::logit);
  set_floats<NanToNum, 1>(kernels::nan_to_num);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
