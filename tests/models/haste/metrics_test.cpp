#include <cutaway/models/haste/metrics.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/draws.h>

namespace cutaway::haste {
namespace {

struct Case {
  int64_t samples = 37, labels = 83, k = 5;
  std::vector<float> scores;  // [labels, samples]
  std::vector<std::set<int32_t>> truth, ignored;
  Csr truth_csr, filter_csr;
  std::vector<int64_t> frequency;

  explicit Case(uint64_t seed, bool filtered) {
    Draws draws(seed);
    for (int64_t i = 0; i < samples * labels; ++i) {
      scores.push_back(float(draws.below(50)) / 8);  // many ties
    }
    truth.resize(size_t(samples));
    ignored.resize(size_t(samples));
    for (int64_t r = 0; r < samples; ++r) {
      for (int64_t n = draws.below(9); n > 0; --n)
        truth[size_t(r)].insert(int32_t(draws.below(labels)));
      for (int64_t n = filtered ? draws.below(20) : 0; n > 0; --n) {
        ignored[size_t(r)].insert(int32_t(draws.below(labels)));
      }
    }
    truth_csr = csr(truth);
    if (filtered) filter_csr = csr(ignored);
    for (int64_t l = 0; l < labels; ++l) {
      frequency.push_back(draws.below(4) ? draws.below(120) : draws.below(2000));
    }
  }
  Csr csr(const std::vector<std::set<int32_t>>& rows) const {
    Csr m;
    m.cols = labels;
    for (const auto& row : rows) {
      m.index.insert(m.index.end(), row.begin(), row.end());
      m.start.push_back(m.entries());
    }
    return m;
  }
  // All labels of a sample that `may` allows, best first, by sorting everything.
  template <class F>
  std::vector<int32_t> ranked(int64_t r, F may) const {
    std::vector<int32_t> all;
    for (int32_t l = 0; l < labels; ++l) {
      if (!ignored[size_t(r)].contains(l) && may(l)) all.push_back(l);
    }
    std::sort(all.begin(), all.end(), [&](int32_t x, int32_t y) {
      const float a = scores[size_t(x * samples + r)], b = scores[size_t(y * samples + r)];
      return a != b ? a > b : x < y;
    });
    return all;
  }
  bool relevant(int64_t r, int32_t l) const {
    return truth[size_t(r)].contains(l) && !ignored[size_t(r)].contains(l);
  }
};

// In batches, and in chunks of labels in a mixed order.
Metrics evaluated(const Case& c, const EvaluateOptions& options, int64_t batch, int64_t chunk) {
  Evaluator e(c.truth_csr, c.filter_csr, c.frequency, 5000, options);
  std::vector<int32_t> order(static_cast<size_t>(c.labels));
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  std::rotate(order.begin(), order.begin() + 31, order.end());
  for (int64_t first = 0; first < c.samples; first += batch) {
    const int64_t rows = std::min(batch, c.samples - first);
    e.begin(first, rows);
    for (int64_t l = 0; l < c.labels; l += chunk) {
      const int64_t count = std::min(chunk, c.labels - l);
      std::vector<float> part;
      for (int64_t i = l; i < l + count; ++i) {
        const float* from = &c.scores[size_t(order[size_t(i)] * c.samples + first)];
        part.insert(part.end(), from, from + rows);
      }
      e.add(part.data(), count, {order.data() + l, size_t(count)});
    }
    e.end();
  }
  return e.metrics();
}

class HasteMetrics : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Filter, HasteMetrics, testing::Bool());

TEST_P(HasteMetrics, agree_with_sorting_everything) {
  for (const uint64_t seed : {1, 2, 3}) {
    const Case c(seed, GetParam());
    const EvaluateOptions options{.k = 7, .a = 0.6, .b = 2.6, .head = 100, .tail = 30};
    const Metrics m = evaluated(c, options, 10, 9);
    const double C = (std::log(5000.0) - 1) * std::pow(3.6, 0.6);
    const auto inverse = [&](int32_t l) {
      return 1 + C * std::pow(double(c.frequency[size_t(l)]) + 2.6, -0.6);
    };
    for (int64_t k = 1; k <= options.k; ++k) {
      double hits = 0, gained = 0, most = 0;
      for (int64_t r = 0; r < c.samples; ++r) {
        const auto all = c.ranked(r, [](int32_t) { return true; });
        std::vector<double> could;
        for (int32_t l = 0; l < c.labels; ++l) {
          if (c.relevant(r, l)) could.push_back(inverse(l));
        }
        std::sort(could.rbegin(), could.rend());
        for (int64_t j = 0; j < k; ++j) {
          if (c.relevant(r, all[size_t(j)])) ++hits, gained += inverse(all[size_t(j)]);
          if (size_t(j) < could.size()) most += could[size_t(j)];
        }
      }
      EXPECT_NEAR(m.precision[size_t(k - 1)], hits / double(k * c.samples), 1e-12) << k;
      EXPECT_NEAR(m.psp[size_t(k - 1)], gained / most, 1e-12) << k;
    }
  }
}

TEST_P(HasteMetrics, of_bands_agree_with_sorting_everything) {
  const Case c(5, GetParam());
  const EvaluateOptions options{.head = 100, .tail = 30};
  const Metrics m = evaluated(c, options, 37, 83);
  ASSERT_EQ(m.bands.size(), 3u);
  const Bands bands = frequency_bands(c.frequency, 100, 30);
  for (int band = 0; band < 3; ++band) {
    const auto in = [&](int32_t l) {
      const int64_t n = c.frequency[size_t(l)];
      return band == 0 ? n >= 100 : band == 1 ? n >= 30 && n < 100 : n >= 1 && n < 30;
    };
    double samples = 0, hits = 0, in_all = 0;
    for (int64_t r = 0; r < c.samples; ++r) {
      bool any = false;
      for (int32_t l = 0; l < c.labels; ++l) {
        any = any || (c.relevant(r, l) && in(l));
        EXPECT_EQ(in(l), bands.band[size_t(l)] == band);
      }
      if (!any) continue;
      ++samples;
      const auto own = c.ranked(r, in);
      const auto all = c.ranked(r, [](int32_t) { return true; });
      for (size_t j = 0; j < 3; ++j) {
        hits += j < own.size() && c.relevant(r, own[j]);
        in_all += c.relevant(r, all[j]) && in(all[j]);
      }
    }
    const BandMetrics& got = m.bands[size_t(band)];
    EXPECT_EQ(double(got.samples), samples);
    EXPECT_NEAR(got.precision[2], hits / 3 / samples, 1e-12);
    EXPECT_NEAR(got.hits[2], in_all / 3 / double(c.samples), 1e-12);
  }
  double shares = 0;
  for (const BandMetrics& d : m.deciles) shares += d.hits[4];
  double unseen = 0;  // hits on labels that training never saw belong to no decile
  for (int64_t r = 0; r < c.samples; ++r) {
    const auto all = c.ranked(r, [](int32_t) { return true; });
    for (size_t j = 0; j < 5; ++j) {
      unseen += c.relevant(r, all[j]) && c.frequency[size_t(all[j])] == 0;
    }
  }
  EXPECT_NEAR(shares + unseen / 5 / double(c.samples), m.precision[4], 1e-12);
}

TEST_P(HasteMetrics, do_not_depend_on_batches_chunks_or_threads) {
  const Case c(9, GetParam());
  const Metrics one = evaluated(c, {}, 37, 83);
  const int before = num_threads();
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    for (const int64_t chunk : {1, 7, 40}) {
      const Metrics other = evaluated(c, {}, 36, chunk);
      EXPECT_EQ(other.precision, one.precision);
      for (size_t b = 0; b < 3; ++b) EXPECT_EQ(other.bands[b].precision, one.bands[b].precision);
    }
  }
  set_num_threads(before);
}

