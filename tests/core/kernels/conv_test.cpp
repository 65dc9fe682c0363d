// Dense convolution against sums in f64 by the definition: sizes around the tiles and vectors of
// the fast ways, padding, groups, threads; and what Winograd's algorithm costs in accuracy.
#include <cutaway/core/kernels/conv.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

constexpr Device kCpu{DeviceKind::cpu, 0};

struct Case {
  int64_t n, c, k, h, w, pad_h = 1, pad_w = 1, groups = 1;
};

template <class T>
std::vector<T> normal(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<T> out(static_cast<size_t>(n));
  for (T& v : out) v = T(draw(random));
  return out;
}

std::vector<double> widened(const std::vector<float>& v) { return {v.begin(), v.end()}; }

// 3×3, stride 1; operands are normal.
template <class T>
struct Problem {
  ConvArgs args;
  std::vector<T> x, w, bias, g;

  explicit Problem(const Case& c) {
    args = {.n = c.n, .c = c.c, .k = c.k, .groups = c.groups};
    args.in[1] = c.h, args.in[2] = c.w;
    args.pad[1] = c.pad_h, args.pad[2] = c.pad_w;
    args.kernel[1] = args.kernel[2] = 3;
    args.out[1] = c.h + 2 * c.pad_h - 2, args.out[2] = c.w + 2 * c.pad_w - 2;
    x = normal<T>(c.n * c.c * c.h * c.w, 1);
    w = normal<T>(c.k * c.c / c.groups * 9, 2);
    bias = normal<T>(c.k, 3);
    g = normal<T>(c.n * c.k * args.out[1] * args.out[2], 4);
  }

  std::vector<T> run(Kernel<ConvArgs>& kernel, DType type, int threads = 1) {
    const int old = num_threads();
    set_num_threads(threads);
    ConvArgs a = args;
    const bool forward = &kernel == &kernels::conv_forward;
    const bool input = &kernel == &kernels::conv_input_grad;
    if (!input) a.x = x.data();
    if (forward || input) a.w = w.data();
    if (forward) a.bias = bias.data();
    if (!forward) a.g = g.data();
    std::vector<T> result(forward ? g.size() : input ? x.size() : w.size(), T(7));
    a.result = result.data();
    kernel(kCpu, type, a);
    set_num_threads(old);
    return result;
  }
};

Kernel<ConvArgs>* const kFamily[] = {&kernels::conv_forward, &kernels::conv_input_grad,
                                     &kernels::conv_weight_grad};

struct Errors {
  double largest, mean_square;  // relative to the largest and the mean square value
};

