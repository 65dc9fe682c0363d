#include <cutaway/core/layout.h>

#include <gtest/gtest.h>
#include <random>
#include <vector>

#include <cutaway/core/error.h>

namespace cutaway {
namespace {

// Offsets of all elements in row-major order.
std::vector<int64_t> offsets(const Layout& l) {
  std::vector<int64_t> out{l.offset};
  for (int d = 0; d < l.sizes.rank(); ++d) {
    std::vector<int64_t> next;
    for (int64_t base : out) {
      for (int64_t i = 0; i < l.sizes[d]; ++i) next.push_back(base + i * l.strides[d]);
    }
    out = next;
  }
  return out;
}

// Strides under which sizes `to` give exactly these offsets, when there are such: each stride is
// read off at the first step of its dimension.
std::optional<Layout> strided(const std::vector<int64_t>& want, const Shape& to) {
  Layout l = Layout::contiguous(to);
  const Shape steps = l.strides;
  if (want.empty()) return l;
  l.offset = want[0];
  for (int d = 0; d < to.rank(); ++d) {
    if (to[d] > 1) l.strides[d] = want[size_t(steps[d])] - want[0];
  }
  return offsets(l) == want ? std::optional(l) : std::nullopt;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int64_t below(int64_t n) { return int64_t(engine_() % uint64_t(n)); }

  // A view made of a few steps on a contiguous layout.
  Layout view(int rank) {
    Shape sizes;
    for (int i = 0; i < rank; ++i) sizes.push_back(below(8) == 0 ? 0 : 1 + below(4));
    Layout l = Layout::contiguous(sizes);
    for (int64_t steps = below(4); steps > 0 && l.sizes.rank() > 0; --steps) {
      const int d = int(below(l.sizes.rank())), e = int(below(l.sizes.rank()));
      const int64_t n = l.sizes[d];
      switch (below(4)) {
        case 0: l = l.transpose(d, e); break;
        case 1: l = l.slice(d, n / 3, n, 1 + below(2)); break;
        case 2:
          if (n > 0 && l.sizes.rank() > 1) l = l.select(d, below(n));
          break;
        default:
          if (n == 1) {
            Shape to = l.sizes;
            to[d] = 3;
            l = l.expand(to);
          }
      }
    }
    return l;
  }

  // Random sizes with the product n.
  Shape factors(int64_t n) {
    Shape out;
    while (out.rank() < 5 && n > 1) {
      int64_t f = 1 + below(n);
      while (n % f != 0) f = 1 + below(n);
      out.push_back(f);
      n /= f;
    }
    if (n != 1 || below(3) == 0) out.push_back(n);
    if (below(3) == 0) out.insert(int(below(out.rank() + 1)), 1);
    return out;
  }

 private:
  std::mt19937_64 engine_;
};

TEST(Layout, ContiguousStridesAreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), Shape({12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Shape());
  EXPECT_EQ(contiguous_strides({2, 0, 4}), Shape({4, 4, 1}));
}

TEST(Layout, ViewsKeepTheRightElements) {
  const Layout l = Layout::contiguous({3, 4});
  EXPECT_EQ(offsets(l.transpose(0, 1)),
            (std::vector<int64_t>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(offsets(l.permute({1, 0})), offsets(l.transpose(0, 1)));
  EXPECT_EQ(offsets(l.slice(1, 1, 4, 2)), (std::vector<int64_t>{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(offsets(l.select(0, 2)), (std::vector<int64_t>{8, 9, 10, 11}));
  EXPECT_EQ(offsets(l.select(1, 3).select(0, 1)), (std::vector<int64_t>{7}));
  const Layout row = l.slice(0, 1, 2, 1).expand({2, 2, 4});
  EXPECT_EQ(row.strides, Shape({0, 0, 1}));
  EXPECT_EQ(offsets(row.select(0, 1)), (std::vector<int64_t>{4, 5, 6, 7, 4, 5, 6, 7}));
}

TEST(Layout, SliceOfNothingAndHugeSteps) {
  const Layout l = Layout::contiguous({5, 7});
  EXPECT_EQ(l.slice(0, 3, 3, 1).sizes, Shape({0, 7}));
  EXPECT_EQ(l.slice(0, 4, 2, 1).sizes, Shape({0, 7}));
  const Layout one = l.slice(0, 1, 5, INT64_MAX);
  EXPECT_EQ(one.sizes, Shape({1, 7}));
  EXPECT_EQ(one.offset, 7);
}

TEST(Layout, ContiguityIgnoresSizeOneAndEmpty) {
  EXPECT_TRUE((Layout{{2, 1, 3}, {3, 99, 1}, 4}).is_contiguous());
  EXPECT_TRUE((Layout{{2, 0}, {5, 7}, 0}).is_contiguous());
  EXPECT_TRUE((Layout{{}, {}, 3}).is_contiguous());
  EXPECT_FALSE((Layout{{2, 3}, {1, 2}, 0}).is_contiguous());
  EXPECT_TRUE((Layout{{2, 3}, {1, 2}, 0}).is_dense());
  EXPECT_FALSE((Layout{{2, 3}, {4, 1}, 0}).is_dense());
  EXPECT_FALSE((Layout{{2, 3}, {0, 1}, 0}).is_dense());
  EXPECT_FALSE((Layout{{3, 3}, {1, 1}, 0}).is_dense());
  EXPECT_TRUE((Layout{{3, 1, 2}, {2, 1, 1}, 0}).is_dense());
}

TEST(Layout, ContiguousAndDenseAgreeWithTheirDefinition) {
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    const Layout l = random.view(int(random.below(5)));
    std::vector<int64_t> at = offsets(l);
    std::vector<int64_t> run(at.size());
    for (size_t i = 0; i < run.size(); ++i) run[i] = l.offset + int64_t(i);
    EXPECT_EQ(l.is_contiguous(), at == run);
    std::sort(at.begin(), at.end());
    EXPECT_EQ(l.is_dense(), at == run) << to_string(l.sizes) << to_string(l.strides);
  }
}

TEST(Layout, ReshapeIsAViewExactlyWhenThatIsPossible) {
  Random random(2);
  int views = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    const Layout l = random.view(1 + int(random.below(4)));
    const std::vector<int64_t> want = offsets(l);
    const Shape to = want.empty() ? Shape({3, 0, 2}) : random.factors(int64_t(want.size()));
    const std::optional<Layout> got = l.reshape(to);
    ASSERT_EQ(got.has_value(), strided(want, to).has_value())
        << to_string(l.sizes) << to_string(l.strides) << " to " << to_string(to);
    if (got) {
      EXPECT_EQ(got->sizes, to);
      EXPECT_EQ(offsets(*got), want);
    }
    ++(got ? views : refused);
  }
  EXPECT_GT(views, 1000);
  EXPECT_GT(refused, 300);
}

TEST(Layout, ReshapeToAndFromNoDimensions) {
  EXPECT_EQ(Layout::contiguous({1, 1}).reshape({})->sizes, Shape());
  EXPECT_EQ(Layout::contiguous({}).reshape({1, 1, 1})->sizes, Shape({1, 1, 1}));
}

// FC-b7ed: -1 stands for a size only when the others have a product that is not 0.
TEST(ResolveReshape, FC_b7ed_MinusOneBesideZero) {
  EXPECT_THROW(resolve_reshape("reshape", {0, 3}, {0, -1}), ShapeError);
  EXPECT_EQ(resolve_reshape("reshape", {0, 3}, {-1, 3}), Shape({0, 3}));
  EXPECT_THROW(resolve_reshape("reshape", {2, 0}, {-1, 0}), ShapeError);
}

TEST(ResolveReshape, FindsTheFreeSizeAndRefusesTheRest) {
  EXPECT_EQ(resolve_reshape("reshape", {2, 6}, {3, -1}), Shape({3, 4}));
  EXPECT_EQ(resolve_reshape("reshape", {}, {-1}), Shape({1}));
  EXPECT_EQ(resolve_reshape("reshape", {1, 1}, {}), Shape());
  EXPECT_EQ(resolve_reshape("reshape", {0, 5}, {7, 0}), Shape({7, 0}));
  EXPECT_THROW(resolve_reshape("reshape", {2, 6}, {5, -1}), ShapeError);
  EXPECT_THROW(resolve_reshape("reshape", {2, 6}, {-1, -1}), ShapeError);
  EXPECT_THROW(resolve_reshape("reshape", {2, 6}, {-2, -6}), ShapeError);
  EXPECT_THROW(resolve_reshape("reshape", {2, 6}, {13}), ShapeError);
  try {
    resolve_reshape("view", {2, 6}, {5});
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "[view] the number of elements must stay the same; got [2,6], need [5]");
  }
}

TEST(ResolveReshape, AProductThatWrapsIsRefused) {
  const int64_t big = int64_t(1) << 32;
  EXPECT_THROW(resolve_reshape("reshape", {0}, {big, big}), ShapeError);
  EXPECT_THROW(resolve_reshape("reshape", {4}, {big, big, -1}), ShapeError);
  EXPECT_EQ(resolve_reshape("reshape", {0}, {big, big, 0}), Shape({big, big, 0}));
}

TEST(CollapseDims, JoinsWhatAllOperandsWalkAlike) {
  int64_t sizes[kMaxRank] = {2, 3, 4};
  int64_t strides[2][kMaxRank] = {{12, 4, 1}, {4, 0, 1}};
  ASSERT_EQ(collapse_dims(3, sizes, strides, 2), 3);
  int64_t same[2][kMaxRank] = {{12, 4, 1}, {0, 4, 1}};
  ASSERT_EQ(collapse_dims(3, sizes, same, 2), 2);
  EXPECT_EQ(sizes[0], 2);
  EXPECT_EQ(sizes[1], 12);
  EXPECT_EQ(same[0][0], 12);
  EXPECT_EQ(same[1][0], 0);
  EXPECT_EQ(same[1][1], 1);
}

TEST(CollapseDims, WalksTheSameElementsInAsFewDimensionsAsPossible) {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    const Layout a = random.view(int(random.below(6)));
    const int rank = a.sizes.rank();
    Layout b = Layout::contiguous(a.sizes);
    for (int d = 0; d < rank; ++d) {
      if (random.below(4) == 0) b.strides[d] = 0;
    }
    int64_t sizes[kMaxRank] = {};
    int64_t strides[2][kMaxRank] = {};
    for (int d = 0; d < rank; ++d) {
      sizes[d] = a.sizes[d];
      strides[0][d] = a.strides[d];
      strides[1][d] = b.strides[d];
    }
    const int left = collapse_dims(rank, sizes, strides, 2);
    const Shape joined(std::span<const int64_t>(sizes, size_t(left)));
    for (int k = 0; k < 2; ++k) {
      const Shape steps(std::span<const int64_t>(strides[k], size_t(left)));
      EXPECT_EQ(offsets({joined, steps, k ? 0 : a.offset}), offsets(k ? b : a));
    }
    for (int d = 0; d < left; ++d) {
      EXPECT_NE(sizes[d], 1);
      if (d == 0) continue;
      EXPECT_FALSE(strides[0][d - 1] == strides[0][d] * sizes[d] &&
                   strides[1][d - 1] == strides[1][d] * sizes[d]);
    }
  }
}

}  // namespace
}  // namespace cutaway
