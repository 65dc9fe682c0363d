#include <cutaway/core/kernels/scan.h>

#include <limits>

#include <cutaway/core/kernels/reduce.h>
#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

struct Case {
  int64_t outer, n, inner;
  bool reverse = false, exclusive = false, shifted = false;
};
std::string text(const char* kernel, const Case& c, DType t) {
  return std::string(kernel) + " [" + std::to_string(c.outer) + ", " + std::to_string(c.n) + ", " +
         std::to_string(c.inner) + "] of type " + std::to_string(int(t)) +
         (c.reverse ? " reverse" : "") + (c.exclusive ? " exclusive" : "") +
         (c.shifted ? " shifted" : "");
}

template <class T, class Out>
void compare(Kernel<ScanArgs>& kernel, DType t, const Case& c, const std::vector<T>& in,
             const std::vector<T>& factor, bool index = false) {
  const int64_t n = c.outer * c.n * c.inner;
  const auto size = static_cast<size_t>(n);
  std::vector<Out> want(size);
  std::vector<int64_t> places(size, 0);
  ScanArgs a{.in = in.data(), .factor = factor.data(), .out = want.data()};
  a.index = index ? places.data() : nullptr;
  a.outer = c.outer;
  a.n = c.n;
  a.inner = c.inner;
  a.reverse = c.reverse;
  a.exclusive = c.exclusive;
  a.shifted = c.shifted;
  kernel(kCpu, t, a);
  in_each_order([&] {
    Buffer<T> x(in), f(factor);
    Buffer<Out> y(n);
    Buffer<int64_t> i(n);
    a.in = x.get();
    a.factor = f.get();
    a.out = y.get();
    a.index = index ? i.get() : nullptr;
    kernel(kEmu, t, a);
    expect_close(y.values(), want, text(kernel.name, c, t));
    if (index) expect_close(i.values(), places, 0, "index of " + text(kernel.name, c, t));
  });
}

std::vector<Case> sizes() {
  return {{3, 1, 1},  {4, 10, 1}, {2, 17, 1},   {2, 129, 1},  {1, 1030, 1},
          {2, 12, 3}, {1, 70, 5}, {1, 4100, 1}, {1, 200, 300}};
}
template <class T>
void compare_floating(DType t, const Case& c) {
  const int64_t n = c.outer * c.n * c.inner;
  const auto x = random_values<T>(n, 1), near_one = random_values<T>(n, 2, 1, 0.02);
  compare<T, T>(kernels::cumsum, t, c, x, x);
  compare<T, T>(kernels::cumprod, t, c, near_one, x);
  compare<T, T>(kernels::logcumsumexp, t, c, x, x);
  compare<T, T>(kernels::cummax, t, {c.outer, c.n, c.inner}, x, x, true);
  compare<T, T>(kernels::cummin, t, {c.outer, c.n, c.inner}, x, x, true);
  compare<T, T>(kernels::linear_scan, t, {c.outer, c.n, c.inner, c.reverse, false, c.exclusive}, x,
                random_values<T>(n, 3, 0, 0.5));
}

TEST(CudaScan, FloatingTypes) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (Case c : sizes()) {
      c.reverse = c.n % 2;
      c.exclusive = c.n % 4 < 2;
      compare_floating<T>(t, c);
    }
  });
}
TEST(CudaScan, DirectionsAndForms) {
  for (const Case& size : {Case{2, 300, 1}, Case{2, 40, 3}, Case{1, 300, 2}}) {
    for (const int form : {0, 1, 2, 3}) {
      Case c = size;
      c.reverse = form & 1;
      c.exclusive = form & 2;
      compare_floating<float>(DType::f32, c);
    }
  }
}
TEST(CudaScan, IntegerTypes) {
  for_integer_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (Case c : {Case{2, 130, 1}, Case{1, 300, 2}, Case{1, 12, 3, true, true}}) {
      const auto x = random_values<T>(c.outer * c.n * c.inner, 4);
      compare<T, int64_t>(kernels::cumsum, t, c, x, x);
      compare<T, int64_t>(kernels::cumprod, t, c, x, x);
      c.reverse = c.exclusive = false;
      compare<T, T>(kernels::cummax, t, c, x, x, true);
      compare<T, T>(kernels::cummin, t, c, x, x, true);
    }
  });
}
// A line in several chunks, each of several steps.
TEST(CudaScan, LongLines) {
  for (const Case& c : {Case{2, 9000, 1}, Case{1, 9000, 1, true, true}, Case{1, 3000, 2}}) {
    compare_floating<float>(DType::f32, c);
  }
}
TEST(CudaScan, Empty) {
  for (const Case& c : {Case{0, 3, 1}, Case{3, 0, 1}, Case{2, 3, 0}}) {
    compare<float, float>(kernels::cumsum, DType::f32, c, {}, {});
  }
}
TEST(CudaScan, InfinitiesAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Case& c : {Case{4, 200, 1}, Case{1, 200, 4}}) {
    auto x = random_values<float>(800, 5), f = random_values<float>(800, 6);
    const auto at = [&](int64_t line, int64_t i) {
      return size_t(c.inner == 1 ? line * 200 + i : i * 4 + line);
    };
    x[at(0, 50)] = -kInf;
    x[at(1, 60)] = kInf;
    x[at(2, 70)] = NAN;
    x[at(2, 90)] = NAN;
    for (int64_t i = 0; i < 100; ++i) x[at(3, i)] = -kInf;
    f[at(0, 0)] = kInf;
    for (auto* k : {&kernels::cumsum, &kernels::logcumsumexp, &kernels::linear_scan}) {
      compare<float, float>(*k, DType::f32, c, x, f);
    }
    compare<float, float>(kernels::cummax, DType::f32, c, x, f, true);
    compare<float, float>(kernels::cummin, DType::f32, c, x, f, true);
  }
}

TEST(CudaScan, GradientOfProducts) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const auto& [outer, n] : {std::pair{3, 1}, {2, 5}, {3, 100}, {2, 601}}) {
      auto x = random_values<T>(outer * n, 1, 1, 0.05);
      x[0] = T(0.0f);
      const auto upstream = random_values<T>(outer, 2);
      std::vector<T> want(x.size());
      ProdGradArgs a{.in = x.data(), .upstream = upstream.data(), .grad = want.data()};
      a.outer = outer;
      a.n = n;
      kernels::prod_backward(kCpu, t, a);
      in_each_order([&] {
        Buffer<T> in(x), u(upstream), grad(int64_t(x.size()));
        a.in = in.get();
        a.upstream = u.get();
        a.grad = grad.get();
        kernels::prod_backward(kEmu, t, a);
        expect_close(grad.values(), want, "prod_backward");
      });
    }
  });
}

}  // namespace
}  // namespace cutaway::cuda::emu
