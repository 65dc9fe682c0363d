#include <cutaway/core/kernels/sort.h>

#include <limits>

#include <tests/cuda/kernel_check.h>

namespace cutaway::cuda::emu {
namespace {

// Values with equal ones, and of floating types zeros of both signs, infinities and NaN.
template <class T>
std::vector<T> mixed(int64_t n, unsigned seed) {
  auto v = random_values<T>(n, seed);
  if constexpr (kFloating<T>) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const float special[] = {0.0f, -0.0f, kInf, -kInf, NAN, 1.0f};
    for (size_t i = 0; i < v.size(); i += 3) v[i] = T(special[i * 7 / 3 % 6]);
  }
  return v;
}
template <class F>
void for_all_types(F&& f) {
  for_floating_types(f);
  for_integer_types(f);
  f(uint8_t(), DType::boolean);
}

template <class T>
void compare_sort(DType t, int64_t outer, int64_t n, int64_t inner, int64_t k, bool descending) {
  const auto in = mixed<T>(outer * n * inner, 1);
  std::vector<T> values(size_t(outer * k * inner));
  std::vector<int64_t> indices(values.size());
  SortArgs a{.in = in.data(), .values = values.data(), .indices = indices.data()};
  a.outer = outer;
  a.n = n;
  a.inner = inner;
  a.k = k;
  a.descending = descending;
  kernels::sort(kCpu, t, a);
  in_each_order([&] {
    Buffer<T> x(in), v(int64_t(values.size()));
    Buffer<int64_t> i(int64_t(values.size()));
    a.in = x.get();
    a.values = v.get();
    a.indices = i.get();
    kernels::sort(kEmu, t, a);
    expect_close(v.values(), values, 0, "values of sort");
    expect_close(i.values(), indices, 0, "indices of sort");
  });
}

TEST(CudaSort, AllTypes) {
  for_all_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const bool descending : {false, true}) {
      compare_sort<T>(t, 3, 1, 1, 1, descending);
      compare_sort<T>(t, 2, 7, 3, 7, descending);
      compare_sort<T>(t, 2, 64, 1, 64, descending);
      compare_sort<T>(t, 2, 101, 1, 5, descending);
      compare_sort<T>(t, 1, 0, 2, 0, descending);
    }
  });
}
// Sorted in tiles that are merged.
TEST(CudaSort, LongLines) {
  compare_sort<float>(DType::f32, 1, 4096, 1, 4096, false);
  compare_sort<float>(DType::f32, 2, 5000, 1, 5000, true);
  compare_sort<uint8_t>(DType::u8, 1, 4100, 2, 300, false);
  compare_sort<double>(DType::f64, 1, 13000, 1, 13000, false);
}

TEST(CudaSort, NoBankConflictsInATile) {
  Buffer<float> x(random_values<float>(4096, 5)), v(4096);
  SortArgs a{.in = x.get(), .values = v.get()};
  a.outer = a.inner = 1;
  a.n = a.k = 4096;
  EXPECT_EQ(traffic_of([&] { kernels::sort(kEmu, DType::f32, a); }).conflicts, 0);
}

template <class T>
void compare_unique(DType t, int64_t n) {
  const auto in = mixed<T>(n, 2);
  const auto size = static_cast<size_t>(n);
  std::vector<T> sorted(size), values(size);
  std::vector<int64_t> order(size), inverse(size), counts(size);
  int64_t groups = 0;
  SortArgs s{.in = in.data(), .values = sorted.data(), .indices = order.data()};
  s.outer = s.inner = 1;
  s.n = s.k = n;
  kernels::sort(kCpu, t, s);
  UniqueArgs a;
  a.sorted = sorted.data();
  a.order = order.data();
  a.n = n;
  a.values = values.data();
  a.inverse = inverse.data();
  a.counts = counts.data();
  a.groups = &groups;
  kernels::unique(kCpu, t, a);
  values.resize(size_t(groups));
  counts.resize(size_t(groups));
  in_each_order([&] {
    Buffer<T> x(sorted), v(n);
    Buffer<int64_t> o(order), i(n), c(n);
    int64_t found = -1;
    a.sorted = x.get();
    a.order = o.get();
    a.values = v.get();
    a.inverse = i.get();
    a.counts = c.get();
    a.groups = &found;
    kernels::unique(kEmu, t, a);
    ASSERT_EQ(found, groups);
    auto got_values = v.values();
    auto got_counts = c.values();
    got_values.resize(size_t(groups));
    got_counts.resize(size_t(groups));
    expect_close(got_values, values, 0, "values of unique");
    expect_close(got_counts, counts, 0, "counts of unique");
    expect_close(i.values(), inverse, 0, "inverse of unique");
  });
}
TEST(CudaSort, Unique) {
  for_all_types([](auto zero, DType t) {
    for (const int64_t n : {1, 2, 33, 700}) compare_unique<decltype(zero)>(t, n);
  });
}

template <class T>
void compare_search(DType t, int64_t rows, int64_t n, int64_t m, bool shared, bool right) {
  const int64_t lists = shared ? 1 : rows;
  const auto in = mixed<T>(lists * n, 3), values = mixed<T>(rows * m, 4);
  std::vector<T> sorted(in.size());
  SortArgs s{.in = in.data(), .values = sorted.data()};
  s.outer = lists;
  s.inner = 1;
  s.n = s.k = n;
  kernels::sort(kCpu, t, s);
  std::vector<int64_t> want(values.size());
  SearchArgs a{.sorted = sorted.data(), .values = values.data(), .out = want.data()};
  a.rows = rows;
  a.n = n;
  a.m = m;
  a.shared = shared;
  a.right = right;
  kernels::search_sorted(kCpu, t, a);
  in_each_order([&] {
    Buffer<T> x(sorted), v(values);
    Buffer<int64_t> out(int64_t(want.size()));
    a.sorted = x.get();
    a.values = v.get();
    a.out = out.get();
    kernels::search_sorted(kEmu, t, a);
    expect_close(out.values(), want, 0, "search_sorted");
  });
}
TEST(CudaSort, SearchSorted) {
  for_all_types([](auto zero, DType t) {
    using T = decltype(zero);
    for (const bool right : {false, true}) {
      compare_search<T>(t, 3, 40, 20, false, right);
      compare_search<T>(t, 3, 41, 5, true, right);
      compare_search<T>(t, 2, 0, 5, true, right);
      compare_search<T>(t, 2, 5, 0, false, right);
    }
  });
}

}  // namespace
}  // namespace cutaway::cuda::emu
