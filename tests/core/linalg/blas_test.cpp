#include <cutaway/core/linalg/blas.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

// Numbers in [-1, 1) from a fixed sequence.
struct Numbers {
  uint64_t state;
  double next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return double(int64_t(state >> 11)) * 0x1p-52 - 1;
  }
};

template <class T>
std::vector<T> numbers(int64_t n, uint64_t seed) {
  Numbers source{seed};
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = T(source.next());
  return v;
}

constexpr double kGuard = 12345;

// C by three plain loops in double, and the bound k · eps · |A||B| for each element.
template <class T>
void expect_product(const blas::Gemm<T>& g, const std::vector<T>& before, const T* after) {
  const auto a = [&](int64_t i, int64_t p) {
    return double(g.transpose_a ? g.a[p * g.lda + i] : g.a[i * g.lda + p]);
  };
  const auto b = [&](int64_t p, int64_t j) {
    return double(g.transpose_b ? g.b[j * g.ldb + p] : g.b[p * g.ldb + j]);
  };
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.ldc; ++j) {
      const int64_t at = i * g.ldc + j;
      if (j >= g.n) {
        ASSERT_EQ(after[at], T(kGuard)) << "the gap behind row " << i << " was written";
        continue;
      }
      const double start = g.beta == 0 ? 0 : double(g.beta) * double(before[size_t(at)]);
      double sum = start, magnitude = std::fabs(start) + 1;
      for (int64_t p = 0; p < g.k; ++p) {
        sum += double(g.alpha) * a(i, p) * b(p, j);
        magnitude += std::fabs(double(g.alpha) * a(i, p) * b(p, j));
      }
      const double bound = double(g.k + 2) * std::numeric_limits<T>::epsilon() * magnitude;
      ASSERT_NEAR(double(after[at]), sum, bound)
          << g.m << 'x' << g.n << 'x' << g.k << " ta " << g.transpose_a << " tb " << g.transpose_b
          << " alpha " << g.alpha << " beta " << g.beta << " at " << i << ',' << j;
    }
  }
}

// One product with row distances `gap` larger than needed and guard values around C.
template <class T>
void check_product(blas::Gemm<T> g, int64_t gap) {
  const int64_t a_rows = g.transpose_a ? g.k : g.m, b_rows = g.transpose_b ? g.n : g.k;
  g.lda = (g.transpose_a ? g.m : g.k) + gap;
  g.ldb = (g.transpose_b ? g.k : g.n) + gap;
  g.ldc = g.n + gap;
  const std::vector<T> a = numbers<T>(a_rows * g.lda, 1), b = numbers<T>(b_rows * g.ldb, 2);
  constexpr int64_t kAround = 16;
  std::vector<T> c(size_t(g.m * g.ldc + 2 * kAround), T(kGuard));
  Numbers source{3};
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) c[size_t(kAround + i * g.ldc + j)] = T(source.next());
  }
  const std::vector<T> before(c.begin() + kAround, c.end());
  g.a = a.data();
  g.b = b.data();
  g.c = c.data() + kAround;
  blas::gemm(g);
  expect_product(g, before, g.c);
  for (int64_t i = 0; i < kAround; ++i) {
    ASSERT_EQ(c[size_t(i)], T(kGuard));
    ASSERT_EQ(c[c.size() - 1 - size_t(i)], T(kGuard));
  }
}

