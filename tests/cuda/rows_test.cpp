#include <cutaway/core/kernels/rows.h>

#include <limits>

#include <cutaway/cuda/ladder.h>
#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

struct Size {
  int64_t outer, n, inner;
};
std::string text(const char* kernel, const Size& s, DType t) {
  return std::string(kernel) + " [" + std::to_string(s.outer) + ", " + std::to_string(s.n) + ", " +
         std::to_string(s.inner) + "] of type " + std::to_string(int(t));
}

// The kernel on the emulator, and in f64 on the CPU; `in` and `grad` are given.
template <class T>
void compare(Kernel<SoftmaxArgs>& kernel, DType t, const Size& s, const std::vector<T>& in,
             const std::vector<T>& grad) {
  const std::vector<double> in64 = converted<double>(in), grad64 = converted<double>(grad);
  std::vector<double> want64(in.size());
  SoftmaxArgs a{.in = in64.data(), .grad = grad64.data(), .out = want64.data()};
  a.outer = s.outer;
  a.n = s.n;
  a.inner = s.inner;
  kernel(kCpu, DType::f64, a);
  const std::vector<T> want = converted<T>(want64);
  in_each_order([&] {
    Buffer<T> x(in), g(grad), y(int64_t(in.size()));
    a.in = x.get();
    a.grad = g.get();
    a.out = y.get();
    kernel(kEmu, t, a);
    expect_close(y.values(), want, text(kernel.name, s, t));
  });
}
template <class T>
void compare_all(DType t, const Size& s) {
  const int64_t count = s.outer * s.n * s.inner;
  const auto x = random_values<T>(count, 1, 0, 3), g = random_values<T>(count, 2);
  std::vector<T> probabilities(x.size());
  SoftmaxArgs a{.in = x.data(), .out = probabilities.data()};
  a.outer = s.outer;
  a.n = s.n;
  a.inner = s.inner;
  kernels::softmax(kCpu, t, a);
  compare<T>(kernels::softmax, t, s, x, g);
  compare<T>(kernels::log_softmax, t, s, x, g);
  compare<T>(kernels::softmax_backward, t, s, probabilities, g);
  compare<T>(kernels::log_softmax_backward, t, s, x, g);
}

TEST(CudaRows, SoftmaxOfRows) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const Size s : {Size{5, 1, 1},
                         {3, 10, 1},
                         {3, 33, 1},
                         {2, 64, 1},
                         {2, 520, 1},
                         {3, 1024, 1},
                         {2, 999, 1}}) {
      compare_all<T>(t, s);
    }
  });
}
TEST(CudaRows, SoftmaxOfColumns) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const Size s : {Size{2, 5, 3}, {2, 100, 7}, {1, 140, 40}}) compare_all<T>(t, s);
  });
}
// Rows that wait in shared memory, and rows too long for that.
TEST(CudaRows, SoftmaxOfLongRows) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    compare_all<T>(t, {1, 4104, 1});
    compare_all<T>(t, {1, 4099, 1});
  });
  compare_all<double>(DType::f64, {1, 30005, 1});
  compare_all<float>(DType::f32, {1, 60005, 1});
}
TEST(CudaRows, EmptySoftmax) {
  for (const Size s : {Size{0, 4, 1}, {4, 0, 1}, {4, 4, 0}})
    compare<float>(kernels::softmax, DType::f32, s, {}, {});
}

TEST(CudaRows, SoftmaxOfInfinitiesAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Size s : {Size{5, 40, 1}, {1, 40, 5}, {5, 4104, 1}, {5, 60005, 1}, {1, 200, 5}}) {
    std::vector<float> x = random_values<float>(s.outer * s.n * s.inner, 3);
    const auto at = [&](int64_t line, int64_t i) -> float& {
      return x[size_t(s.inner == 1 ? line * s.n + i : i * s.inner + line)];
    };
    at(0, 3) = -kInf;
    at(1, 5) = kInf;
    at(2, 7) = NAN;
    for (int64_t i = 0; i < s.n; ++i) at(3, i) = -kInf;
    for (int64_t i = 0; i < s.n; ++i) at(4, i) = -1e30f;
    compare<float>(kernels::softmax, DType::f32, s, x, x);
    compare<float>(kernels::log_softmax, DType::f32, s, x, x);
  }
}

template <class T>
Traffic softmax_traffic(Kernel<SoftmaxArgs>& kernel, DType t, int64_t outer, int64_t n) {
  const auto values = random_values<T>(outer * n, 4);
  Buffer<T> x(values), g(values), y(outer * n);
  SoftmaxArgs a{.in = x.get(), .grad = g.get(), .out = y.get()};
  a.outer = outer;
  a.n = n;
  return traffic_of([&] { kernel(kEmu, t, a); });
}
TEST(CudaRows, SoftmaxMovesEachElementOnce) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const int64_t n : {64, 128, 768, 1024, 4096, 8192}) {
      const int64_t outer = 16384 / n, bytes = outer * n * int64_t(sizeof(T));
      const Traffic forward = softmax_traffic<T>(kernels::softmax, t, outer, n);
      EXPECT_LE(double(forward.bytes()), 1.05 * 2 * double(bytes)) << n;
      EXPECT_EQ(forward.conflicts, 0) << n;
      EXPECT_EQ(forward.launches, 1);
      if (n > 4096) continue;
      const Traffic backward = softmax_traffic<T>(kernels::softmax_backward, t, outer, n);
      EXPECT_LE(double(backward.bytes()), 1.05 * 3 * double(bytes)) << n;
      EXPECT_EQ(backward.conflicts, 0) << n;
    }
  });
}

TEST(CudaRows, TheLadderOfSoftmax) {
  const auto ladder = ladders(DeviceKind::emu).softmax;
  ASSERT_GE(ladder.size(), 4u);
  for (const Size s : {Size{3, 70, 1}, Size{1, 2000, 1}, Size{0, 3, 1}}) {
    const auto in = random_values<float>(s.outer * s.n, 6, 0, 3);
    std::vector<float> want(in.size());
    SoftmaxArgs a{.in = in.data(), .out = want.data()};
    a.outer = s.outer;
    a.n = s.n;
    kernels::softmax(kCpu, DType::f32, a);
    for (const auto& step : ladder) {
      in_each_order([&] {
        Buffer<float> x(in), y(int64_t(in.size()));
        a.in = x.get();
        a.out = y.get();
        step.run(a);
        expect_close(y.values(), want, text(step.name, s, DType::f32));
      });
    }
  }
}

}  // namespace
}  // namespace cutaway::cuda::emu