template <class T>
Errors errors(const std::vector<T>& got, const std::vector<double>& want) {
  double most = 0, worst = 0, sum = 0, square = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::fabs(double(got[i]) - want[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    most = std::max(most, std::fabs(want[i]));
    sum += error * error;
    square += want[i] * want[i];
  }
  return {worst / most, std::sqrt(sum / square)};
}

TEST(Conv, MatchesSumsInF64) {
  const Case cases[] = {
      {2, 16, 16, 8, 8},           {1, 64, 64, 8, 8},        {3, 16, 32, 9, 7},
      {2, 17, 33, 13, 11},         {1, 48, 80, 6, 21},       {2, 20, 16, 10, 10, 0, 0},
      {2, 32, 18, 10, 10, 2, 2},   {1, 16, 16, 5, 9, 2, 0},  {2, 40, 48, 9, 9, 0, 2},
      {2, 32, 64, 10, 9, 1, 1, 2}, {1, 16, 16, 3, 3, 0, 0},  {1, 16, 16, 1, 1, 1, 1},
      {1, 16, 24, 2, 40, 1, 1},    {5, 96, 160, 4, 4, 1, 1}, {1, 16, 16, 30, 30, 3, 3},
      {1, 4, 16, 20, 20},          {1, 16, 3, 20, 20, 0, 1}, {1, 600, 32, 6, 6},
  };
  for (const Case& c : cases) {
    Problem<float> p(c);
    Problem<double> reference(c);
    reference.x = widened(p.x), reference.w = widened(p.w);
    reference.bias = widened(p.bias), reference.g = widened(p.g);
    for (Kernel<ConvArgs>* kernel : kFamily) {
      SCOPED_TRACE(testing::Message() << kernel->name << " " << c.n << "," << c.c << "," << c.k
                                      << "," << c.h << "," << c.w << " padding " << c.pad_h);
      const std::vector<float> got = p.run(*kernel, DType::f32);
      EXPECT_LT(errors(got, reference.run(*kernel, DType::f64)).largest, 1e-5);
      EXPECT_EQ(p.run(*kernel, DType::f32, 2), got);
      EXPECT_EQ(p.run(*kernel, DType::f32, 3), got);
    }
  }
}

TEST(Conv, Bf16IsSummedInF32AndRoundedOnce) {
  const Case cases[] = {{2, 16, 16, 8, 8},  {2, 17, 33, 13, 11}, {2, 20, 16, 10, 10, 0, 0},
                        {1, 3, 16, 20, 20}, {1, 256, 16, 9, 9},  {2, 32, 64, 10, 9, 1, 1, 2}};
  for (const Case& c : cases) {
    Problem<BFloat16> p(c);
    Problem<double> reference(c);
    const auto wide = [](const std::vector<BFloat16>& v) {
      std::vector<double> out;
      for (const BFloat16 x : v) out.push_back(double(float(x)));
      return out;
    };
    reference.x = wide(p.x), reference.w = wide(p.w);
    reference.bias = wide(p.bias), reference.g = wide(p.g);
    for (Kernel<ConvArgs>* kernel : kFamily) {
      SCOPED_TRACE(testing::Message() << kernel->name << " " << c.c << " to " << c.k);
      const std::vector<double> want = reference.run(*kernel, DType::f64);
      const std::vector<double> got = wide(p.run(*kernel, DType::bf16));
      double most = 0;
      for (const double v : want) most = std::max(most, std::fabs(v));
      for (size_t i = 0; i < want.size(); ++i) {
        // Half a step of bf16, and the error of the sum in f32.
        ASSERT_LE(std::fabs(got[i] - want[i]), std::fabs(want[i]) * 0x1.01p-8 + most * 5e-6) << i;
      }
      EXPECT_EQ(wide(p.run(*kernel, DType::bf16, 2)), got);
    }
  }
}

// Every plane twice, as two slices of a third dimension.
template <class T>
std::vector<T> twice(const std::vector<T>& v, int64_t plane) {
  std::vector<T> out;
  for (auto at = v.begin(); at != v.end(); at += plane) {
    out.insert(out.end(), at, at + plane);
    out.insert(out.end(), at, at + plane);
  }
  return out;
}

// The same convolution of two equal slices is summed directly: its error is the yardstick.
// Measured: from 16 to 512 channels the mean error of Winograd's algorithm is 2.3 to 3.7 times as
// large in the result, 2.9 in the input gradient, 2.1 in the weight gradient; the largest error is
// 2e-6 of the largest value.
TEST(Conv, ErrorOfWinogradStaysNearThatOfDirectSums) {
  for (const int64_t channels : {16, 64, 256, 512}) {
    const Case c{2, channels, 64, 14, 14};
    const int64_t plane = c.h * c.w;
    Problem<float> p(c), direct(c);
    Problem<double> reference(c);
    reference.x = widened(p.x), reference.w = widened(p.w);
    reference.bias = widened(p.bias), reference.g = widened(p.g);
    direct.x = twice(p.x, plane);
    direct.g = twice(p.g, plane);
    direct.args.in[0] = direct.args.out[0] = 2;
    for (Kernel<ConvArgs>* kernel : kFamily) {
      const std::vector<double> want = reference.run(*kernel, DType::f64);
      std::vector<double> want_twice = want;
      if (kernel == &kernels::conv_weight_grad) {
        for (double& v : want_twice) v *= 2;
      } else {
        want_twice = twice(want, plane);
      }
      const Errors fast = errors(p.run(*kernel, DType::f32), want);
      const Errors plain = errors(direct.run(*kernel, DType::f32), want_twice);
      EXPECT_LT(fast.mean_square, 6 * plain.mean_square) << kernel->name << " " << channels;
      EXPECT_LT(fast.largest, 5e-6) << kernel->name << " " << channels;
    }
  }
}

}  // namespace
}  // namespace cutaway
