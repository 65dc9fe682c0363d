#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// Resizing of planes [in…] → [out…] with three spatial dimensions (missing leading ones have size
// 1): output o reads low[d][o] with weight 1 − share[d][o] and high[d][o] with weight share[d][o]
// along each dimension d. The adjoint adds back with the same weights.
struct ResizeArgs {
  int64_t planes = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  const int64_t* low[3] = {};   // host
  const int64_t* high[3] = {};  // host
  const double* share[3] = {};  // host
  const void* from = nullptr;
  void* result = nullptr;
};

inline void visit_args(ArgumentVisitor& v, ResizeArgs& a) {
  v.numbers({{"planes", a.planes}, {"h", a.out[1]}, {"w", a.out[2]}});
  for (int d = 0; d < 3; ++d) {
    v.host(a.low[d], a.out[d]);
    v.host(a.high[d], a.out[d]);
    v.host(a.share[d], a.out[d]);
  }
  v.reads(a.from);
  v.writes(a.result);
}

namespace kernels {
inline constinit Kernel<ResizeArgs> resize{"interpolate"};
inline constinit Kernel<ResizeArgs> resize_grad{"interpolate_grad"};
}  // namespace kernels

}  // namespace cutaway
