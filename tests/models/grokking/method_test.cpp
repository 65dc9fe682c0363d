// Losses, model, stages, criterion and inspection.
#include <gtest/gtest.h>

#include <fstream>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/models/grokking/criterion.h>
#include <cutaway/models/grokking/exactness.h>
#include <cutaway/models/grokking/geometry.h>
#include <cutaway/models/grokking/symmetry.h>
#include <cutaway/models/report/statistics.h>

namespace cutaway::grokking {
namespace {

Tensor f64(std::initializer_list<double> values, const Shape& sizes) {
  return tensor(values, sizes, {.dtype = DType::f64});
}

TEST(GrokkingLoss, exactness) {
  EXPECT_LT(worst_gradient_error(), 1e-6);
  EXPECT_LT(helix_violation(11), 1e-10);
  EXPECT_EQ(unequal_answers(13), 0);
}

TEST(GrokkingLoss, symmetric_kl_against_its_definition) {
  const double p[] = {0.2, 0.5, 0.3}, q[] = {0.6, 0.3, 0.1};
  double expected = 0;
  for (int i = 0; i < 3; ++i) {
    expected += 0.5 * (p[i] * std::log(p[i] / q[i]) + q[i] * std::log(q[i] / p[i]));
  }
  const Tensor u = log(f64({0.2, 0.5, 0.3}, {1, 3})) + 4.0;
  const Tensor v = log(f64({0.6, 0.3, 0.1}, {1, 3})) - 1.0;
  EXPECT_NEAR(symmetric_kl(u, v).item(), expected, 1e-14);
}

TEST(GrokkingLoss, gradient_of_symmetric_kl_by_the_formula) {
  Tensor u = f64({0.3, -1, 2}, {1, 3}), v = f64({1, 0.5, -0.2}, {1, 3});
  u.set_requires_grad();
  sum(symmetric_kl(u, v)).backward();
  const auto p = softmax(u.detach(), 1).to_vector(), q = softmax(v, 1).to_vector();
  double kl = 0;
  for (int j = 0; j < 3; ++j) kl += p[size_t(j)] * std::log(p[size_t(j)] / q[size_t(j)]);
  for (size_t j = 0; j < 3; ++j) {
    const double g = std::log(p[j] / q[j]);
    EXPECT_NEAR(u.grad().to_vector()[j], 0.5 * (p[j] * (g - kl) + p[j] - q[j]), 1e-12);
  }
}

TEST(GrokkingLoss, convolution_adds_distances_and_renormalises) {
  const Tensor p = f64({0.5, 0.5, 0, 0}, {1, 4}), q = f64({0, 0.25, 0, 0.75}, {1, 4});
  // Sums: 1 → .125, 2 → .125, 3 → .375, 4 → .375 (dropped).
  const auto y = convolve(p, q).to_vector();
  EXPECT_NEAR(y[0], 0, 1e-15);
  EXPECT_NEAR(y[1], 0.2, 1e-15);
  EXPECT_NEAR(y[2], 0.2, 1e-15);
  EXPECT_NEAR(y[3], 0.6, 1e-15);
}

TEST(GrokkingLoss, right_predictions_violate_nothing) {
  for (const char* name : {"add", "graph:lattice", "compare:2d"}) {
    const Task task = make_task({.name = name, .p = 11});
    Generator g{.seed = 2};
    const auto k = int64_t(task.classes.size());
    for (Law law : task.laws) {
      const Tuples t = sample(task, law, g, {.count = 50});
      std::vector<double> scores;
      for (int64_t row : t.rows) {
        for (int64_t c = 0; c < k; ++c) scores.push_back(c == task.answers[size_t(row)] ? 60 : 0);
      }
      const Tensor s = tensor(scores, {.dtype = DType::f64}).reshape({50, t.width, k});
      EXPECT_LT(amax(violation(law, s, false)).item(), 1e-8) << name << ' ' << law_name(law);
    }
  }
}

TEST(GrokkingModel, one_block_shortcut_equals_the_transformer) {
  Transformer net({.vocabulary = 8,
                   .entities = 7,
                   .length = 2,
                   .classes = 7,
                   .d = 12,
                   .heads = 3,
                   .hidden = 10,
                   .output_scale = 2});
  net.to(DType::f64);
  const Tensor ids = index_tensor(std::vector<int64_t>{0, 1, 3, 3, 6, 2}).reshape({3, 2});
  const Tensor fast = net(ids);
  const Tensor plain =
      net.from_embedded(index_select(net.E, 0, ids.reshape({-1})).reshape({3, 2, 12}));
  EXPECT_LT(amax(abs(fast - plain)).item(), 1e-12);
  const Tensors parameters = {net.E};
  const Tensor weight = rand({3, 7}, {.dtype = DType::f64});
  const Tensor a = grad({sum(fast * weight)}, parameters)[0];
  const Tensor b = grad({sum(plain * weight)}, parameters)[0];
  EXPECT_LT(amax(abs(a - b)).item(), 1e-12);
}

TEST(GrokkingGeometry, a_circle_is_found) {
  const int64_t p = 23, q = 5;
  std::vector<double> values;
  for (int64_t x = 0; x < p; ++x) {
    const double angle = 2 * M_PI * double(q * x) / double(p);
    values.insert(values.end(), {std::cos(angle), 1.0, std::sin(angle), 0.0});
  }
  const Tensor E = tensor(values, {.dtype = DType::f64}).reshape({p, 4});
  std::vector<int64_t> order;
  for (int64_t x = 0; x < p; ++x) order.push_back(x);
  const Components c = principal_components(E);
  EXPECT_EQ(effective_dimension(c.share), 2);
  const Circle circle = circle_fit(c, order);
  EXPECT_EQ(circle.frequency, q);
  EXPECT_NEAR(circle.share, 1, 1e-12);
  EXPECT_NEAR(fourier_shares(E, order)[size_t(q - 1)], 1, 1e-12);
}

TEST(GrokkingGeometry, coordinates_of_a_lattice_are_found) {
  std::vector<double> values;
  std::vector<std::vector<double>> places;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      values.insert(values.end(), {2.0 * i + j, double(i - j), 3});
      places.push_back({double(i), double(j)});
    }
  }
  const Components c = principal_components(tensor(values, {.dtype = DType::f64}).reshape({16, 3}));
  EXPECT_NEAR(place_fit(c, places, 2), 1, 1e-12);
  EXPECT_LT(place_fit(c, places, 1), 0.9);
}

