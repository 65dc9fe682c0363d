#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/optim/adaptive.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::optim {
namespace {

const Device kEmu{DeviceKind::emu, 0};

using Make = std::function<std::unique_ptr<Optimizer>(NamedTensors)>;
std::vector<Make> makers() {
  return {[](NamedTensors p) { return std::make_unique<Sgd>(std::move(p), SgdOptions{.lr = 0.1}); },
          [](NamedTensors p) {
            return std::make_unique<Sgd>(
                std::move(p),
                SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.01});
          },
          [](NamedTensors p) {
            return std::make_unique<Adam>(
                std::move(p), AdamOptions{.lr = 0.03, .weight_decay = 0.1, .amsgrad = true});
          },
          [](NamedTensors p) {
            return std::make_unique<AdamW>(std::move(p),
                                           AdamWOptions{.lr = 0.03, .maximize = true});
          },
          [](NamedTensors p) {
            return std::make_unique<Rmsprop>(
                std::move(p), RmspropOptions{.lr = 0.03, .momentum = 0.5, .centered = true});
          },
          [](NamedTensors p) {
            return std::make_unique<Adagrad>(
                std::move(p),
                AdagradOptions{.lr = 0.1, .lr_decay = 0.3, .initial_accumulator_value = 0.2});
          },
          [](NamedTensors p) {
            return std::make_unique<Lion>(std::move(p), LionOptions{.weight_decay = 0.1});
          }};
}

Tensor values(int64_t n, double seed, const Opts& opts) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(std::sin(seed + 0.7 * double(i)));
  return tensor(std::span<const double>(v), {.dtype = opts.dtype}).to(opts.device);
}

// Parameters of every type; one is not contiguous, "c" has no gradient in the second step.
struct Training {
  NamedTensors parameters;
  std::unique_ptr<Optimizer> optimizer;
  int step = 0;

  Training(const Make& make, Device device) {
    add("a", values(37, 1, {DType::f32, device}));
    add("b", values(12, 2, {DType::f64, device}).reshape({3, 4}).t());
    add("c", values(5, 3, {DType::bf16, device}));
    add("d", values(9, 4, {DType::f16, device}));
    optimizer = make(parameters);
  }
  void add(const char* name, const Tensor& t) {
    parameters.push_back({name, t.detach()});
    parameters.back().value.set_requires_grad();
  }
  void take_step() {
    ++step;
    optimizer->set_lr(0.1 / step);
    optimizer->set_grad_scale(step == 3 ? 0.25 : 1);
    for (Named& p : parameters) {
      p.value.zero_grad();
      if (p.name == "c" && step == 2) continue;
      const Tensor g = values(p.value.numel(), step + 0.1 * double(p.value.numel()),
                              {p.value.dtype(), p.value.device()});
      p.value.set_grad(g.reshape(p.value.sizes()));
    }
    optimizer->step();
  }
};

void expect_same(const Training& a, const Training& b, const std::string& where) {
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    EXPECT_EQ(a.parameters[i].value.to_vector(), b.parameters[i].value.to_vector())
        << where << " " << a.parameters[i].name;
  }
  const NamedTensors s = a.optimizer->state_dict(), t = b.optimizer->state_dict();
  ASSERT_EQ(s.size(), t.size()) << where;
  for (size_t i = 0; i < s.size(); ++i) {
    EXPECT_EQ(s[i].name, t[i].name);
    EXPECT_EQ(s[i].value.to_vector(), t[i].value.to_vector()) << where << " " << s[i].name;
  }
}

void for_runs(const std::function<void(const Make&, Device, const std::string&)>& test) {
  const std::vector<Make> all = makers();
  for (const Device device : {kCpu, kEmu}) {
    for (size_t m = 0; m < all.size(); ++m) {
      test(all[m], device, to_string(device) + ", optimiser " + std::to_string(m));
    }
  }
}

TEST(Capturable, HasTheBitsOfTheOrdinaryMode) {
  for_runs([](const Make& make, Device device, const std::string& where) {
    Training ordinary(make, device), capturable(make, device);
    capturable.optimizer->set_capturable(true);
    for (int i = 0; i < 5; ++i) {
      ordinary.take_step();
      capturable.take_step();
      expect_same(ordinary, capturable, where + ", step " + std::to_string(i));
    }
  });
}
TEST(Capturable, ModesFollowEachOther) {
  for_runs([](const Make& make, Device device, const std::string& where) {
    Training ordinary(make, device), mixed(make, device);
    for (int i = 0; i < 5; ++i) {
      mixed.optimizer->set_capturable(i % 3 == 1);
      EXPECT_EQ(mixed.optimizer->capturable(), i % 3 == 1);
      ordinary.take_step();
      mixed.take_step();
      expect_same(ordinary, mixed, where + ", step " + std::to_string(i));
    }
  });
}

// A recorded step holds the memory of the moments: loading keeps it, also where nothing is loaded.
TEST(Capturable, LoadingKeepsTheMemoryOfTheMoments) {
  for_runs([](const Make& make, Device device, const std::string& where) {
    Training source(make, device), target(make, device);
    source.take_step();
    target.optimizer->set_capturable(true);
    target.take_step();
    target.take_step();
    const NamedTensors before = target.optimizer->state_dict();
    target.optimizer->load_state_dict(source.optimizer->state_dict());
    const NamedTensors after = target.optimizer->state_dict();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i].name.ends_with(".step")) continue;
      EXPECT_EQ(before[i].value.raw(), after[i].value.raw()) << where;
    }
    for (size_t i = 0; i < source.parameters.size(); ++i) {
      NoGradGuard no_grad;
      target.parameters[i].value.copy_(source.parameters[i].value);
    }
    target.step = source.step;
    source.take_step();
    target.take_step();
    expect_same(source, target, where);
    // Starting again from no state is a first step.
    Training fresh(make, device);
    target.optimizer->load_state_dict({});
    EXPECT_TRUE(target.optimizer->state_dict().empty());
    for (size_t i = 0; i < fresh.parameters.size(); ++i) {
      NoGradGuard no_grad;
      target.parameters[i].value.copy_(fresh.parameters[i].value);
    }
    target.step = 0;
    fresh.take_step();
    target.take_step();
    expect_same(fresh, target, where + ", again");
  });
}
TEST(Capturable, NeedsOneDevice) {
  Tensor a = values(3, 1, {}).set_requires_grad();
  Tensor b = values(3, 1, {DType::f32, kEmu}).set_requires_grad();
  Sgd sgd({{"a", a}, {"b", b}}, {});
  EXPECT_THROW(sgd.set_capturable(true), DeviceError);
  EXPECT_FALSE(sgd.capturable());
  Sgd empty({}, {});
  empty.set_capturable(true);
  empty.step();
}
// 1 − βᵗ by products is as good as by pow.
TEST(Capturable, BiasCorrections) {
  for (const double beta : {0.0, 0.5, 0.9, 0.999}) {
    for (const double t : {1.0, 2.0, 3.0, 10.0, 1000.0, 12345.0}) {
      const double want = 1 - std::pow(beta, t);
      EXPECT_NEAR(bias_correction(beta, t), want, 2e-13 * want) << beta << " " << t;
    }
  }
  EXPECT_EQ(bias_correction(0.9, 0), 0);
  EXPECT_EQ(bias_correction(0.9, 1), 1 - 0.9);
}

}  // namespace
}  // namespace cutaway::optim
