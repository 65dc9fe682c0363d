#include <cutaway/core/kernels/matmul.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

constexpr double kGap = 12352;  // exact in bf16

// How an operand lies in memory.
enum class Form { plain, transposed, gaps, strided };
constexpr Form kForms[] = {Form::plain, Form::transposed, Form::gaps, Form::strided};

struct Case {
  int64_t m, n, k;
  Form a, b;
  double alpha = 1, beta = 0;
  bool bias = false;
};

template <class T>
struct Operand {
  std::vector<T> values;
  int64_t row, column;
  double at(int64_t i, int64_t j) const { return double(values[size_t(i * row + j * column)]); }
};

template <class T>
Operand<T> operand(int64_t rows, int64_t columns, Form form, std::mt19937& random) {
  Operand<T> x;
  x.row = form == Form::plain ? columns : form == Form::gaps ? columns + 3 : 2 * columns + 1;
  x.column = form == Form::strided ? 2 : 1;
  if (form == Form::transposed) x.row = 1, x.column = rows;
  x.values.resize(size_t((rows - 1) * x.row + (columns - 1) * x.column + 1));
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (T& v : x.values) v = T(float(uniform(random)));
  return x;
}

template <class T>
struct Problem {
  static constexpr bool kHalf = sizeof(T) == 2;
  using Step = std::conditional_t<kHalf, float, T>;
  static constexpr double kRounding = kHalf ? 0x1p-8 : 0;

  Problem(const Case& c, DType type)
      : size(c),
        dtype(type),
        random(7),
        a(operand<T>(c.m, c.k, c.a, random)),
        b(operand<T>(c.k, c.n, c.b, random)),
        before(operand<T>(c.m, c.n, Form::gaps, random)),
        bias(operand<T>(1, c.n, Form::plain, random)) {
    for (int64_t i = 0; i + 1 < c.m; ++i) {
      for (int64_t j = c.n; j < before.row; ++j)
        before.values[size_t(i * before.row + j)] = T(float(kGap));
    }
  }

  std::vector<T> run(int threads) {
    const int old = num_threads();
    set_num_threads(threads);
    std::vector<T> c = before.values;
    MatmulArgs args;
    args.m = size.m;
    args.n = size.n;
    args.k = size.k;
    args.a = a.values.data();
    args.a_row = a.row;
    args.a_column = a.column;
    args.b = b.values.data();
    args.b_row = b.row;
    args.b_column = b.column;
    args.c = c.data();
    args.c_row = before.row;
    args.alpha = size.alpha;
    args.beta = size.beta;
    args.bias = size.bias ? bias.values.data() : nullptr;
    kernels::matmul(kCpu, dtype, args);
    set_num_threads(old);
    return c;
  }

  void check(const std::vector<T>& c) const {
    // 16-bit types are summed in f32 and rounded once.
    const double eps = double(std::numeric_limits<Step>::epsilon());
    for (int64_t i = 0; i < size.m; ++i) {
      for (int64_t j = 0; j < size.n; ++j) {
        double sum = size.beta * before.at(i, j) + (size.bias ? bias.at(0, j) : 0);
        double magnitude = std::fabs(sum) + 1;
        for (int64_t q = 0; q < size.k; ++q) {
          const double term = size.alpha * a.at(i, q) * b.at(q, j);
          sum += term;
          magnitude += std::fabs(term);
        }
        ASSERT_NEAR(double(c[size_t(i * before.row + j)]), sum,
                    double(size.k + 2) * eps * magnitude + kRounding * std::fabs(sum))
            << "at " << i << ", " << j;
      }
      for (int64_t j = size.n; j < before.row && i + 1 < size.m; ++j) {
        ASSERT_EQ(double(c[size_t(i * before.row + j)]), kGap) << "the gap behind row " << i;
      }
    }
  }

  Case size;
  DType dtype;
  std::mt19937 random;
  Operand<T> a, b, before, bias;
};

template <class T>
void expect_product(const Case& c, DType dtype) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << c.n << " x " << c.k << ", forms " << int(c.a)
                                  << " and " << int(c.b) << ", beta " << c.beta);
  Problem<T> problem(c, dtype);
  const std::vector<T> one = problem.run(1);
  problem.check(one);
  for (const int threads : {2, 5}) {
    const std::vector<T> many = problem.run(threads);
    ASSERT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(T)), 0) << threads;
  }
}

void expect_products(const Case& c) {
  expect_product<BFloat16>(c, DType::bf16);
  expect_product<float>(c, DType::f32);
  expect_product<double>(c, DType::f64);
}

// Sizes around the edges of tiles and vectors.
TEST(Matmul, EveryFormAtTheEdgesOfTiles) {
  for (const int64_t m : {1, 2, 5, 7, 13, 15, 29}) {
    for (const int64_t n : {1, 7, 16, 17, 33, 64, 65, 81}) {
      for (const Form a : kForms) {
        for (const Form b : kForms) expect_products({m, n, 19, a, b});
      }
    }
  }
}

TEST(Matmul, InnerSizesAroundOneBlock) {
  for (const int64_t k : {1, 2, 15, 16, 511, 512, 513, 1040}) {
    for (const Form b : kForms) {
      expect_products({3, 20, k, Form::plain, b});
      expect_products({9, 20, k, Form::transposed, b});
    }
  }
}

TEST(Matmul, ScalesAndBias) {
  for (const Form b : {Form::plain, Form::transposed}) {
    for (const int64_t m : {1, 3, 40}) {
      for (const int64_t n : {1, 37}) {
        expect_products({m, n, 600, Form::plain, b, 0.5, 0, false});
        expect_products({m, n, 600, Form::plain, b, 2, 1, false});
        expect_products({m, n, 600, Form::plain, b, -1, 0.25, false});
        expect_products({m, n, 600, Form::plain, b, 1, 0, true});
        expect_products({m, n, 5, Form::plain, b, 0, 3, false});
      }
    }
  }
}

// Large enough that threads share it, and that rows, columns and depth are cut into blocks.
TEST(Matmul, BlocksAndThreads) {
  expect_product<float>({200, 2000, 30, Form::plain, Form::plain}, DType::f32);
  expect_product<float>({400, 130, 520, Form::transposed, Form::transposed}, DType::f32);
  expect_product<double>({210, 140, 520, Form::gaps, Form::transposed}, DType::f64);
  expect_product<BFloat16>({400, 130, 521, Form::transposed, Form::transposed}, DType::bf16);
  expect_product<BFloat16>({30, 2000, 300, Form::plain, Form::plain}, DType::bf16);
  expect_product<float>({3, 5000, 300, Form::plain, Form::transposed}, DType::f32);
}

TEST(Matmul, ZeroBetaDoesNotReadNaN) {
  const Case c{7, 18, 4, Form::plain, Form::plain};
  Problem<float> problem(c, DType::f32);
  for (float& x : problem.before.values) {
    if (x != float(kGap)) x = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<float> result = problem.run(1);
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      ASSERT_FALSE(std::isnan(result[size_t(i * problem.before.row + j)]));
    }
  }
}

}  // namespace
}  // namespace cutaway
