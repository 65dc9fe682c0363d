#pragma once
#include <cstdint>

// Dense linear algebra on `batch` row-major matrices that follow each other; T is double or float.
// Sizes may be 0. NaN in an input gives NaN, where nothing else is said.
namespace cutaway::dense {

// Index of the first matrix that could not be treated, or -1.
using Fault = int64_t;

// l lower triangular with l lᵀ = (a + aᵀ) / 2; a [n,n]. Fault: not positive definite.
template <class T>
Fault cholesky(int64_t batch, int64_t n, const T* a, T* l);

// x = a⁻¹ b by LU with row exchanges; a [n,n], b and x [n,columns]. Fault: a pivot is 0.
template <class T>
Fault solve(int64_t batch, int64_t n, int64_t columns, const T* a, const T* b, T* x);

struct Triangle {
  bool upper = false;      // which triangle of a is read
  bool transpose = false;  // solve with aᵀ
  bool unit = false;       // the diagonal is 1 and not read
};
// x = op(a)⁻¹ b. Fault: 0 on the diagonal.
template <class T>
Fault solve_triangular(int64_t batch, int64_t n, int64_t columns, const Triangle& form, const T* a,
                       const T* b, T* x);

// Fault: a pivot is 0.
template <class T>
Fault inverse(int64_t batch, int64_t n, const T* a, T* y);

// Product of the pivots. [batch]
template <class T>
void det(int64_t batch, int64_t n, const T* a, T* d);
// Sign of the determinant (0 when singular) and logarithm of its magnitude, as a sum over pivots.
template <class T>
void slogdet(int64_t batch, int64_t n, const T* a, T* sign, T* log);
// Gradient of det: c_ij = ∂ det(a) / ∂ a_ij, finite for singular matrices as well.
template <class T>
void cofactor(int64_t batch, int64_t n, const T* a, T* c);
// Is some matrix so near to a singular one that det · a⁻ᵀ loses half of the digits?
template <class T>
bool nearly_singular(int64_t batch, int64_t n, const T* a);

// a = q r with q [m,k], r [k,n], k = min(m,n); the diagonal of r is not negative.
template <class T>
void qr(int64_t batch, int64_t m, int64_t n, const T* a, T* q, T* r);
// (a + aᵀ) / 2 = v diag(w) vᵀ, w ascending. Fault: not finite, or no convergence.
template <class T>
Fault eigh(int64_t batch, int64_t n, const T* a, T* w, T* v);
// a = u diag(s) vh, k = min(m,n), s descending; u [m,k], vh [k,n]. Fault as for eigh.
template <class T>
Fault svd(int64_t batch, int64_t m, int64_t n, const T* a, T* u, T* s, T* vh);

}  // namespace cutaway::dense
