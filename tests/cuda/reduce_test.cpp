#include <cutaway/core/kernels/reduce.h>

#include <limits>

#include <cutaway/core/kernels/matmul.h>
#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

// Dimensions (size, stride) of an input.
struct Dim {
  int64_t size, stride;
};
struct Case {
  std::vector<Dim> kept, reduced;
};
ReduceArgs args_of(const Case& c) {
  ReduceArgs a;
  a.kept_rank = int(c.kept.size());
  a.reduced_rank = int(c.reduced.size());
  for (int d = 0; d < a.kept_rank; ++d) {
    a.kept_sizes[d] = c.kept[size_t(d)].size;
    a.kept_strides[d] = c.kept[size_t(d)].stride;
    a.outputs *= a.kept_sizes[d];
  }
  for (int d = 0; d < a.reduced_rank; ++d) {
    a.reduced_sizes[d] = c.reduced[size_t(d)].size;
    a.reduced_strides[d] = c.reduced[size_t(d)].stride;
    a.count *= a.reduced_sizes[d];
  }
  return a;
}
int64_t elements(const Case& c) {
  int64_t last = 0;
  for (const auto* dims : {&c.kept, &c.reduced}) {
    for (const Dim& d : *dims) last += (d.size - 1) * d.stride;
  }
  return last + 1;
}
std::string text(const char* kernel, const Case& c, DType t) {
  std::string s = std::string(kernel) + " of type " + std::to_string(int(t)) + ", kept";
  for (const Dim& d : c.kept) s += " " + std::to_string(d.size) + ":" + std::to_string(d.stride);
  s += ", reduced";
  for (const Dim& d : c.reduced) s += " " + std::to_string(d.size) + ":" + std::to_string(d.stride);
  return s;
}

// Rows and columns, neighbours or not, whole vectors or not, cut into chunks or not.
const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {{}, {}},
      {{{5, 1}}, {}},
      {{}, {{1, 1}}},
      {{}, {{100, 1}}},
      {{{3, 64}}, {{64, 1}}},
      {{{7, 35}}, {{35, 1}}},
      {{{2, 2000}}, {{2000, 1}}},
      {{{3, 1}}, {{50, 3}}},
      {{{40, 1}}, {{9, 40}}},
      {{{2, 60}, {4, 1}}, {{15, 4}}},
      {{{3, 8}}, {{5, 24}, {8, 1}}},
      {{{3, 1}}, {{4, 30}, {5, 6}}},
      {{{4, 2}, {3, 40}}, {{5, 8}}},
      {{{3, 0}}, {{17, 2}}},
  };
  return list;
}
const std::vector<Case>& long_cases() {
  static const std::vector<Case> list = {
      {{}, {{20000, 1}}},
      {{{2, 1}}, {{4200, 2}}},
      {{{2, 9001}}, {{9001, 1}}},
      {{{33, 1}}, {{300, 33}}},
  };
  return list;
}

template <class T, class Out>
void compare(Kernel<ReduceArgs>& kernel, DType t, const Case& c, const std::vector<T>& in,
             double p = 0, double tol = tolerance<Out>()) {
  ReduceArgs a = args_of(c);
  a.p = p;
  std::vector<Out> want(size_t(a.outputs));
  std::vector<T> value(size_t(a.outputs));
  for (size_t i = 0; i < value.size(); ++i) value[i] = in[(3 * i + 1) % in.size()];
  a.in = in.data();
  a.out = want.data();
  a.value = value.data();
  kernel(kCpu, t, a);
  in_each_order([&] {
    Buffer<T> x(in), v(value);
    Buffer<Out> y(a.outputs);
    a.in = x.get();
    a.out = y.get();
    a.value = v.get();
    kernel(kEmu, t, a);
    expect_close(y.values(), want, tol, text(kernel.name, c, t));
  });
}
template <class T>
void compare_floating(DType t, const Case& c) {
  const auto x = random_values<T>(elements(c), 1, 0.5);
  compare<T, T>(kernels::sum, t, c, x);
  compare<T, T>(kernels::prod, t, c, x);
  compare<T, T>(kernels::mean, t, c, x);
  compare<T, T>(kernels::var, t, c, x, 1);
  compare<T, T>(kernels::std_dev, t, c, x, 0);
  compare<T, T>(kernels::logsumexp, t, c, x);
  for (const double p : {0.0, 1.0, 2.0, 3.5, HUGE_VAL, -HUGE_VAL}) {
    compare<T, T>(kernels::norm, t, c, x, p);
  }
}
template <class T, class Sum>
void compare_any(DType t, const Case& c) {
  const auto x = random_values<T>(elements(c), 2);
  compare<T, Sum>(kernels::sum, t, c, x);
  compare<T, T>(kernels::amax, t, c, x);
  compare<T, T>(kernels::amin, t, c, x);
  compare<T, int64_t>(kernels::find_first, t, c, x);
  compare<T, uint8_t>(kernels::any, t, c, x);
  compare<T, uint8_t>(kernels::all, t, c, x);
  compare<T, int64_t>(kernels::count_nonzero, t, c, x);
}

