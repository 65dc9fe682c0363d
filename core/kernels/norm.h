#pragma once
#include <cutaway/core/kernels/reduce.h>

namespace cutaway {

// Normalisation with statistics of channels: row r of [rows, width] belongs to channel r %
// channels. batch_norm: rows (n, c), channels c. group_norm: rows (n, c), each a channel of its
// own. Numbers of channels are f64 [channels].
struct ChannelArgs {
  const void* in = nullptr;    // x
  const void* grad = nullptr;  // upstream, in backward
  void* out = nullptr;         // y or dx
  int64_t rows = 0, width = 0, channels = 1;
  const double* center = nullptr;
  const double* scale = nullptr;
  const double* shift = nullptr;
  const double* grad_scale = nullptr;  // backward only
  double* sum = nullptr;               // channel_dots
  double* dot = nullptr;
};

// Terms of the channels from statistics and weights. A statistic is shared by `per_stat` channels
// that follow each other; channel k has weight k % weights. Pointers may be null where said.
struct ChannelTermsArgs {
  int64_t channels = 0, per_stat = 1, weights = 1;
  double count = 1;  // elements of one statistic
  double eps = 0;
  bool fixed = false;            // statistics do not depend on x (batch_norm in evaluation)
  const double* mean = nullptr;  // [channels / per_stat]
  const double* var = nullptr;   // forward: variance (divided by count)
  double* rstd = nullptr;        // written in forward, read in backward
  const void* weight = nullptr;  // [weights], may be null
  const void* bias = nullptr;    // [weights], may be null
  double* center = nullptr;      // results [channels]
  double* scale = nullptr;
  double* shift = nullptr;
  double* grad_scale = nullptr;
  const double* sum = nullptr;  // backward: of channel_dots
  const double* dot = nullptr;
  void* grad_weight = nullptr;  // [weights], may be null
  void* grad_bias = nullptr;    // [weights], may be null
};

// running = (1 − momentum) running + momentum · factor · value, over [n].
struct RunningArgs {
  void* running = nullptr;
  const double* value = nullptr;
  double momentum = 0;
  double factor = 1;
  int64_t n = 0;
};

inline void visit_args(ArgumentVisitor& v, ChannelArgs& a) {
  v.numbers({{"rows", a.rows}, {"width", a.width}, {"channels", a.channels}});
  v.reads(a.in);
  v.reads(a.grad);
  v.reads(a.center);
  v.reads(a.scale);
  v.reads(a.shift);
  v.reads(a.grad_scale);
  v.writes(a.out);
  v.writes(a.sum);
  v.writes(a.dot);
}
// Results first: the sums, which the forward kernel is given too, may lie in one array with them.
inline void visit_args(ArgumentVisitor& v, ChannelTermsArgs& a) {
  v.numbers({{"channels", a.channels}});
  v.writes(a.center);
  v.writes(a.scale);
  v.writes(a.shift);
  v.writes(a.grad_scale);
  v.writes(a.grad_weight);
  v.writes(a.grad_bias);
  a.var ? v.writes(a.rstd) : v.reads(a.rstd);
  v.reads(a.mean);
  v.reads(a.var);
  v.reads(a.weight);
  v.reads(a.bias);
  v.reads(a.sum);
  v.reads(a.dot);
}
inline void visit_args(ArgumentVisitor& v, RunningArgs& a) {
  v.numbers({{"n", a.n}});
  v.changes(a.running);
  v.reads(a.value);
}

namespace kernels {
// f64: mean into `out`, Σ (x − mean)² / count into `out2`.
inline constinit Kernel<ReduceArgs> moments{"moments"};
// y = (x − center) scale + shift.
inline constinit Kernel<ChannelArgs> channel_affine{"channel_affine"};
// sum = Σ g, dot = Σ g (x − center), for each channel.
inline constinit Kernel<ChannelArgs> channel_dots{"channel_dots"};
// dx = grad_scale g + scale (x − center) + shift.
inline constinit Kernel<ChannelArgs> channel_backward{"channel_backward"};
// center = mean, scale = rstd · weight, shift = bias.
inline constinit Kernel<ChannelTermsArgs> channel_terms{"channel_terms"};
// Terms of channel_backward, and the gradients of weight and bias.
inline constinit Kernel<ChannelTermsArgs> channel_grad_terms{"channel_grad_terms"};
inline constinit Kernel<RunningArgs> update_running{"update_running"};
}  // namespace kernels

}  // namespace cutaway
