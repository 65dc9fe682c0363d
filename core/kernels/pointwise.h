#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

namespace cutaway {

// One elementwise pass: out[i] = f(in0[i], in1[i], in2[i], scalars). Dimensions are collapsed:
// equal walks are joined, so a contiguous call has rank 1 (rank 0: one element). Strides in
// elements. `out` may be one of the inputs if both have the same layout.
struct PointwiseArgs {
  int rank = 0;
  DType other = DType::f32;  // type of `in[0]` where it differs from the table's type (copy)
  int64_t numel = 0;
  void* out = nullptr;
  const void* in[3] = {};
  double scalar[3] = {};
  int64_t integer[2] = {};  // integer forms of scalars, or op-specific
  // Only the first `rank` entries are set.
  int64_t sizes[kMaxRank];
  int64_t strides[4][kMaxRank];  // [0] out, [1..3] inputs; 0 repeats

  PointwiseArgs() {}  // leaves sizes and strides alone: this struct is made for every small op
};

inline void visit_args(ArgumentVisitor& v, PointwiseArgs& a) {
  v.sizes(a.sizes, a.rank);
  for (const void*& in : a.in) v.reads(in);
  v.writes(a.out);
}

using PointwiseKernel = Kernel<PointwiseArgs>;

namespace kernels {
// out = in0, converted from `other` to the table's dtype (saturating float → integer, NaN → 0;
// integers wrap).
inline constinit PointwiseKernel copy{"copy"};
// out = scalar[0] (integer[0] for integer types).
inline constinit PointwiseKernel fill{"fill"};

// ---- arithmetic: f(in0, in1); integers wrap. s is the constant scalar[0] / integer[0].
inline constinit PointwiseKernel add{"add"};
inline constinit PointwiseKernel sub{"sub"};
inline constinit PointwiseKernel mul{"mul"};
inline constinit PointwiseKernel div{"div"};
inline constinit PointwiseKernel floor_divide{"floor_divide"};
inline constinit PointwiseKernel remainder{"remainder"};
inline constinit PointwiseKernel maximum{"maximum"};
inline constinit PointwiseKernel minimum{"minimum"};
inline constinit PointwiseKernel fmax{"fmax"};
inline constinit PointwiseKernel fmin{"fmin"};
// in0 + s·in1.
inline constinit PointwiseKernel add_scaled{"add_scaled"};
// x + s, s − x, x·s, x/s, s/x, ⌊x/s⌋, x − s⌊x/s⌋.
inline constinit PointwiseKernel add_scalar{"add_scalar"};
inline constinit PointwiseKernel rsub_scalar{"rsub_scalar"};
inline constinit PointwiseKernel mul_scalar{"mul_scalar"};
inline constinit PointwiseKernel div_scalar{"div_scalar"};
inline constinit PointwiseKernel rdiv_scalar{"rdiv_scalar"};
inline constinit PointwiseKernel floor_divide_scalar{"floor_divide_scalar"};
inline constinit PointwiseKernel remainder_scalar{"remainder_scalar"};
inline constinit PointwiseKernel neg{"neg"};
inline constinit PointwiseKernel abs{"abs"};
inline constinit PointwiseKernel sign{"sign"};
inline constinit PointwiseKernel square{"square"};
// x limited to [scalar[0], scalar[1]] (integer[0], integer[1]).
inline constinit PointwiseKernel clamp{"clamp"};
// in0 limited to [in1, in2].
inline constinit PointwiseKernel clamp_tensors{"clamp_tensors"};
// in0 where scalar[0] ≤ in1 ≤ scalar[1], else 0.
inline constinit PointwiseKernel clamp_grad{"clamp_grad"};
// ---- selection; in0 is boolean, the table's type is that of the others.
// in0 ? in1 : in2; in0 ? s : in1.
inline constinit PointwiseKernel where{"where"};
inline constinit PointwiseKernel masked_fill{"masked_fill"};
// in0 + in2·(in1 − in0); in0 + s·in1·in2; in0 + s·in1/in2.
inline constinit PointwiseKernel lerp{"lerp"};
inline constinit PointwiseKernel addcmul{"addcmul"};
inline constinit PointwiseKernel addcdiv{"addcdiv"};
// ---- comparisons and tests: out is boolean, the table's type is that of the inputs.
inline constinit PointwiseKernel eq{"eq"};
inline constinit PointwiseKernel ne{"ne"};
inline constinit PointwiseKernel lt{"lt"};
inline constinit PointwiseKernel le{"le"};
inline constinit PointwiseKernel eq_scalar{"eq_scalar"};
inline constinit PointwiseKernel ne_scalar{"ne_scalar"};
inline constinit PointwiseKernel lt_scalar{"lt_scalar"};
inline constinit PointwiseKernel le_scalar{"le_scalar"};
inline constinit PointwiseKernel gt_scalar{"gt_scalar"};
inline constinit PointwiseKernel ge_scalar{"ge_scalar"};
inline constinit PointwiseKernel logical_and{"logical_and"};
inline constinit PointwiseKernel logical_or{"logical_or"};
inline constinit PointwiseKernel logical_xor{"logical_xor"};
inline constinit PointwiseKernel logical_not{"logical_not"};
inline constinit PointwiseKernel isnan{"isnan"};
inline constinit PointwiseKernel isinf{"isinf"};
inline constinit PointwiseKernel isfinite{"isfinite"};
// ---- bits (integers and booleans)
inline constinit PointwiseKernel bit_and{"bit_and"};
inline constinit PointwiseKernel bit_or{"bit_or"};
inline constinit PointwiseKernel bit_xor{"bit_xor"};
inline constinit PointwiseKernel bit_not{"bit_not"};
inline constinit PointwiseKernel shift_left{"shift_left"};
inline constinit PointwiseKernel shift_right{"shift_right"};

// ---- elementary functions of floats
inline constinit PointwiseKernel exp{"exp"};
inline constinit PointwiseKernel exp2{"exp2"};
inline constinit PointwiseKernel expm1{"expm1"};
inline constinit PointwiseKernel log{"log"};
inline constinit PointwiseKernel log2{"log2"};
inline constinit PointwiseKernel log10{"log10"};
inline constinit PointwiseKernel log1p{"log1p"};
inline constinit PointwiseKernel sqrt{"sqrt"};
inline constinit PointwiseKernel rsqrt{"rsqrt"};
inline constinit PointwiseKernel sin{"sin"};
inline constinit PointwiseKernel cos{"cos"};
inline constinit PointwiseKernel tan{"tan"};
inline constinit PointwiseKernel asin{"asin"};
inline constinit PointwiseKernel acos{"acos"};
inline constinit PointwiseKernel atan{"atan"};
inline constinit PointwiseKernel sinh{"sinh"};
inline constinit PointwiseKernel cosh{"cosh"};
inline constinit PointwiseKernel tanh{"tanh"};
inline constinit PointwiseKernel asinh{"asinh"};
inline constinit PointwiseKernel acosh{"acosh"};
inline constinit PointwiseKernel atanh{"atanh"};
inline constinit PointwiseKernel sigmoid{"sigmoid"};
inline constinit PointwiseKernel erf{"erf"};
inline constinit PointwiseKernel erfc{"erfc"};
inline constinit PointwiseKernel lgamma{"lgamma"};
inline constinit PointwiseKernel floor{"floor"};
inline constinit PointwiseKernel ceil{"ceil"};
inline constinit PointwiseKernel round{"round"};
inline constinit PointwiseKernel trunc{"trunc"};
inline constinit PointwiseKernel frac{"frac"};
// in0^in1, in0^s, s^in0; integers too, with exponents ≥ 0.
inline constinit PointwiseKernel pow{"pow"};
inline constinit PointwiseKernel pow_scalar{"pow_scalar"};
// in0^½ (inf at −inf), in0³.
inline constinit PointwiseKernel pow_half{"pow_half"};
inline constinit PointwiseKernel cube{"cube"};
inline constinit PointwiseKernel rpow_scalar{"rpow_scalar"};
// in0 · ∂(in1^in2)/∂in1, in0 · ∂(in1^in2)/∂in2.
inline constinit PointwiseKernel pow_grad_base{"pow_grad_base"};
inline constinit PointwiseKernel pow_grad_exponent{"pow_grad_exponent"};
inline constinit PointwiseKernel atan2{"atan2"};
inline constinit PointwiseKernel copysign{"copysign"};
inline constinit PointwiseKernel xlogy{"xlogy"};
inline constinit PointwiseKernel logaddexp{"logaddexp"};
inline constinit PointwiseKernel hypot{"hypot"};
// ψ⁽ⁿ⁾(in0), n = integer[0]; ln(p/(1−p)), p = in0 within [s, 1−s]; NaN, inf, −inf → the 3 scalars.
inline constinit PointwiseKernel polygamma{"polygamma"};
inline constinit PointwiseKernel logit{"logit"};
inline constinit PointwiseKernel nan_to_num{"nan_to_num"};
// ---- activations of floats; _grad: in0 · f′, in1 is x or y as core/math/functors_activation.h
// says.
inline constinit PointwiseKernel relu{"relu"};
inline constinit PointwiseKernel relu_grad{"relu_grad"};
inline constinit PointwiseKernel tanh_grad{"tanh_grad"};
inline constinit PointwiseKernel sigmoid_grad{"sigmoid_grad"};
inline constinit PointwiseKernel log_sigmoid{"log_sigmoid"};
inline constinit PointwiseKernel log_sigmoid_grad{"log_sigmoid_grad"};
inline constinit PointwiseKernel silu{"silu"};
inline constinit PointwiseKernel silu_grad{"silu_grad"};
inline constinit PointwiseKernel gelu{"gelu"};
inline constinit PointwiseKernel gelu_grad{"gelu_grad"};
inline constinit PointwiseKernel gelu_tanh{"gelu_tanh"};
inline constinit PointwiseKernel gelu_tanh_grad{"gelu_tanh_grad"};
inline constinit PointwiseKernel softsign{"softsign"};
inline constinit PointwiseKernel softsign_grad{"softsign_grad"};
inline constinit PointwiseKernel hardsigmoid{"hardsigmoid"};
inline constinit PointwiseKernel hardsigmoid_grad{"hardsigmoid_grad"};
inline constinit PointwiseKernel hardswish{"hardswish"};
inline constinit PointwiseKernel hardswish_grad{"hardswish_grad"};
inline constinit PointwiseKernel mish{"mish"};
inline constinit PointwiseKernel mish_grad{"mish_grad"};
// s is the slope, the sharpness beta.
inline constinit PointwiseKernel leaky_relu{"leaky_relu"};
inline constinit PointwiseKernel leaky_relu_grad{"leaky_relu_grad"};
inline constinit PointwiseKernel softplus{"softplus"};
inline constinit PointwiseKernel softplus_grad{"softplus_grad"};
// The scalars are alpha, scale, rate.
inline constinit PointwiseKernel elu{"elu"};
inline constinit PointwiseKernel elu_grad{"elu_grad"};
// in0 where scalar[0] < in1 < scalar[1], else 0.
inline constinit PointwiseKernel hardtanh_grad{"hardtanh_grad"};
}  // namespace kernels

}  // namespace cutaway
