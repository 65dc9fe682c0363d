#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/mma.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>

#include <tests/cuda/emu_buffer.h>

namespace cutaway::cuda::emu {
namespace {

std::vector<int> numbers(int n) {
  std::vector<int> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}
constexpr Launch blocks_of(unsigned blocks, unsigned threads, int64_t shared = 0) {
  return {.name = "test", .grid = {blocks}, .block = {threads}, .shared = shared};
}

// Runs `body` with lanes and blocks in each order.
template <class F>
void in_every_order(F&& body) {
  for (bool check : {true, false}) {
    for (Order order : {Order::forward, Order::reverse, Order::shuffled}) {
      const OptionsScope scope({.check = check, .order = order, .seed = 7});
      body();
    }
  }
}

KERNEL coordinates_of(int* out) {
  const auto y = global<int>(out);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  y[i] = int(threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x +
             10000 * blockIdx.y + 100000 * blockIdx.z);
}
TEST(Emu, CoordinatesCoverTheGrid) {
  in_every_order([] {
    Buffer<int> y(2 * 2 * 2 * 3 * 2 * 2);
    launch({.name = "test", .grid = {2, 2, 2}, .block = {3, 2, 2}, .sync = Sync::none},
           coordinates_of, y.get());
    const auto v = y.values();
    EXPECT_EQ(v[0], 0);
    EXPECT_EQ(v[11], 112);
    EXPECT_EQ(v[12], 1000);
    EXPECT_EQ(v[24], 10000);
    EXPECT_EQ(v[95], 111112);
  });
}

KERNEL block_sums(const int* in, int* out, int n) {
  const auto x = global<const int>(in);
  const auto y = global<int>(out);
  SHARED(int, parts, 32);
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  int v = i < n ? int(x[i]) : 0;
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(kAllLanes, v, step);
  const int warp = int(threadIdx.x) / 32, warps = int(blockDim.x + 31) / 32;
  if (threadIdx.x % 32 == 0) parts[warp] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int w = 0; w < warps; ++w) sum += parts[w];
    y[blockIdx.x] = sum;
  }
}
TEST(Emu, SharedMemoryBarriersAndShuffles) {
  in_every_order([] {
    Buffer<int> x(numbers(1000)), y(4);
    launch(blocks_of(4, 256), block_sums, x.get(), y.get(), 1000);
    const auto v = y.values();
    EXPECT_EQ(std::accumulate(v.begin(), v.end(), 0), 499500);
    EXPECT_EQ(v[1], (256 + 511) * 128);
  });
}

KERNEL shuffles(int* out) {
  const auto y = global<int>(out);
  const int i = int(threadIdx.x);
  y[i] = __shfl_sync(kAllLanes, i, 3);
  y[32 + i] = __shfl_sync(kAllLanes, i, 2, 8);
  y[64 + i] = __shfl_up_sync(kAllLanes, i, 2, 16);
  y[96 + i] = __shfl_down_sync(kAllLanes, i, 30);
  y[128 + i] = __shfl_xor_sync(kAllLanes, i, 5);
  y[160 + i] = int(__ballot_sync(kAllLanes, i % 2) >> 1);
  y[192 + i] = __any_sync(kAllLanes, i == 31) + 2 * __all_sync(kAllLanes, i < 31);
}
TEST(Emu, WarpOperationsAsDefined) {
  in_every_order([] {
    Buffer<int> y(224);
    launch(blocks_of(1, 32), shuffles, y.get());
    const auto v = y.values();
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(v[size_t(i)], 3);
      EXPECT_EQ(v[size_t(32 + i)], i / 8 * 8 + 2);
      EXPECT_EQ(v[size_t(64 + i)], i % 16 >= 2 ? i - 2 : i);
      EXPECT_EQ(v[size_t(96 + i)], i < 2 ? i + 30 : i);
      EXPECT_EQ(v[size_t(128 + i)], i ^ 5);
      EXPECT_EQ(v[size_t(160 + i)], 0x55555555);
      EXPECT_EQ(v[size_t(192 + i)], 1);
    }
  });
}

