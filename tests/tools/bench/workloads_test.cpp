#include <gtest/gtest.h>
#include <cmath>

#include <cutaway/core/error.h>
#include <tools/bench/explain.h>
#include <tools/bench/floors.h>
#include <tools/bench/scaling.h>
#include <tools/bench/workloads.h>

namespace cutaway::tools {
namespace {

// Those that also take little time in a sanitized build without optimisation.
bool light(const std::string& name) {
  for (const char* small : {"add16", "tiny", "mlp", "mlp1", "matmul-64", "matmul-128"}) {
    if (name == small) return true;
  }
  return false;
}

void expect_step(const std::string& name) {
  const Workload w = make_workload(name);
  w.step();
  EXPECT_TRUE(std::isfinite(w.value())) << name;
  EXPECT_NE(w.value(), 0) << name;
  EXPECT_GT(w.flops + w.bytes, 0) << name;
  EXPECT_EQ(w.name, name);
}

TEST(Workloads, run_a_step_with_a_finite_value) {
  for (const WorkloadInfo& w : known_workloads()) {
    if (light(w.name)) expect_step(w.name);
  }
}

TEST(WorkloadsSlow, run_a_step_with_a_finite_value) {
  for (const WorkloadInfo& w : known_workloads()) {
    if (!light(w.name)) expect_step(w.name);
  }
}

TEST(Workloads, training_steps_lower_the_loss_also_in_bf16) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto losses = step_values(make_workload("mlp", dtype), 10);
    EXPECT_LT(losses.back(), 0.5 * losses.front());
  }
}

TEST(Workloads, begin_with_the_same_values_each_time) {
  EXPECT_EQ(step_values(make_workload("mlp1"), 3), step_values(make_workload("mlp1"), 3));
  EXPECT_EQ(step_values(make_workload("tiny"), 2)[0], step_values(make_workload("tiny"), 2)[1]);
}

// The same numbers come from values() and integers() of peer_torch.py.
TEST(Workloads, values_are_those_of_the_peer_script) {
  const auto v = fixed_values("x", {3}, 2).to_vector();
  EXPECT_FLOAT_EQ(float(v[0]), -1.19516706f);
  EXPECT_FLOAT_EQ(float(v[1]), 1.23410702f);
  EXPECT_FLOAT_EQ(float(v[2]), 0.573294401f);
  const auto i = fixed_integers("ids", {4}, 1000, 3).to_vector();
  EXPECT_EQ(i, (std::vector<double>{170, 217, 183, 197}));
}

TEST(Workloads, unknown_names_and_types_are_refused) {
  EXPECT_THROW(make_workload("mlp2"), ValueError);
  EXPECT_THROW(make_workload("sort", DType::bf16), ValueError);
  EXPECT_THROW(make_workload("mlp", DType::f64), ValueError);
}

TEST(Floors, arithmetic_and_traffic_take_time) {
  EXPECT_GT(peak_flops(DType::f32, 1), 1e8);
  EXPECT_GT(copy_rate(1 << 20, 1), 1e8);
  EXPECT_GT(floor_ms(DType::f32, 1e6, 0, 1), 0);
  EXPECT_GT(floor_ms(DType::f32, 0, 1e6, 1), 0);
  EXPECT_GT(call_cost_ms(), 0);
}

TEST(Explain, rows_name_ops_backward_passes_and_the_optimiser) {
  const Explanation e = explain(make_workload("mlp"), 1);
  const auto row = [&](const std::string& name) {
    for (const ExplainRow& r : e.rows) {
      if (r.name == name) return r;
    }
    ADD_FAILURE() << "no row " << name;
    return ExplainRow{};
  };
  EXPECT_EQ(row("linear").calls, 2);
  EXPECT_EQ(row("linear").flops, 2.0 * 64 * (784 * 256 + 256 * 10));
  EXPECT_EQ(row("linear backward").calls, 2);
  EXPECT_EQ(row("Adam").calls, 1);
  double sum = 0;
  for (const ExplainRow& r : e.rows) sum += r.ms;
  EXPECT_LE(sum, e.traced_ms * 1.001);
}

TEST(Scaling, exponents_are_those_of_powers) {
  EXPECT_NEAR(fitted_exponent({1, 2, 4, 8}, {3, 12, 48, 192}), 2, 1e-12);
  EXPECT_NEAR(fitted_exponent({1, 10, 100}, {5, 5, 5}), 0, 1e-12);
  EXPECT_TRUE(std::isnan(fitted_exponent({2}, {1})));
  EXPECT_THROW(measure_scaling({.models = {"lstm"}}), ValueError);
}

TEST(Scaling, perceptrons_may_be_deep) {
  const Workload w = mlp_workload({.batch = 2, .width = 4, .depth = 32});
  EXPECT_TRUE(std::isfinite(step_values(w, 1).front()));
}

}  // namespace
}  // namespace cutaway::tools
