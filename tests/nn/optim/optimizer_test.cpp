#include <cutaway/nn/optim/adaptive.h>
#include <cutaway/nn/optim/optimizer.h>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <tests/golden/run.h>

namespace cutaway::optim {
namespace {

const Opts kF64{.dtype = DType::f64};
Tensor f64(std::initializer_list<double> v) { return tensor(v, kF64); }
Tensor leaf(std::initializer_list<double> v) { return f64(v).set_requires_grad(); }
Tensor row(const Tensor& t, int64_t i) { return t.select(0, i).clone(); }

using Make = std::function<std::unique_ptr<Optimizer>(const golden::Case&, NamedTensors, double)>;

std::unique_ptr<Optimizer> make_sgd(const golden::Case& c, NamedTensors p, double lr) {
  return std::make_unique<Sgd>(std::move(p), SgdOptions{.lr = lr,
                                                        .momentum = c.number("momentum", 0),
                                                        .dampening = c.number("dampening", 0),
                                                        .weight_decay = c.number("weight_decay", 0),
                                                        .nesterov = c.flag("nesterov", false),
                                                        .maximize = c.flag("maximize", false)});
}
std::unique_ptr<Optimizer> make_adam(const golden::Case& c, NamedTensors p, double lr) {
  const std::vector<double> betas = c.numbers("betas", {0.9, 0.999});
  const bool decoupled = c.text("optimizer") == "AdamW";
  const AdamOptions o{.lr = lr,
                      .beta1 = betas[0],
                      .beta2 = betas[1],
                      .eps = c.number("eps", 1e-8),
                      .weight_decay = c.number("weight_decay", decoupled ? 0.01 : 0),
                      .amsgrad = c.flag("amsgrad", false),
                      .maximize = c.flag("maximize", false)};
  if (!decoupled) return std::make_unique<Adam>(std::move(p), o);
  return std::make_unique<AdamW>(std::move(p), AdamWOptions{o.lr, o.beta1, o.beta2, o.eps,
                                                            o.weight_decay, o.amsgrad, o.maximize});
}

std::unique_ptr<Optimizer> make_rmsprop(const golden::Case& c, NamedTensors p, double lr) {
  return std::make_unique<Rmsprop>(std::move(p),
                                   RmspropOptions{.lr = lr,
                                                  .alpha = c.number("alpha", 0.99),
                                                  .eps = c.number("eps", 1e-8),
                                                  .weight_decay = c.number("weight_decay", 0),
                                                  .momentum = c.number("momentum", 0),
                                                  .centered = c.flag("centered", false),
                                                  .maximize = c.flag("maximize", false)});
}
std::unique_ptr<Optimizer> make_adagrad(const golden::Case& c, NamedTensors p, double lr) {
  return std::make_unique<Adagrad>(
      std::move(p),
      AdagradOptions{.lr = lr,
                     .lr_decay = c.number("lr_decay", 0),
                     .weight_decay = c.number("weight_decay", 0),
                     .initial_accumulator_value = c.number("initial_accumulator_value", 0),
                     .eps = c.number("eps", 1e-10),
                     .maximize = c.flag("maximize", false)});
}

// Ten steps of a stored case in f64, every parameter compared after every step.
void follow(const golden::Case& c, const Make& make) {
  SCOPED_TRACE(c.name());
  NamedTensors parameters;
  std::map<std::string, Tensor> gradients;
  for (const std::string& name : c.names("param")) {
    parameters.push_back({name, golden::tensor_of(c.at("param." + name), DType::f64)});
    parameters.back().value.set_requires_grad();
    gradients[name] = golden::tensor_of(c.at("grad." + name), DType::f64);
  }
  const std::vector<double> rates = c.numbers("lr");
  const std::unique_ptr<Optimizer> optimizer = make(c, parameters, rates[0]);
  const auto skipped = [&](const std::string& name, int64_t step) {
    if (!c.has_option("no_gradient")) return false;
    const nlohmann::json& list = c.options()["no_gradient"];
    if (!list.contains(name)) return false;
    for (const auto& s : list[name]) {
      if (s.get<int64_t>() == step) return true;
    }
    return false;
  };
  for (int64_t step = 0; step < 10; ++step) {
    if (rates.size() > 1) optimizer->set_lr(rates[size_t(step)]);
    for (Named& p : parameters) {
      p.value.zero_grad();
      if (!skipped(p.name, step)) p.value.set_grad(row(gradients[p.name], step));
    }
    optimizer->step();
    for (const Named& p : parameters) {
      const golden::Array& want = c.at("output." + p.name);
      const size_t n = size_t(p.value.numel());
      golden::Array now{want.dtype, {int64_t(n)}, {}};
      now.values.assign(want.values.begin() + long(n * size_t(step)),
                        want.values.begin() + long(n * size_t(step + 1)));
      EXPECT_LE(golden::relative_error(p.value.to_vector(), now), 1e-12) << p.name << " " << step;
    }
  }
  std::map<std::string, Tensor> state;
  for (const Named& s : optimizer->state_dict()) state[s.name] = s.value;
  for (const std::string& name : c.names("state")) {
    ASSERT_TRUE(state.contains(name)) << name;
    EXPECT_LE(golden::relative_error(state[name].to_vector(), c.at("state." + name)), 1e-12)
        << name;
  }
}

TEST(Optimizer, FollowsStoredTrajectories) {
  const std::map<std::string, Make> makers{{"SGD", make_sgd},
                                           {"Adam", make_adam},
                                           {"AdamW", make_adam},
                                           {"RMSprop", make_rmsprop},
                                           {"Adagrad", make_adagrad}};
  for (const golden::Case& c : golden::File::open("optim").cases()) {
    const std::string kind = c.text("optimizer");
    const auto make = makers.find(kind);
    ASSERT_NE(make, makers.end()) << c.name() << " is not compared";
    follow(c, make->second);
  }
}

// Values of the one parameter after each step with these gradients.
std::vector<double> path(Optimizer& optimizer, Tensor x, std::initializer_list<double> gradients) {
  std::vector<double> values;
  for (const double g : gradients) {
    x.set_grad(f64({g}));
    optimizer.step();
    values.push_back(x.item());
  }
  return values;
}
void expect_path(const std::vector<double>& got, std::initializer_list<double> want,
                 double tolerance = 1e-9) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want.begin()[i], tolerance) << i;
}

