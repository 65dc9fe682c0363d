#pragma once
#include <string>

#include <cutaway/autograd/op.h>

namespace cutaway {

// Sums of products by index names: "ij,jk->ik" is the matrix product. NumPy's rules: a name used
// twice in one operand takes the diagonal, "..." stands for dimensions that broadcast, and without
// "->" the result has the names that occur once, in alphabetical order, after those of "...". Sizes
// of one name must be equal, or 1. Operands are contracted from left to right as matrix products;
// a name that nothing else needs is summed first. Raises ValueError for a wrong equation,
// ShapeError for sizes that do not fit.
Tensor einsum(const std::string& equation, const Tensors& operands,
              std::source_location at = std::source_location::current());

// Sum over pairs of dimensions: dims_a[i] of a with dims_b[i] of b. The result has the other
// dimensions of a, then those of b. Raises ShapeError when sizes differ.
Tensor tensordot(TensorArg a, TensorArg b, const Shape& dims_a, const Shape& dims_b);
// The last n dimensions of a with the first n of b.
Tensor tensordot(TensorArg a, TensorArg b, int64_t n);
// The Kronecker product of two matrices: a [m,n], b [p,q], y [m·p, n·q], made of blocks a_ij b.
Tensor kron(TensorArg a, TensorArg b);

}  // namespace cutaway
