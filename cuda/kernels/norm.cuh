#pragma once
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/kernels/norm.h>
#include <cutaway/cuda/kernels/reduce_loop.cuh>

// Normalisation with statistics of channels, and sums of columns. Statistics are f64.
namespace cutaway::cuda::CUTAWAY_TARGET {

// ---- statistics

template <class T>
struct ShiftedMoments : Shifted<T> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, ShiftedSums a) {
    const double n = static_cast<double>(args.count);
    const int64_t base = kept_place(args, o, false);
    global<double>(args.out)[o] = Shifted<T>::context(args, o, base) + a.sum / n;
    global<double>(args.out2)[o] = Shifted<T>::spread(a, n) / n;
  }
};
struct SpreadToOut2 : Spread<double> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    global<double>(args.out2)[o] = a / static_cast<double>(args.count);
  }
};
template <class T>
void moments(const ReduceArgs& a) {
  if constexpr (std::is_same_v<T, double>) {
    reduce<WideMean<T>>(a);
    ReduceArgs second = a;
    second.context = static_cast<const double*>(a.out);
    reduce<SpreadToOut2>(second);
  } else {
    reduce<ShiftedMoments<T>>(a);
  }
}

// Σ g and Σ g (x − center) of a channel; `value` is g, laid out as x.
struct SumAndDot {
  double sum, dot;
};
template <class T>
struct ChannelDots {
  using In = T;
  using Acc = SumAndDot;
  using Paired = void;
  DEVICE double context(const ReduceArgs& a, int64_t o, int64_t) {
    return global<const double>(a.context)[o];
  }
  DEVICE Acc identity() { return {0, 0}; }
  DEVICE Acc add(Acc a, T x, T g, double center) {
    return {a.sum + wide(g), a.dot + wide(g) * (wide(x) - center)};
  }
  DEVICE Acc merge(Acc a, Acc b) { return {a.sum + b.sum, a.dot + b.dot}; }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) {
    global<double>(args.out)[o] = a.sum;
    global<double>(args.out2)[o] = a.dot;
  }
};
template <class T>
void channel_dots(const ChannelArgs& a) {
  ReduceArgs r;
  r.kept_rank = 1;
  r.kept_sizes[0] = r.outputs = a.channels;
  r.kept_strides[0] = a.width;
  const int64_t samples = a.channels > 0 ? a.rows / a.channels : 0;
  r.count = samples * a.width;
  r.reduced_rank = a.width == 1 ? 1 : 2;
  r.reduced_sizes[0] = samples;
  r.reduced_strides[0] = a.channels * a.width;
  if (a.width != 1) {
    r.reduced_sizes[1] = a.width;
    r.reduced_strides[1] = 1;
  }
  r.in = a.in;
  r.value = a.grad;
  r.context = a.center;
  r.out = a.sum;
  r.out2 = a.dot;
  reduce<ChannelDots<T>>(r);
}

// ---- elementwise: V neighbouring elements of a row for each thread

