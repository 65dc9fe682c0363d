#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_activation.h>
#include <cutaway/core/math/pointwise_table.h>

// Activation functions and their one-pass derivatives.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_activation_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_ACTIVATION(CUTAWAY_SET)
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
