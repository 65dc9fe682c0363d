#include <cutaway/core/kernels/optim.h>
#include <cutaway/cuda/emu/counters.h>

#include <memory>

#include <tests/cuda/both_devices.h>

namespace cutaway::cuda::emu {
namespace {

// Steps from the same state on both devices; `skip` shifts all arrays from their alignment; `lift`,
// when it is not 0, is added to the squares that are the first state then.
template <class T>
void compare_steps(Kernel<OptimListArgs>& kernel, OptimArgs a, int states, size_t skip,
                   double lift = 0) {
  using S = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const size_t n = size_t(a.n) + skip;
  std::vector<S> square = some<S>(n, 4);
  for (S& v : square) v = v * v;
  std::vector<S> start = some<S>(n, 3);
  for (S& v : start) v = lift == 0 ? v : v * v + S(lift);
  Both<T> param(some<T>(n, 1)), grad(some<T>(n, 2));
  Both<S> first(start), second(square), third(square);
  OptimArgs b;
  run_both(kernel, TypeOf<T>::value, [&](DeviceKind kind) {
    b = a;
    b.param = param.on(kind) + skip;
    b.grad = grad.on(kind) + skip;
    Both<S>* all[] = {&first, &second, &third};
    for (int k = 0; k < states; ++k) b.state[k] = all[k]->on(kind) + skip;
    return OptimListArgs{&b, 1};
  });
  param.expect_near(TypeOf<T>::kTolerance, kernel.name);
  first.expect_near(TypeOf<S>::kTolerance, "first state");
  second.expect_near(TypeOf<S>::kTolerance, "second state");
  third.expect_near(TypeOf<S>::kTolerance, "third state");
}

OptimArgs adam_of(int64_t n) {
  OptimArgs a{.n = n, .lr = 0.01, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
  a.correction1 = 0.19;
  a.correction2 = 0.0199;
  a.grad_scale = 0.5;
  return a;
}

TEST(CudaOptim, SgdAgreesWithTheCpu) {
  for_floats([]<class T>(T) {
    for (int64_t n : {1, 4, 7, 1029}) {
      OptimArgs a{.n = n, .lr = 0.1, .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.1};
      compare_steps<T>(kernels::sgd_step, a, 0, 0);
      compare_steps<T>(kernels::sgd_step, a, 1, 0);
      a.first = a.maximize = true;
      compare_steps<T>(kernels::sgd_step, a, 1, 0);
      a.first = false;
      a.nesterov = true;
      compare_steps<T>(kernels::sgd_step, a, 1, 1);
    }
  });
}
TEST(CudaOptim, AdamAgreesWithTheCpu) {
  for_floats([]<class T>(T) {
    for (int64_t n : {1, 4, 7, 1029}) {
      OptimArgs a = adam_of(n);
      compare_steps<T>(kernels::adam_step, a, 2, 0);
      a.decoupled = true;
      compare_steps<T>(kernels::adam_step, a, 3, 0);
      a.maximize = true;
      compare_steps<T>(kernels::adam_step, a, 2, 1);
    }
  });
}
TEST(CudaOptim, RmspropAdagradAndLionAgreeWithTheCpu) {
  for_floats([]<class T>(T) {
    for (int64_t n : {1, 4, 7, 1029}) {
      OptimArgs a = adam_of(n);
      a.momentum = 0.8;
      // Far from a second moment of 0, whose root makes much of the last bit.
      constexpr double kLift = 20;
      for (int states = 1; states <= 3; ++states) {
        compare_steps<T>(kernels::rmsprop_step, a, states, size_t(states == 2), kLift);
      }
      compare_steps<T>(kernels::adagrad_step, a, 1, 0, kLift);
      a.maximize = true;
      compare_steps<T>(kernels::adagrad_step, a, 1, 1, kLift);
      compare_steps<T>(kernels::rmsprop_step, a, 3, 0, kLift);
      compare_steps<T>(kernels::lion_step, a, 1, 0);
      a.maximize = false;
      compare_steps<T>(kernels::lion_step, a, 1, 1);
    }
  });
}
TEST(CudaOptim, FirstSgdStepDoesNotReadTheBuffer) {
  Buffer<float> param(some<float>(100)), grad(some<float>(100)), buffer(100);
  OptimArgs a{.n = 100, .param = param.get(), .grad = grad.get(), .lr = 1, .momentum = 0.5};
  a.state[0] = buffer.get();
  a.first = true;
  kernels::sgd_step(kEmuDevice, DType::f32, {&a, 1});
  EXPECT_EQ(buffer.values(), grad.values());
}
TEST(CudaOptim, NoParameters) {
  const OptimArgs empty;
  kernels::adam_step(kEmuDevice, DType::f32, {});
  kernels::adam_step(kEmuDevice, DType::f32, {&empty, 1});
}
TEST(CudaOptim, ManyParametersInFewLaunches) {
  std::vector<std::unique_ptr<Both<float>>> params, grads, firsts, seconds;
  for (size_t i = 0; i < 30; ++i) {
    const size_t n = i == 3 ? 0 : i * 97 % 1500 + 1;
    params.push_back(std::make_unique<Both<float>>(some<float>(n, i)));
    grads.push_back(std::make_unique<Both<float>>(some<float>(n, i + 1)));
    firsts.push_back(std::make_unique<Both<float>>(n, 0.5f));
    seconds.push_back(std::make_unique<Both<float>>(n, 0.25f));
  }
  std::vector<OptimArgs> list;
  const OptionsScope scope({.count = true});
  take_collected();
  run_both(kernels::adam_step, DType::f32, [&](DeviceKind kind) {
    list.clear();
    for (size_t i = 0; i < params.size(); ++i) {
      OptimArgs a = adam_of(int64_t(params[i]->cpu().size()));
      a.lr = 0.01 * double(i + 1);
      a.param = params[i]->on(kind);
      a.grad = grads[i]->on(kind);
      a.state[0] = firsts[i]->on(kind);
      a.state[1] = seconds[i]->on(kind);
      list.push_back(a);
    }
    return OptimListArgs{list.data(), int64_t(list.size())};
  });
  EXPECT_EQ(take_collected().size(), 2u);
  for (const auto& p : params) p->expect_near(2e-6, "parameter");
  for (const auto& m : firsts) m->expect_near(2e-6, "first moment");
}

// AdamW: parameter and both moments are read and written, the gradient is read.
TEST(CudaOptim, AdamMovesEveryByteOnce) {
  constexpr int64_t kN = 4096;
  Buffer<float> param(some<float>(kN)), grad(some<float>(kN));
  Buffer<float> m(std::vector<float>(kN, 0.5f)), v(std::vector<float>(kN, 0.5f));
  OptimArgs a = adam_of(kN);
  a.param = param.get();
  a.grad = grad.get();
  a.state[0] = m.get();
  a.state[1] = v.get();
  const OptionsScope scope({.count = true});
  take_collected();
  kernels::adam_step(kEmuDevice, DType::f32, {&a, 1});
  const auto list = take_collected();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].counters.bytes_read(), 4 * 4 * kN);
  EXPECT_EQ(list[0].counters.bytes_written(), 3 * 4 * kN);
}

}  // namespace
}  // namespace cutaway::cuda::emu
