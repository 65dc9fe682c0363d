#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/device.h>
#include <cutaway/cuda/runtime/graph.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::cuda::gpu {
namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

// A net of two layers on fixed data, with AdamW.
struct Training {
  Tensor x, y, w1, b1, w2;
  optim::AdamW adam;

  Training()
      : x(randn({16, 12}).to(kGpu)),
        y(randn({16, 3}).to(kGpu)),
        w1(randn({20, 12}).to(kGpu).set_requires_grad()),
        b1(zeros({20}, {.device = kGpu}).set_requires_grad()),
        w2(randn({3, 20}).to(kGpu).set_requires_grad()),
        adam({{"w1", w1}, {"b1", b1}, {"w2", w2}}, {.lr = 0.01, .weight_decay = 0.1}) {}
  void step() {
    const Tensor off = linear(relu(linear(x, w1, b1)), w2) - y;
    mean(off * off).backward();
    adam.step_and_zero();
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (const optim::Named& p : adam.parameters()) {
      for (const double v : p.value.to_vector()) all.push_back(v);
    }
    for (const optim::Named& s : adam.state_dict()) {
      for (const double v : s.value.to_vector()) all.push_back(v);
    }
    return all;
  }
};

TEST(TrainingGraph, ReplaysAreSteps) {
  if (!has_backend(DeviceKind::cuda)) GTEST_SKIP() << cuda_missing();
  manual_seed(4);
  Training eager;
  manual_seed(4);
  Training replayed;
  replayed.adam.set_capturable(true);
  Graph graph([&] { replayed.step(); });  // takes the first step
  eager.step();
  EXPECT_EQ(replayed.values(), eager.values());
  for (int i = 0; i < 5; ++i) {
    if (i == 3) {
      replayed.adam.set_lr(0.002);
      eager.adam.set_lr(0.002);
    }
    graph.replay();
    eager.step();
    EXPECT_EQ(replayed.values(), eager.values()) << i;
  }
}

}  // namespace
}  // namespace cutaway::cuda::gpu
