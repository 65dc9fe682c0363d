#include <cutaway/core/cpu/pointwise_loop.h>
#include <cutaway/core/math/functors.h>

// Arithmetic on numbers of any kind, and selection. Booleans: sum is or, product is and.

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
  set_floats<Lerp, 3>(kernels::lerp);
  set_numbers<Addcmul, 3>(kernels::addcmul);
  set_floats<Addcdiv, 3>(kernels::addcdiv);
  set_numbers<Clamp, 1>(kernels::clamp);
  set_numbers<ClampTensors, 3>(kernels::clamp_tensors);
  set_floats<ClampGrad, 2>(kernels::clamp_grad);
}

}  // namespace

void register_pointwise_arithmetic_kernels() {
  set_numbers<Add, 2>(kernels::add);
  set_bool<LogicalOr, 2>(kernels::add);
  set_numbers<Sub, 2>(kernels::sub);
  set_numbers<Mul, 2>(kernels::mul);
  set_bool<LogicalAnd, 2>(kernels::mul);
  set_floats<Div, 2>(kernels::div);
  set_numbers<FloorDivide, 2>(kernels::floor_divide);
  set_numbers<Remainder, 2>(kernels::remainder);
  set_numbers<Maximum, 2>(kernels::maximum);
  set_bool<LogicalOr, 2>(kernels::maximum);
  set_numbers<Minimum, 2>(kernels::minimum);
  set_bool<LogicalAnd, 2>(kernels::minimum);
  set_numbers<Fmax, 2>(kernels::fmax);
  set_numbers<Fmin, 2>(kernels::fmin);
  set_numbers<AddScaled, 2>(kernels::add_scaled);
  set_numbers<AddScalar, 1>(kernels::add_scalar);
  set_numbers<RsubScalar, 1>(kernels::rsub_scalar);
  set_numbers<MulScalar, 1>(kernels::mul_scalar);
  set_floats<DivScalar, 1>(kernels::div_scalar);
  set_floats<RdivScalar, 1>(kernels::rdiv_scalar);
  set_numbers<FloorDivideScalar, 1>(kernels::floor_divide_scalar);
  set_numbers<RemainderScalar, 1>(kernels::remainder_scalar);
  set_numbers<Neg, 1>(kernels::neg);
  set_numbers<Abs, 1>(kernels::abs);
  set_numbers<Sign, 1>(kernels::sign);
  set_numbers<Square, 1>(kernels::square);
  set_selection();
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
