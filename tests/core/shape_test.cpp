#include <cutaway/core/shape.h>

#include <gtest/gtest.h>
#include <vector>

#include <cutaway/core/error.h>

namespace cutaway {
namespace {

TEST(Shape, IsAListOfAtMostEight) {
  Shape s{2, 3};
  s.push_back(4);
  s.insert(0, 9);
  EXPECT_EQ(s, Shape({9, 2, 3, 4}));
  s.erase(1);
  EXPECT_EQ(s, Shape({9, 3, 4}));
  EXPECT_EQ(s.slice(1, 3), Shape({3, 4}));
  EXPECT_EQ(s.numel(), 108);
  EXPECT_EQ(s.back(), 4);
  EXPECT_TRUE(s.contains(3));
  EXPECT_FALSE(s.contains(2));
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_NE(Shape({1}), Shape());
  EXPECT_EQ(Shape::filled(3, 7), Shape({7, 7, 7}));
  EXPECT_EQ(to_string(s), "[9,3,4]");
  EXPECT_EQ(to_string(Shape()), "[]");
}

TEST(Shape, ANinthEntryIsAnError) {
  EXPECT_THROW(Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
  EXPECT_THROW(Shape::filled(9, 1), ShapeError);
  Shape full = Shape::filled(8, 1);
  EXPECT_THROW(full.push_back(1), ShapeError);
  EXPECT_THROW(full.insert(0, 1), ShapeError);
  EXPECT_EQ(full, Shape::filled(8, 1));
}

TEST(Broadcast, AlignsAtTheLastDimension) {
  EXPECT_EQ(broadcast("add", {2, 3}, {3}), Shape({2, 3}));
  EXPECT_EQ(broadcast("add", {2, 1, 4}, {3, 1}), Shape({2, 3, 4}));
  EXPECT_EQ(broadcast("add", {}, {5}), Shape({5}));
  EXPECT_EQ(broadcast("add", {}, {}), Shape());
  EXPECT_EQ(broadcast("add", {0}, {1}), Shape({0}));
  EXPECT_EQ(broadcast("add", {1}, {0}), Shape({0}));
  EXPECT_EQ(broadcast("add", {4, 1}, {0}), Shape({4, 0}));
}

TEST(Broadcast, NamesBothShapes) {
  EXPECT_THROW(broadcast("add", {0}, {2}), ShapeError);
  try {
    broadcast("add", {2, 3}, {2});
    FAIL();
  } catch (const ShapeError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("[add]"), std::string::npos);
    EXPECT_NE(text.find("got [2,3] and [2]"), std::string::npos);
    EXPECT_NE(text.find("hint: "), std::string::npos);
  }
}

TEST(NormalizeDim, CountsFromTheEnd) {
  EXPECT_EQ(normalize_dim("sum", -1, 3), 2);
  EXPECT_EQ(normalize_dim("sum", -3, 3), 0);
  EXPECT_EQ(normalize_dim("sum", 2, 3), 2);
  EXPECT_EQ(normalize_dim("sum", 0, 0), 0);
  EXPECT_EQ(normalize_dim("sum", -1, 0), 0);
  for (int64_t dim : {3ll, -4ll, 1ll << 40, -(1ll << 40)}) {
    EXPECT_THROW(normalize_dim("sum", dim, 3), IndexError) << dim;
  }
  EXPECT_THROW(normalize_dim("sum", 1, 0), IndexError);
}

}  // namespace
}  // namespace cutaway
