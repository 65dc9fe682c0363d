#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// Comparisons, logic and bits, element by element; see "Note: elementwise ops" in pointwise.h.
//
// Note: comparisons. Two tensors are compared in their promoted type (an i64 and an f32 in f32);
// the result is boolean. A literal is compared with integers by its mathematical value: u8 x < −1
// is false everywhere, i32 x < 2.5 is x ≤ 2. Floating tensors see the literal rounded to their
// type. NaN is unequal to everything.

Tensor eq(TensorArg a, TensorArg b);  // a = b
Tensor eq(TensorArg a, Scalar b);
Tensor ne(TensorArg a, TensorArg b);  // a ≠ b
Tensor ne(TensorArg a, Scalar b);
Tensor lt(TensorArg a, TensorArg b);  // a < b
Tensor lt(TensorArg a, Scalar b);
Tensor le(TensorArg a, TensorArg b);  // a ≤ b
Tensor le(TensorArg a, Scalar b);
Tensor gt(TensorArg a, TensorArg b);  // a > b
Tensor gt(TensorArg a, Scalar b);
Tensor ge(TensorArg a, TensorArg b);  // a ≥ b
Tensor ge(TensorArg a, Scalar b);

// Logic on truth values: 0 is false, everything else (NaN too) is true.
Tensor logical_and(TensorArg a, TensorArg b);
Tensor logical_or(TensorArg a, TensorArg b);
Tensor logical_xor(TensorArg a, TensorArg b);
Tensor logical_not(TensorArg x);

// Is an element NaN, infinite, finite? Integers and booleans are finite.
Tensor isnan(TensorArg x);
Tensor isinf(TensorArg x);
Tensor isfinite(TensorArg x);

// Bits of integers; of booleans the logical ops. Floats raise DTypeError.
Tensor bitwise_and(TensorArg a, TensorArg b);
Tensor bitwise_or(TensorArg a, TensorArg b);
Tensor bitwise_xor(TensorArg a, TensorArg b);
Tensor bitwise_not(TensorArg x);
// a · 2^n without the bits that leave; ⌊a / 2^n⌋. A count below 0 or beyond the width shifts all
// bits out. Integers only.
Tensor shift_left(TensorArg a, TensorArg n);
Tensor shift_right(TensorArg a, TensorArg n);

// Element by element, unlike is_same().
inline Tensor operator==(TensorArg a, TensorArg b) { return eq(a, b); }
inline Tensor operator==(TensorArg a, Scalar b) { return eq(a, b); }
inline Tensor operator==(Scalar a, TensorArg b) { return eq(b, a); }
inline Tensor operator!=(TensorArg a, TensorArg b) { return ne(a, b); }
inline Tensor operator!=(TensorArg a, Scalar b) { return ne(a, b); }
inline Tensor operator!=(Scalar a, TensorArg b) { return ne(b, a); }
inline Tensor operator<(TensorArg a, TensorArg b) { return lt(a, b); }
inline Tensor operator<(TensorArg a, Scalar b) { return lt(a, b); }
inline Tensor operator<(Scalar a, TensorArg b) { return gt(b, a); }
inline Tensor operator<=(TensorArg a, TensorArg b) { return le(a, b); }
inline Tensor operator<=(TensorArg a, Scalar b) { return le(a, b); }
inline Tensor operator<=(Scalar a, TensorArg b) { return ge(b, a); }
inline Tensor operator>(TensorArg a, TensorArg b) { return gt(a, b); }
inline Tensor operator>(TensorArg a, Scalar b) { return gt(a, b); }
inline Tensor operator>(Scalar a, TensorArg b) { return lt(b, a); }
inline Tensor operator>=(TensorArg a, TensorArg b) { return ge(a, b); }
inline Tensor operator>=(TensorArg a, Scalar b) { return ge(a, b); }
inline Tensor operator>=(Scalar a, TensorArg b) { return le(b, a); }

}  // namespace cutaway