TEST(Optimizer, FC_1ae0_SgdMomentum) {
  const auto run = [](SgdOptions o, double start, std::initializer_list<double> gradients) {
    const Tensor x = leaf({start});
    Sgd sgd({{"x", x}}, o);
    return path(sgd, x, gradients);
  };
  expect_path(run({.lr = .1, .momentum = .9}, 0, {1, 1, 1}), {-.1, -.29, -.561});
  expect_path(run({.lr = .1, .momentum = .9, .nesterov = true}, 0, {1, 1, 1}),
              {-.19, -.461, -.8049});
  expect_path(run({.lr = .1, .momentum = .9, .dampening = .5}, 0, {1, 1, 1}), {-.1, -.24, -.416});
  expect_path(run({.lr = .1, .momentum = .9, .weight_decay = .1}, 1, {1, 1}), {.89, .6821});
}

TEST(Optimizer, FC_5883_AdamsFirstSteps) {
  const auto run = [](std::initializer_list<double> gradients) {
    const Tensor x = leaf({0});
    Adam adam({{"x", x}}, {.lr = .1});
    return path(adam, x, gradients);
  };
  expect_path(run({1e-3, 1e-3}), {-.09999900001, -.19999800002});
  expect_path(run({1e-8, 1e-8}), {-.05, -.1});
  expect_path(run({0}), {0}, 0);
}

// Moments die out through the subnormal numbers instead of being cut off there.
TEST(Optimizer, FC_76ca_DecayingMomentsStayExact) {
  Tensor x = ones({5}).set_requires_grad();
  Adam adam({{"x", x}}, {.lr = .1});
  const auto moment = [](double v) { return full({5}, v); };
  adam.load_state_dict({{"x.step", scalar_tensor(10, {.dtype = DType::i64})},
                        {"x.exp_avg", moment(1e-30)},
                        {"x.exp_avg_sq", moment(1e-30)}});
  float want = 1e-30f;
  for (int step = 0; step < 2000; ++step) {
    x.set_grad(zeros({5}));
    adam.step();
    want *= 0.9f;
    if (step % 100 != 99) continue;
    for (const Named& n : adam.state_dict()) {
      if (n.name != "x.exp_avg") continue;
      for (const double m : n.value.to_vector()) EXPECT_NEAR(m, want, 2e-5 * want + 1e-44) << step;
    }
  }
  for (const double v : x.to_vector()) EXPECT_NEAR(v, 1, 1e-6);
}
TEST(Optimizer, FC_71be_NoGradientIsNotZero) {
  Tensor x = leaf({1});
  AdamW adam({{"x", x}}, {.lr = .1, .weight_decay = .5});
  adam.step();
  EXPECT_EQ(x.item(), 1);
  expect_path(path(adam, x, {1}), {.850000001});
}

TEST(Optimizer, FC_a2a8_CorrectionLeavesMoments) {
  for (const bool amsgrad : {false, true}) {
    const Tensor x = leaf({0});
    Adam adam({{"x", x}}, {.lr = .1, .amsgrad = amsgrad});
    const auto got = path(adam, x, {2, 0, 0});
    if (amsgrad) {
      expect_path(got, {-.0999999995, -.1669723131, -.2187162143});
    } else {
      expect_path(got, {-.0999999995, -.1670058244, -.2188015212});
    }
  }
}