TEST(CudaReduce, FloatingTypes) {
  for_floating_types([](auto zero, DType t) {
    for (const Case& c : cases()) compare_floating<decltype(zero)>(t, c);
  });
}
TEST(CudaReduce, SearchesOfFloatingTypes) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const Case& c : cases()) compare_any<T, T>(t, c);
  });
}
TEST(CudaReduce, IntegerTypes) {
  for_integer_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const Case& c : cases()) {
      compare_any<T, int64_t>(t, c);
      compare<T, int64_t>(kernels::prod, t, c, random_values<T>(elements(c), 3));
    }
  });
  for (const Case& c : cases()) compare_any<uint8_t, int64_t>(DType::boolean, c);
}
TEST(CudaReduce, InTwoLaunches) {
  for (const Case& c : long_cases()) {
    compare_floating<float>(DType::f32, c);
    compare_any<BFloat16, BFloat16>(DType::bf16, c);
    compare_any<int8_t, int64_t>(DType::i8, c);
  }
}
TEST(CudaReduce, NothingToReduce) {
  const std::vector<float> in(1);
  for (const Case& c : {Case{{{3, 1}}, {{0, 1}}}, Case{{{0, 1}}, {{4, 1}}}, Case{{}, {{0, 1}}}}) {
    for (auto* k : {&kernels::sum, &kernels::prod, &kernels::mean, &kernels::var,
                    &kernels::logsumexp, &kernels::norm}) {
      compare<float, float>(*k, DType::f32, c, in, 1);
    }
    compare<float, uint8_t>(kernels::any, DType::f32, c, in);
    compare<float, uint8_t>(kernels::all, DType::f32, c, in);
  }
}

TEST(CudaReduce, InfinitiesAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Case& c : {Case{{{6, 70}}, {{70, 1}}}, Case{{{6, 1}}, {{70, 6}}}}) {
    const int64_t row = c.kept[0].stride, step = c.reduced[0].stride;
    std::vector<float> x = random_values<float>(elements(c), 4);
    x[size_t(3 * step)] = -kInf;
    x[size_t(row + 40 * step)] = kInf;
    x[size_t(2 * row + 41 * step)] = NAN;
    x[size_t(3 * row)] = kInf;
    x[size_t(3 * row + step)] = -kInf;
    for (int64_t i = 0; i < 70; ++i) x[size_t(4 * row + i * step)] = -kInf;
    for (int64_t i = 0; i < 70; ++i) x[size_t(5 * row + i * step)] = kInf;
    for (auto* k : {&kernels::sum, &kernels::mean, &kernels::var, &kernels::logsumexp,
                    &kernels::amax, &kernels::amin, &kernels::norm}) {
      compare<float, float>(*k, DType::f32, c, x, 2);
    }
    compare<float, int64_t>(kernels::find_first, DType::f32, c, x);
  }
}
TEST(CudaReduce, VarianceFarFromZero) {
  for (const Case& c : {Case{{{2, 3000}}, {{3000, 1}}}, Case{{{20, 1}}, {{300, 20}}}}) {
    compare<float, float>(kernels::var, DType::f32, c, random_values<float>(6000, 5, 1e5), 1);
    compare<double, double>(kernels::var, DType::f64, c, random_values<double>(6000, 5, 1e7), 1);
  }
}
TEST(CudaReduce, NormsNearTheEndsOfTheRange) {
  const Case c{{{2, 50}}, {{50, 1}}};
  for (const double scale : {1e300, 1e-300, 5e-324}) {
    auto x = random_values<double>(100, 6);
    for (double& v : x) v *= scale;
    compare<double, double>(kernels::norm, DType::f64, c, x, 2);
  }
}