// The factors and the gap change with the sizes, so that all meet all without 10^5 products.
template <class T>
void sweep(const std::vector<int64_t>& sizes) {
  const T factors[] = {0, 1, 0.5};
  int step = 0;
  for (int64_t m : sizes) {
    for (int64_t n : sizes) {
      for (int64_t k : sizes) {
        for (int flags = 0; flags < 4; ++flags, ++step) {
          check_product<T>({.transpose_a = bool(flags & 1),
                            .transpose_b = bool(flags & 2),
                            .m = m,
                            .n = n,
                            .k = k,
                            .alpha = factors[step % 7 % 3],
                            .beta = factors[step % 3]},
                           step % 5 % 3 * 3);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Blas, FC_b126_ProductsAgreeWithPlainLoops) {
  sweep<float>({1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 100});
  sweep<double>({1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 100});
}

TEST(Blas, FC_b126_RowsFarApart) {
  for (int flags = 0; flags < 4; ++flags) {
    check_product<float>({.transpose_a = bool(flags & 1),
                          .transpose_b = bool(flags & 2),
                          .m = 100,
                          .n = 100,
                          .k = 100,
                          .beta = 0.5f},
                         900);
    check_product<double>({.transpose_a = bool(flags & 1),
                           .transpose_b = bool(flags & 2),
                           .m = 100,
                           .n = 100,
                           .k = 100,
                           .beta = 0.5},
                          900);
  }
}

TEST(Blas, BlocksOfALargeProduct) {
  for (int flags = 0; flags < 4; ++flags) {
    const bool ta = flags & 1, tb = flags & 2;
    check_product<float>({.transpose_a = ta, .transpose_b = tb, .m = 300, .n = 70, .k = 400}, 5);
    check_product<float>({.transpose_a = ta, .transpose_b = tb, .m = 33, .n = 1300, .k = 130}, 5);
    check_product<float>({.transpose_a = ta, .transpose_b = tb, .m = 1, .n = 3000, .k = 500}, 5);
    check_product<float>({.transpose_a = ta, .transpose_b = tb, .m = 3000, .n = 1, .k = 500}, 5);
  }
}

TEST(Blas, FC_fa62_BetaZeroIgnoresC) {
  const double nan = std::nan("");
  for (int64_t n : {1, 8, 100}) {
    std::vector<double> a(size_t(n * n), 1), b(size_t(n * n), 2), c(size_t(n * n), nan);
    blas::Gemm<double> g{.m = n,
                         .n = n,
                         .k = n,
                         .a = a.data(),
                         .lda = n,
                         .b = b.data(),
                         .ldb = n,
                         .c = c.data(),
                         .ldc = n};
    blas::gemm(g);
    for (double x : c) EXPECT_EQ(x, 2.0 * double(n));
    a.assign(a.size(), nan);
    g.alpha = 0;
    blas::gemm(g);
    for (double x : c) EXPECT_EQ(x, 0);
  }
}

TEST(Blas, FC_dfaf_InnerSizeZero) {
  float c[6] = {1, 2, 3, 4, 5, 6};
  const float none = 0;
  blas::gemm(blas::Gemm<float>{.m = 2,
                               .n = 3,
                               .k = 0,
                               .a = &none,
                               .lda = 1,
                               .b = &none,
                               .ldb = 3,
                               .beta = 2,
                               .c = c,
                               .ldc = 3});
  EXPECT_EQ(c[5], 12);
  blas::gemm(blas::Gemm<float>{
      .m = 2, .n = 3, .k = 0, .a = &none, .lda = 1, .b = &none, .ldb = 3, .c = c, .ldc = 3});
  for (float x : c) EXPECT_EQ(x, 0);
}

TEST(Blas, FC_7f52_ZeroTimesInfinityIsNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const double a[] = {0, 1}, b[] = {inf, 2}, zero[] = {0, 0}, n[] = {std::nan(""), 1};
  double c = 0;
  blas::gemm({.m = 1, .n = 1, .k = 2, .a = a, .lda = 2, .b = b, .ldb = 1, .c = &c, .ldc = 1});
  EXPECT_TRUE(std::isnan(c));
  blas::gemm({.m = 1, .n = 1, .k = 2, .a = zero, .lda = 2, .b = n, .ldb = 1, .c = &c, .ldc = 1});
  EXPECT_TRUE(std::isnan(c));
}

TEST(Blas, SizesBeyond32BitsAreRefused) {
  const double x = 0;
  double c = 0;
  blas::Gemm<double> g{.m = 1,
                       .n = 1,
                       .k = int64_t{1} << 31,
                       .a = &x,
                       .lda = 1,
                       .b = &x,
                       .ldb = 1,
                       .c = &c,
                       .ldc = 1};
  EXPECT_THROW(blas::gemm(g), ValueError);
  g.k = 1;
  g.lda = int64_t{1} << 31;
  EXPECT_THROW(blas::gemm(g), ValueError);
}

// 64 products of 64×64, `kind` 0 in a plain loop, 1 in a parallel one.
std::vector<float> many_products(bool parallel) {
  constexpr int64_t kSize = 64, kCount = 64, kAll = kSize * kSize;
  const std::vector<float> a = numbers<float>(kCount * kAll, 5), b = numbers<float>(kAll, 6);
  std::vector<float> c(size_t(kCount * kAll));
  const auto one = [&](int64_t i) {
    blas::gemm(blas::Gemm<float>{.m = kSize,
                                 .n = kSize,
                                 .k = kSize,
                                 .a = a.data() + i * kAll,
                                 .lda = kSize,
                                 .b = b.data(),
                                 .ldb = kSize,
                                 .c = c.data() + i * kAll,
                                 .ldc = kSize});
  };
  if (parallel) {
    parallel_chunks(kCount, one);
  } else {
    for (int64_t i = 0; i < kCount; ++i) one(i);
  }
  return c;
}

TEST(Blas, FC_a303_InsideAParallelLoop) {
  const int before = num_threads();
  set_num_threads(4);
  const std::vector<float> want = many_products(false);
  EXPECT_EQ(many_products(true), want);
  std::vector<float> first, second;
  {
    std::jthread one([&] { first = many_products(true); });
    std::jthread two([&] { second = many_products(true); });
  }
  EXPECT_EQ(first, want);
  EXPECT_EQ(second, want);
  std::atomic<int> wrong = 0;
  parallel_chunks(4, [&](int64_t i) {
    if (i == 2) set_num_threads(4);
    wrong += many_products(true) != want;
  });
  EXPECT_EQ(wrong, 0);
  set_num_threads(before);
}

// Two threads begin parallel loops at the same time: 4 threads and the second caller work at most.
TEST(Blas, FC_a303_AtMostTheConfiguredThreads) {
  const int before = num_threads();
  set_num_threads(4);
  std::atomic<int> working = 0, most = 0;
  const auto loop = [&] {
    parallel_chunks(200, [&](int64_t) {
      const int now = ++working;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --working;
    });
  };
  { std::jthread one(loop), two(loop); }
  EXPECT_LE(most, 5);
  EXPECT_EQ(working, 0);
  set_num_threads(before);
}

TEST(Blas, FC_a303_SameBitsForEveryThreadCount) {
  constexpr int64_t kM = 270, kN = 600, kK = 300;
  const std::vector<float> a = numbers<float>(kM * kK, 7), b = numbers<float>(kK * kN, 8);
  const auto product = [&](int threads) {
    set_num_threads(threads);
    std::vector<float> c(size_t(kM * kN));
    blas::gemm({.m = kM,
                .n = kN,
                .k = kK,
                .a = a.data(),
                .lda = kK,
                .b = b.data(),
                .ldb = kN,
                .c = c.data(),
                .ldc = kN});
    return c;
  };
  const int before = num_threads();
  const std::vector<float> one = product(1);
  for (int threads : {2, 3, 4}) EXPECT_EQ(product(threads), one) << threads << " threads";
  set_num_threads(before);
}

TEST(Blas, NamesItself) {
  EXPECT_NE(blas::blas_config().find("OpenBLAS"), std::string::npos);
  EXPECT_EQ(blas::blas_version().find_first_not_of("0123456789.dev"), std::string::npos);
  EXPECT_FALSE(blas::blas_version().empty());
}

}  // namespace
}  // namespace cutaway
