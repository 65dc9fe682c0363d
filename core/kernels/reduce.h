#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

namespace cutaway {

// One reduction: out[o] = reduce over r of in[o, r]. Kept and reduced dimensions are collapsed
// apart; outputs are dense, in row-major order of the kept dimensions. Strides in elements.
struct ReduceArgs {
  int kept_rank = 0;
  int reduced_rank = 0;
  // Only the first `rank` entries are set.
  int64_t kept_sizes[kMaxRank];
  int64_t kept_strides[kMaxRank];
  int64_t reduced_sizes[kMaxRank];
  int64_t reduced_strides[kMaxRank];
  int64_t outputs = 1;  // product of kept_sizes
  int64_t count = 1;    // product of reduced_sizes
  const void* in = nullptr;
  void* out = nullptr;
  void* out2 = nullptr;             // moments: the second result
  const void* value = nullptr;      // find_first: what to look for [outputs], type of `in`
  const double* context = nullptr;  // a number for each output (mean, maximum) [outputs]
  double p = 0;                     // norm: its order; var and std: the correction

  ReduceArgs() {}  // leaves the lists alone, as PointwiseArgs
};

// Lists that are cut along their only reduced dimension, for median: row-major [outer, n, inner].
struct MedianArgs {
  const void* in = nullptr;
  void* value = nullptr;     // [outer, inner]
  int64_t* index = nullptr;  // may be null
  int64_t outer = 1, n = 1, inner = 1;
  bool skip_nan = false;
};

// Gradient of a product: grad[o, i] = upstream[o] · Π of in[o, j] over j ≠ i; row-major [outer, n].
struct ProdGradArgs {
  const void* in = nullptr;
  const void* upstream = nullptr;  // [outer]
  void* grad = nullptr;
  int64_t outer = 1, n = 1;
};

inline void visit_args(ArgumentVisitor& v, ReduceArgs& a) {
  v.numbers({{"outputs", a.outputs}, {"count", a.count}});
  v.reads(a.in);
  v.reads(a.value);
  v.reads(a.context);
  v.writes(a.out);
  v.writes(a.out2);
}
inline void visit_args(ArgumentVisitor& v, MedianArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}, {"inner", a.inner}});
  v.reads(a.in);
  v.writes(a.value);
  v.writes(a.index);
}
inline void visit_args(ArgumentVisitor& v, ProdGradArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}});
  v.reads(a.in);
  v.reads(a.upstream);
  v.writes(a.grad);
}

namespace kernels {
// Floating types accumulate in f64 and round once; integers and bool give i64 and wrap.
inline constinit Kernel<ReduceArgs> sum{"sum"};
inline constinit Kernel<ReduceArgs> prod{"prod"};
inline constinit Kernel<ReduceArgs> mean{"mean"};
// Σ (x − mean)² / max(0, count − p), and its root; two passes in f64.
inline constinit Kernel<ReduceArgs> var{"var"};
inline constinit Kernel<ReduceArgs> std_dev{"std"};
// NaN wins. count must not be 0.
inline constinit Kernel<ReduceArgs> amax{"amax"};
inline constinit Kernel<ReduceArgs> amin{"amin"};
// i64: first r, in row-major order of the reduced dimensions, at which `in` equals `value` or both
// are NaN; 0 if none.
inline constinit Kernel<ReduceArgs> find_first{"find_first"};
inline constinit Kernel<ReduceArgs> logsumexp{"logsumexp"};
inline constinit Kernel<ReduceArgs> any{"any"};
inline constinit Kernel<ReduceArgs> all{"all"};
inline constinit Kernel<ReduceArgs> count_nonzero{"count_nonzero"};
// (Σ |x|^p)^(1/p); p = 0 counts, ±inf take the extreme of |x|.
inline constinit Kernel<ReduceArgs> norm{"norm"};
inline constinit Kernel<MedianArgs> median{"median"};
inline constinit Kernel<ProdGradArgs> prod_backward{"prod_backward"};
}  // namespace kernels

}  // namespace cutaway
