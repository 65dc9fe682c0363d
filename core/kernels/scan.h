#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// A running result along the middle dimension of row-major [outer, n, inner].
struct ScanArgs {
  const void* in = nullptr;
  const void* factor = nullptr;  // linear_scan only
  void* out = nullptr;
  int64_t* index = nullptr;  // cummax, cummin only
  int64_t outer = 1, n = 1, inner = 1;
  bool reverse = false;    // from the last element to the first
  bool exclusive = false;  // cumsum, cumprod: element i does not take part in result i
  bool shifted = false;    // linear_scan: the factor stands at the element before
};

inline void visit_args(ArgumentVisitor& v, ScanArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}, {"inner", a.inner}});
  v.reads(a.in);
  v.reads(a.factor);
  v.writes(a.out);
  v.writes(a.index);
}

namespace kernels {
// Floating types accumulate in f64, each result rounds once; integers and bool give i64 and wrap.
inline constinit Kernel<ScanArgs> cumsum{"cumsum"};
inline constinit Kernel<ScanArgs> cumprod{"cumprod"};
inline constinit Kernel<ScanArgs> logcumsumexp{"logcumsumexp"};
// Value and index of the last largest (smallest) element so far; NaN wins.
inline constinit Kernel<ScanArgs> cummax{"cummax"};
inline constinit Kernel<ScanArgs> cummin{"cummin"};
// t_i = in_i + factor_i · t_(i−1); shifted: factor_(i−1) · t_(i−1).
inline constinit Kernel<ScanArgs> linear_scan{"linear_scan"};
}  // namespace kernels

}  // namespace cutaway