TEST(HasteMetricsRules, a_perfect_predictor_has_psp_1) {
  Case c(4, false);
  for (auto& row : c.truth) row.insert(int32_t(row.size()));  // no empty rows
  c.truth_csr = c.csr(c.truth);
  const std::vector<double> p = propensities(c.frequency, 5000);
  for (int64_t r = 0; r < c.samples; ++r) {
    for (int32_t l = 0; l < c.labels; ++l) {
      c.scores[size_t(l * c.samples + r)] = c.relevant(r, l) ? float(1 / p[size_t(l)]) : 0.f;
    }
  }
  const Metrics m = evaluated(c, {}, 8, 16);
  for (const double psp : m.psp) EXPECT_NEAR(psp, 1.0, 1e-12);
  EXPECT_EQ(m.precision[0], 1.0);
}

TEST(HasteMetricsRules, propensities_rise_with_frequency_up_to_1) {
  const std::vector<double> p = propensities({0, 1, 10, 1000, 1000000}, 490449, 0.6, 2.6);
  for (size_t i = 1; i < p.size(); ++i) EXPECT_GT(p[i], p[i - 1]);
  EXPECT_GT(p[0], 0);
  EXPECT_LT(p[4], 1);
  EXPECT_EQ(propensities({3}, 2)[0], 1.0);
  EXPECT_THROW(propensities({3}, 0), ValueError);
}

