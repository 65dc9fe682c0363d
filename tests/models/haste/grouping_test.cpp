#include <cutaway/models/haste/grouping.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/metrics.h>

namespace cutaway::haste {
namespace {

constexpr Grouping kAll[] = {Grouping::semantic, Grouping::greedy, Grouping::two_stage,
                             Grouping::random, Grouping::freq};

const XmcData& synth() {
  static const XmcSet set = make_synth({.train = 4000, .test = 1, .labels = 1000, .words = 2000});
  return set.train;
}

TEST(HasteHead, sizes_follow_the_rule) {
  EXPECT_EQ(head_size(1000, 0.05, 16), 64);   // 50, up to a multiple of 16
  EXPECT_EQ(head_size(1000, 0.01, 16), 10);   // not above 16: as it is
  EXPECT_EQ(head_size(1000, 0.0001, 16), 1);  // at least 1
  EXPECT_EQ(head_size(1000, 0, 16), 0);
  EXPECT_EQ(head_size(20, 0.9, 16), 20);  // 18, up to 32, but there are 20
  EXPECT_THROW(head_size(10, 1.0, 16), ValueError);
  EXPECT_THROW(head_size(10, -0.1, 16), ValueError);
  EXPECT_THROW(head_size(10, NAN, 16), ValueError);
  EXPECT_THROW(head_size(10, 0.1, 0), ValueError);
}

TEST(HasteEmbeddings, keep_the_cosines_of_the_summed_vectors) {
  const XmcData& data = synth();
  std::vector<int32_t> labels(40);
  std::iota(labels.begin(), labels.end(), 100);
  const int64_t dim = 2048;
  const std::vector<float> e = label_embeddings(data, labels, dim, 1);
  std::vector<std::vector<double>> sums(labels.size(), std::vector<double>(2000));
  for (int64_t r = 0; r < data.rows(); ++r) {
    for (const int32_t l : data.labels.row(r)) {
      if (l < 100 || l >= 140) continue;
      const auto index = data.features.row(r);
      for (size_t i = 0; i < index.size(); ++i) {
        sums[size_t(l - 100)][size_t(index[i])] += data.features.values(r)[i];
      }
    }
  }
  const auto cosine = [](const auto* x, const auto* y, size_t n) {
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; ++i) xy += x[i] * y[i], xx += x[i] * x[i], yy += y[i] * y[i];
    return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0.0;
  };
  for (size_t a = 0; a < labels.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const double exact = cosine(sums[a].data(), sums[b].data(), 2000);
      const double got = cosine(&e[a * size_t(dim)], &e[b * size_t(dim)], size_t(dim));
      EXPECT_NEAR(got, exact, 5 / std::sqrt(double(dim)));
    }
  }
}

TEST(HasteGroups, hold_every_label_once_in_every_method) {
  const XmcData& data = synth();
  const std::vector<int64_t> frequency = label_frequencies(data.labels);
  for (const Grouping method : kAll) {
    const LabelOrder order = order_labels(data, {.method = method});
    std::vector<int32_t> sorted = order.label;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], int32_t(i));
    for (size_t i = 0; i < sorted.size(); ++i)
      EXPECT_EQ(order.place[size_t(order.label[i])], int32_t(i));
    EXPECT_EQ(order.head, 64);
    EXPECT_EQ(order.groups(), (1000 - 64 + 15) / 16);
    // The head is the most frequent; labels never seen come last.
    int64_t least = frequency[size_t(order.label[0])];
    for (int64_t i = 0; i < order.head; ++i) {
      EXPECT_LE(frequency[size_t(order.label[size_t(i)])], least);
      least = frequency[size_t(order.label[size_t(i)])];
    }
    for (int64_t i = order.head; i < 1000; ++i) {
      const int64_t n = frequency[size_t(order.label[size_t(i)])];
      EXPECT_LE(n, least);
      EXPECT_EQ(n > 0, i < order.seen);
    }
  }
}

TEST(HasteGroups, are_deterministic_by_seed_and_equal_for_1_and_2_threads) {
  const int before = num_threads();
  for (const Grouping method : kAll) {
    set_num_threads(1);
    const LabelOrder one = order_labels(synth(), {.method = method, .seed = 4});
    set_num_threads(2);
    const LabelOrder two = order_labels(synth(), {.method = method, .seed = 4});
    EXPECT_EQ(one.label, two.label) << grouping_name(method);
    if (method == Grouping::freq) continue;
    const LabelOrder other = order_labels(synth(), {.method = method, .seed = 5});
    EXPECT_NE(one.label, other.label) << grouping_name(method);
  }
  set_num_threads(before);
}