// Half a warp works on while the other half has ended; the last warp is not full.
KERNEL partial_warps(int* out) {
  const auto y = global<int>(out);
  const int i = int(threadIdx.x);
  if (i % 32 >= 16) return;
  const int v = __shfl_xor_sync(0xffffu, i, 1);
  __syncthreads();
  y[i] = v;
}
TEST(Emu, LanesThatHaveEndedDoNotCount) {
  in_every_order([] {
    Buffer<int> y(40);
    launch(blocks_of(1, 40), partial_warps, y.get());
    const auto v = y.values();
    for (int i : {0, 5, 15, 32, 39}) EXPECT_EQ(v[size_t(i)], i ^ 1);
    EXPECT_EQ(v[16], -1);  // never written
  });
}

KERNEL votes(int* out) {
  const auto y = global<int>(out);
  const int i = int(threadIdx.x);
  const int count = __syncthreads_count(i % 3 == 0);
  const int any = __syncthreads_or(i == 99);
  const int all = __syncthreads_and(i < 99);
  if (i == 0) {
    y[0] = count;
    y[1] = any;
    y[2] = all;
  }
}
TEST(Emu, BlockVotes) {
  in_every_order([] {
    Buffer<int> y(3);
    launch(blocks_of(1, 100), votes, y.get());
    EXPECT_EQ(y.values(), (std::vector<int>{34, 1, 0}));
  });
}

KERNEL reversed_by_dynamic_shared(const int* in, int* out, int n) {
  const auto x = global<const int>(in);
  const auto y = global<int>(out);
  DYNAMIC_SHARED(int, tile);
  const int i = int(threadIdx.x);
  copy_async<1>(tile, i, x, i);
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();
  y[i] = tile[n - 1 - i];
}
TEST(Emu, DynamicSharedMemoryAndAsynchronousCopies) {
  in_every_order([] {
    Buffer<int> x(numbers(100)), y(100);
    launch(blocks_of(1, 100, 400), reversed_by_dynamic_shared, x.get(), y.get(), 100);
    EXPECT_EQ(y.values().front(), 99);
    EXPECT_EQ(y.values().back(), 0);
  });
}

KERNEL atomics(int* out, double* sums) {
  const auto y = global<int>(out);
  const auto s = global<double>(sums);
  const int i = int(threadIdx.x);
  atomic_add(y, 0, i);
  atomic_max(y, 1, i);
  atomic_min(y, 2, i);
  atomic_or(y, 3, 1 << (i % 8));
  atomic_cas(y, 4, 0, 5);
  atomic_add(s, 0, 0.5);
}
TEST(Emu, Atomics) {
  in_every_order([] {
    Buffer<int> y(std::vector<int>{0, -1, 1000, 0, 0});
    Buffer<double> s(std::vector<double>{0});
    launch({.name = "test", .grid = {4}, .block = {64}, .sync = Sync::none}, atomics, y.get(),
           s.get());
    EXPECT_EQ(y.values(), (std::vector<int>{4 * 2016, 63, 0, 255, 5}));
    EXPECT_EQ(s.values()[0], 128);
  });
}

KERNEL lanes_read_then_one_writes(int* out) {
  const auto y = global<int>(out);
  SHARED(int, cell, 2);
  const int i = int(threadIdx.x), warp = i / 32;
  if (i % 32 == 0) cell[warp] = 5;
  __syncwarp();
  const int seen = cell[warp];
  __syncwarp();
  if (i % 32 == 0) cell[warp] += 1;
  __syncwarp();
  y[i] = cell[warp] + seen - 5;
}
TEST(Emu, BarriersOfAWarpOrderSeveralReadersAndAWriter) {
  in_every_order([] {
    Buffer<int> y(64);
    launch(blocks_of(1, 64), lanes_read_then_one_writes, y.get());
    EXPECT_EQ(y.values(), std::vector<int>(64, 6));
  });
}

