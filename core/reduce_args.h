#pragma once
#include <cutaway/core/kernels/reduce.h>
#include <cutaway/core/tensor.h>

namespace cutaway {

// Args of a reduction of x into the row-major `out` over the dimensions whose bits are set in
// `reduced`, collapsed. With `ordered`, reduced elements keep their row-major order (for indices);
// otherwise dimensions that lie closest together come last.
ReduceArgs reduce_args(const Tensor& x, const Tensor& out, uint32_t reduced, bool ordered = false);

}  // namespace cutaway