template <class T, int V, bool kGrad>
KERNEL channel_apply(ChannelArgs a, int64_t total, bool narrow) {
  using C = ComputeOf<T>;
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (i >= total) return;
  int64_t c;
  if (narrow) {
    c = static_cast<uint32_t>(i) / static_cast<uint32_t>(a.width) %
        static_cast<uint32_t>(a.channels);
  } else {
    c = i / a.width % a.channels;
  }
  const auto x = global<const T>(a.in);
  const double center = global<const double>(a.center)[c];
  const double scale = global<const double>(a.scale)[c];
  const double shift = global<const double>(a.shift)[c];
  const Vec<T, V> xv = load<V>(x, i);
  Vec<T, V> out;
  if constexpr (kGrad) {
    const double grad_scale = global<const double>(a.grad_scale)[c];
    const auto g = global<const T>(a.grad);
    const Vec<T, V> gv = load<V>(g, i);
    for (int k = 0; k < V; ++k) {
      const double moved = (wide(xv[k]) - center) * scale;
      out[k] = static_cast<T>(static_cast<C>(wide(gv[k]) * grad_scale + moved + shift));
    }
  } else {
    for (int k = 0; k < V; ++k) {
      out[k] = static_cast<T>(static_cast<C>((wide(xv[k]) - center) * scale + shift));
    }
  }
  store(global<T>(a.out), i, out);
}
template <class T, int V, bool kGrad>
void launch_channel_apply(const ChannelArgs& a) {
  const int64_t total = a.rows * a.width;
  launch({.name = kGrad ? "channel_backward" : "channel_affine",
          .grid = {static_cast<unsigned>(blocks_for(total / V, 256))},
          .block = {256},
          .sync = Sync::none},
         channel_apply<T, V, kGrad>, a, total, total < (int64_t{1} << 31));
}
template <class T, bool kGrad>
void apply_to_channels(const ChannelArgs& a) {
  if (a.rows == 0 || a.width == 0) return;
  constexpr int V = kWide<T>;
  const bool vectors = a.width % V == 0 && aligned16(a.in) && aligned16(a.out) && aligned16(a.grad);
  return vectors ? launch_channel_apply<T, V, kGrad>(a) : launch_channel_apply<T, 1, kGrad>(a);
}

// ---- terms of the channels

template <class T>
DEVICE double weight_of(const ChannelTermsArgs& a, int64_t channel) {
  if (!a.weight) return 1;
  const T w = global<const T>(a.weight)[channel % a.weights];
  return wide(w);
}

template <class T>
KERNEL terms_of_channels(ChannelTermsArgs a) {
  const int64_t k = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= a.channels) return;
  const int64_t s = k / a.per_stat;
  const double variance = global<const double>(a.var)[s], mean = global<const double>(a.mean)[s];
  const double rstd = 1 / math::detail::sqrt_of(variance + a.eps);
  if (k % a.per_stat == 0) global<double>(a.rstd)[s] = rstd;
  double shift = 0;
  if (a.bias) {
    const T b = global<const T>(a.bias)[k % a.weights];
    shift = wide(b);
  }
  global<double>(a.center)[k] = mean;
  global<double>(a.scale)[k] = rstd * weight_of<T>(a, k);
  global<double>(a.shift)[k] = shift;
}

// A warp for each statistic. With x̂ = (x − mean) rstd and ĝ = g · weight:
// dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ x̂)); only rstd ĝ when statistics are fixed.
template <class T>
KERNEL grad_terms_of_channels(ChannelTermsArgs a) {
  const Team team = this_team(32);
  const int64_t s = blockIdx.x * 8 + team.index;
  if (s >= a.channels / a.per_stat) return;
  const int64_t first = s * a.per_stat;
  const double rstd = global<const double>(a.rstd)[s];
  const auto sums = global<const double>(a.sum), dots = global<const double>(a.dot);
  double mean_g = 0, mean_gx = 0;
  for (int64_t k = first + team.lane; k < first + a.per_stat; k += 32) {
    const double weight = weight_of<T>(a, k);
    mean_g += weight * sums[k] / a.count;
    mean_gx += weight * dots[k] * rstd / a.count;
  }
  mean_g = team_reduce(team, mean_g, Plus());
  mean_gx = team_reduce(team, mean_gx, Plus());
  const double mean = global<const double>(a.mean)[s];
  for (int64_t k = first + team.lane; k < first + a.per_stat; k += 32) {
    global<double>(a.center)[k] = mean;
    global<double>(a.grad_scale)[k] = rstd * weight_of<T>(a, k);
    global<double>(a.scale)[k] = a.fixed ? 0 : -rstd * rstd * mean_gx;
    global<double>(a.shift)[k] = a.fixed ? 0 : -rstd * mean_g;
  }
}
template <class T>
KERNEL grads_of_weights(ChannelTermsArgs a) {
  const int64_t w = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (w >= a.weights) return;
  const auto sums = global<const double>(a.sum), dots = global<const double>(a.dot);
  const auto rstds = global<const double>(a.rstd);
  double dot = 0, sum = 0;
  for (int64_t k = w; k < a.channels; k += a.weights) {
    if (a.count > 0) dot += dots[k] * rstds[k / a.per_stat];
    sum += sums[k];
  }
  if (a.grad_weight) global<T>(a.grad_weight)[w] = static_cast<T>(dot);
  if (a.grad_bias) global<T>(a.grad_bias)[w] = static_cast<T>(sum);
}

