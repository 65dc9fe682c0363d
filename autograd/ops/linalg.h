#pragma once
#include <cutaway/autograd/op.h>

// Dense linear algebra on the last two dimensions, all others are batch; f64 and f32. It is done on
// the host: for operands on another device, they are copied there and the results back.
namespace cutaway::linalg {

// Lower triangular y with y yᵀ = (x + xᵀ) / 2; x [..., n, n]. The derivative is that of this
// symmetric part. Raises ValueError unless it is positive definite.
Tensor cholesky(TensorArg x);
// a⁻¹ b from the Cholesky factor l of a: b [..., n, k], l [..., n, n].
Tensor cholesky_solve(TensorArg b, TensorArg l);

// y = a⁻¹ b: a [..., n, n], b [..., n, k] or one vector [n]; batch dimensions broadcast. Raises
// ValueError for a singular a.
Tensor solve(TensorArg a, TensorArg b);

struct TriangularOptions {
  bool upper = false;      // a is upper triangular; the other triangle is not read
  bool transpose = false;  // solve with aᵀ
  bool unit = false;       // the diagonal is 1 and not read
};
// y = a⁻¹ b for a triangular a [..., n, n], b [..., n, k]. Raises ValueError for 0 on the diagonal.
Tensor solve_triangular(TensorArg a, TensorArg b, TriangularOptions options = {});

// y x = 1, x [..., n, n]. Raises ValueError for a singular x.
Tensor inverse(TensorArg x);
// Determinant, x [..., n, n] → y [...]. Derivatives of every order are right for singular x too.
Tensor det(TensorArg x);

struct SlogDet {
  Tensor sign;       // −1, 0, 1
  Tensor logabsdet;  // −inf for a singular x
};
// Sign and logarithm of the determinant, safe where det() under- or overflows. The gradient at a
// singular x raises ValueError.
SlogDet slogdet(TensorArg x);

// Σ x_ii, x [..., n, m] → y [...].
Tensor trace(TensorArg x);

}  // namespace cutaway::linalg
