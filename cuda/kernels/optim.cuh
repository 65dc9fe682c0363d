#pragma once
#include <cutaway/core/kernels/optim.h>
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/walk.h>

// Optimiser steps: every array is read once and written once, 16 bytes of a state at a time, for
// many parameters in one launch.
namespace cutaway::cuda::CUTAWAY_TARGET {

// What changes from step to step: from the arguments, or read by every thread where the step may
// be replayed.
struct StepScalars {
  double lr, correction1, correction2, grad_scale;
  bool first;
};
DEVICE StepScalars scalars_at(const double* scalars) {
  const auto s = global<const double>(scalars);
  const double steps = s[kScalarSteps];
  return {s[kScalarLr], s[kScalarCorrection1], s[kScalarCorrection2], s[kScalarGradScale],
          steps == 1};
}

// A step of one element; S: type of states and arithmetic. The constants are made by set().
template <class S>
struct SgdStep {
  static constexpr int kStates = 1;
  S lr, decay, mu, keep, scale;
  bool first, nesterov, maximize, use[1];

  SgdStep() = default;
  explicit SgdStep(const OptimArgs& a)
      : decay(S(a.weight_decay)),
        mu(S(a.momentum)),
        keep(S(1 - a.dampening)),
        nesterov(a.nesterov),
        maximize(a.maximize),
        use{a.state[0] != nullptr} {
    set({a.lr, a.correction1, a.correction2, a.grad_scale, a.first});
  }
  CUTAWAY_HD void set(const StepScalars& s) {
    lr = S(s.lr);
    scale = S(maximize ? -s.grad_scale : s.grad_scale);
    first = s.first;
  }
  // What is stored in a state before the first step is not read.
  CUTAWAY_HD bool reads(int) const { return !first; }
  CUTAWAY_HD S operator()(S p, S grad, S (&state)[1]) const {
    S g = scale * grad + decay * p;
    if (use[0]) {
      const S b = first ? g : mu * state[0] + keep * g;
      state[0] = b;
      g = nesterov ? g + mu * b : b;
    }
    return p - lr * g;
  }
};

template <class S>
struct AdamStep {
  static constexpr int kStates = 3;
  double weight_decay;
  S beta1, beta2, other1, other2, eps, step, root2, shrink, decay, scale;
  bool maximize, decoupled, use[3];

  AdamStep() = default;
  explicit AdamStep(const OptimArgs& a)
      : weight_decay(a.weight_decay),
        beta1(S(a.beta1)),
        beta2(S(a.beta2)),
        other1(S(1 - a.beta1)),
        other2(S(1 - a.beta2)),
        eps(S(a.eps)),
        decay(S(a.decoupled ? 0 : a.weight_decay)),
        maximize(a.maximize),
        decoupled(a.decoupled),
        use{true, true, a.state[2] != nullptr} {
    set({a.lr, a.correction1, a.correction2, a.grad_scale, a.first});
  }
  // The same bits on host and device.
  CUTAWAY_HD void set(const StepScalars& s) {
    step = S(s.lr / s.correction1);
    root2 = S(math::detail::sqrt_of(s.correction2));
    shrink = S(decoupled ? 1 - math::detail::mul_rounded(s.lr, weight_decay) : 1);
    scale = S(maximize ? -s.grad_scale : s.grad_scale);
  }
  CUTAWAY_HD bool reads(int) const { return true; }
  CUTAWAY_HD S operator()(S p, S grad, S (&state)[3]) const {
    const S g = scale * grad + decay * p;
    const S m = beta1 * state[0] + other1 * g;
    const S v = beta2 * state[1] + other2 * g * g;
    state[0] = m;
    state[1] = v;
    const S second = use[2] && !(v > state[2]) ? state[2] : v;
    state[2] = second;
    return p * shrink - step * m / (math::detail::sqrt_of(second) / root2 + eps);
  }
};

template <class S>
struct RmspropStep {
  static constexpr int kStates = 3;
  S lr, decay, mu, alpha, other, eps, scale;
  bool maximize, use[3];

