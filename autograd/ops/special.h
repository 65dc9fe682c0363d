#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Powers, functions of two operands and special functions, element by element; see "Note:
// elementwise ops" in pointwise.h. Integers are converted to f32 unless said otherwise.

// y = aᵇ with the values of C: 0⁰ = 1, 1^NaN = 1, NaN for a negative base with a fraction as
// exponent. Integers give integers; a negative integer exponent raises ValueError. Where the power
// is constant its derivative is 0: ∂y/∂a at b = 0, ∂y/∂b at a = 0 with b ≥ 0.
Tensor pow(TensorArg a, TensorArg b);
Tensor pow(TensorArg x, Scalar s);
Tensor pow(Scalar s, TensorArg x);  // result f32 for integers

Tensor erf(TensorArg x);      // 2/√π ∫₀ˣ e^(−t²) dt
Tensor erfc(TensorArg x);     // 1 − erf(x), accurate for large x
Tensor lgamma(TensorArg x);   // ln |Γ(x)|
Tensor digamma(TensorArg x);  // ψ(x) = d/dx ln Γ(x)
// ψ⁽ⁿ⁾(x), the n-th derivative of digamma, 0 ≤ n ≤ 100 (else ValueError). For n ≥ 2 it is NaN
// unless x > 0.
Tensor polygamma(int64_t n, TensorArg x);

Tensor atan2(TensorArg a, TensorArg b);      // angle of the point (b, a) in (−π, π]
Tensor hypot(TensorArg a, TensorArg b);      // √(a² + b²) without overflow on the way
Tensor xlogy(TensorArg a, TensorArg b);      // a ln b, 0 where a is 0
Tensor logaddexp(TensorArg a, TensorArg b);  // ln(eᵃ + eᵇ)
Tensor copysign(TensorArg a, TensorArg b);   // |a| with the sign of b; the gradient of b is 0

// y = ln(p / (1 − p)) with p = x limited to [eps, 1 − eps]; not limited for eps < 0. Its gradient
// outside the limits is 0. eps ≥ 0.5 raises ValueError.
Tensor logit(TensorArg x, double eps = -1);

struct NanToNum {
  double nan = 0;
  double high = __builtin_nan("");  // NaN: the largest number of the type
  double low = __builtin_nan("");   // NaN: the smallest
};
// x with numbers in place of NaN, inf and −inf; gradient 0 there.
Tensor nan_to_num(TensorArg x, NanToNum options = {});

}  // namespace cutaway
