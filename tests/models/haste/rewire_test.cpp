// Dynamic sparse training: which slots change, and that nothing else does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/rewire.h>

namespace cutaway::haste {
namespace {

// L labels in groups of `group`, F of `features` features each, no duplicates within a group.
Slots make_slots(int64_t labels, int64_t group, int64_t fan_in, int64_t features, uint64_t seed) {
  Generator g{.seed = seed, .stream = 5};
  const int64_t K = (labels + group - 1) / group;
  Slots s{.index = empty({K, fan_in}, {.dtype = DType::i32}),
          .weight = randn({labels, fan_in}, {}, &g),
          .momentum = randn({labels, fan_in}, {}, &g),
          .group = group,
          .features = features};
  for (int64_t k = 0; k < K; ++k) {
    const auto order = permutation(features, g);
    for (int64_t j = 0; j < fan_in; ++j) {
      s.index.data<int32_t>()[k * fan_in + j] = int32_t(order[size_t(j)]);
    }
  }
  return s;
}

std::vector<double> dense_logits(const Slots& s, const std::vector<double>& x) {
  const int64_t L = s.weight.size(0), F = s.weight.size(1);
  const auto w = s.weight.to_vector();
  std::vector<double> z(size_t(L), 0);
  for (int64_t l = 0; l < L; ++l) {
    const int32_t* row = s.index.data<int32_t>() + l / s.group * F;
    for (int64_t j = 0; j < F; ++j) z[size_t(l)] += w[size_t(l * F + j)] * x[size_t(row[j])];
  }
  return z;
}

TEST(HasteRewire, prunes_exactly_the_smallest_slots_of_whole_groups) {
  for (const int64_t group : {1, 16, 32}) {
    Slots s = make_slots(group == 1 ? 37 : 5 * group + 3, group, 16, 64, 1);
    const auto before = s.index.clone().to_vector(), weights = s.weight.clone().to_vector();
    const auto moments = s.momentum.clone().to_vector();
    const auto scores = slot_scores(s, SlotScore::mean);
    const auto slots = rewire(s, {.fraction = 0.25}, {.seed = 3, .stream = 9});
    ASSERT_EQ(slots.size(), scores.size() / 4);
    const std::set<int64_t> changed(slots.begin(), slots.end());
    ASSERT_EQ(changed.size(), slots.size());
    float largest = 0, smallest = INFINITY;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (changed.count(int64_t(i)))
        largest = std::max(largest, scores[i]);
      else
        smallest = std::min(smallest, scores[i]);
    }
    EXPECT_LE(largest, smallest);
    const auto after = s.index.to_vector(), left = s.weight.to_vector();
    const auto moved = s.momentum.to_vector();
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i] != after[i], changed.count(int64_t(i)) == 1) << i;
    }
    const int64_t F = 16;
    for (int64_t l = 0; l < s.weight.size(0); ++l) {
      for (int64_t j = 0; j < F; ++j) {
        const bool gone = changed.count(l / group * F + j);
        EXPECT_EQ(left[size_t(l * F + j)], gone ? 0 : weights[size_t(l * F + j)]);
        EXPECT_EQ(moved[size_t(l * F + j)], gone ? 0 : moments[size_t(l * F + j)]);
      }
    }
    for (int64_t k = 0; k < s.index.size(0); ++k) {
      std::set<double> row(after.begin() + k * F, after.begin() + (k + 1) * F);
      EXPECT_EQ(int64_t(row.size()), F) << "a duplicate in group " << k;
    }
  }
}

TEST(HasteRewire, logits_lose_what_the_pruned_slots_gave) {
  Slots s = make_slots(70, 16, 16, 48, 2);
  std::vector<double> x(48);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  const auto before = dense_logits(s, x);
  const auto index = s.index.clone().to_vector(), weight = s.weight.clone().to_vector();
  const auto slots = rewire(s, {.fraction = 0.3}, {.seed = 4});
  const auto after = dense_logits(s, x);
  for (int64_t l = 0; l < 70; ++l) {
    double lost = 0;
    for (int64_t slot : slots) {
      if (slot / 16 != l / 16) continue;
      lost += weight[size_t(l * 16 + slot % 16)] * x[size_t(index[size_t(slot)])];
    }
    EXPECT_NEAR(after[size_t(l)], before[size_t(l)] - lost, 1e-12);
  }
}

