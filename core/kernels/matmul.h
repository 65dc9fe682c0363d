#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

namespace cutaway {

// Products C = alpha · A · B + beta · C (+ bias in every row), one for each index of the batch
// dimensions. A is [m,k], B [k,n], C [m,n] with unit column stride. Strides in elements; 0 repeats.
// C is not read when beta is 0; bias needs beta = 0.
struct MatmulArgs {
  int rank = 0;  // batch dimensions
  int64_t batch = 1;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[3][kMaxRank] = {};  // [0] C, [1] A, [2] B
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0;
  bool sum_batch = false;  // one C: the sum over the batch
  double alpha = 1, beta = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // [n], or null
  void* c = nullptr;
};

// out[j] = Σ_i in[i, j] for a row-major [rows, columns].
struct ColumnSumArgs {
  int64_t rows = 0, columns = 0;
  const void* in = nullptr;
  void* out = nullptr;
};

inline void visit_args(ArgumentVisitor& v, MatmulArgs& a) {
  v.numbers({{"batch", a.batch}, {"m", a.m}, {"n", a.n}, {"k", a.k}});
  v.reads(a.a);
  v.reads(a.b);
  v.reads(a.bias);
  a.beta == 0 ? v.writes(a.c) : v.changes(a.c);
}
inline void visit_args(ArgumentVisitor& v, ColumnSumArgs& a) {
  v.numbers({{"rows", a.rows}, {"columns", a.columns}});
  v.reads(a.in);
  v.writes(a.out);
}

namespace kernels {
// 16-bit types multiply and add in f32 and round once; integers wrap around.
inline constinit Kernel<MatmulArgs> matmul{"matmul"};
inline constinit Kernel<ColumnSumArgs> column_sums{"column_sums"};
}  // namespace kernels

}  // namespace cutaway
