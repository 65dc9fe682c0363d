#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;

TEST(Matmul, FC_dfaf_InnerSizeZero) {
  EXPECT_EQ(matmul(empty({2, 0}), empty({0, 3})).to_vector(), Values(6, 0));
  EXPECT_EQ(addmm(full({1, 1}, 5), empty({1, 0}), empty({0, 1}), {.beta = 2}).to_vector(),
            Values{10});
  EXPECT_EQ(bmm(empty({2, 2, 0}), empty({2, 0, 1})).to_vector(), Values(4, 0));
  Tensor w = empty({1, 0}).set_requires_grad(), b = full({1}, 7).set_requires_grad();
  const Tensor y = linear(empty({2, 0}), w, b);
  EXPECT_EQ(y.to_vector(), (Values{7, 7}));
  y.backward(ones({2, 1}));
  EXPECT_EQ(b.grad().to_vector(), Values{2});
  EXPECT_EQ(w.grad().sizes(), (Shape{1, 0}));
}

TEST(Matmul, FC_7f52_ZeroTimesInfinityIsNaN) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const Opts o{.dtype = t};
    EXPECT_TRUE(std::isnan(matmul(tensor({0, 1}, {1, 2}, o), tensor({inf, 2}, {2, 1}, o)).item()));
    EXPECT_TRUE(std::isnan(matmul(tensor({0, 0}, {1, 2}, o), tensor({nan, 1}, {2, 1}, o)).item()));
  }
}

TEST(Matmul, FC_fa62_BetaZeroIgnoresC) {
  const Tensor c = full({1, 1}, std::nan("")), nan = full({1, 1}, std::nan(""));
  EXPECT_EQ(addmm(c, tensor({1}, {1, 1}), tensor({2}, {1, 1}), {.beta = 0}).item(), 2);
  EXPECT_EQ(addmm(c, nan, tensor({2}, {1, 1}), {.beta = 0, .alpha = 0}).item(), 0);
  const Tensor y =
      baddbmm(full({2, 1, 1}, std::nan("")), ones({2, 1, 1}), full({2, 1, 1}, 2), {.beta = 0});
  EXPECT_EQ(y.to_vector(), (Values{2, 2}));
}

TEST(Matmul, FC_2ada_SixteenBitAccumulatesInF32) {
  for (const DType t : {DType::bf16, DType::f16}) {
    const Opts o{.dtype = t};
    EXPECT_EQ(matmul(ones({1, 1000}, o), ones({1000, 1}, o)).item(), 1000);
    EXPECT_EQ(matmul(ones({1, 1500}, o), ones({1500, 1}, o)).item(), t == DType::f16 ? 1500 : 1504);
    // Sums over the batch are not rounded between the products.
    const Tensor y = matmul(ones({1000, 1, 1}, o), ones({1000, 1, 1}, o), {.sum_batch = true});
    EXPECT_EQ(y.item(), 1000);
  }
}

TEST(Matmul, IntegersWrapAround) {
  const Tensor a = full({1, 2}, 100, {.dtype = DType::u8}),
               b = full({2, 1}, 2, {.dtype = DType::u8});
  EXPECT_EQ(matmul(a, b).item(), 144);
  const Tensor c = full({1, 1}, int64_t{1} << 62, {.dtype = DType::i64});
  EXPECT_EQ(matmul(c, full({1, 1}, 4, {.dtype = DType::i64})).item<int64_t>(), 0);
}

// Bytes by which `fn` raises the peak. The peak counts small blocks by slab, live ones do not: only
// two peaks can be compared.
template <class F>
int64_t peak_of(F&& fn) {
  reset_peak_memory();
  const int64_t before = memory_stats().peak;
  fn();
  return memory_stats().peak - before;
}

// A product works in blocks: what it copies of an operand does not grow with the operand.
TEST(Matmul, TransposesAreNotCopied) {
  const Tensor a = ones({32768, 64}), b = ones({64, 32768});
  const int64_t bytes = 32768 * 64 * 4;
  EXPECT_LT(peak_of([&] { matmul(a.t(), b.t()); }), bytes / 8);
  EXPECT_LT(peak_of([&] { linear(a.t(), b); }), bytes / 8);
}

TEST(Matmul, GradientOfOneMatrixForABatchNeedsNoBatchOfGradients) {
  Tensor x = ones({64, 4, 256}), w = ones({256, 256}).set_requires_grad();
  const Tensor y = matmul(x, w), g = ones_like(y);
  // A batch of gradients would be 64 matrices; a slab for small blocks may be new, too.
  const int64_t matrix = 256 * 256 * 4;
  EXPECT_LT(peak_of([&] { y.backward(g); }), 4 * matrix);
  EXPECT_EQ(w.grad().to_vector(), Values(256 * 256, 256));
}

TEST(Matmul, OnlyWhatAGradientReadsIsKept) {
  const Tensor w = ones({2, 2}).set_requires_grad();
  Tensor x = ones({2, 2});
  const Tensor y = matmul(w, x);
  w.storage()->bump("test");  // dw reads x alone: a stale w must not matter
  y.backward(ones({2, 2}));
  EXPECT_EQ(w.grad().to_vector(), Values(4, 2));
}

TEST(Matmul, SameBitsForEveryThreadCount) {
  Tensor a = empty({300, 500}), b = empty({500, 700});
  for (int64_t i = 0; i < a.numel(); ++i) a.data<float>()[i] = float(std::sin(double(i)));
  for (int64_t i = 0; i < b.numel(); ++i) b.data<float>()[i] = float(std::cos(double(i)));
  const int before = num_threads();
  set_num_threads(1);
  const Values one = matmul(a, b).to_vector();
  for (int threads : {2, 4}) {
    set_num_threads(threads);
    EXPECT_EQ(matmul(a, b).to_vector(), one);
  }
  set_num_threads(before);
}

TEST(Matmul, MessageNamesCallAndHint) {
  try {
    matmul(zeros({32, 784}), zeros({256, 784}));
    FAIL();
  } catch (const ShapeError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find("[matmul] inner sizes must agree; got a [32,784], b [256,784]; need b "
                        "[784,n]"),
              0u);
    EXPECT_NE(text.find("matmul_test.cpp:"), std::string::npos);
    EXPECT_NE(text.find("hint: b looks transposed"), std::string::npos);
  }
}

TEST(Linear, BilinearAgreesWithLoops) {
  const Tensor a = tensor({1, 2, 3, 4}, {2, 2}), b = tensor({1, -1, 2, 0, 1, 1}, {2, 3});
  const Tensor w = arange(0, 12).to(DType::f32).reshape({2, 2, 3}), bias = tensor({10, 20});
  const Tensor y = bilinear(a, b, w, bias);
  ASSERT_EQ(y.sizes(), (Shape{2, 2}));
  for (int row = 0; row < 2; ++row) {
    for (int o = 0; o < 2; ++o) {
      double want = o == 0 ? 10 : 20;
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 3; ++j) {
          want += a.to_vector()[size_t(2 * row + i)] * (6 * o + 3 * i + j) *
                  b.to_vector()[size_t(3 * row + j)];
        }
      }
      EXPECT_EQ(y.to_vector()[size_t(2 * row + o)], want);
    }
  }
}

}  // namespace
}  // namespace cutaway