TEST(HasteMetricsRules, nan_scores_are_never_taken_and_labels_may_run_out) {
  TopK top(2, 4);
  const std::vector<float> scores = {NAN, 1, 2, NAN, 1, 3};
  const std::vector<int32_t> labels = {7, 8, 5};
  top.add(scores.data(), 3, labels);
  EXPECT_EQ(std::vector<int32_t>(top.labels(0).begin(), top.labels(0).end()),
            (std::vector<int32_t>{8, 5, -1, -1}));
  EXPECT_EQ(std::vector<int32_t>(top.labels(1).begin(), top.labels(1).end()),
            (std::vector<int32_t>{5, 7, -1, -1}));
  EXPECT_EQ(top.scores(1)[0], 3.f);
}

TEST(HasteMetricsRules, deciles_hold_equally_many_labels) {
  std::vector<int64_t> frequency(205);
  for (size_t i = 0; i < 200; ++i) frequency[i] = 1 + int64_t(i * 37 % 200);
  const Bands bands = decile_bands(frequency);
  for (int d = 0; d < 10; ++d) {
    EXPECT_EQ(std::count(bands.band.begin(), bands.band.end(), int8_t(d)), 20);
  }
  EXPECT_EQ(std::count(bands.band.begin(), bands.band.end(), int8_t(-1)), 5);
  EXPECT_EQ(bands.names[0], "decile 1 (181–200)");
}

TEST(HasteMetricsRules, wrong_sizes_are_refused) {
  const Case c(1, true);
  EXPECT_THROW(Evaluator(c.truth_csr, c.filter_csr, {1, 2}, 10), ValueError);
  EXPECT_THROW(Evaluator(Csr{.cols = 83}, Csr{}, c.frequency, 10), ValueError);
  EXPECT_THROW(Evaluator(c.truth_csr, c.filter_csr, c.frequency, 10, {.k = 0}), ValueError);
  Csr short_filter = c.filter_csr;
  short_filter.start.pop_back();
  EXPECT_THROW(Evaluator(c.truth_csr, short_filter, c.frequency, 10), ValueError);
  Evaluator e(c.truth_csr, c.filter_csr, c.frequency, 10);
  EXPECT_THROW(e.begin(30, 8), IndexError);
  e.begin(0, 1);
  const float score = 0;
  const std::vector<int32_t> label = {83};
  EXPECT_THROW(e.add(&score, 1, label), IndexError);
}

}  // namespace
}  // namespace cutaway::haste
