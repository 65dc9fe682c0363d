#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors.h>
#include <cutaway/core/math/pointwise_table.h>

// Comparisons, logic and bits.

namespace cutaway::cpu::CUTAWAY_VARIANT {

void register_pointwise_compare_kernels() {
  using namespace math::functor;
  CUTAWAY_POINTWISE_COMPARE(CUTAWAY_SET)
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
