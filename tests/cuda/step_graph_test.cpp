#include <gtest/gtest.h>

#include <cutaway/cuda/emu/graph.h>
#include <cutaway/cuda/step_graph.h>
#include <cutaway/cutaway.h>

#include <tests/cuda/small_net.h>

// A training step that is recorded once and replayed, on the emulated GPU and on a real one alike:
// as on hardware the emulator runs nothing while it records. Without a GPU the second half is
// skipped.
namespace cutaway {
namespace {

class OnDeviceStepGraph : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (!has_backend(GetParam())) GTEST_SKIP() << cuda::cuda_missing();
  }
  Device device() const { return {GetParam(), 0}; }
};
INSTANTIATE_TEST_SUITE_P(Emu, OnDeviceStepGraph, testing::Values(DeviceKind::emu));
INSTANTIATE_TEST_SUITE_P(Gpu, OnDeviceStepGraph, testing::Values(DeviceKind::cuda));

struct Training {
  test::SmallNet net;
  Tensor x, y, loss;
  std::unique_ptr<optim::AdamW> adam;

  explicit Training(Device device) {
    net.to(device);
    x = values(0).to(device);
    y = randint(0, 5, {6}).to(device);
    loss = zeros({}, {.device = device});
    adam = std::make_unique<optim::AdamW>(net.parameters(),
                                          optim::AdamWOptions{.lr = 0.01, .weight_decay = 0.1});
  }
  static Tensor values(uint64_t step) {
    Generator random{.seed = 77 + step};
    return randn({6, 1, 8, 8}, {}, &random);
  }
  void next_batch(uint64_t step) { x.copy_(values(step).to(x.device())); }
  void step() {
    const Tensor now = cross_entropy(net(x), y);
    now.backward();
    adam->step_and_zero();
    const NoGradGuard no_grad;
    loss.copy_(now.detach());
  }
  // All numbers that a step changes.
  std::vector<double> state() const {
    std::vector<double> all = loss.to_vector();
    const auto take = [&](const Tensor& t) {
      for (const double v : t.to_vector()) all.push_back(v);
    };
    for (const auto& p : net.state_dict()) take(p.value);
    for (const auto& s : adam->state_dict()) take(s.value);
    return all;
  }
};

TEST_P(OnDeviceStepGraph, ReplaysHaveTheBitsOfSteps) {
  manual_seed(4);
  Training eager(device());
  const Generator at_start = default_generator();
  manual_seed(4);
  Training replayed(device());
  ASSERT_EQ(default_generator(), at_start);
  replayed.adam->set_capturable(true);
  // The two share the default generator: each continues where its own draws ended.
  Generator of_replayed = at_start, of_eager = at_start;
  const auto in_turn = [](Generator& own, const std::function<void()>& work) {
    default_generator() = own;
    work();
    own = default_generator();
  };
  std::unique_ptr<cuda::StepGraph> graph;
  in_turn(of_replayed, [&] {
    graph = cuda::record_step(device(), [&] { replayed.step(); });  // takes the first step
  });
  in_turn(of_eager, [&] { eager.step(); });
  EXPECT_GT(graph->nodes(), 20);
  EXPECT_EQ(replayed.state(), eager.state());
  for (uint64_t i = 1; i < 5; ++i) {
    for (Training* t : {&eager, &replayed}) {
      t->next_batch(i);
      if (i == 3) t->adam->set_lr(0.002);
    }
    in_turn(of_replayed, [&] { graph->replay(); });
    in_turn(of_eager, [&] { eager.step(); });
    EXPECT_EQ(of_replayed, of_eager);
    ASSERT_EQ(replayed.state(), eager.state()) << "step " << i;
  }
}

// What the ordinary mode of an optimiser would do: the same bias correction for ever.
TEST_P(OnDeviceStepGraph, AnOptimiserThatIsNotCapturableStaysAtItsStep) {
  const auto trained = [&](bool capturable) {
    Tensor w = ones({4}, {.device = device()}).set_requires_grad();
    optim::AdamW adam({{"w", w}}, {.lr = 0.1});
    adam.set_capturable(capturable);
    const auto graph = cuda::record_step(device(), [&] {
      sum(w * w).backward();
      adam.step_and_zero();
    });
    for (int i = 0; i < 4; ++i) graph->replay();
    return w.to_vector();
  };
  EXPECT_NE(trained(true), trained(false));
}

TEST_P(OnDeviceStepGraph, RandomNumbersGoOn) {
  manual_seed(9);
  Tensor out = zeros({10}, {.device = device()});
  const auto step = [&] { out.copy_(rand({10}, {.device = out.device()})); };
  const auto graph = cuda::record_step(device(), step);
  graph->replay();
  const auto second = out.to_vector();
  rand({5});  // draws in between count as well
  graph->replay();
  const auto fourth = out.to_vector();
  manual_seed(9);
  step();
  step();
  EXPECT_EQ(out.to_vector(), second);
  rand({5});
  step();
  EXPECT_EQ(out.to_vector(), fourth);
  manual_seed(9);
  graph->replay();  // the same seed from its start
  step();
  EXPECT_EQ(out.to_vector(), second);
  manual_seed(10);
  EXPECT_THROW(graph->replay(), ValueError);
}

TEST_P(OnDeviceStepGraph, RefusesWhatReplaysCannotDo) {
  const Tensor x = full({10}, 2.0, {.device = device()});
  const auto message = [&](const std::function<void()>& step) -> std::string {
    try {
      cuda::record_step(device(), step);
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing was refused";
  };
  Generator own{.seed = 3};
  EXPECT_NE(message([&] { rand({4}, {.device = device()}, &own); }).find("generator of its own"),
            std::string::npos);
  EXPECT_NE(message([&] { (void)x.to_vector(); }).find("[graph]"), std::string::npos)
      << message([&] { (void)x.to_vector(); });
  EXPECT_EQ((x * 2.0).to_vector()[3], 4);  // the device still works
  EXPECT_THROW(cuda::record_step(kCpu, [] {}), DeviceError);
}

// A graph keeps the memory that it works on.
TEST_P(OnDeviceStepGraph, KeepsItsMemory) {
  Tensor sum = zeros({100}, {.device = device()});
  std::unique_ptr<cuda::StepGraph> graph;
  {
    const Tensor x = full({100}, 2.0, {.device = device()});
    Tensor inner;
    graph = cuda::record_step(device(), [&] {
      inner = x * x;
      sum.add_(inner);
    });
    graph->replay();
    EXPECT_EQ(inner.to_vector()[7], 4);
    inner = Tensor();
    graph->replay();
  }
  EXPECT_EQ(sum.to_vector()[99], 12);
}

TEST(StepGraph, TheEmulatorRunsNothingWhileItRecords) {
  const Device emu{DeviceKind::emu, 0};
  Tensor count = zeros({3}, {.device = emu});
  cuda::emu::Graph graph([&] { count.add_(ones({3}).to(emu)); });
  EXPECT_EQ(count.to_vector()[2], 1);
  EXPECT_FALSE(cuda::emu::recording());
  graph.replay();
  EXPECT_EQ(count.to_vector()[2], 2);
  EXPECT_THROW(cuda::emu::Graph([&] { cuda::emu::Graph inner([] {}); }), DeviceError);
  EXPECT_FALSE(cuda::emu::recording());
}

}  // namespace
}  // namespace cutaway