  RmspropStep() = default;
  explicit RmspropStep(const OptimArgs& a)
      : decay(S(a.weight_decay)),
        mu(S(a.momentum)),
        alpha(S(a.beta2)),
        other(S(1 - a.beta2)),
        eps(S(a.eps)),
        maximize(a.maximize),
        use{true, a.state[1] != nullptr, a.state[2] != nullptr} {
    set({a.lr, a.correction1, a.correction2, a.grad_scale, a.first});
  }
  CUTAWAY_HD void set(const StepScalars& s) {
    lr = S(s.lr);
    scale = S(maximize ? -s.grad_scale : s.grad_scale);
  }
  CUTAWAY_HD bool reads(int) const { return true; }
  CUTAWAY_HD S operator()(S p, S grad, S (&state)[3]) const {
    const S g = scale * grad + decay * p;
    S second = alpha * state[0] + other * g * g;
    state[0] = second;
    if (use[1]) {
      const S m = alpha * state[1] + other * g;
      state[1] = m;
      second -= m * m;
      second = second < 0 ? S(0) : second;
    }
    S move = g / (math::detail::sqrt_of(second) + eps);
    if (use[2]) {
      move += mu * state[2];
      state[2] = move;
    }
    return p - lr * move;
  }
};

template <class S>
struct AdagradStep {
  static constexpr int kStates = 1;
  S step, decay, eps, scale;
  bool maximize, use[1];

  AdagradStep() = default;
  explicit AdagradStep(const OptimArgs& a)
      : decay(S(a.weight_decay)), eps(S(a.eps)), maximize(a.maximize), use{true} {
    set({a.lr, a.correction1, a.correction2, a.grad_scale, a.first});
  }
  CUTAWAY_HD void set(const StepScalars& s) {
    step = S(s.lr / s.correction1);
    scale = S(maximize ? -s.grad_scale : s.grad_scale);
  }
  CUTAWAY_HD bool reads(int) const { return true; }
  CUTAWAY_HD S operator()(S p, S grad, S (&state)[1]) const {
    const S g = scale * grad + decay * p;
    state[0] += g * g;
    return p - step * g / (math::detail::sqrt_of(state[0]) + eps);
  }
};

template <class S>
struct LionStep {
  static constexpr int kStates = 1;
  double weight_decay;
  S beta1, beta2, other1, other2, lr, shrink, scale;
  bool maximize, use[1];