// Directions in well separated bundles of exactly G: greedy must find every bundle.
TEST(HasteGroups, greedy_finds_bundles) {
  const int64_t bundles = 12, group = 8, dim = 16;
  std::vector<float> e;
  for (int64_t i = 0; i < bundles * group; ++i) {
    std::vector<float> row(static_cast<size_t>(dim), 0.f);
    row[size_t(i % bundles)] = 1.f;
    row[size_t(dim - 1 - i % 3)] += 0.05f;
    const float norm = std::sqrt(1 + 0.05f * 0.05f);
    for (const float v : row) e.push_back(v / norm);
  }
  const std::vector<int32_t> order =
      form_groups(e, bundles * group, {}, {.method = Grouping::greedy, .group = group, .dim = dim});
  for (int64_t g = 0; g < bundles; ++g) {
    for (int64_t i = 1; i < group; ++i) {
      EXPECT_EQ(order[size_t(g * group + i)] % bundles, order[size_t(g * group)] % bundles);
    }
  }
}

TEST(HasteGroups, semantic_ones_are_more_alike_than_random_ones) {
  const XmcData& data = synth();
  std::vector<int32_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<float> e = label_embeddings(data, all, 128, 1);
  const auto mean = [&](Grouping method) {
    const std::vector<int32_t> order = form_groups(e, 1000, {}, {.method = method});
    return cohesion(e, 128, order, 16).mean;
  };
  const double random = mean(Grouping::random);
  EXPECT_GT(mean(Grouping::greedy), random + 0.15);
  EXPECT_GT(mean(Grouping::two_stage), random + 0.15);
}

TEST(HasteGroups, sizes_that_do_not_divide_leave_one_short_group) {
  const std::vector<float> e = label_embeddings(synth(), {1, 2, 3, 4, 5, 6, 7}, 128, 1);
  for (const Grouping method : {Grouping::greedy, Grouping::two_stage}) {
    std::vector<int32_t> order = form_groups(e, 7, {}, {.method = method, .group = 3});
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  }
  EXPECT_TRUE(form_groups({}, 0, {}, {.method = Grouping::two_stage}).empty());
}

TEST(HasteGroups, reordering_moves_labels_with_their_samples) {
  const LabelOrder order = order_labels(synth(), {});
  const Csr moved = reorder_labels(synth().labels, order);
  for (int64_t r = 0; r < 50; ++r) {
    std::vector<int32_t> back;
    for (const int32_t l : moved.row(r)) back.push_back(order.label[size_t(l)]);
    EXPECT_TRUE(std::is_sorted(moved.row(r).begin(), moved.row(r).end()));
    std::sort(back.begin(), back.end());
    EXPECT_TRUE(std::equal(back.begin(), back.end(), synth().labels.row(r).begin()));
  }
  EXPECT_THROW(reorder_labels(Csr{.cols = 3}, order), ValueError);
}

TEST(HasteGroups, cohesion_is_the_mean_cosine) {
  const std::vector<float> e = {1, 0, 0, 1, 0.6f, 0.8f};
  const Cohesion c = cohesion(e, 2, {0, 1, 2}, 2);
  EXPECT_NEAR(c.group[0], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(c.group[1], 1.0, 1e-6);
  EXPECT_NEAR(c.mean, (2 * std::sqrt(0.5) + 1) / 3, 1e-6);
  EXPECT_NEAR(c.to_first, 0.0, 1e-6);
}

TEST(HasteGroups, options_out_of_range_are_refused) {
  EXPECT_THROW(order_labels(synth(), {.group = 0}), ValueError);
  EXPECT_THROW(order_labels(synth(), {.head_ratio = 1.5}), ValueError);
  EXPECT_THROW(order_labels(synth(), {.dim = 0}), ValueError);
  EXPECT_THROW(form_groups({1.f, 0.f}, 3, {}, {}), ValueError);
  EXPECT_EQ(grouping_from("two-stage"), Grouping::two_stage);
  EXPECT_THROW(grouping_from("best"), ValueError);
}

}  // namespace
}  // namespace cutaway::haste
