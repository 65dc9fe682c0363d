#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

namespace cutaway {

// One elementwise pass: out[i] = f(in0[i], in1[i], in2[i], scalars). Dimensions are collapsed: equal
// walks are joined, so a contiguous call has rank 1 (rank 0: one element). Strides in elements.
// `out` may be one of the inputs if both have the same layout.
struct PointwiseArgs {
  int rank = 0;
  DType other = DType::f32;  // type of `in[0]` where it differs from the table's type (copy)
  int64_t numel = 0;
  void* out = nullptr;
  const void* in[3] = {};
  double scalar[3] = {};
  int64_t integer[2] = {};  // integer forms of scalars, or op-specific
  // Only the first `rank` entries are set.
  int64_t sizes[kMaxRank];
  int64_t strides[4][kMaxRank];  // [0] out, [1..3] inputs; 0 repeats

  PointwiseArgs() {}  // leaves sizes and strides alone: this struct is made for every small op
};

using PointwiseKernel = Kernel<PointwiseArgs>;

namespace kernels {
// out = in0, converted from `other` to the table's dtype (saturating float → integer, NaN → 0;
// integers wrap).
inline constinit PointwiseKernel copy{"copy"};
// out = scalar[0] (integer[0] for integer types).
inline constinit PointwiseKernel fill{"fill"};
}  // namespace kernels

}  // namespace cutaway