  LionStep() = default;
  explicit LionStep(const OptimArgs& a)
      : weight_decay(a.weight_decay),
        beta1(S(a.beta1)),
        beta2(S(a.beta2)),
        other1(S(1 - a.beta1)),
        other2(S(1 - a.beta2)),
        maximize(a.maximize),
        use{true} {
    set({a.lr, a.correction1, a.correction2, a.grad_scale, a.first});
  }
  CUTAWAY_HD void set(const StepScalars& s) {
    lr = S(s.lr);
    shrink = S(1 - math::detail::mul_rounded(s.lr, weight_decay));
    scale = S(maximize ? -s.grad_scale : s.grad_scale);
  }
  CUTAWAY_HD bool reads(int) const { return true; }
  CUTAWAY_HD S operator()(S p, S grad, S (&state)[1]) const {
    const S g = scale * grad;
    const S c = beta1 * state[0] + other1 * g;
    const S move = c > 0 ? S(1) : (c < 0 ? S(-1) : c);
    state[0] = beta2 * state[0] + other2 * g;
    return p * shrink - lr * move;
  }
};

template <int N>
struct OptimPointers {
  void* param;
  const void* grad;
  void* state[N];
  int64_t n;
};

// W elements from i on.
template <int W, class T, class S, class Step>
DEVICE void step_at(const OptimPointers<Step::kStates>& a, const Step& step, int64_t i) {
  constexpr int kStates = Step::kStates;
  const auto param = global<T>(a.param);
  const Vec<T, W> g = load<W>(global<const T>(a.grad), i);
  Vec<T, W> p = load<W>(param, i);
  Vec<S, W> state[kStates]{};
  for (int k = 0; k < kStates; ++k) {
    if (step.use[k] && step.reads(k)) state[k] = load<W>(global<S>(a.state[k]), i);
  }
  for (int j = 0; j < W; ++j) {
    S s[kStates];
    for (int k = 0; k < kStates; ++k) s[k] = state[k].v[j];
    p.v[j] = T(step(S(p.v[j]), S(g.v[j]), s));
    for (int k = 0; k < kStates; ++k) state[k].v[j] = s[k];
  }
  store(param, i, p);
  for (int k = 0; k < kStates; ++k) {
    if (step.use[k]) store(global<S>(a.state[k]), i, state[k]);
  }
}

// Parameters of one launch: small ones would not fill the device, each alone.
inline constexpr int kOptimList = 24;
inline constexpr unsigned kOptimThreads = 256;

template <class Step>
struct OptimList {
  struct Item {
    OptimPointers<Step::kStates> arrays;
    Step step;
    const double* scalars;  // null: step is complete
    unsigned first_block;
    bool vectors;  // all arrays are aligned for 16 bytes of a state at a time
  };
  Item item[kOptimList];
  int count = 0;
  unsigned blocks = 0;
};

template <class T, class S, class Step, int W>
KERNEL optim_step(OptimList<Step> list) {
  int t = 0;
  while (t + 1 < list.count && list.item[t + 1].first_block <= blockIdx.x) ++t;
  const auto& item = list.item[t];
  const int64_t block = blockIdx.x - item.first_block;
  const int64_t i = W * (block * kOptimThreads + threadIdx.x), n = item.arrays.n;
  if (i >= n) return;
  Step step = item.step;
  if (item.scalars) step.set(scalars_at(item.scalars));
  if (item.vectors && i + W <= n) {
    step_at<W, T, S>(item.arrays, step, i);
  } else {
    for (int64_t k = i; k < n && k < i + W; ++k) step_at<1, T, S>(item.arrays, step, k);
  }
}

template <class T, class S, class Step>
void run_optim(const char* name, const OptimListArgs& args) {
  constexpr int kWidth = 16 / sizeof(S);
  OptimList<Step> list{};
  const auto send = [&] {
    if (list.count == 0) return;
    launch({.name = name, .grid = {list.blocks}, .block = {kOptimThreads}, .sync = Sync::none},
           optim_step<T, S, Step, kWidth>, list);
    list.count = 0;
    list.blocks = 0;
  };
  for (int64_t k = 0; k < args.count; ++k) {
    const OptimArgs& a = args.list[k];
    if (a.n == 0) continue;
    OptimPointers<Step::kStates> p{a.param, a.grad, {}, a.n};
    bool vectors =
        is_aligned(a.param, kWidth * sizeof(T)) && is_aligned(a.grad, kWidth * sizeof(T));
    for (int j = 0; j < Step::kStates; ++j) {
      p.state[j] = a.state[j];
      vectors = vectors && is_aligned(a.state[j], 16);
    }
    list.item[list.count++] = {p, Step(a), a.scalars, list.blocks, vectors};
    list.blocks += static_cast<unsigned>(blocks_for(a.n, kWidth * kOptimThreads));
    if (list.count == kOptimList || list.blocks > (1u << 30)) send();
  }
  send();
}

KERNEL optim_begin(OptimScalarsArgs a) {
  const int64_t i = thread_number();
  if (i >= a.count) return;
  const auto row = global<double>(a.rows + i * kOptimScalars);
  const auto common = global<const double>(a.common);
  const double steps = double(row[kScalarSteps]) + 1;
  row[kScalarSteps] = steps;
  row[kScalarLr] = double(common[0]) * double(row[kScalarLrFactor]);
  row[kScalarCorrection1] = lr_divisor(a.beta1, a.lr_decay, steps);
  row[kScalarCorrection2] = bias_correction(a.beta2, steps);
  row[kScalarGradScale] = double(common[1]);
}
void begin_steps(const OptimScalarsArgs& a) {
  if (a.count > 0) launch(one_thread_each("optim_scalars", a.count), optim_begin, a);
}

template <class T, class S>
void sgd_step(const OptimListArgs& a) {
  run_optim<T, S, SgdStep<S>>("sgd_step", a);
}
template <class T, class S>
void adam_step(const OptimListArgs& a) {
  run_optim<T, S, AdamStep<S>>("adam_step", a);
}
template <class T, class S>
void rmsprop_step(const OptimListArgs& a) {
  run_optim<T, S, RmspropStep<S>>("rmsprop_step", a);
}
template <class T, class S>
void adagrad_step(const OptimListArgs& a) {
  run_optim<T, S, AdagradStep<S>>("adagrad_step", a);
}
template <class T, class S>
void lion_step(const OptimListArgs& a) {
  run_optim<T, S, LionStep<S>>("lion_step", a);
}

template <class T, class S>
void set_optim(DType t) {
  kernels::sgd_step.set(kDevice, t, &sgd_step<T, S>);
  kernels::adam_step.set(kDevice, t, &adam_step<T, S>);
  kernels::rmsprop_step.set(kDevice, t, &rmsprop_step<T, S>);
  kernels::adagrad_step.set(kDevice, t, &adagrad_step<T, S>);
  kernels::lion_step.set(kDevice, t, &lion_step<T, S>);
}

void register_optim_kernels() {
  set_optim<double, double>(DType::f64);
  set_optim<float, float>(DType::f32);
  set_optim<BFloat16, float>(DType::bf16);
  set_optim<Float16, float>(DType::f16);
  kernels::optim_scalars.set(kDevice, DType::f64, &begin_steps);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
