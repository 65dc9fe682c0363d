#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_activation.h>

// Activation functions and their one-pass derivatives.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_activation_kernels() {
  using namespace math::functor;
  set_floats<Relu, 1>(kernels::relu);
  set_floats<ReluGrad, 2>(kernels::relu_grad);
  set_floats<TanhGrad, 2>(kernels::tanh_grad);
  set_floats<SigmoidGrad, 2>(kernels::sigmoid_grad);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
