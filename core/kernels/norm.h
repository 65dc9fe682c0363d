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

// running = (1 − momentum) running + momentum · value, over [n].
struct RunningArgs {
  void* running = nullptr;
  const double* value = nullptr;
  double momentum = 0;
  int64_t n = 0;
};

namespace kernels {
// f64: mean into `out`, Σ (x − mean)² / count into `out2`.
inline constinit Kernel<ReduceArgs> moments{"moments"};
// y = (x − center) scale + shift.
inline constinit Kernel<ChannelArgs> channel_affine{"channel_affine"};
// sum = Σ g, dot = Σ g (x − center), for each channel.
inline constinit Kernel<ChannelArgs> channel_dots{"channel_dots"};
// dx = grad_scale g + scale (x − center) + shift.
inline constinit Kernel<ChannelArgs> channel_backward{"channel_backward"};
inline constinit Kernel<RunningArgs> update_running{"update_running"};
}  // namespace kernels

}  // namespace cutaway
