#pragma once
#include <cutaway/autograd/op.h>

// Decompositions of dense matrices, in the last two dimensions; f64 and f32. Values that are not
// finite raise ValueError.
namespace cutaway::linalg {

struct Qr {
  Tensor q, r;
};
// x = q r: x [..., m, n], q [..., m, k] with orthonormal columns, r [..., k, n] upper triangular,
// its diagonal not negative; k = min(m, n). The derivative needs m ≥ n and a regular r.
Qr qr(TensorArg x);

struct Eigh {
  Tensor values, vectors;
};
// (x + xᵀ) / 2 = v diag(w) vᵀ, w [..., n] ascending, v [..., n, n]. Gradients of the values are
// always finite. Those of the vectors exist, for equal values, only if the result does not depend
// on the choice of vectors; otherwise AutogradError.
Eigh eigh(TensorArg x);
// The values alone.
Tensor eigvalsh(TensorArg x);

struct Svd {
  Tensor u, s, vh;
};
// x = u diag(s) vh: x [..., m, n], u [..., m, k], s [..., k] descending, vh [..., k, n],
// k = min(m, n). Gradients of s are always finite. Gradients through u and vh at equal singular
// values exist only if the result does not depend on their choice; what cannot be determined raises
// AutogradError.
Svd svd(TensorArg x);
// The singular values alone.
Tensor svdvals(TensorArg x);
// Moore–Penrose inverse: 1/s for s > rcond · s_max, 0 for the others. x [..., m, n], y [..., n, m].
Tensor pinv(TensorArg x, double rcond = 1e-15);

enum class MatrixNorm { frobenius, nuclear, spectral };
// √Σ x², Σ s, or max s; x [..., m, n], y [...].
Tensor matrix_norm(TensorArg x, MatrixNorm kind = MatrixNorm::frobenius);
}  // namespace cutaway::linalg
