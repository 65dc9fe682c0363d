#include <functional>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/index.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/ladder.h>

#include <tests/cuda/both_devices.h>

namespace cutaway::cuda::emu {
namespace {

TEST(CudaIndex, BoundsFindTheFirstIndexOutside) {
  std::vector<int64_t> v = some_indices(1000, 0, 50);
  const auto found_in = [](const std::vector<int64_t>& values, bool has_ignored) {
    const Buffer<int64_t> index(values);
    int64_t found = 7;
    kernels::index_bounds(kEmuDevice, DType::i64,
                          {.index = index.get(),
                           .n = int64_t(values.size()),
                           .low = 0,
                           .high = 50,
                           .found = &found,
                           .ignored = -100,
                           .has_ignored = has_ignored});
    return found;
  };
  EXPECT_EQ(found_in(v, false), -1);
  v[700] = 50;
  v[300] = -100;
  EXPECT_EQ(found_in(v, false), 300);
  EXPECT_EQ(found_in(v, true), 700);
  EXPECT_EQ(found_in({}, false), -1);
}

// A shape with `dim`, from which an operand of `wider` more places a dimension is cut.
struct Box {
  std::vector<int64_t> sizes;
  int dim;
  int64_t n;  // places in that dimension
};
const Box kBoxes[] = {{{7}, 0, 5},        {{300}, 0, 40},       {{1, 3}, 0, 4},
                      {{5, 70}, 1, 9},    {{70, 5}, 0, 9},      {{3, 4, 5}, 1, 6},
                      {{2, 1, 33}, 1, 3}, {{2, 3, 2, 5}, 2, 4}, {{4, 600}, 1, 30},
                      {{1200, 2}, 0, 300}};

// Row-major strides of sizes that are `wider` larger, with n in one dimension if that is set.
int64_t fill_strides(const Box& b, int64_t wider, int64_t n, int64_t* strides) {
  int64_t step = 1;
  for (int d = int(b.sizes.size()) - 1; d >= 0; --d) {
    strides[d] = step;
    step *= n && d == b.dim ? n : b.sizes[size_t(d)] + wider;
  }
  return step;
}
int64_t numel(const Box& b) {
  int64_t n = 1;
  for (int64_t s : b.sizes) n *= s;
  return n;
}

template <class T>
void compare_gather(const Box& b) {
  int64_t strides[kMaxRank] = {};
  const int64_t places = fill_strides(b, 1, b.n, strides), n = numel(b);
  Both<T> x(some<T>(size_t(places))), y(size_t(n), T(1));
  Both<int64_t> index(some_indices(size_t(n), -1, b.n));
  run_both(kernels::gather, TypeOf<T>::value, [&](DeviceKind kind) {
    GatherArgs a;
    a.rank = int(b.sizes.size());
    a.dim = b.dim;
    for (int d = 0; d < a.rank; ++d) {
      a.sizes[d] = b.sizes[size_t(d)];
      a.in_strides[d] = strides[d];
    }
    a.index = index.on(kind);
    a.in = x.on(kind);
    a.out = y.on(kind);
    return a;
  });
  y.expect_same("gather");
}
TEST(CudaIndex, GatherAgreesWithTheCpu) {
  for_numbers([]<class T>(T) {
    for (const Box& b : kBoxes) compare_gather<T>(b);
  });
}

template <class Args>
void fill_scatter(Args& s, const Box& b, const int64_t* out_strides, const int64_t* src_strides) {
  s.rank = int(b.sizes.size());
  s.dim = b.dim;
  s.n = b.n;
  for (int d = 0; d < s.rank; ++d) {
    s.sizes[d] = b.sizes[size_t(d)];
    s.out_strides[d] = out_strides[d];
    s.src_strides[d] = src_strides[d];
  }
}

template <class T>
void compare_scatter(const Box& b, bool fill) {
  int64_t out_strides[kMaxRank] = {}, src_strides[kMaxRank] = {};
  const int64_t places = fill_strides(b, 1, b.n, out_strides);
  const int64_t sources = fill_strides(b, 2, 0, src_strides), n = numel(b);
  Both<T> out(some<T>(size_t(places))), src(some<T>(size_t(sources), 2)), value(1, T(5));
  Both<int64_t> index(some_indices(size_t(n), -1, b.n));
  run_both(kernels::scatter, TypeOf<T>::value, [&](DeviceKind kind) {
    ScatterArgs s;
    fill_scatter(s, b, out_strides, src_strides);
    s.index = index.on(kind);
    s.src = fill ? nullptr : src.on(kind);
    s.value = value.on(kind);
    s.out = out.on(kind);
    return s;
  });
  out.expect_same("scatter");
}
TEST(CudaIndex, ScatterKeepsTheLastValue) {
  in_three_orders([] {
    for_numbers([]<class T>(T) {
      for (const Box& b : kBoxes) {
        compare_scatter<T>(b, false);
        compare_scatter<T>(b, true);
      }
    });
  });
}

constexpr ScatterMode kModes[] = {ScatterMode::sum, ScatterMode::mean, ScatterMode::prod,
                                  ScatterMode::amax, ScatterMode::amin};

template <class T>
void compare_scatter_reduce(const Box& b, ScatterMode mode, bool include_self) {
  int64_t out_strides[kMaxRank] = {}, src_strides[kMaxRank] = {};
  const int64_t places = fill_strides(b, 1, b.n, out_strides);
  const int64_t sources = fill_strides(b, 2, 0, src_strides), n = numel(b);
  Both<T> out(some<T>(size_t(places))), src(some<T>(size_t(sources), 2));
  Both<int64_t> index(some_indices(size_t(n), -1, b.n)), counts(size_t(places), -7);
  run_both(kernels::scatter_reduce, TypeOf<T>::value, [&](DeviceKind kind) {
    ScatterReduceArgs s;
    fill_scatter(s, b, out_strides, src_strides);
    s.index = index.on(kind);
    s.src = src.on(kind);
    s.out = out.on(kind);
    s.mode = mode;
    s.include_self = include_self;
    s.counts = counts.on(kind);
    return s;
  });
  // In order and in f64: not one bit differs.
  out.expect_same("scatter_reduce");
  counts.expect_same("counts");
}
TEST(CudaIndex, ScatterReduceAddsInOrder) {
  for_numbers([]<class T>(T) {
    for (size_t k = 0; k < std::size(kBoxes); ++k) {
      compare_scatter_reduce<T>(kBoxes[k], kModes[k % 5], k % 2 == 0);
      compare_scatter_reduce<T>(kBoxes[3], kModes[k % 5], k < 5);
    }
  });
}
TEST(CudaIndex, ScatterReduceInEveryOrderOfThreads) {
  in_three_orders([] {
    compare_scatter_reduce<float>(kBoxes[1], ScatterMode::sum, true);
    compare_scatter_reduce<double>(kBoxes[9], ScatterMode::mean, false);
  });
}

struct Rows {
  int64_t outer, n, count, inner;
};
constexpr Rows kRows[] = {{1, 5, 7, 1},  {1, 4, 9, 16},    {3, 300, 40, 5}, {2, 3, 50, 8},
                          {1, 1, 9, 33}, {1, 70, 2300, 2}, {2, 6, 0, 4}};

template <class T, class Args, class F>
void compare_rows(Kernel<Args>& kernel, const Rows& r, bool into_places, F&& more) {
  const size_t places = size_t(r.outer * r.n * r.inner), rows = size_t(r.outer * r.count * r.inner);
  Both<T> in(some<T>(into_places ? rows : places)), out(some<T>(into_places ? places : rows, 2));
  Both<int64_t> index(some_indices(size_t(r.count), -1, r.n)), counts(size_t(r.n), -7);
  run_both(kernel, TypeOf<T>::value, [&](DeviceKind kind) {
    Args a;
    a.index = index.on(kind);
    a.in = in.on(kind);
    a.out = out.on(kind);
    a.outer = r.outer;
    a.n = r.n;
    a.count = r.count;
    a.inner = r.inner;
    more(a, counts.on(kind));
    return a;
  });
  out.expect_same(kernel.name);
  counts.expect_same("counts");
}
TEST(CudaIndex, RowsAreTakenAndPut) {
  for_numbers([]<class T>(T) {
    for (const Rows& r : kRows) {
      if (r.count == 0) continue;
      compare_rows<T>(kernels::take_rows, r, false, [](auto&, int64_t*) {});
      compare_rows<T>(kernels::put_rows, r, true, [](auto&, int64_t*) {});
    }
  });
}
TEST(CudaIndex, PutRowsInEveryOrderOfThreads) {
  in_three_orders(
      [] { compare_rows<float>(kernels::put_rows, kRows[3], true, [](auto&, int64_t*) {}); });
}
TEST(CudaIndex, ReduceRowsAddsInOrder) {
  for_numbers([]<class T>(T) {
    for (const Rows& r : kRows) {
      for (int k = 0; k < 20; ++k) {
        compare_rows<T>(kernels::reduce_rows, r, true, [&](ReduceRowsArgs& a, int64_t* counts) {
          a.mode = kModes[k % 5];
          a.include_self = k % 2 == 0;
          a.counts = k < 10 ? counts : nullptr;
        });
      }
    }
  });
}
TEST(CudaIndex, ReduceRowsSortsLongIndices) {
  const OptionsScope scope({.order = Order::shuffled, .seed = 3});
  compare_rows<float>(kernels::reduce_rows, {1, 3000, 40000, 1}, true, [](auto&, int64_t*) {});
}
TEST(CudaIndex, ReduceRowsInEveryOrderOfThreads) {
  in_three_orders([] {
    compare_rows<float>(kernels::reduce_rows, kRows[5], true, [](auto&, int64_t*) {});
    compare_rows<int64_t>(kernels::reduce_rows, kRows[5], true, [](auto&, int64_t*) {});
  });
}

template <class F>
size_t launches_of(F fn) {
  const OptionsScope scope({.count = true});
  take_collected();
  fn();
  return take_collected().size();
}

// Sums at indices where the user allows any order of additions.
TEST(CudaIndex, AtomicsByChoiceAddTheSame) {
  const Tensor x = randn({7, 6}), src = randn({40, 6});
  const Tensor at = randint(0, 7, {40, 6}), rows = randint(0, 7, {40});
  const std::vector<std::function<Tensor(Device)>> sums = {
      [&](Device d) { return scatter_add(x.to(d), 0, at.to(d), src.to(d)); },
      [&](Device d) { return index_add(x.to(d), 0, rows.to(d), src.to(d)); },
      [&](Device d) { return segment_sum(src.to(d), rows.to(d), 7); }};
  for (size_t i = 0; i < sums.size(); ++i) {
    const Tensor want = sums[i](kCpu);
    in_three_orders([&] {
      const DeterminismGuard any_order(false);
      const Tensor got = sums[i](kEmuDevice).to(kCpu);
      EXPECT_LT(amax(abs(got - want)).item<double>(), 1e-5) << i;
    });
    const auto sorts = [&] { sums[i](kEmuDevice); };
    const auto adds = [&] {
      const DeterminismGuard any_order(false);
      sums[i](kEmuDevice);
    };
    EXPECT_LT(launches_of(adds), launches_of(sorts)) << i;
  }
}

template <class T>
void compare_nonzero(int64_t n) {
  std::vector<T> values = some<T>(size_t(n));
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 3 == 0 || i / 700 % 2 == 1) values[i] = T(0);
  }
  if constexpr (std::is_floating_point_v<T>) values[1] = std::numeric_limits<T>::quiet_NaN();
  const int64_t blocks = (n + kNonzeroBlock - 1) / kNonzeroBlock;
  Both<T> in(values);
  Both<int64_t> counts(size_t(blocks), -1), out(size_t(n), -1);
  run_both(kernels::nonzero, TypeOf<T>::value, [&](DeviceKind kind) {
    return NonzeroArgs{.in = in.on(kind), .n = n, .counts = counts.on(kind)};
  });
  counts.expect_same("numbers of blocks");
  std::vector<int64_t> begins{0};
  for (int64_t c : counts.cpu()) begins.push_back(begins.back() + c);
  Both<int64_t> starts(begins);
  run_both(kernels::nonzero, TypeOf<T>::value, [&](DeviceKind kind) {
    return NonzeroArgs{.in = in.on(kind), .n = n, .counts = starts.on(kind), .out = out.on(kind)};
  });
  out.expect_same("positions");
}
TEST(CudaIndex, PositionsThatAreNotZero) {
  for_numbers([]<class T>(T) {
    compare_nonzero<T>(2);
    compare_nonzero<T>(700);
  });
  in_three_orders([] { compare_nonzero<float>(kNonzeroBlock + 5); });
}