KERNEL order_of_arrival(int* out) {
  const auto y = global<int>(out);
  y[int(threadIdx.x)] = atomic_add(y, 64, 1);
}
TEST(Emu, OrdersDiffer) {
  const auto first_turn = [](const OptionsScope&) {
    std::vector<int> start(65, 0);
    Buffer<int> y(start);
    launch(blocks_of(1, 64), order_of_arrival, y.get());
    return y.values()[0];
  };
  EXPECT_EQ(first_turn(OptionsScope({.order = Order::forward})), 0);
  EXPECT_EQ(first_turn(OptionsScope({.order = Order::reverse})), 63);
}

TEST(Emu, AFaultLeavesTheEmulatorUsable) {
  Buffer<int> y(8);
  EXPECT_THROW(launch(blocks_of(1, 64), votes, static_cast<int*>(nullptr)), KernelFault);
  Buffer<int> z(3);
  launch(blocks_of(1, 100), votes, z.get());
  EXPECT_EQ(z.values()[0], 34);
}

// ---- tensor cores

// One 16 x 8 tile from row-major a [16, 16] and b [16, 8], with the maps written out.
template <bool Half>
KERNEL product_16bit(const uint16_t* left, const uint16_t* right, float* out) {
  const auto a = global<const uint16_t>(left), b = global<const uint16_t>(right);
  const auto y = global<float>(out);
  const int g = int(threadIdx.x) / 4, t = int(threadIdx.x) % 4;
  uint32_t fa[4], fb[2];
  for (int r = 0; r < 4; ++r) {
    const int at = (g + 8 * (r % 2)) * 16 + 2 * t + 8 * (r / 2);
    fa[r] = pack16(a[at], a[at + 1]);
  }
  for (int r = 0; r < 2; ++r) {
    const int row = 2 * t + 8 * r;
    fb[r] = pack16(b[row * 8 + g], b[(row + 1) * 8 + g]);
  }
  float d[4] = {1, 1, 1, 1};
  if constexpr (Half) {
    mma_f16(d, fa, fb);
  } else {
    mma_bf16(d, fa, fb);
  }
  for (int e = 0; e < 4; ++e) y[(g + 8 * (e / 2)) * 8 + 2 * t + e % 2] = d[e];
}
KERNEL product_tf32(const float* left, const float* right, float* out) {
  const auto a = global<const float>(left), b = global<const float>(right);
  const auto y = global<float>(out);
  const int g = int(threadIdx.x) / 4, t = int(threadIdx.x) % 4;
  float d[4] = {};
  for (int k = 0; k < 16; k += 8) {
    uint32_t fa[4], fb[2];
    for (int r = 0; r < 4; ++r) {
      fa[r] = to_tf32(a[(g + 8 * (r % 2)) * 16 + k + t + 4 * (r / 2)]);
    }
    for (int r = 0; r < 2; ++r) fb[r] = to_tf32(b[(k + t + 4 * r) * 8 + g]);
    mma_tf32(d, fa, fb);
  }
  for (int e = 0; e < 4; ++e) y[(g + 8 * (e / 2)) * 8 + 2 * t + e % 2] = d[e];
}
// Small whole numbers, which all three types hold exactly.
int left_at(int i, int k) { return (3 * i + 5 * k) % 11 - 5; }
int right_at(int k, int j) { return (2 * k + 7 * j) % 9 - 4; }
int product_at(int i, int j) {
  int sum = 0;
  for (int k = 0; k < 16; ++k) sum += left_at(i, k) * right_at(k, j);
  return sum;
}
void expect_product(const std::vector<float>& y, int added) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) EXPECT_EQ(y[size_t(i * 8 + j)], float(product_at(i, j) + added));
  }
}
template <class T>
void test_product(void (*kernel)(const T*, const T*, float*), T (*convert)(float), int added) {
  std::vector<T> a, b;
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) a.push_back(convert(float(left_at(i, k))));
  }
  for (int k = 0; k < 16; ++k) {
    for (int j = 0; j < 8; ++j) b.push_back(convert(float(right_at(k, j))));
  }
  in_every_order([&] {
    Buffer<T> left(a), right(b);
    Buffer<float> y(128);
    launch(blocks_of(1, 32), kernel, static_cast<const T*>(left.get()),
           static_cast<const T*>(right.get()), y.get());
    expect_product(y.values(), added);
  });
}
TEST(Emu, TensorCoreProducts) {
  test_product<uint16_t>(
      &product_16bit<false>, [](float x) { return math::detail::bf16_bits(x); }, 1);
  test_product<uint16_t>(
      &product_16bit<true>, [](float x) { return math::detail::f16_bits(x); }, 1);
  test_product<float>(
      &product_tf32, [](float x) { return x; }, 0);
}
TEST(Emu, Tf32RoundsToTenBits) {
  EXPECT_EQ(to_tf32(1.0f), 0x3f800000u);
  EXPECT_EQ(to_tf32(1.0f + 0x1p-11f), 0x3f802000u);  // a tie goes away from zero
  EXPECT_EQ(to_tf32(1.0f + 0x1p-12f), 0x3f800000u);
  EXPECT_EQ(to_tf32(-1.0f - 0x1p-11f), 0xbf802000u);
}

