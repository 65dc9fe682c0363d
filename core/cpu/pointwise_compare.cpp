#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors.h>

// Comparisons, logic and bits.

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

using namespace math::functor;

template <template <class> class F, int kInputs>
void set_predicate(PointwiseKernel& k) {
  set_numbers<F, kInputs, bool>(k);
  set_bool<F, kInputs, bool>(k);
}
template <template <class> class F, int kInputs>
void set_bits(PointwiseKernel& k) {
  set_integers<F, kInputs>(k);
  set_bool<F, kInputs>(k);
}

}  // namespace

void register_pointwise_compare_kernels() {
  set_predicate<Eq, 2>(kernels::eq);
  set_predicate<Ne, 2>(kernels::ne);
  set_predicate<Lt, 2>(kernels::lt);
  set_predicate<Le, 2>(kernels::le);
  set_predicate<EqScalar, 1>(kernels::eq_scalar);
  set_predicate<NeScalar, 1>(kernels::ne_scalar);
  set_predicate<LtScalar, 1>(kernels::lt_scalar);
  set_predicate<LeScalar, 1>(kernels::le_scalar);
  set_predicate<GtScalar, 1>(kernels::gt_scalar);
  set_predicate<GeScalar, 1>(kernels::ge_scalar);
  set_predicate<LogicalAnd, 2>(kernels::logical_and);
  set_predicate<LogicalOr, 2>(kernels::logical_or);
  set_predicate<LogicalXor, 2>(kernels::logical_xor);
  set_predicate<LogicalNot, 1>(kernels::logical_not);
  set_floats<IsNan, 1, bool>(kernels::isnan);
  set_floats<IsInf, 1, bool>(kernels::isinf);
  set_floats<IsFinite, 1, bool>(kernels::isfinite);
  set_bits<BitAnd, 2>(kernels::bit_and);
  set_bits<BitOr, 2>(kernels::bit_or);
  set_bits<BitXor, 2>(kernels::bit_xor);
  set_integers<BitNot, 1>(kernels::bit_not);
  set_bool<LogicalNot, 1>(kernels::bit_not);
  set_integers<ShiftLeft, 2>(kernels::shift_left);
  set_integers<ShiftRight, 2>(kernels::shift_right);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
