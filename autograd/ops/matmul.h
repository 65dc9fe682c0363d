#pragma once
#include <cutaway/autograd/op.h>

namespace cutaway {

// How matmul reads its operands.
struct MatmulOptions {
  bool transpose_a = false;  // a is stored [..., k, m]
  bool transpose_b = false;  // b is stored [..., n, k]
  bool sum_batch = false;    // sum the products over all batch dimensions: y [m,n]
};

// Matrix product over the last two dimensions; batch dimensions broadcast. a [..., m, k],
// b [..., k, n], y [..., m, n]: y_ij = Σ_p a_ip b_pj. A 1-d a is a row, a 1-d b a column, and that
// dimension is missing in y. Views such as transposes are not copied. 16-bit types accumulate in
// f32, integers wrap around. Raises ShapeError when inner or batch sizes differ, DTypeError when
// the types differ.
Tensor matmul(TensorArg a, TensorArg b, MatmulOptions options = {});
// The product of two matrices, a [m,k], b [k,n]. Raises ShapeError for other ranks.
Tensor mm(TensorArg a, TensorArg b);
// One product for each batch index, a [B,m,k], b [B,k,n]. Raises ShapeError for other ranks.
Tensor bmm(TensorArg a, TensorArg b);
// Matrix times vector, a [m,k], x [k], y [m].
Tensor mv(TensorArg a, TensorArg x);
// Σ a_i b_i of two vectors [n]; 0-d.
Tensor dot(TensorArg a, TensorArg b);
// y_ij = a_i b_j of two vectors, y [m,n].
Tensor outer(TensorArg a, TensorArg b);

struct AddmmOptions {
  double beta = 1;   // 0: c is not read
  double alpha = 1;  // 0: a and b are not read
};
// y = beta · c + alpha · a b; a [m,k], b [k,n], c broadcast to y [m,n].
Tensor addmm(TensorArg c, TensorArg a, TensorArg b, AddmmOptions options = {});
// The same for each batch index: a [B,m,k], b [B,k,n], c broadcast to y [B,m,n].
Tensor baddbmm(TensorArg c, TensorArg a, TensorArg b, AddmmOptions options = {});

}  // namespace cutaway
