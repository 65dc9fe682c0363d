#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Arithmetic and choice, element by element.
//
// Note: elementwise ops. Operands broadcast against each other (right-aligned, size 1 repeats);
// sizes that do not fit raise ShapeError. The result has the promoted type of the operands:
// category first (bool < integer < float), then width; a 0-d tensor or a literal raises the
// category only, never the width. Integers wrap around. Operands on different devices raise
// DeviceError. Gradients of repeated operands are summed.

// y = a + b; of booleans: or.
Tensor add(TensorArg a, TensorArg b);
Tensor add(TensorArg a, Scalar b);
// y = a + alpha·b.
Tensor add_scaled(TensorArg a, TensorArg b, Scalar alpha);
// y = a − b. Booleans raise DTypeError.
Tensor sub(TensorArg a, TensorArg b);
Tensor sub(TensorArg a, Scalar b);
Tensor sub(Scalar a, TensorArg b);
// y = a · b; of booleans: and.
Tensor mul(TensorArg a, TensorArg b);
Tensor mul(TensorArg a, Scalar b);
// y = a / b; integers are converted to f32.
Tensor div(TensorArg a, TensorArg b);
Tensor div(TensorArg a, Scalar b);
Tensor div(Scalar a, TensorArg b);
// y = ⌊a / b⌋; integer division by zero raises ValueError. Its gradient is 0.
Tensor floor_divide(TensorArg a, TensorArg b);
Tensor floor_divide(TensorArg a, Scalar b);
// y = a − b ⌊a / b⌋, with the sign of b; integer division by zero raises ValueError.
Tensor remainder(TensorArg a, TensorArg b);
Tensor remainder(TensorArg a, Scalar b);
// y = −x. Booleans raise DTypeError.
Tensor neg(TensorArg x);
// y = 1 / x; integers are converted to f32.
Tensor reciprocal(TensorArg x);
// y = |x|; derivative sign(x), so 0 at 0.
Tensor abs(TensorArg x);
// y = −1, 0 or 1; NaN stays. Its gradient is 0.
Tensor sign(TensorArg x);
// y = x².
Tensor square(TensorArg x);

// y = condition ? a : b; condition is boolean.
Tensor where(TensorArg condition, TensorArg a, TensorArg b);
Tensor where(TensorArg condition, TensorArg a, Scalar b);
Tensor where(TensorArg condition, Scalar a, TensorArg b);
// y = mask ? value : x; mask is boolean and broadcasts with x.
Tensor masked_fill(TensorArg x, TensorArg mask, Scalar value);

// y = a + weight · (b − a).
Tensor lerp(TensorArg a, TensorArg b, TensorArg weight);
Tensor lerp(TensorArg a, TensorArg b, Scalar weight);
// y = x + value · a · b.
Tensor addcmul(TensorArg x, TensorArg a, TensorArg b, Scalar value = 1);
// y = x + value · a / b; integers are converted to f32.
Tensor addcdiv(TensorArg x, TensorArg a, TensorArg b, Scalar value = 1);

// Larger and smaller of two; NaN if one is NaN. Equal operands share the gradient.
Tensor maximum(TensorArg a, TensorArg b);
Tensor minimum(TensorArg a, TensorArg b);
// The same, but the number if one is NaN.
Tensor fmax(TensorArg a, TensorArg b);
Tensor fmin(TensorArg a, TensorArg b);

// y = min(max(x, low), high); NaN stays. The gradient passes where low ≤ x ≤ high.
Tensor clamp(TensorArg x, Scalar low, Scalar high);
Tensor clamp_min(TensorArg x, Scalar low);
Tensor clamp_max(TensorArg x, Scalar high);
// With bounds that are tensors; they get the gradient of the elements that they limit.
Tensor clamp(TensorArg x, TensorArg low, TensorArg high);

// Note: operators. They are the functions above (and those of compare.h); `/` is true division.
inline Tensor operator+(TensorArg a, TensorArg b) { return add(a, b); }
inline Tensor operator+(TensorArg a, Scalar b) { return add(a, b); }
inline Tensor operator+(Scalar a, TensorArg b) { return add(b, a); }
inline Tensor operator-(TensorArg a, TensorArg b) { return sub(a, b); }
inline Tensor operator-(TensorArg a, Scalar b) { return sub(a, b); }
inline Tensor operator-(Scalar a, TensorArg b) { return sub(a, b); }
inline Tensor operator*(TensorArg a, TensorArg b) { return mul(a, b); }
inline Tensor operator*(TensorArg a, Scalar b) { return mul(a, b); }
inline Tensor operator*(Scalar a, TensorArg b) { return mul(b, a); }
inline Tensor operator/(TensorArg a, TensorArg b) { return div(a, b); }
inline Tensor operator/(TensorArg a, Scalar b) { return div(a, b); }
inline Tensor operator/(Scalar a, TensorArg b) { return div(a, b); }
inline Tensor operator-(TensorArg x) { return neg(x); }

}  // namespace cutaway
