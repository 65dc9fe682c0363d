// Statements 7 and 8 of section 8: metrics against their definition, stochastic rounding.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/labels.h>
#include <cutaway/models/haste/draws.h>
#include <cutaway/models/haste/output_layer.h>
#include <cutaway/models/haste/statements.h>
#include <cutaway/models/haste/train.h>

namespace cutaway::haste {
namespace {

using reproduce::at_most;

// Random scores and labels of a few rows, and metrics of them by full sorting.
struct Case {
  Csr truth, filter;
  std::vector<int64_t> frequency;
  std::vector<float> scores;  // [labels, rows]
  int64_t rows = 0, samples = 1000;

  explicit Case(uint64_t seed, bool perfect) {
    Draws d(seed, 33);
    rows = 5 + d.below(30);
    const int64_t labels = 8 + d.below(60);
    truth.cols = filter.cols = labels;
    for (int64_t l = 0; l < labels; ++l) frequency.push_back(1 + d.below(200));
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<std::pair<int32_t, float>> entries;
      for (int64_t i = d.below(7); i > 0; --i) entries.push_back({int32_t(d.below(labels)), 1.0f});
      add_row(truth, entries);
    }
    truth.value.clear();
    const std::vector<double> p = propensities(frequency, samples);
    for (int64_t l = 0; l < labels; ++l) {
      for (int64_t r = 0; r < rows; ++r) {
        const auto row = truth.row(r);
        const bool is = std::binary_search(row.begin(), row.end(), int32_t(l));
        // The best order ranks true labels by 1/p.
        scores.push_back(perfect ? (is ? float(1 / p[size_t(l)]) : 0.0f)
                                 : float(d.uniform()) + (is ? 0.5f : 0));
      }
    }
  }
};

struct Ranked {
  std::vector<double> p, psp;
};
Ranked brute_force(const Case& c, int64_t k_max) {
  const std::vector<double> p = propensities(c.frequency, c.samples);
  const int64_t labels = c.truth.cols;
  Ranked result;
  for (int64_t k = 1; k <= k_max; ++k) {
    double hits = 0, gained = 0, most = 0;
    for (int64_t r = 0; r < c.rows; ++r) {
      std::vector<int32_t> order(size_t(labels), 0);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return c.scores[size_t(a * c.rows + r)] > c.scores[size_t(b * c.rows + r)];
      });
      const auto row = c.truth.row(r);
      std::vector<double> weights;
      for (int32_t l : row) weights.push_back(1 / p[size_t(l)]);
      std::sort(weights.rbegin(), weights.rend());
      for (int64_t i = 0; i < std::min(k, labels); ++i) {
        if (!std::binary_search(row.begin(), row.end(), order[size_t(i)])) continue;
        hits += 1 / double(k);
        gained += 1 / p[size_t(order[size_t(i)])];
      }
      for (int64_t i = 0; i < std::min(k, int64_t(weights.size())); ++i) most += weights[size_t(i)];
    }
    result.p.push_back(hits / double(c.rows));
    result.psp.push_back(most > 0 ? gained / most : 0);
  }
  return result;
}

Metrics measured(const Case& c) {
  Evaluator evaluator(c.truth, c.filter, c.frequency, c.samples);
  evaluator.begin(0, c.rows);
  const int64_t labels = c.truth.cols, chunk = 7;
  std::vector<int32_t> names(size_t(labels), 0);
  std::iota(names.begin(), names.end(), 0);
  for (int64_t first = 0; first < labels; first += chunk) {
    const int64_t count = std::min(chunk, labels - first);
    evaluator.add(c.scores.data() + first * c.rows, count, {names.data() + first, size_t(count)});
  }
  evaluator.end();
  return evaluator.metrics();
}

void metrics_statements(reproduce::Run& run) {
  double worst = 0, perfect = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    const Case c(run.seed() * 1000 + i, false);
    const Metrics m = measured(c);
    const Ranked wanted = brute_force(c, 5);
    for (size_t k = 0; k < 5; ++k) {
      worst = std::max(
          {worst, std::fabs(m.precision[k] - wanted.p[k]), std::fabs(m.psp[k] - wanted.psp[k])});
    }
    const Metrics best = measured(Case(run.seed() * 1000 + i, true));
    for (size_t k = 0; k < 5; ++k) perfect = std::max(perfect, std::fabs(best.psp[k] - 1));
  }
  const std::vector<uint64_t> seed = {run.seed()};
  run.add(at_most(
      {"7a", "P@k and PSP@k by chunks − brute force, 50 random matrices", worst, 1e-12, "", seed}));
  run.add(at_most({"7b", "PSP@k of a perfect predictor − 1", perfect, 1e-12, "", seed}));
}

// |mean of n roundings of x − x| in standard errors, the worst of several x. A step from 0 by −x.
double rounding_bias(uint64_t seed) {
  double worst = 0;
  constexpr int kCount = 100000;
  uint64_t stream = 40;
  for (const float x : {0.1f, -1.003f, 3.14159f, 1e-3f, 123.456f}) {
    const Tensor w = zeros({kCount}, {.dtype = DType::bf16}), minus = full({kCount}, -x);
    kernels::rounded_sgd(kCpu, DType::bf16,
                         {.n = kCount,
                          .param = w.raw(),
                          .grad = minus.data<float>(),
                          .lr = 1,
                          .seed = seed,
                          .stream = ++stream});
    double sum = 0, square = 0;
    for (const double y : w.to_vector()) {
      sum += y - double(x), square += (y - double(x)) * (y - double(x));
    }
    const double mean = sum / kCount;
    const double error = std::sqrt((square / kCount - mean * mean) / kCount);
    worst = std::max(worst, std::fabs(mean) / error);
  }
  return worst;
}

}  // namespace

void number_statements(reproduce::Run& run) {
  metrics_statements(run);
  run.add(at_most({"8a",
                   "10⁵ stochastic roundings of five numbers: |mean − x| in standard errors",
                   rounding_bias(run.seed()),
                   3,
                   "",
                   {run.seed()}}));
}

}  // namespace cutaway::haste
