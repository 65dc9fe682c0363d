#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/cpu/row_lanes.h>
#include <cutaway/core/kernels/norm.h>

#include <cmath>

// Normalisation of channels. Statistics, and what is subtracted, are f64: a large common
// offset cancels and values near the end of the f32 range do not overflow.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// ---- channels

template <class T>
struct MeanOf : Sum<T> {
  using Out = double;
  static double finish(double a, const ReduceArgs& args, int64_t) { return a / double(args.count); }
};
template <class T>
struct SpreadOf : MeanOf<T> {
  static constexpr bool kContext = true;
  static double add(double a, T x, double mean) {
    const double d = wide(x) - mean;
    return a + d * d;
  }
};

template <class T>
void moments(const ReduceArgs& a) {
  reduce<MeanOf<T>>(a);
  ReduceArgs b = a;
  b.context = static_cast<const double*>(a.out);
  b.out = a.out2;
  reduce<SpreadOf<T>>(b);
}

// Calls body(offset of a run, its length, first channel, step of the channel number) for all runs:
// a row, or all channels of a sample when a row has one element.
template <class F>
void for_runs(const ChannelArgs& a, F&& body) {
  if (a.rows == 0 || a.width == 0) return;
  if (a.width == 1) {
    return parallel_for(a.rows / a.channels, 1 + kGrain / a.channels, [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r) body(r * a.channels, a.channels, 0, std::true_type{});
    });
  }
  parallel_for(a.rows, 1 + kGrain / a.width, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) body(r * a.width, a.width, r % a.channels, std::false_type{});
  });
}

template <class T>
void channel_affine(const ChannelArgs& a) {
  using C = ComputeOf<T>;
  for_runs(a, [&](int64_t at, int64_t n, int64_t c, auto each) {
    const T* x = static_cast<const T*>(a.in) + at;
    T* y = static_cast<T*>(a.out) + at;
    const double *center = a.center + c, *scale = a.scale + c, *shift = a.shift + c;
    constexpr int64_t kStep = each ? 1 : 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = i * kStep;
      math::store(y[i], C((wide(x[i]) - center[k]) * scale[k] + shift[k]));
    }
  });
}

template <class T>
void channel_backward(const ChannelArgs& a) {
  using C = ComputeOf<T>;
  for_runs(a, [&](int64_t at, int64_t n, int64_t c, auto each) {
    const T *x = static_cast<const T*>(a.in) + at, *g = static_cast<const T*>(a.grad) + at;
    T* dx = static_cast<T*>(a.out) + at;
    const double *center = a.center + c, *scale = a.scale + c, *shift = a.shift + c;
    const double* grad_scale = a.grad_scale + c;
    constexpr int64_t kStep = each ? 1 : 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = i * kStep;
      math::store(dx[i],
                  C(wide(g[i]) * grad_scale[k] + (wide(x[i]) - center[k]) * scale[k] + shift[k]));
    }
  });
}

// One element a row: samples in chunks of fixed size, added in order.
template <class T>
void dots_of_samples(const ChannelArgs& a) {
  const int64_t channels = a.channels, samples = a.rows / channels;
  const int64_t per_chunk = samples < 16 * 64 ? 16 : (samples + 63) / 64;
  const int64_t chunks = (samples + per_chunk - 1) / per_chunk;
  Scratch<double> parts(2 * chunks * channels);
  run_tasks(chunks, a.rows, [&](int64_t k) {
    double *sum = parts.get() + 2 * k * channels, *dot = sum + channels;
    for (int64_t c = 0; c < channels; ++c) sum[c] = dot[c] = 0;
    const int64_t end = (k + 1) * per_chunk < samples ? (k + 1) * per_chunk : samples;
    for (int64_t s = k * per_chunk; s < end; ++s) {
      const T* x = static_cast<const T*>(a.in) + s * channels;
      const T* g = static_cast<const T*>(a.grad) + s * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        sum[c] += wide(g[c]);
        dot[c] += wide(g[c]) * (wide(x[c]) - a.center[c]);
      }
    }
  });
  for (int64_t k = 0; k < chunks; ++k) {
    const double *sum = parts.get() + 2 * k * channels, *dot = sum + channels;
    for (int64_t c = 0; c < channels; ++c) {
      a.sum[c] += sum[c];
      a.dot[c] += dot[c];
    }
  }
}