TEST(HasteRewire, scores_by_their_definition) {
  Slots s = make_slots(20, 16, 16, 32, 3);  // the second group has four rows
  const auto w = s.weight.to_vector(), m = s.momentum.to_vector();
  for (const SlotScore kind : {SlotScore::mean, SlotScore::max, SlotScore::grad}) {
    const auto scores = slot_scores(s, kind);
    for (int64_t k = 0; k < 2; ++k) {
      for (int64_t j = 0; j < 16; ++j) {
        double sum = 0, most = 0;
        const int64_t last = k ? 20 : 16;
        for (int64_t l = k * 16; l < last; ++l) {
          const size_t i = size_t(l * 16 + j);
          const double a = std::fabs(kind == SlotScore::grad ? w[i] * m[i] : w[i]);
          sum += a, most = std::max(most, a);
        }
        const double want = kind == SlotScore::max ? most : sum / double(last - k * 16);
        EXPECT_NEAR(scores[size_t(k * 16 + j)], want, 1e-6);
      }
    }
  }
  s.momentum = {};
  EXPECT_THROW(slot_scores(s, SlotScore::grad), ValueError);
}

TEST(HasteRewire, options) {
  Slots a = make_slots(64, 16, 16, 64, 5), b = make_slots(64, 16, 16, 64, 5);
  EXPECT_EQ(rewire(a, {.fraction = 0.25}, {.seed = 1}), rewire(b, {.fraction = 0.25}, {.seed = 1}));
  EXPECT_EQ(a.index.to_vector(), b.index.to_vector());
  // A threshold of 0 prunes nothing, a large one all.
  EXPECT_TRUE(rewire(a, {.threshold = 0}, {.seed = 1}).empty());
  EXPECT_EQ(rewire(a, {.threshold = 1e9}, {.seed = 1}).size(), size_t(4 * 16));
  // Uniform weights lie within 1/√F and the momentum stays when asked.
  Slots c = make_slots(64, 16, 16, 64, 6);
  const auto moments = c.momentum.clone().to_vector();
  rewire(c, {.threshold = 1e9, .uniform_init = true, .keep_momentum = true}, {.seed = 2});
  EXPECT_EQ(c.momentum.to_vector(), moments);
  double most = 0;
  for (double w : c.weight.to_vector()) most = std::max(most, std::fabs(w));
  EXPECT_LE(most, 0.25);
  EXPECT_GT(most, 0.2);
  // bf16 weights, and a group that has every feature.
  Slots d = make_slots(64, 16, 16, 16, 7);
  d.weight = d.weight.to(DType::bf16);
  EXPECT_EQ(rewire(d, {.fraction = 0.25}, {.seed = 3}).size(), size_t(16));
}

TEST(HasteRewire, threads_do_not_matter) {
  Slots a = make_slots(3000, 16, 32, 128, 8), b = make_slots(3000, 16, 32, 128, 8);
  const int before = num_threads();
  set_num_threads(1);
  const auto one = rewire(a, {}, {.seed = 9});
  set_num_threads(2);
  EXPECT_EQ(one, rewire(b, {}, {.seed = 9}));
  set_num_threads(before);
  EXPECT_EQ(a.weight.to_vector(), b.weight.to_vector());
}

TEST(HasteRewire, schedule) {
  RunOptions o{.rewire_interval = 50, .epochs = 15};
  EXPECT_TRUE(rewires_at(o, 100, 8));
  EXPECT_FALSE(rewires_at(o, 101, 8));
  EXPECT_FALSE(rewires_at(o, 100, 9));  // ⌊0.66 · 15⌋ = 9
  o.rewire_mode = "none";
  EXPECT_FALSE(rewires_at(o, 100, 0));
  EXPECT_NEAR(rewire_threshold(0), 0.01, 1e-12);
  EXPECT_NEAR(rewire_threshold(0.5), 0.00505, 1e-12);
  EXPECT_NEAR(rewire_threshold(1), 1e-4, 1e-12);
}

}  // namespace
}  // namespace cutaway::haste