// ---- counters

KERNEL strided_copy(const float* in, float* out, int stride) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  y[i] = x[i * stride];
}
LaunchCounters counted(int stride) {
  const OptionsScope scope({.count = true});
  Buffer<float> x(std::vector<float>(size_t(128 * stride), 1.0f)), y(128);
  take_collected();
  launch({.name = "strided_copy", .grid = {2}, .block = {64}, .sync = Sync::none}, strided_copy,
         x.get(), y.get(), stride);
  auto list = take_collected();
  EXPECT_EQ(list.size(), 1u);
  return list.at(0).counters;
}
TEST(EmuCounters, CoalescedAndStridedReads) {
  const LaunchCounters dense = counted(1);
  EXPECT_EQ(dense.bytes_read(), 512);
  EXPECT_EQ(dense.bytes_written(), 512);
  EXPECT_EQ(dense.blocks, 2);
  ASSERT_EQ(dense.lines.size(), 2u);
  EXPECT_EQ(dense.lines[0].requests, 4);
  EXPECT_EQ(dense.lines[0].segments, 4);
  EXPECT_EQ(dense.lane_use(), 1.0);
  const LaunchCounters wide = counted(8);
  EXPECT_EQ(wide.bytes_read(), 128 * 32);
  EXPECT_EQ(wide.bytes_written(), 512);
}

KERNEL transpose_tile(float* out, int pitch) {
  const auto y = global<float>(out);
  SHARED(float, tile, 32 * 33);
  const int i = int(threadIdx.x);
  for (int r = 0; r < 32; ++r) tile[r * pitch + i] = float(r);
  __syncthreads();
  for (int r = 0; r < 32; ++r) y[r * 32 + i] = tile[i * pitch + r];
}
TEST(EmuCounters, BankConflictsOfATransposedTile) {
  const OptionsScope scope({.count = true});
  Buffer<float> y(1024);
  take_collected();
  launch(blocks_of(1, 32), transpose_tile, y.get(), 32);
  launch(blocks_of(1, 32), transpose_tile, y.get(), 33);
  const auto list = take_collected();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].counters.bank_conflicts(), 32 * 31);
  EXPECT_EQ(list[1].counters.bank_conflicts(), 0);
  EXPECT_EQ(list[1].counters.barriers, 1);
  EXPECT_EQ(list[1].first_warp.size(), 96u);
  EXPECT_EQ(y.values()[33], 1);
}

KERNEL half_idle(float* out) {
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  if (i % 2 == 0) y[i] = 1.0f;
}
KERNEL one_bin(int* out) {
  const auto y = global<int>(out);
  atomic_add(y, 0, 1);
}
TEST(EmuCounters, DivergenceAndContention) {
  const OptionsScope scope({.count = true});
  Buffer<float> y(32);
  Buffer<int> bin(std::vector<int>{0});
  take_collected();
  launch(blocks_of(1, 32), half_idle, y.get());
  launch(blocks_of(1, 32), one_bin, bin.get());
  const auto list = take_collected();
  EXPECT_EQ(list.at(0).counters.lane_use(), 0.5);
  EXPECT_EQ(list.at(1).counters.lines.at(0).contention, 31);
}

}  // namespace
}  // namespace cutaway::cuda::emu
