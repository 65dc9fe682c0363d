#pragma once
#include <cutaway/autograd/ops/matmul.h>
#include <cutaway/core/kernels/matmul.h>

// Shared by the matrix products: checks, and the way from tensors to kernel arguments.
namespace cutaway::detail {

// Sizes of a checked product.
struct MatmulSizes {
  int64_t m = 0, n = 0, k = 0;
  Shape batch;  // broadcast batch dimensions
  Shape out;    // [batch…, m, n], or [m, n] for sum_batch
};

// Raises DTypeError, DeviceError or ShapeError in the name of `op`; operands have 2 or more
// dimensions.
MatmulSizes check_matmul(const char* op, const Tensor& a, const Tensor& b,
                         const MatmulOptions& options);

// Arguments of the product of two layouts; neighbouring products that are one are joined. Pointers
// are those of a, b, and of c: row-major of the sizes `sizes.out`.
MatmulArgs matmul_args(const Tensor& c, const Tensor& a, const Tensor& b, const MatmulSizes& sizes,
                       const MatmulOptions& options);

// The product itself, values only.
Tensor matmul_raw(const Tensor& a, const Tensor& b, const MatmulOptions& options);

}  // namespace cutaway::detail
