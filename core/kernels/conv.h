#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// One convolution with three spatial dimensions (missing leading ones have size 1). x [n,c,in], w
// [k,c/groups,kernel], y [n,k,out], all row-major; bias [k] or null (forward only). out = (in +
// 2·pad − dilation·(kernel−1) − 1)/stride + 1.
struct ConvArgs {
  int64_t n = 0, c = 0, k = 0, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad[3] = {}, dilation[3] = {1, 1, 1};
  const void* x = nullptr;  // forward, weight gradient
  const void* w = nullptr;  // forward, input gradient
  const void* bias = nullptr;
  const void* g = nullptr;  // gradients: upstream [n,k,out]
  void* result = nullptr;
};

inline void visit_args(ArgumentVisitor& v, ConvArgs& a) {
  v.numbers({{"n", a.n}, {"c", a.c}, {"k", a.k}, {"h", a.out[1]}, {"w", a.out[2]}});
  v.reads(a.x);
  v.reads(a.w);
  v.reads(a.bias);
  v.reads(a.g);
  v.writes(a.result);
}

namespace kernels {
inline constinit Kernel<ConvArgs> conv_forward{"conv"};
inline constinit Kernel<ConvArgs> conv_input_grad{"conv_input_grad"};
inline constinit Kernel<ConvArgs> conv_weight_grad{"conv_weight_grad"};
}  // namespace kernels

}  // namespace cutaway
