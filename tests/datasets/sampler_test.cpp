#include <cutaway/datasets/sampler.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {

using Numbers = std::vector<int64_t>;

std::set<int64_t> set_of(const Numbers& v) { return {v.begin(), v.end()}; }

TEST(Sampler, orders_depend_on_seed_and_epoch_only) {
  const Tensor classes =
      tensor(std::vector<double>{0, 1, 1, 0, 2, 1, 0, 0, 1, 2}, {.dtype = DType::i64});
  const auto make = [&](uint64_t seed) {
    return std::vector<Sampler>{
        Sampler::shuffled(10, seed),
        Sampler::weighted({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {.seed = seed}),
        Sampler::weighted({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {.replacement = false, .seed = seed}),
        Sampler::stratified(classes, {.seed = seed}),
        Sampler::distributed(Sampler::shuffled(10, seed), {.rank = 1, .world = 2}),
        Sampler::bucketed({9, 3, 5, 1, 7, 2, 8, 6, 4, 0}, {.batch = 3, .window = 2, .seed = seed})};
  };
  const auto a = make(3), b = make(3), other = make(4);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].order(2), b[i].order(2)) << i;
    EXPECT_NE(a[i].order(2), a[i].order(3)) << i;
    EXPECT_NE(a[i].order(2), other[i].order(2)) << i;
    EXPECT_EQ(int64_t(a[i].order(0).size()), a[i].size()) << i;
  }
  EXPECT_EQ(Sampler::sequential(3).order(7), (Numbers{0, 1, 2}));
  for (const Sampler& s : {a[0], a[2], a[3], a[5]}) EXPECT_EQ(set_of(s.order(1)).size(), 10u);
}

TEST(Sampler, weights_are_shares) {
  const Sampler s = Sampler::weighted({1, 0, 3}, {.draws = 40000, .seed = 1});
  const Numbers order = s.order(0);
  const auto count = [&](int64_t k) { return double(std::count(order.begin(), order.end(), k)); };
  EXPECT_EQ(count(1), 0);
  EXPECT_NEAR(count(2) / 40000, 0.75, 5 * std::sqrt(0.75 * 0.25 / 40000));
  // Without replacement the first number has the share of its weight.
  int first_is_2 = 0;
  const Sampler t = Sampler::weighted({1, 0, 3}, {.draws = 2, .replacement = false});
  for (int64_t e = 0; e < 4000; ++e) {
    EXPECT_EQ(set_of(t.order(e)), (std::set<int64_t>{0, 2}));
    first_is_2 += t.order(e)[0] == 2;
  }
  EXPECT_NEAR(first_is_2 / 4000.0, 0.75, 5 * std::sqrt(0.75 * 0.25 / 4000));
  EXPECT_THROW(Sampler::weighted({1, -1}), ValueError);
  EXPECT_THROW(Sampler::weighted({1, NAN}), ValueError);
  EXPECT_THROW(Sampler::weighted({0, 0}), ValueError);
  EXPECT_THROW(Sampler::weighted({1e308, 1e308}), ValueError);
  EXPECT_THROW(Sampler::weighted({1, 0}, {.draws = 2, .replacement = false}), ValueError);
  EXPECT_EQ(Sampler::weighted({}).order(0), Numbers{});
}

TEST(Sampler, stratified_runs_have_the_shares_of_the_whole) {
  std::vector<double> labels;
  for (int i = 0; i < 400; ++i) labels.push_back(i % 10 == 0);  // one in ten, at fixed places
  const Numbers order =
      Sampler::stratified(tensor(labels, {.dtype = DType::i64}), {.seed = 5}).order(3);
  for (size_t first = 0; first < 400; first += 50) {
    int rare = 0;
    for (size_t i = first; i < first + 50; ++i) rare += labels[size_t(order[i])] == 1;
    EXPECT_NEAR(rare, 5, 1) << first;
  }
  EXPECT_THROW(Sampler::stratified(tensor(labels)), DTypeError);
  EXPECT_THROW(Sampler::stratified(zeros({2, 2}, {.dtype = DType::i64})), ShapeError);
}

TEST(Sampler, ranks_share_an_epoch) {
  const Sampler all = Sampler::shuffled(11, 2);
  std::multiset<int64_t> padded, dropped;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Numbers a = Sampler::distributed(all, {.rank = rank, .world = 3}).order(1);
    const Numbers b =
        Sampler::distributed(all, {.rank = rank, .world = 3, .drop_last = true}).order(1);
    EXPECT_EQ(a.size(), 4u);
    EXPECT_EQ(b.size(), 3u);
    padded.insert(a.begin(), a.end());
    dropped.insert(b.begin(), b.end());
  }
  EXPECT_EQ(padded.size(), 12u);
  EXPECT_EQ(std::set<int64_t>(padded.begin(), padded.end()).size(), 11u);
  EXPECT_EQ(std::set<int64_t>(dropped.begin(), dropped.end()).size(), 9u);
  EXPECT_THROW(Sampler::distributed(all, {.rank = 3, .world = 3}), ValueError);
  EXPECT_THROW(Sampler::distributed(all, {.rank = 0, .world = 0}), ValueError);
  EXPECT_EQ(Sampler::distributed(Sampler::sequential(0), {.rank = 0, .world = 2}).order(0),
            Numbers{});
}

TEST(Sampler, buckets_pad_less) {
  Numbers lengths;
  for (int64_t i = 0; i < 203; ++i) lengths.push_back(1 + i * 37 % 101);
  const auto padding = [&](const Numbers& order) {
    int64_t total = 0;
    for (size_t first = 0; first < order.size(); first += 10) {
      int64_t most = 0, sum = 0, n = 0;
      for (size_t i = first; i < std::min(first + 10, order.size()); ++i, ++n) {
        most = std::max(most, lengths[size_t(order[i])]);
        sum += lengths[size_t(order[i])];
      }
      total += most * n - sum;
    }
    return total;
  };
  const Numbers order = Sampler::bucketed(lengths, {.batch = 10, .window = 10}).order(0);
  EXPECT_EQ(set_of(order).size(), 203u);
  EXPECT_LT(padding(order) * 4, padding(Sampler::shuffled(203, 0).order(0)));
  EXPECT_THROW(Sampler::bucketed(lengths, {.batch = 0}), ValueError);
  EXPECT_THROW(Sampler::bucketed(lengths, {.batch = INT64_MAX}), ValueError);
}

TEST(Sampler, ones_own_must_keep_its_word) {
  const Sampler s(3, [](int64_t) { return Numbers{0, 1}; });
  EXPECT_THROW(s.order(0), ValueError);
}

}  // namespace
}  // namespace cutaway::data
