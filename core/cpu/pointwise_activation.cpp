#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_activation.h>

// Activation functions and their one-pass derivatives.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_activation_kernels() {
  using namespace math::functor;
  set_floats<Relu, 1>(kernels::relu);
  set_floats<ReluGrad, 2>(kernels::relu_grad);
  set_floats<LogSigmoid, 1>(kernels::log_sigmoid);
  set_floats<LogSigmoidGrad, 2>(kernels::log_sigmoid_grad);
  set_floats<Silu, 1>(kernels::silu);
  set_floats<SiluGrad, 2>(kernels::silu_grad);
  set_floats<Gelu, 1>(kernels::gelu);
  set_floats<GeluGrad, 2>(kernels::gelu_grad);
  set_floats<GeluTanh, 1>(kernels::gelu_tanh);
  set_floats<GeluTanhGrad, 2>(kernels::gelu_tanh_grad);
  set_floats<Softsign, 1>(kernels::softsign);
  set_floats<SoftsignGrad, 2>(kernels::softsign_grad);
  set_floats<Hardsigmoid, 1>(kernels::hardsigmoid);
  set_floats<HardsigmoidGrad, 2>(kernels::hardsigmoid_grad);
  set_floats<Hardswish, 1>(kernels::hardswish);
  set_floats<HardswishGrad, 2>(kernels::hardswish_grad);
  set_floats<Mish, 1>(kernels::mish);
  set_floats<MishGrad, 2>(kernels::mish_grad);
  set_floats<LeakyRelu, 1>(kernels::leaky_relu);
  set_floats<LeakyReluGrad, 2>(kernels::leaky_relu_grad);
  set_floats<Softplus, 1>(kernels::softplus);
  set_floats<SoftplusGrad, 2>(kernels::softplus_grad);
  set_floats<Elu, 1>(kernels::elu);
  set_floats<EluGrad, 2>(kernels::elu_grad);
  set_floats<TanhGrad, 2>(kernels::tanh_grad);
  set_floats<SigmoidGrad, 2>(kernels::sigmoid_grad);
  set_floats<HardtanhGrad, 2>(kernels::hardtanh_grad);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
