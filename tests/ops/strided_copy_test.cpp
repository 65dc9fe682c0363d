// Copies between strides: runs and transposed tiles of every element size, around the block sizes.
#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

// The copy element by element, by the logical order of the view.
std::vector<double> permuted(const Shape& sizes, const Shape& order) {
  std::vector<int64_t> to;
  for (int d = 0; d < order.rank(); ++d) to.push_back(order[d]);
  std::vector<int64_t> strides(to.size(), 1), at(to.size(), 0);
  for (int d = int(to.size()) - 2; d >= 0; --d)
    strides[size_t(d)] = strides[size_t(d + 1)] * sizes[d + 1];
  std::vector<double> out;
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < to.size(); ++d) offset += at[d] * strides[size_t(to[d])];
    out.push_back(double(offset % 100));
    for (int d = int(to.size()) - 1; d >= 0; --d) {
      if (++at[size_t(d)] < sizes[int(to[size_t(d)])]) break;
      at[size_t(d)] = 0;
    }
  }
  return out;
}

void check(const Shape& sizes, const Shape& order) {
  const Tensor i = arange(0, sizes.numel(), 1, {.dtype = DType::i64});
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::u8}) {
    const Tensor x = reshape(remainder(i, 100), sizes).to(t);
    const Tensor y = permute(x, order).contiguous();
    EXPECT_TRUE(y.is_contiguous());
    EXPECT_EQ(y.to(DType::f64).to_vector(), permuted(sizes, order)) << name_of(t);
  }
}

TEST(StridedCopy, transposes) {
  for (const int64_t n : {1, 3, 4, 7, 8, 9, 15, 16, 17, 40}) {
    check({n, 19}, {1, 0});
    check({33, n}, {1, 0});
  }
  check({3, 17, 21}, {0, 2, 1});
  check({5, 18, 4, 9}, {0, 3, 1, 2});
  check({4, 9, 5, 10}, {3, 1, 2, 0});
  check({600, 130}, {1, 0});
}

TEST(StridedCopy, runs) {
  for (const int64_t n : {2, 3, 5, 16, 17, 33, 64, 300}) check({3, 5, 4, n}, {0, 2, 1, 3});
  check({40, 20, 30, 3}, {2, 0, 1, 3});
}

TEST(StridedCopy, threads_and_empty) {
  const int before = num_threads();
  set_num_threads(2);
  check({300, 500}, {1, 0});
  check({20, 30, 50, 7}, {0, 2, 1, 3});
  set_num_threads(before);
  EXPECT_EQ(transpose(zeros({0, 5}), 0, 1).contiguous().sizes(), (Shape{5, 0}));
}

}  // namespace
}  // namespace cutaway
