#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors.h>
#include <cutaway/core/math/pointwise_table.h>

// Arithmetic on numbers of any kind, and selection.

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

using namespace math::functor;

template <class S>
void set_masked(DType t) {
  kernels::where.set(DeviceKind::cpu, t, &pointwise<Where, S, bool, S, S>);
  kernels::masked_fill.set(DeviceKind::cpu, t, &pointwise<MaskedFill, S, bool, S>);
}

void set_selection() {
  set_masked<double>(DType::f64);
  set_masked<float>(DType::f32);
  set_masked<BFloat16>(DType::bf16);
  set_masked<Float16>(DType::f16);
  set_masked<int64_t>(DType::i64);
  set_masked<int32_t>(DType::i32);
  set_masked<uint8_t>(DType::u8);
  set_masked<int8_t>(DType::i8);
  set_masked<bool>(DType::boolean);
}

}  // namespace

void register_pointwise_arithmetic_kernels() {
  CUTAWAY_POINTWISE_ARITHMETIC(CUTAWAY_SET)
  set_selection();
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
