#include <cutaway/core/rng.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include <cutaway/core/error.h>
#include <cutaway/core/math/philox.h>

namespace cutaway {
namespace {

TEST(Generator, ReservesWholeBlocks) {
  Generator g{.seed = 1, .stream = 2};
  EXPECT_EQ(g.reserve(0), 0u);
  EXPECT_EQ(g.reserve(1), 0u);
  EXPECT_EQ(g.reserve(4), 1u);
  EXPECT_EQ(g.reserve(5), 2u);
  EXPECT_EQ(g.offset, 4u);
}

TEST(Generator, FC_c907_SavedStateContinuesBitForBit) {
  Generator g{.seed = 0x0123456789abcdef, .stream = 77};
  for (int i = 0; i < 3; ++i) permutation(100, g);
  const auto bytes = to_bytes(g);
  EXPECT_EQ(bytes[0], 0xef);
  EXPECT_EQ(bytes[7], 0x01);
  EXPECT_EQ(bytes[8], 77);
  EXPECT_EQ(bytes[16], 75);
  Generator copy = generator_from_bytes(bytes);
  EXPECT_EQ(copy, g);
  EXPECT_EQ(permutation(1000, copy), permutation(1000, g));
  EXPECT_NE(permutation(1000, copy), permutation(1000, copy));
}

TEST(Generator, DefaultGeneratorRestartsAndDraws) {
  const Generator before = default_generator();
  manual_seed(5);
  EXPECT_EQ(default_generator(), (Generator{.seed = 5}));
  const Generator first = draw(10), second = draw(3);
  EXPECT_EQ(first, (Generator{.seed = 5, .offset = 0}));
  EXPECT_EQ(second, (Generator{.seed = 5, .offset = 3}));
  EXPECT_EQ(default_generator().offset, 4u);
  default_generator() = before;
}

TEST(Generator, DrawsOfSeveralThreadsNeverOverlap) {
  const Generator before = default_generator();
  manual_seed(0);
  std::vector<uint64_t> starts(4000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&starts, t] {
      for (int i = 0; i < 1000; ++i) starts[t * 1000 + i] = draw(4).offset;
    });
  }
  for (std::thread& t : threads) t.join();
  std::sort(starts.begin(), starts.end());
  for (uint64_t i = 0; i < 4000; ++i) ASSERT_EQ(starts[i], i);
  default_generator() = before;
}

TEST(Permutation, FC_2276_EmptyAndOne) {
  Generator g;
  EXPECT_TRUE(permutation(0, g).empty());
  EXPECT_EQ(permutation(1, g), std::vector<int64_t>{0});
  EXPECT_THROW(permutation(-1, g), ValueError);
}

TEST(Permutation, FC_2276_AllOrdersOfThreeAreEquallyLikely) {
  std::map<std::vector<int64_t>, int> count;
  for (uint64_t seed = 0; seed < 60000; ++seed) {
    Generator g{.seed = seed};
    ++count[permutation(3, g)];
  }
  ASSERT_EQ(count.size(), 6u);
  const double sigma = std::sqrt(60000 * (1.0 / 6) * (5.0 / 6));
  for (const auto& [order, times] : count) EXPECT_LT(std::abs(times - 10000), 4 * sigma);
}

TEST(Permutation, IsAPermutationAndPlacesAreUniform) {
  Generator g{.seed = 3};
  const int n = 10, rounds = 20000;
  int place_of_zero[10] = {};
  for (int r = 0; r < rounds; ++r) {
    std::vector<int64_t> p = permutation(n, g);
    for (int i = 0; i < n; ++i) place_of_zero[i] += p[i] == 0;
    std::sort(p.begin(), p.end());
    for (int i = 0; i < n; ++i) ASSERT_EQ(p[i], i);
  }
  const double sigma = std::sqrt(rounds * 0.1 * 0.9);
  for (const int times : place_of_zero) EXPECT_LT(std::abs(times - rounds / n), 5 * sigma);
}

TEST(Bounded, FC_2276_RangesBeyond32Bits) {
  const uint64_t range = uint64_t{1} << 33;
  int high = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const uint64_t v = math::bounded_u64(1, 0, 0, i, range);
    ASSERT_LT(v, range);
    high += v >> 32 != 0;
  }
  EXPECT_LT(std::abs(high - 5000), 5 * 50);
}

// With range 3·2^62 a plain modulo, or a product without rejection, doubles some results.
TEST(Bounded, NoBiasForHugeRanges) {
  const uint64_t quarter = uint64_t{1} << 62;
  int thirds[3] = {};
  for (uint64_t i = 0; i < 30000; ++i) {
    ++thirds[math::bounded_u64(9, 0, 0, i, 3 * quarter) / quarter];
  }
  const double sigma = std::sqrt(30000 * (1.0 / 3) * (2.0 / 3));
  for (const int times : thirds) EXPECT_LT(std::abs(times - 10000), 5 * sigma);
  int odd = 0;  // products without rejection leave residue 2 of 3 out
  for (uint64_t i = 0; i < 30000; ++i) odd += math::bounded_u64(9, 0, 0, i, 3 * quarter) % 3 == 2;
  EXPECT_LT(std::abs(odd - 10000), 5 * sigma);
  EXPECT_EQ(math::bounded_u64(1, 2, 3, 4, 1), 0u);
}

}  // namespace
}  // namespace cutaway
