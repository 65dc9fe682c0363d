#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Elementary functions, element by element. Integers and booleans are converted to f32, but for
// rounding, which leaves integers as they are.

Tensor exp(TensorArg x);    // eˣ
Tensor exp2(TensorArg x);   // 2ˣ
Tensor expm1(TensorArg x);  // eˣ − 1, accurate near 0
Tensor log(TensorArg x);    // ln x; −inf at 0, NaN below
Tensor log2(TensorArg x);   // log₂ x
Tensor log10(TensorArg x);  // log₁₀ x
Tensor log1p(TensorArg x);  // ln(1 + x), accurate near 0
Tensor sqrt(TensorArg x);   // √x; NaN below 0
Tensor rsqrt(TensorArg x);  // 1 / √x
Tensor sin(TensorArg x);    // of an angle in radians, of any size
Tensor cos(TensorArg x);
Tensor tan(TensorArg x);
Tensor asin(TensorArg x);  // inverses; NaN outside their domain
Tensor acos(TensorArg x);
Tensor atan(TensorArg x);
Tensor sinh(TensorArg x);  // (eˣ − e⁻ˣ) / 2
Tensor cosh(TensorArg x);  // (eˣ + e⁻ˣ) / 2
Tensor tanh(TensorArg x);  // sinh x / cosh x
Tensor asinh(TensorArg x);
Tensor acosh(TensorArg x);
Tensor atanh(TensorArg x);
Tensor sigmoid(TensorArg x);  // 1 / (1 + e⁻ˣ)

// Rounding: down, up, to nearest with ties to even, toward zero. The gradient is 0.
Tensor floor(TensorArg x);
Tensor ceil(TensorArg x);
Tensor round(TensorArg x);
Tensor trunc(TensorArg x);
// x − trunc(x); its gradient is that of x.
Tensor frac(TensorArg x);

}  // namespace cutaway