template <class T>
void channel_dots(const ChannelArgs& a) {
  for (int64_t c = 0; c < a.channels; ++c) a.sum[c] = a.dot[c] = 0;
  if (a.rows == 0 || a.width == 0) return;
  if (a.width == 1) return dots_of_samples<T>(a);
  Scratch<double> parts(2 * a.rows);
  parallel_for(a.rows, 1 + kGrain / (2 * a.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(a.in) + r * a.width;
      const T* g = static_cast<const T*>(a.grad) + r * a.width;
      const double center = a.center[r % a.channels];
      parts[2 * r] = sum_f64(a.width, [g](int64_t i) { return wide(g[i]); });
      parts[2 * r + 1] = sum_f64(
          a.width, [x, g, center](int64_t i) { return wide(g[i]) * (wide(x[i]) - center); });
    }
  });
  for (int64_t r = 0; r < a.rows; ++r) {
    a.sum[r % a.channels] += parts[2 * r];
    a.dot[r % a.channels] += parts[2 * r + 1];
  }
}

template <class T>
void channel_terms(const ChannelTermsArgs& a) {
  const T *weight = static_cast<const T*>(a.weight), *bias = static_cast<const T*>(a.bias);
  for (int64_t s = 0; s < a.channels / a.per_stat; ++s) a.rstd[s] = 1 / std::sqrt(a.var[s] + a.eps);
  for (int64_t k = 0; k < a.channels; ++k) {
    const int64_t s = k / a.per_stat, w = k % a.weights;
    a.center[k] = a.mean[s];
    a.scale[k] = weight ? a.rstd[s] * wide(weight[w]) : a.rstd[s];
    a.shift[k] = bias ? wide(bias[w]) : 0;
  }
}

// With x̂ = (x − mean) rstd and ĝ = g · weight: dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ x̂)), the means
// over all channels of a statistic; only rstd ĝ when statistics are fixed.
template <class T>
void channel_grad_terms(const ChannelTermsArgs& a) {
  const T* weight = static_cast<const T*>(a.weight);
  const auto factor = [&](int64_t k) { return weight ? wide(weight[k % a.weights]) : 1.0; };
  for (int64_t first = 0, s = 0; first < a.channels; first += a.per_stat, ++s) {
    const double rstd = a.rstd[s];
    double mean_g = 0, mean_gx = 0;
    for (int64_t k = first; k < first + a.per_stat; ++k) {
      mean_g += factor(k) * a.sum[k] / a.count;
      mean_gx += factor(k) * a.dot[k] * rstd / a.count;
    }
    for (int64_t k = first; k < first + a.per_stat; ++k) {
      a.center[k] = a.mean[s];
      a.grad_scale[k] = rstd * factor(k);
      a.scale[k] = a.fixed ? 0 : -rstd * rstd * mean_gx;
      a.shift[k] = a.fixed ? 0 : -rstd * mean_g;
    }
  }
  for (int64_t w = 0; w < a.weights; ++w) {
    double dot = 0, sum = 0;
    for (int64_t k = w; k < a.channels; k += a.weights) {
      dot += a.count > 0 ? a.dot[k] * a.rstd[k / a.per_stat] : 0;
      sum += a.sum[k];
    }
    if (a.grad_weight) static_cast<T*>(a.grad_weight)[w] = T(dot);
    if (a.grad_bias) static_cast<T*>(a.grad_bias)[w] = T(sum);
  }
}

template <class T>
void update_running(const RunningArgs& a) {
  T* running = static_cast<T*>(a.running);
  for (int64_t i = 0; i < a.n; ++i) {
    running[i] = T((1 - a.momentum) * wide(running[i]) + a.momentum * a.factor * a.value[i]);
  }
}

template <class T>
void set_norms(DType t) {
  const auto cpu = DeviceKind::cpu;
  kernels::moments.set(cpu, t, &moments<T>);
  kernels::channel_affine.set(cpu, t, &channel_affine<T>);
  kernels::channel_dots.set(cpu, t, &channel_dots<T>);
  kernels::channel_backward.set(cpu, t, &channel_backward<T>);
  kernels::channel_terms.set(cpu, t, &channel_terms<T>);
  kernels::channel_grad_terms.set(cpu, t, &channel_grad_terms<T>);
  kernels::update_running.set(cpu, t, &update_running<T>);
}

}  // namespace

void register_norm_kernels() {
  set_norms<double>(DType::f64);
  set_norms<float>(DType::f32);
  set_norms<BFloat16>(DType::bf16);
  set_norms<Float16>(DType::f16);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