TEST(CudaIndex, EveryStepOfTheLadderAddsTheSame) {
  const std::vector<float> old = some<float>(2 * 200 * 37), rows = some<float>(2 * 90 * 37, 2);
  const Buffer<float> in(rows);
  const Buffer<int64_t> index(some_indices(90, -1, 200));
  std::vector<float> expected;
  for (const auto& step : ladders(DeviceKind::emu).scatter) {
    const Buffer<float> out(old);
    ReduceRowsArgs a;
    a.index = index.get();
    a.in = in.get();
    a.out = out.get();
    a.outer = 2;
    a.n = 200;
    a.count = 90;
    a.inner = 37;
    step.run(a);
    if (expected.empty()) expected = out.values();
    const std::vector<float> got = out.values();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << step.name;
    a.count = 0;
    step.run(a);
  }
  EXPECT_EQ(ladders(DeviceKind::emu).scatter.size(), 5u);
}

// Rows of 32 floats: the index and every row once.
TEST(CudaIndex, TakeRowsMovesEveryByteOnce) {
  const Buffer<float> in(some<float>(64 * 32)), out(64 * 32);
  std::vector<int64_t> backwards(64);
  for (size_t k = 0; k < 64; ++k) backwards[k] = int64_t(63 - k);
  const Buffer<int64_t> index(backwards);
  TakeRowsArgs a{index.get(), in.get(), out.get(), 1, 64, 64, 32};
  const OptionsScope scope({.count = true});
  take_collected();
  kernels::take_rows(kEmuDevice, DType::f32, a);
  const auto list = take_collected();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].counters.bytes_written(), 64 * 32 * 4);
  EXPECT_LE(list[0].counters.bytes_read(), 64 * 32 * 4 + 64 * 8);
}

}  // namespace
}  // namespace cutaway::cuda::emu
