#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <cutaway/cutaway.h>

#include <tests/cuda/small_net.h>

// What holds on the emulated GPU and on a real one alike. Without a GPU the second half is skipped.
namespace cutaway {
namespace {

class OnDevice : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (!has_backend(GetParam())) GTEST_SKIP() << cuda::cuda_missing();
  }
  Device device() const { return {GetParam(), 0}; }
};
INSTANTIATE_TEST_SUITE_P(Emu, OnDevice, testing::Values(DeviceKind::emu));
INSTANTIATE_TEST_SUITE_P(Gpu, OnDevice, testing::Values(DeviceKind::cuda));

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(kCpu).contiguous(), y = b.to(kCpu).contiguous();
  return x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
         std::memcmp(x.raw(), y.raw(), size_t(x.numel()) * size_t(size_of(x.dtype()))) == 0;
}

TEST_P(OnDevice, RandomNumbersAreThoseOfTheCpuBitForBit) {
  for (DType t : {DType::f32, DType::f64, DType::bf16}) {
    for (int64_t n : {1, 7, 1000}) {
      Generator here{.seed = 5}, there{.seed = 5};
      const Opts on{.dtype = t, .device = device()};
      EXPECT_TRUE(same_bits(rand({n}, {.dtype = t}, &here), rand({n}, on, &there)));
      EXPECT_TRUE(same_bits(randn({n}, {.dtype = t}, &here), randn({n}, on, &there)));
      EXPECT_EQ(here, there);
    }
  }
  Generator here{.seed = 6}, there{.seed = 6};
  EXPECT_TRUE(
      same_bits(randint(-5, 100, {333}, {.dtype = DType::i64}, &here),
                randint(-5, 100, {333}, {.dtype = DType::i64, .device = device()}, &there)));
}

// Losses of `steps` steps from the same start, and the parameters they end with.
struct Training {
  std::vector<double> losses;
  Tensors parameters;
};
Training train(Device device, int steps) {
  manual_seed(11);
  test::SmallNet net;
  const Tensor x = randn({8, 1, 8, 8}).to(device);
  const Tensor y = randint(0, 5, {8}).to(device);
  net.to(device);
  optim::AdamW adam(net.parameters(), {.lr = 1e-2});
  Training run;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optim::clip_grad_norm(net.parameters(), 1.0);
    adam.step_and_zero();
    run.losses.push_back(loss.item<double>());
  }
  for (const auto& p : net.parameters()) run.parameters.push_back(p.value.detach().to(kCpu));
  return run;
}

TEST_P(OnDevice, TrainsToTheLossesOfTheCpu) {
  const Training cpu = train(kCpu, 12), there = train(device(), 12);
  for (size_t i = 0; i < cpu.losses.size(); ++i) {
    EXPECT_NEAR(there.losses[i], cpu.losses[i], 1e-5 * (1 + cpu.losses[i])) << "step " << i;
  }
  EXPECT_LT(cpu.losses.back(), 0.8 * cpu.losses.front());
}

TEST_P(OnDevice, TheSameRunTwiceGivesTheSameBits) {
  const Training first = train(device(), 4), second = train(device(), 4);
  EXPECT_EQ(first.losses, second.losses);
  for (size_t i = 0; i < first.parameters.size(); ++i) {
    EXPECT_TRUE(same_bits(first.parameters[i], second.parameters[i])) << "parameter " << i;
  }
}

TEST_P(OnDevice, ATransformerLayerAgreesWithTheCpu) {
  manual_seed(3);
  nn::TransformerEncoderLayer layer(
      {.d_model = 16, .nhead = 2, .dim_feedforward = 32, .dropout = 0.0});
  const Tensor x = randn({2, 5, 16});
  const auto gradients = [&](Device d) {
    layer.to(d);
    layer.zero_grad();
    Tensor in = x.detach().to(d).set_requires_grad(true);
    square(layer(in)).mean().backward();
    Tensors g{in.grad().to(kCpu)};
    for (const auto& p : layer.parameters()) g.push_back(p.value.grad().to(kCpu));
    return g;
  };
  const Tensors cpu = gradients(kCpu), there = gradients(device());
  ASSERT_EQ(cpu.size(), there.size());
  for (size_t i = 0; i < cpu.size(); ++i) {
    EXPECT_LT(amax(abs(cpu[i] - there[i])).item<double>(),
              1e-5 * (1e-2 + amax(abs(cpu[i])).item<double>()))  // some are 0 but for rounding
        << "gradient " << i;
  }
}

}  // namespace
}  // namespace cutaway
