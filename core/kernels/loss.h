#pragma once
#include <cutaway/core/kernel.h>

namespace cutaway {

// Cross entropy of scores x, row-major [outer, classes, inner], against one class per row (target)
// or a distribution per row (soft). A row r = (outer, inner) has q_c = (1 − smoothing) t_c +
// smoothing / classes, t the one-hot or soft target, and the loss Σ_c q_c weight_c (lse − x_c).
struct CrossEntropyArgs {
  const void* x = nullptr;
  const int64_t* target = nullptr;  // [outer, inner], or null
  const void* soft = nullptr;       // [outer, classes, inner] in the type of x, or null
  const void* weight = nullptr;     // [classes] in the type of x, or null: ones
  void* y = nullptr;                // forward: [outer, inner], or one value
  double* stats = nullptr;  // [outer·inner + 1]: lse of each row, then the divisor of the mean
  const void* upstream = nullptr;  // backward: like y
  void* grad = nullptr;            // backward: like x
  int64_t outer = 1, classes = 1, inner = 1;
  int64_t ignore_index = -100;  // rows of this class cost nothing
  double smoothing = 0;
  bool normalized = false;  // x holds log-probabilities already: lse is 0
  bool reduce = true;       // y is one value
  bool mean = true;         // divided by the sum of weight_target, for soft targets by the rows
};

inline void visit_args(ArgumentVisitor& v, CrossEntropyArgs& a) {
  v.numbers({{"outer", a.outer}, {"classes", a.classes}, {"inner", a.inner}});
  v.reads(a.x);
  v.reads(a.target);
  v.reads(a.soft);
  v.reads(a.weight);
  v.reads(a.upstream);
  v.writes(a.y);
  a.grad ? v.reads(a.stats) : v.writes(a.stats);
  v.writes(a.grad);
}

namespace kernels {
inline constinit Kernel<CrossEntropyArgs> cross_entropy{"cross_entropy"};
inline constinit Kernel<CrossEntropyArgs> cross_entropy_backward{"cross_entropy_backward"};
}  // namespace kernels

}  // namespace cutaway
