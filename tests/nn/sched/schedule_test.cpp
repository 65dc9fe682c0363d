#include <cutaway/nn/sched/schedule.h>

#include <gtest/gtest.h>

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
  const std::set<std::string> not_in_the_library{"one_cycle", "plateau"};
  for (const golden::Case& c : golden::File::open("schedules").cases()) {
    SCOPED_TRACE(c.name());
    const double lr = c.number("lr", 1);
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

TEST(Schedule, Composes) {
  const Schedule s = exponential(0.5).times(constant(4)).then(2, linear(2, 1, 0));
  expect_rates(s, {4, 2, 1, 0.5, 0, 0});
  EXPECT_THROW(step(0), ValueError);
  EXPECT_THROW(constant().then(-1, constant()), ValueError);
}

}  // namespace
}  // namespace cutaway::sched