template <class T>
void compare_median(DType t, int64_t outer, int64_t n, int64_t inner, bool skip, double nans) {
  auto in = random_values<T>(outer * n * inner, 7);
  if constexpr (kFloating<T>) {
    for (size_t i = 0; i < in.size(); ++i) {
      if (double(i * 7919 % 100) < 100 * nans) in[i] = T(std::numeric_limits<float>::quiet_NaN());
      if (i % 5 == 0) in[i] = T(i % 2 ? -0.0f : 0.0f);
    }
  }
  std::vector<T> value(size_t(outer * inner));
  std::vector<int64_t> index(value.size());
  MedianArgs a{.in = in.data(), .value = value.data(), .index = index.data()};
  a.outer = outer;
  a.n = n;
  a.inner = inner;
  a.skip_nan = skip;
  kernels::median(kCpu, t, a);
  in_each_order([&] {
    Buffer<T> x(in), v(outer * inner);
    Buffer<int64_t> i(outer * inner);
    a.in = x.get();
    a.value = v.get();
    a.index = i.get();
    kernels::median(kEmu, t, a);
    expect_close(v.values(), value, 0, "median");
    expect_close(i.values(), index, 0, "index of the median");
  });
}
TEST(CudaReduce, Median) {
  for_floating_types([](auto zero, DType t) {
    using T = decltype(zero);
    compare_median<T>(t, 3, 1, 1, false, 0);
    compare_median<T>(t, 2, 50, 1, false, 0);
    compare_median<T>(t, 2, 51, 3, true, 0.3);
    compare_median<T>(t, 4, 30, 1, false, 0.03);
    compare_median<T>(t, 1, 301, 1, true, 1);
  });
  for_integer_types(
      [](auto zero, DType t) { compare_median<decltype(zero)>(t, 3, 40, 2, false, 0); });
}

// Long lists are sorted.
TEST(CudaReduce, MedianOfLongLists) {
  compare_median<float>(DType::f32, 1, 8200, 1, true, 0.3);
  compare_median<Float16>(DType::f16, 1, 8193, 1, false, 0.01);
}

TEST(CudaReduce, ReadsEachElementOnce) {
  const auto read_by = [](Kernel<ReduceArgs>& kernel, const Case& c) {
    Buffer<float> x(random_values<float>(elements(c), 8));
    ReduceArgs a = args_of(c);
    Buffer<float> y(a.outputs);
    a.in = x.get();
    a.out = y.get();
    return traffic_of([&] { kernel(kEmu, DType::f32, a); });
  };
  for (const Case& c : {Case{{}, {{1 << 18, 1}}}, Case{{{64, 4096}}, {{4096, 1}}},
                        Case{{{4096, 1}}, {{64, 4096}}}, Case{{{64, 1}}, {{4096, 64}}}}) {
    for (auto* k : {&kernels::sum, &kernels::var, &kernels::logsumexp}) {
      const Traffic t = read_by(*k, c);
      // Others than sums have larger partial results, and variances a first element to look up.
      const double most = k == &kernels::sum ? 1.05 : 1.15;
      EXPECT_LE(double(t.bytes()), most * 4 * double(1 << 18)) << text(k->name, c, DType::f32);
      EXPECT_EQ(t.conflicts, 0) << text(k->name, c, DType::f32);
      EXPECT_LE(t.launches, 2);
    }
  }
}

}  // namespace
}  // namespace cutaway::cuda::emu
