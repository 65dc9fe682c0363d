#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Elementary functions, element by element. Integers and booleans are converted to f32.

Tensor exp(TensorArg x);      // eˣ
Tensor expm1(TensorArg x);    // eˣ − 1, accurate near 0
Tensor log(TensorArg x);      // ln x; −inf at 0, NaN below
Tensor log1p(TensorArg x);    // ln(1 + x), accurate near 0
Tensor sqrt(TensorArg x);     // √x; NaN below 0
Tensor rsqrt(TensorArg x);    // 1 / √x
Tensor tanh(TensorArg x);     // (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)
Tensor sigmoid(TensorArg x);  // 1 / (1 + e⁻ˣ)
Tensor erf(TensorArg x);      // 2/√π ∫₀ˣ e^(−t²) dt

}  // namespace cutaway
