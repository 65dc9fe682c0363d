#include <algorithm>
#include <cmath>

#include <cutaway/core/kernels/optim.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// Note: loops apart. Whether there is a state is not asked inside a loop: a masked load from no
// address, though it loads nothing, costs hundreds of cycles.

// Parameters T, states and arithmetic S.
template <class T, class S, bool Momentum>
void sgd_loop(const OptimArgs& a) {
  T* param = static_cast<T*>(a.param);
  const T* grad = static_cast<const T*>(a.grad);
  [[maybe_unused]] S* buffer = static_cast<S*>(a.state[0]);
  const S lr = S(a.lr), decay = S(a.weight_decay), mu = S(a.momentum), keep = S(1 - a.dampening);
  const S scale = S(a.maximize ? -a.grad_scale : a.grad_scale);
  parallel_for(a.n, kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const S p = S(param[i]);
      S g = scale * S(grad[i]) + decay * p;
      if constexpr (Momentum) {
        const S b = a.first ? g : mu * buffer[i] + keep * g;
        buffer[i] = b;
        g = a.nesterov ? g + mu * b : b;
      }
      param[i] = T(p - lr * g);
    }
  });
}

template <class T, class S>
void sgd(const OptimArgs& a) {
  a.state[0] ? sgd_loop<T, S, true>(a) : sgd_loop<T, S, false>(a);
}

// Largest: amsgrad.
template <class T, class S, bool Largest>
void adam_loop(const OptimArgs& a) {
  T* param = static_cast<T*>(a.param);
  const T* grad = static_cast<const T*>(a.grad);
  S* m = static_cast<S*>(a.state[0]);
  S* v = static_cast<S*>(a.state[1]);
  [[maybe_unused]] S* largest = static_cast<S*>(a.state[2]);
  const S beta1 = S(a.beta1), beta2 = S(a.beta2), eps = S(a.eps);
  const S other1 = S(1 - a.beta1), other2 = S(1 - a.beta2);
  const S step = S(a.lr / a.correction1), root2 = S(std::sqrt(a.correction2));
  const S shrink = S(a.decoupled ? 1 - a.lr * a.weight_decay : 1);
  const S decay = S(a.decoupled ? 0 : a.weight_decay);
  const S scale = S(a.maximize ? -a.grad_scale : a.grad_scale);
  parallel_for(a.n, kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const S p = S(param[i]) * shrink;
      const S g = scale * S(grad[i]) + decay * S(param[i]);
      const S mi = beta1 * m[i] + other1 * g;
      const S vi = beta2 * v[i] + other2 * g * g;
      m[i] = mi;
      v[i] = vi;
      S second = vi;
      if constexpr (Largest) {
        second = vi > largest[i] ? vi : largest[i];
        largest[i] = second;
      }
      param[i] = T(p - step * mi / (std::sqrt(second) / root2 + eps));
    }
  });
}

template <class T, class S>
void adam(const OptimArgs& a) {
  a.state[2] ? adam_loop<T, S, true>(a) : adam_loop<T, S, false>(a);
}

template <class T, class S, bool Centered, bool Momentum>
void rmsprop_loop(const OptimArgs& a) {
  T* param = static_cast<T*>(a.param);
  const T* grad = static_cast<const T*>(a.grad);
  S* square = static_cast<S*>(a.state[0]);
  [[maybe_unused]] S* mean = static_cast<S*>(a.state[1]);
  [[maybe_unused]] S* buffer = static_cast<S*>(a.state[2]);
  const S lr = S(a.lr), decay = S(a.weight_decay), mu = S(a.momentum), eps = S(a.eps);
  const S alpha = S(a.beta2), other = S(1 - a.beta2);
  const S scale = S(a.maximize ? -a.grad_scale : a.grad_scale);
  parallel_for(a.n, kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const S p = S(param[i]);
      const S g = scale * S(grad[i]) + decay * p;
      S second = alpha * square[i] + other * g * g;
      square[i] = second;
      if constexpr (Centered) {
        const S m = alpha * mean[i] + other * g;
        mean[i] = m;
        // A variance; rounding may leave it below 0.
        second -= m * m;
        second = second < 0 ? S(0) : second;
      }
      S move = g / (std::sqrt(second) + eps);
      if constexpr (Momentum) {
        move += mu * buffer[i];
        buffer[i] = move;
      }
      param[i] = T(p - lr * move);
    }
  });
}

