#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// Softmax along the middle dimension of row-major [outer, n, inner].
struct SoftmaxArgs {
  const void* in = nullptr;    // forward: x; backward: y
  const void* grad = nullptr;  // backward: upstream
  void* out = nullptr;         // forward: y; backward: dx
  int64_t outer = 1, n = 1, inner = 1;
};

// Normalisation of rows: x, y, grad, dx [rows, width]; weight, bias [width]; mean, rstd [rows].
struct RowNormArgs {
  const void* in = nullptr;
  void* out = nullptr;           // forward: y; backward: dx, may be null
  const void* weight = nullptr;  // may be null
  const void* bias = nullptr;    // may be null
  double* mean = nullptr;        // written in forward, read in backward; null: rms_norm
  double* rstd = nullptr;
  const void* grad = nullptr;   // backward: upstream
  void* grad_weight = nullptr;  // [width], may be null
  void* grad_bias = nullptr;    // [width], may be null
  int64_t rows = 0, width = 0;
  double eps = 0;
};

inline void visit_args(ArgumentVisitor& v, SoftmaxArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}, {"inner", a.inner}});
  v.reads(a.in);
  v.reads(a.grad);
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, RowNormArgs& a) {
  v.numbers({{"rows", a.rows}, {"width", a.width}});
  v.reads(a.in);
  v.reads(a.weight);
  v.reads(a.bias);
  a.grad ? v.reads(a.mean) : v.writes(a.mean);
  a.grad ? v.reads(a.rstd) : v.writes(a.rstd);
  v.reads(a.grad);
  v.writes(a.out);
  v.writes(a.grad_weight);
  v.writes(a.grad_bias);
}

namespace kernels {
inline constinit Kernel<SoftmaxArgs> softmax{"softmax"};
inline constinit Kernel<SoftmaxArgs> log_softmax{"log_softmax"};
// dx = y (g − Σ g y), and dx = g − exp(y) Σ g.
inline constinit Kernel<SoftmaxArgs> softmax_backward{"softmax_backward"};
inline constinit Kernel<SoftmaxArgs> log_softmax_backward{"log_softmax_backward"};
// y = (x − mean) rstd · weight + bias; statistics in f64.
inline constinit Kernel<RowNormArgs> row_norm{"row_norm"};
inline constinit Kernel<RowNormArgs> row_norm_backward{"row_norm_backward"};
}  // namespace kernels

}  // namespace cutaway
