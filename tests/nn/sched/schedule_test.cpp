#include <cutaway/nn/sched/schedule.h>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include <cutaway/core/error.h>
#include <tests/golden/golden.h>

namespace cutaway::sched {
namespace {

// The schedule of a stored case as a factor of its lr, and whether there is one.
bool schedule_of(const golden::Case& c, double lr, Schedule& s) {
  const std::string kind = c.text("schedule");
  const double floor = c.number("eta_min", 0) / lr;
  if (kind == "constant")
    s = constant();
  else if (kind == "step")
    s = step(c.integer("step_size", 1), c.number("gamma", 0.1));
  else if (kind == "multistep")
    s = multi_step(c.integers("milestones"), c.number("gamma", 0.1));
  else if (kind == "exponential")
    s = exponential(c.number("gamma", 1));
  else if (kind == "cosine")
    s = cosine(c.integer("T_max", 1), floor);
  else if (kind == "cosine_restarts")
    s = cosine_restarts(c.integer("T_0", 1), c.integer("T_mult", 1), floor);
  else if (kind == "linear")
    s = linear(c.integer("total_iters", 1), c.number("start_factor", 1), c.number("end_factor", 1));
  else if (kind == "polynomial")
    s = polynomial(c.integer("total_iters", 1), c.number("power", 1));
  else if (kind == "warmup_cosine")
    s = warmup(c.integer("warmup", 1), c.number("start_factor", 1),
               cosine(c.integer("T_max", 1), floor));
  else if (kind == "one_cycle")
    s = one_cycle(c.integer("total_steps", 1),
                  {.pct_start = c.number("pct_start", 0.3),
                   .div_factor = c.number("div_factor", 25),
                   .final_div_factor = c.number("final_div_factor", 1e4),
                   .linear = c.text("anneal_strategy") == "linear",
                   .three_phase = c.flag("three_phase", false)});
  else
    return false;
  return true;
}

// The rates of epochs 0, 1, … as the optimiser sees them.
std::vector<double> rates(const Schedule& s, double lr, size_t epochs) {
  const Tensor x = zeros({1}).set_requires_grad();
  optim::Sgd sgd({{"x", x}}, {.lr = lr});
  Scheduler scheduler(sgd, s);
  std::vector<double> list;
  for (size_t e = 0; e < epochs; ++e) {
    list.push_back(sgd.lr());
    scheduler.step();
  }
  return list;
}

// Among them FC_06e2, FC_0c17, FC_5b47 and FC_a7cf.
TEST(Schedule, FollowsStoredRates) {
  const std::set<std::string> not_in_the_library{"plateau"};
  for (const golden::Case& c : golden::File::open("schedules").cases()) {
    SCOPED_TRACE(c.name());
    const double lr = c.number("lr", c.number("max_lr", 1));
    Schedule s = constant();
    if (!schedule_of(c, lr, s)) {
      EXPECT_TRUE(not_in_the_library.contains(c.text("schedule"))) << "is not compared";
      continue;
    }
    const golden::Array& want = c.at("output.lr");
    const std::vector<double> got = rates(s, lr, want.values.size());
    for (size_t e = 0; e < got.size(); ++e) EXPECT_NEAR(got[e], want.values[e], 1e-12) << e;
  }
}

void expect_rates(const Schedule& s, std::initializer_list<double> want) {
  for (size_t t = 0; t < want.size(); ++t) {
    EXPECT_NEAR(s(int64_t(t)), want.begin()[t], 1e-6) << t;
  }
}

TEST(Schedule, FC_06e2_WarmRestarts) {
  expect_rates(cosine_restarts(2, 2), {1, .5, 1, .853553, .5, .146447, 1, .961940});
}

TEST(Schedule, FC_0c17_WarmupHandsOver) {
  expect_rates(warmup(3, 0.25, cosine(4)), {.25, .5, .75, 1, .853553, .5, .146447, 0});
}

TEST(Schedule, FC_a7cf_CosineAtAndAfterItsEnd) {
  expect_rates(cosine(4), {1, .853553, .5, .146447, 0, .146447, .5, .853553, 1, .853553});
  expect_rates(cosine(4, 0.2), {1, .882843, .6, .317157, .2, .317157});
  EXPECT_THROW(cosine(0), ValueError);
}

TEST(Schedule, FC_5b47_ResumesBitForBit) {
  for (const Schedule& s : {multi_step({4}), cosine(10), warmup(3, .25, cosine(4))}) {
    const std::vector<double> whole = rates(s, 0.3, 8);
    const Tensor x = zeros({1}).set_requires_grad();
    optim::Sgd first({{"x", x}}, {.lr = 0.3});
    Scheduler a(first, s);
    for (int i = 0; i < 3; ++i) a.step();
    optim::Sgd fresh({{"x", x}}, {.lr = 0.3});
    Scheduler b(fresh, s);
    b.set_counter(a.counter());
    for (size_t e = 3; e < 8; ++e) {
      EXPECT_EQ(fresh.lr(), whole[e]) << e;
      b.step();
    }
  }
}

TEST(Schedule, OneCycleStaysAtItsEnd) {
  const Schedule s = one_cycle(10, {.pct_start = 0.5, .div_factor = 10, .final_div_factor = 2});
  EXPECT_DOUBLE_EQ(s(0), 0.1);
  EXPECT_DOUBLE_EQ(s(4), 1);
  EXPECT_NEAR(s(9), 0.05, 1e-15);
  EXPECT_EQ(s(50), s(9));
  EXPECT_THROW(one_cycle(2), ValueError);
  EXPECT_THROW(one_cycle(10, {.pct_start = 1}), ValueError);
  EXPECT_THROW(one_cycle(10, {.div_factor = 0}), ValueError);
}
TEST(Schedule, InverseSqrt) {
  expect_rates(inverse_sqrt(4), {.25, .5, .75, 1, std::sqrt(.8), std::sqrt(4. / 6)});
  EXPECT_DOUBLE_EQ(inverse_sqrt(4)(399), 0.1);
  EXPECT_THROW(inverse_sqrt(0), ValueError);
}
TEST(Schedule, Cyclic) {
  expect_rates(cyclic(2, 0, .2), {.2, .6, 1, .6, .2, .6, 1});
  expect_rates(cyclic(1, 3, 0, .5), {0, 1, 2. / 3, 1. / 3, 0, .5, 1. / 3, 1. / 6, 0, .25});
  EXPECT_THROW(cyclic(0, 1, 0), ValueError);
  EXPECT_THROW(cyclic(1, -1, 0), ValueError);
}
TEST(Schedule, WarmupStableDecay) {
  expect_rates(warmup_stable_decay(2, 2, 4),
               {.5, 1, 1, 1, 1, .5, 1 - std::sqrt(.5), 1 - std::sqrt(.75), 0, 0});
  EXPECT_THROW(warmup_stable_decay(0, 1, 1), ValueError);
  EXPECT_THROW(warmup_stable_decay(1, -1, 1), ValueError);
}
TEST(Schedule, Lambda) {
  expect_rates(lambda([](int64_t t) { return 1.0 / double(1 + t); }), {1, .5, 1. / 3});
  EXPECT_THROW(lambda(nullptr), ValueError);
}

TEST(Schedule, Composes) {
  const Schedule s = exponential(0.5).times(constant(4)).then(2, linear(2, 1, 0));
  expect_rates(s, {4, 2, 1, 0.5, 0, 0});
  EXPECT_THROW(step(0), ValueError);
  EXPECT_THROW(constant().then(-1, constant()), ValueError);
}

}  // namespace
}  // namespace cutaway::sched