template <class T, class S>
void rmsprop(const OptimArgs& a) {
  if (a.state[1]) {
    a.state[2] ? rmsprop_loop<T, S, true, true>(a) : rmsprop_loop<T, S, true, false>(a);
  } else {
    a.state[2] ? rmsprop_loop<T, S, false, true>(a) : rmsprop_loop<T, S, false, false>(a);
  }
}

template <class T, class S>
void adagrad(const OptimArgs& a) {
  T* param = static_cast<T*>(a.param);
  const T* grad = static_cast<const T*>(a.grad);
  S* sum = static_cast<S*>(a.state[0]);
  const S step = S(a.lr / a.correction1), decay = S(a.weight_decay), eps = S(a.eps);
  const S scale = S(a.maximize ? -a.grad_scale : a.grad_scale);
  parallel_for(a.n, kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const S p = S(param[i]);
      const S g = scale * S(grad[i]) + decay * p;
      const S total = sum[i] + g * g;
      sum[i] = total;
      param[i] = T(p - step * g / (std::sqrt(total) + eps));
    }
  });
}

template <class T, class S>
void lion(const OptimArgs& a) {
  T* param = static_cast<T*>(a.param);
  const T* grad = static_cast<const T*>(a.grad);
  S* mean = static_cast<S*>(a.state[0]);
  const S beta1 = S(a.beta1), other1 = S(1 - a.beta1), lr = S(a.lr);
  const S beta2 = S(a.beta2), other2 = S(1 - a.beta2);
  const S shrink = S(1 - a.lr * a.weight_decay);
  const S scale = S(a.maximize ? -a.grad_scale : a.grad_scale);
  parallel_for(a.n, kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const S g = scale * S(grad[i]), m = mean[i];
      const S c = beta1 * m + other1 * g;
      // The sign of c; NaN stays.
      const S move = c > 0 ? S(1) : (c < 0 ? S(-1) : c);
      mean[i] = beta2 * m + other2 * g;
      param[i] = T(S(param[i]) * shrink - lr * move);
    }
  });
}

// The arguments with the scalars that lie in memory.
OptimArgs with_scalars(OptimArgs a) {
  if (!a.scalars) return a;
  a.lr = a.scalars[kScalarLr];
  a.correction1 = a.scalars[kScalarCorrection1];
  a.correction2 = a.scalars[kScalarCorrection2];
  a.grad_scale = a.scalars[kScalarGradScale];
  a.first = a.scalars[kScalarSteps] == 1;
  return a;
}

template <void (*step)(const OptimArgs&)>
void each(const OptimListArgs& a) {
  for (int64_t i = 0; i < a.count; ++i) step(with_scalars(a.list[i]));
}

void begin_steps(const OptimScalarsArgs& a) {
  for (int64_t i = 0; i < a.count; ++i) {
    double* row = a.rows + i * kOptimScalars;
    row[kScalarSteps] += 1;
    row[kScalarLr] = a.common[0] * row[kScalarLrFactor];
    row[kScalarCorrection1] = lr_divisor(a.beta1, a.lr_decay, row[kScalarSteps]);
    row[kScalarCorrection2] = bias_correction(a.beta2, row[kScalarSteps]);
    row[kScalarGradScale] = a.common[1];
  }
}

template <class T, class S>
void set_steps(DType t) {
  const DeviceKind cpu = DeviceKind::cpu;
  kernels::sgd_step.set(cpu, t, each<sgd<T, S>>);
  kernels::adam_step.set(cpu, t, each<adam<T, S>>);
  kernels::rmsprop_step.set(cpu, t, each<rmsprop<T, S>>);
  kernels::adagrad_step.set(cpu, t, each<adagrad<T, S>>);
  kernels::lion_step.set(cpu, t, each<lion<T, S>>);
}

}  // namespace

void register_optim_kernels() {
  set_steps<double, double>(DType::f64);
  set_steps<float, float>(DType::f32);
  set_steps<BFloat16, float>(DType::bf16);
  set_steps<Float16, float>(DType::f16);
  kernels::optim_scalars.set(DeviceKind::cpu, DType::f64, begin_steps);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
