#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors_float.h>
#include <cutaway/core/math/pointwise_table.h>

// Powers, functions of two floats, and special functions.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_special_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_SPECIAL(CUTAWAY_SET)
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
