#pragma once
#include <cutaway/autograd/op.h>

// Samples of the elementwise ops, and the generators they are made with.

namespace cutaway {

// Values of an operand: uniform in [lo, hi), at least 0.05 from the kinks.
struct Domain {
  double lo = -2, hi = 2;
  std::vector<double> kinks = {};
};

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using UnaryReference = double (*)(double);
using BinaryReference = double (*)(double, double);

// y_i = f(x_i) on sizes [], [0,3], [1], [17], [2,3,4], and on 5000 elements without derivatives.
void unary_samples(SampleList& list, Unary op, UnaryReference f, const Domain& domain = {});
// y_i = f(a_i, b_i) on equal and on broadcast sizes.
void binary_samples(SampleList& list, Binary op, BinaryReference f, const Domain& a = {},
                    const Domain& b = {});
// Integer and boolean operands in [lo, hi).
void integer_samples(SampleList& list, Unary op, UnaryReference f, int64_t lo, int64_t hi);
void integer_samples(SampleList& list, Binary op, BinaryReference f, int64_t lo, int64_t hi,
                     int64_t second_lo);
// The error of operands whose sizes do not fit.
void broadcast_error(SampleList& list, Binary op, const char* name);
Tensor domain_values(SampleList& list, const Shape& sizes, const Domain& domain);
// Values of f over operands broadcast against each other, computed one by one.
Tensor map_reference(const Tensors& in, const std::function<double(const double*)>& f,
                     DType result = DType::f64);

#define CUTAWAY_SAMPLES(name) void name##_samples(SampleList& list);
// arithmetic
CUTAWAY_SAMPLES(add)
CUTAWAY_SAMPLES(add_scalar)
CUTAWAY_SAMPLES(add_scaled)
CUTAWAY_SAMPLES(sub)
CUTAWAY_SAMPLES(rsub_scalar)
CUTAWAY_SAMPLES(mul)
CUTAWAY_SAMPLES(mul_scalar)
CUTAWAY_SAMPLES(div)
CUTAWAY_SAMPLES(div_scalar)
CUTAWAY_SAMPLES(rdiv_scalar)
CUTAWAY_SAMPLES(floor_divide)
CUTAWAY_SAMPLES(floor_divide_scalar)
CUTAWAY_SAMPLES(remainder)
CUTAWAY_SAMPLES(remainder_scalar)
CUTAWAY_SAMPLES(neg)
CUTAWAY_SAMPLES(reciprocal)
CUTAWAY_SAMPLES(abs)
CUTAWAY_SAMPLES(sign)
CUTAWAY_SAMPLES(square)
// choice
CUTAWAY_SAMPLES(where)
CUTAWAY_SAMPLES(masked_fill)
CUTAWAY_SAMPLES(lerp)
CUTAWAY_SAMPLES(addcmul)
CUTAWAY_SAMPLES(addcdiv)
CUTAWAY_SAMPLES(maximum)
CUTAWAY_SAMPLES(minimum)
CUTAWAY_SAMPLES(fmax)
CUTAWAY_SAMPLES(fmin)
CUTAWAY_SAMPLES(clamp)
CUTAWAY_SAMPLES(clamp_tensors)
// comparisons and logic
CUTAWAY_SAMPLES(eq)
CUTAWAY_SAMPLES(ne)
CUTAWAY_SAMPLES(lt)
CUTAWAY_SAMPLES(le)
CUTAWAY_SAMPLES(gt)
CUTAWAY_SAMPLES(ge)
CUTAWAY_SAMPLES(eq_scalar)
CUTAWAY_SAMPLES(ne_scalar)
CUTAWAY_SAMPLES(lt_scalar)
CUTAWAY_SAMPLES(le_scalar)
CUTAWAY_SAMPLES(gt_scalar)
CUTAWAY_SAMPLES(ge_scalar)
CUTAWAY_SAMPLES(logical_and)
CUTAWAY_SAMPLES(logical_or)
CUTAWAY_SAMPLES(logical_xor)
CUTAWAY_SAMPLES(logical_not)
CUTAWAY_SAMPLES(isnan)
CUTAWAY_SAMPLES(isinf)
CUTAWAY_SAMPLES(isfinite)
CUTAWAY_SAMPLES(bitwise_and)
CUTAWAY_SAMPLES(bitwise_or)
CUTAWAY_SAMPLES(bitwise_xor)
CUTAWAY_SAMPLES(bitwise_not)
CUTAWAY_SAMPLES(shift_left)
CUTAWAY_SAMPLES(shift_right)
// elementary and special functions
CUTAWAY_SAMPLES(exp)
CUTAWAY_SAMPLES(exp2)
CUTAWAY_SAMPLES(expm1)
CUTAWAY_SAMPLES(log)
CUTAWAY_SAMPLES(log2)
CUTAWAY_SAMPLES(log10)
CUTAWAY_SAMPLES(log1p)
CUTAWAY_SAMPLES(sqrt)
CUTAWAY_SAMPLES(rsqrt)
CUTAWAY_SAMPLES(sin)
CUTAWAY_SAMPLES(cos)
CUTAWAY_SAMPLES(tan)
CUTAWAY_SAMPLES(asin)
CUTAWAY_SAMPLES(acos)
CUTAWAY_SAMPLES(atan)
CUTAWAY_SAMPLES(sinh)
CUTAWAY_SAMPLES(cosh)
CUTAWAY_SAMPLES(tanh)
CUTAWAY_SAMPLES(asinh)
CUTAWAY_SAMPLES(acosh)
CUTAWAY_SAMPLES(atanh)
CUTAWAY_SAMPLES(sigmoid)
CUTAWAY_SAMPLES(floor)
CUTAWAY_SAMPLES(ceil)
CUTAWAY_SAMPLES(round)
CUTAWAY_SAMPLES(trunc)
CUTAWAY_SAMPLES(frac)
CUTAWAY_SAMPLES(erf)
CUTAWAY_SAMPLES(erfc)
CUTAWAY_SAMPLES(lgamma)
CUTAWAY_SAMPLES(polygamma)
CUTAWAY_SAMPLES(pow)
CUTAWAY_SAMPLES(pow_scalar)
CUTAWAY_SAMPLES(rpow_scalar)
CUTAWAY_SAMPLES(atan2)
CUTAWAY_SAMPLES(hypot)
CUTAWAY_SAMPLES(xlogy)
CUTAWAY_SAMPLES(logaddexp)
CUTAWAY_SAMPLES(copysign)
CUTAWAY_SAMPLES(logit)
CUTAWAY_SAMPLES(nan_to_num)
// activations
CUTAWAY_SAMPLES(relu)
CUTAWAY_SAMPLES(leaky_relu)
CUTAWAY_SAMPLES(elu)
CUTAWAY_SAMPLES(selu)
CUTAWAY_SAMPLES(celu)
CUTAWAY_SAMPLES(hardtanh)
CUTAWAY_SAMPLES(relu6)
CUTAWAY_SAMPLES(hardsigmoid)
CUTAWAY_SAMPLES(hardswish)
CUTAWAY_SAMPLES(silu)
CUTAWAY_SAMPLES(gelu)
CUTAWAY_SAMPLES(gelu_tanh)
CUTAWAY_SAMPLES(softplus)
CUTAWAY_SAMPLES(log_sigmoid)
CUTAWAY_SAMPLES(mish)
CUTAWAY_SAMPLES(softsign)
// copies
CUTAWAY_SAMPLES(cast)
CUTAWAY_SAMPLES(clone)
CUTAWAY_SAMPLES(to_device)
// random numbers
CUTAWAY_SAMPLES(bernoulli)
CUTAWAY_SAMPLES(dropout)
#undef CUTAWAY_SAMPLES

}  // namespace cutaway