inline Launch small_launch(const char* name, int64_t n, Sync sync) {
  return {.name = name,
          .grid = {static_cast<unsigned>(blocks_for(n, 256))},
          .block = {256},
          .sync = sync};
}
template <class T>
void channel_terms(const ChannelTermsArgs& a) {
  if (a.channels == 0) return;
  launch(small_launch("channel_terms", a.channels, Sync::none), terms_of_channels<T>, a);
}
template <class T>
void channel_grad_terms(const ChannelTermsArgs& a) {
  if (a.channels > 0) {
    launch(small_launch("channel_grad_terms", a.channels / a.per_stat * 32, Sync::block),
           grad_terms_of_channels<T>, a);
  }
  if (a.weights > 0 && (a.grad_weight || a.grad_bias)) {
    launch(small_launch("channel_grad_weights", a.weights, Sync::none), grads_of_weights<T>, a);
  }
}

template <class T>
KERNEL update_statistics(RunningArgs a) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const auto running = global<T>(a.running);
  const T before = running[i];
  const double value = global<const double>(a.value)[i];
  running[i] = static_cast<T>((1 - a.momentum) * wide(before) + a.momentum * a.factor * value);
}
template <class T>
void update_running(const RunningArgs& a) {
  if (a.n == 0) return;
  launch(small_launch("update_running", a.n, Sync::none), update_statistics<T>, a);
}

// ---- columns: integers keep their type and wrap

template <class T>
struct ColumnSum : Sum<T> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, SumAcc<T> a) {
    global<T>(args.out)[o] = static_cast<T>(a);
  }
};
template <class T>
void column_sums(const ColumnSumArgs& a) {
  ReduceArgs r;
  r.kept_rank = r.reduced_rank = 1;
  r.kept_sizes[0] = r.outputs = a.columns;
  r.kept_strides[0] = 1;
  r.reduced_sizes[0] = r.count = a.rows;
  r.reduced_strides[0] = a.columns;
  r.in = a.in;
  r.out = a.out;
  reduce<ColumnSum<T>>(r);
}

template <class T>
void set_column_sums(DType t) {
  kernels::column_sums.set(kDevice, t, &column_sums<T>);
}
template <class T>
void set_channels(DType t) {
  kernels::moments.set(kDevice, t, &moments<T>);
  kernels::channel_affine.set(kDevice, t, &apply_to_channels<T, false>);
  kernels::channel_dots.set(kDevice, t, &channel_dots<T>);
  kernels::channel_backward.set(kDevice, t, &apply_to_channels<T, true>);
  kernels::channel_terms.set(kDevice, t, &channel_terms<T>);
  kernels::channel_grad_terms.set(kDevice, t, &channel_grad_terms<T>);
  kernels::update_running.set(kDevice, t, &update_running<T>);
  set_column_sums<T>(t);
}

void register_norm_kernels() {
  set_channels<double>(DType::f64);
  set_channels<float>(DType::f32);
  set_channels<BFloat16>(DType::bf16);
  set_channels<Float16>(DType::f16);
  set_column_sums<int64_t>(DType::i64);
  set_column_sums<int32_t>(DType::i32);
  set_column_sums<uint8_t>(DType::u8);
  set_column_sums<int8_t>(DType::i8);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