LogRow row(int64_t epoch, double train, double test, double violation, int dimension) {
  return {.epoch = epoch,
          .train_accuracy = train,
          .test_accuracy = test,
          .mean = {violation},
          .max = {2 * violation},
          .effective_dimension = dimension};
}

TEST(GrokkingStages, first_epochs_and_a_lasting_contraction) {
  const std::vector<LogRow> rows = {row(10, 0.5, 0, 0.01, 10), row(20, 1, 0.2, 3, 20),
                                    row(30, 1, 0.6, 0.5, 9),   row(40, 1, 0.99, 0.04, 12),
                                    row(50, 1, 1, 0.01, 10),   row(60, 1, 1, 0.01, 8)};
  const Stages s = find_stages(rows, 0.05);
  EXPECT_EQ(s.t_mem, 20);
  EXPECT_EQ(s.t_50, 30);
  EXPECT_EQ(s.t_99, 40);
  EXPECT_EQ(s.t_gen, 50);
  EXPECT_EQ(s.t_sym, 40);  // not at 10: nothing was memorised then
  EXPECT_EQ(s.t_geo, 50);  // not at 30: it grew again
}

TEST(GrokkingStages, log_is_read_back) {
  const Task task = make_task({.name = "graph:lattice"});
  const std::string path = testing::TempDir() + "log.csv";
  std::ofstream(path) << log_text(task, {row(10, 0.5, 0.25, 0.125, 10), row(20, 1, 1, 1e-9, 4)});
  const auto rows = read_log(path);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].epoch, 20);
  EXPECT_EQ(rows[0].test_accuracy, 0.25);
  EXPECT_EQ(rows[1].max_violation(), 2e-9);
  EXPECT_TRUE(std::isnan(rows[0].fourier));
}

TEST(GrokkingCriterion, separates_what_can_be_separated) {
  std::vector<Checkpoint> points;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (int i = 0; i < 10; ++i) {
      points.push_back({seed, i < 5 ? 1 + 0.1 * i : -1 - 0.1 * i, i < 5 ? 0.5 : 1.0, i >= 5});
    }
  }
  const Criterion c = fit_criterion(points);
  EXPECT_EQ(c.auc, 1);
  EXPECT_EQ(c.left_out_auc, 1);
  EXPECT_EQ(c.left_out_accuracy, 1);
  EXPECT_EQ(c.seeds, 3);
  EXPECT_NEAR(c.tau, -0.25, 1e-12);  // the middle of −1.5 and 1
}

TEST(Statistics, rank_measures) {
  EXPECT_EQ(report::spearman({1, 2, 3}, {10, 100, 1000}), 1);
  EXPECT_EQ(report::spearman({1, 2, 3}, {3, 2, 1}), -1);
  EXPECT_NEAR(report::spearman({1, 2, 2, 3}, {1, 3, 2, 4}), 0.9486832980505138, 1e-14);
  EXPECT_EQ(report::auc({3, 2}, {1, 2}), 0.875);
  EXPECT_TRUE(std::isnan(report::auc({}, {1})));
}

}  // namespace
}  // namespace cutaway::grokking