TEST(Clipping, FC_dae8_ByTotalNorm) {
  const auto clip = [](std::vector<std::vector<double>> gradients, double max, double p = 2) {
    NamedTensors list;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Tensor g = tensor(std::span<const double>(gradients[i]), kF64);
      Tensor x = zeros(g.sizes(), kF64).set_requires_grad();
      x.set_grad(g);
      list.push_back({std::to_string(i), x});
    }
    const double norm = clip_grad_norm(list, max, p);
    std::vector<double> all{norm};
    for (const Named& n : list) {
      for (const double v : n.value.grad().to_vector()) all.push_back(v);
    }
    return all;
  };
  expect_path(clip({{3}, {4}}, 1), {5, .5999999, .7999998}, 1e-7);
  expect_path(clip({{.3}, {.4}}, 1), {.5, .3, .4}, 1e-15);
  expect_path(clip({{1}}, 1), {1, .999999}, 1e-9);
  expect_path(clip({{0}, {0}}, 1), {0, 0, 0}, 0);
  expect_path(clip({{3, -4}}, 1, std::numeric_limits<double>::infinity()), {4, .75, -1}, 1e-6);
}

TEST(Clipping, ByValueAndWhatIsNotFinite) {
  Tensor x = leaf({0, 0, 0});
  x.set_grad(f64({-3, 0.5, 2}));
  clip_grad_value({{"x", x}}, 1);
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{-1, 0.5, 1}));
  x.set_grad(f64({NAN, 1, 1}));
  EXPECT_THROW(clip_grad_norm({{"x", x}}, 1, 2, true), ValueError);
  EXPECT_TRUE(std::isnan(clip_grad_norm({{"x", x}}, 1)));
  EXPECT_EQ(x.grad().to_vector()[1], 1);
  EXPECT_EQ(grad_norm({}), 0);
}

TEST(Optimizer, FC_adbd_StateBelongsToNames) {
  Tensor a = leaf({1}), b = leaf({1});
  Adam first({{"a", a}, {"b", b}}, {.lr = .1});
  a.set_grad(f64({1}));
  b.set_grad(f64({-2}));
  first.step();
  Tensor a2 = a.detach().clone().set_requires_grad(), b2 = b.detach().clone().set_requires_grad();
  Adam second({{"b", b2}, {"a", a2}}, {.lr = .1});
  second.load_state_dict(first.state_dict());
  for (Tensor* t : {&a, &a2}) t->set_grad(f64({0.5}));
  for (Tensor* t : {&b, &b2}) t->set_grad(f64({3}));
  first.step();
  second.step();
  EXPECT_EQ(a.item(), a2.item());
  EXPECT_EQ(b.item(), b2.item());
  NamedTensors state = first.state_dict();
  std::erase_if(state, [](const Named& n) { return n.name == "a.exp_avg"; });
  EXPECT_THROW(second.load_state_dict(state), ValueError);
  EXPECT_THROW(second.load_state_dict({{"c.step", scalar_tensor(1, {.dtype = DType::i64})}}),
               ValueError);
}

// Types change along the list, one parameter is not contiguous and one occurs twice: every step is
// taken, in the order of the list.
TEST(Optimizer, ParametersOfAllKindsInOneStep) {
  Tensor a = tensor({1.0, 2.0}, {.dtype = DType::f32}).set_requires_grad();
  Tensor b = leaf({3, 4});
  Tensor c = f64({1, 2, 3, 4}).reshape({2, 2}).t().set_requires_grad();
  a.set_grad(tensor({1.0, 2.0}, {.dtype = DType::f32}));
  b.set_grad(f64({1, 1}));
  c.set_grad(f64({1, 2, 3, 4}).reshape({2, 2}));
  ASSERT_FALSE(c.is_contiguous());
  Sgd sgd({{"a", a}, {"b", b}, {"c", c}, {"a again", a}, {"b again", b}}, {.lr = 0.5});
  sgd.step();
  EXPECT_EQ(a.to_vector(), (std::vector<double>{0, 0}));
  EXPECT_EQ(b.to_vector(), (std::vector<double>{2, 3}));
  EXPECT_EQ(c.to_vector(), (std::vector<double>{0.5, 2, 0.5, 2}));
}
TEST(Optimizer, SgdStateWithoutStepsOfMomentumLoads) {
  Tensor x = leaf({1});
  Sgd plain({{"x", x}}, {.lr = .1});
  x.set_grad(f64({1}));
  plain.step();
  Sgd other({{"x", x}}, {.lr = .1});
  other.load_state_dict(plain.state_dict());
  EXPECT_EQ(other.state_dict().size(), plain.state_dict().size());
}

TEST(Optimizer, RejectsWhatCannotBe) {
  const Tensor x = leaf({1});
  EXPECT_THROW(Sgd({{"x", x}}, {.lr = -1}), ValueError);
  EXPECT_THROW(Sgd({{"x", x}}, {.lr = .1, .nesterov = true}), ValueError);
  EXPECT_THROW(Adam({{"x", x}}, {.beta1 = 1}), ValueError);
  EXPECT_THROW(Sgd({{"x", x}, {"x", leaf({2})}}, {}), ValueError);
}

}  // namespace
}  // namespace cutaway::optim
