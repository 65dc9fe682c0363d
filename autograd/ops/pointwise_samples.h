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
// elementary functions
CUTAWAY_SAMPLES(exp)
CUTAWAY_SAMPLES(expm1)
CUTAWAY_SAMPLES(log)
CUTAWAY_SAMPLES(log1p)
CUTAWAY_SAMPLES(sqrt)
CUTAWAY_SAMPLES(rsqrt)
CUTAWAY_SAMPLES(tanh)
CUTAWAY_SAMPLES(sigmoid)
CUTAWAY_SAMPLES(erf)
// activations
CUTAWAY_SAMPLES(relu)
// copies
CUTAWAY_SAMPLES(cast)
CUTAWAY_SAMPLES(clone)
CUTAWAY_SAMPLES(to_device)
#undef CUTAWAY_SAMPLES

}  // namespace cutaway
