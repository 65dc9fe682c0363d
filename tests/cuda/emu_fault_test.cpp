#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <cutaway/cuda/device/language.h>

#include <tests/cuda/emu_buffer.h>

// Kernels with one fault each, as they happen to people. The emulator must stop every one of them
// with the kind of fault and the line where it shows.
namespace cutaway::cuda::emu {
namespace {

int fault_line;
#define FAULT fault_line = __LINE__;

std::vector<float> ramp(int n) {
  std::vector<float> v(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) v[size_t(i)] = float(i);
  return v;
}

// Expects `body` to raise a fault of that kind in this file at fault_line.
template <class F>
void expect_fault(FaultKind kind, F&& body) {
  fault_line = -1;
  try {
    body();
    ADD_FAILURE() << "no fault; expected: " << name_of(kind);
  } catch (const KernelFault& fault) {
    EXPECT_EQ(name_of(fault.kind), std::string(name_of(kind))) << fault.what();
    // A race has two lines.
    EXPECT_TRUE(fault.line == fault_line || fault.other_line == fault_line)
        << "line " << fault_line << "; " << fault.what();
    EXPECT_NE(fault.file.find("emu_fault_test.cpp"), std::string::npos) << fault.file;
    EXPECT_NE(std::string(fault.what()).find("hint:"), std::string::npos) << fault.what();
  }
}

constexpr Launch one_block(unsigned threads, int64_t shared = 0) {
  return {.name = "planted", .grid = {1}, .block = {threads}, .shared = shared};
}
constexpr Launch flat(unsigned blocks, unsigned threads) {
  return {.name = "planted", .grid = {blocks}, .block = {threads}, .sync = Sync::none};
}

// ---- bounds and addresses

KERNEL off_by_one(const float* in, float* out, int) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  FAULT y[i] = x[i + 1] - x[i];
}
TEST(EmuFault, GlobalOffByOne) {
  Buffer<float> x(ramp(64)), y(64);
  expect_fault(FaultKind::out_of_bounds,
               [&] { launch(flat(1, 64), off_by_one, x.get(), y.get(), 64); });
}

KERNEL no_tail_guard(float* out) {
  const auto y = global<float>(out);
  FAULT y[int(blockIdx.x * blockDim.x + threadIdx.x)] = 1.0f;
}
TEST(EmuFault, TailWithoutGuard) {
  Buffer<float> y(100);
  expect_fault(FaultKind::out_of_bounds, [&] { launch(flat(2, 64), no_tail_guard, y.get()); });
}

KERNEL before_begin(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  FAULT y[i] = x[i - 1];
}
TEST(EmuFault, NegativeIndex) {
  Buffer<float> x(ramp(32)), y(32);
  expect_fault(FaultKind::out_of_bounds,
               [&] { launch(flat(1, 32), before_begin, x.get(), y.get()); });
}

KERNEL shared_off_by_one(float* out) {
  const auto y = global<float>(out);
  SHARED(float, tile, 32);
  const int i = int(threadIdx.x);
  FAULT tile[i + 1] = float(i);
  __syncthreads();
  y[i] = tile[i];
}
TEST(EmuFault, SharedOffByOne) {
  Buffer<float> y(32);
  expect_fault(FaultKind::out_of_bounds,
               [&] { launch(one_block(32), shared_off_by_one, y.get()); });
}

KERNEL write_to(float* out) {
  const auto y = global<float>(out);
  FAULT y[0] = 1.0f;
}
TEST(EmuFault, NullPointer) {
  float* nowhere = nullptr;
  expect_fault(FaultKind::out_of_bounds, [&] { launch(flat(1, 1), write_to, nowhere); });
}
TEST(EmuFault, HostPointer) {
  float value = 0;
  expect_fault(FaultKind::out_of_bounds, [&] { launch(flat(1, 1), write_to, &value); });
  EXPECT_EQ(value, 0);
}
TEST(EmuFault, FreedBuffer) {
  float* freed;
  {
    Buffer<float> y(8);
    freed = y.get();
  }
  expect_fault(FaultKind::out_of_bounds, [&] { launch(flat(1, 1), write_to, freed); });
}

KERNEL vector_load(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  FAULT const Vec<float, 4> v = load<4>(x, 4 * i + 1);
  y[i] = v[0];
}
TEST(EmuFault, MisalignedVectorLoad) {
  Buffer<float> x(ramp(64)), y(8);
  expect_fault(FaultKind::misaligned, [&] { launch(flat(1, 8), vector_load, x.get(), y.get()); });
}

KERNEL vector_store(float* out, int n) {
  const auto y = global<float>(out);
  const int i = 4 * int(threadIdx.x);
  if (i < n) {
    FAULT store(y, i, Vec<float, 4>{{1, 2, 3, 4}});
  }
}
TEST(EmuFault, VectorStoreBeyondTheEnd) {
  Buffer<float> y(30);
  expect_fault(FaultKind::out_of_bounds, [&] { launch(flat(1, 8), vector_store, y.get(), 30); });
}

// ---- memory that nothing wrote

KERNEL copy_one(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  FAULT y[i] = x[i];
}
TEST(EmuFault, UninitializedGlobalMemory) {
  Buffer<float> x(16), y(16);
  expect_fault(FaultKind::uninitialized, [&] { launch(flat(1, 16), copy_one, x.get(), y.get()); });
}

KERNEL half_filled_tile(float* out) {
  const auto y = global<float>(out);
  SHARED(float, tile, 64);
  const int i = int(threadIdx.x);
  if (i < 32) tile[i] = float(i);
  __syncthreads();
  FAULT y[i] = tile[i];
}
TEST(EmuFault, UninitializedSharedMemory) {
  Buffer<float> y(64);
  expect_fault(FaultKind::uninitialized, [&] { launch(one_block(64), half_filled_tile, y.get()); });
}

KERNEL accumulator_not_cleared(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, sum, 1);
  FAULT atomic_add(sum, 0, x[int(threadIdx.x)]);
  __syncthreads();
  if (threadIdx.x == 0) y[0] = sum[0];
}
TEST(EmuFault, AccumulatorNotCleared) {
  Buffer<float> x(ramp(32)), y(1);
  expect_fault(FaultKind::uninitialized,
               [&] { launch(one_block(32), accumulator_not_cleared, x.get(), y.get()); });
}

// ---- races

KERNEL missing_barrier(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, tile, 64);
  const int i = int(threadIdx.x);
  tile[i] = x[i];
  // The last warp runs last, so the tile is full when it reads: only the check sees the fault.
  FAULT if (i >= 32) y[i] = tile[63 - i];
}
TEST(EmuFault, MissingBarrier) {
  Buffer<float> x(ramp(64)), y(64);
  expect_fault(FaultKind::race, [&] { launch(one_block(64), missing_barrier, x.get(), y.get()); });
}

KERNEL tile_reused_too_early(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, tile, 64);
  const int i = int(threadIdx.x);
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    FAULT tile[i] = x[64 * round + i];
    __syncthreads();
    sum += tile[63 - i];
    // A second barrier belongs here.
  }
  y[i] = sum;
}
TEST(EmuFault, MissingBarrierBeforeReuse) {
  Buffer<float> x(ramp(128)), y(64);
  expect_fault(FaultKind::race,
               [&] { launch(one_block(64), tile_reused_too_early, x.get(), y.get()); });
}

KERNEL unsynchronised_tail(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, part, 64);
  const int i = int(threadIdx.x);
  part[i] = x[i];
  __syncthreads();
  if (i < 32) part[i] = part[i] + part[i + 32];
  // Old habit: "a warp runs in step, no barrier is needed".
  for (int step = 16; step > 0; step /= 2) {
    FAULT if (i < step) part[i] = part[i] + part[i + step];
  }
  if (i == 0) y[0] = part[0];
}
TEST(EmuFault, UnsynchronisedReductionTail) {
  Buffer<float> x(ramp(64)), y(1);
  expect_fault(FaultKind::race,
               [&] { launch(one_block(64), unsynchronised_tail, x.get(), y.get()); });
}

KERNEL blocks_write_one_place(float* out) {
  const auto y = global<float>(out);
  FAULT y[int(threadIdx.x)] = float(blockIdx.x);
}
TEST(EmuFault, RaceBetweenBlocks) {
  Buffer<float> y(32);
  expect_fault(FaultKind::race, [&] { launch(flat(2, 32), blocks_write_one_place, y.get()); });
}

KERNEL reads_of_another_block(float* data) {
  const auto y = global<float>(data);
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  y[i] = float(i);
  __syncthreads();
  FAULT if (i >= 32) y[i] = y[i] + y[i - 32];
}
TEST(EmuFault, BarrierDoesNotReachOtherBlocks) {
  Buffer<float> y(64);
  expect_fault(FaultKind::race, [&] {
    launch({.name = "planted", .grid = {2}, .block = {32}}, reads_of_another_block, y.get());
  });
}

KERNEL histogram(const int* in, int* out) {
  const auto x = global<const int>(in);
  const auto bins = global<int>(out);
  FAULT bins[int(x[int(threadIdx.x)])] += 1;
}
TEST(EmuFault, IncrementWithoutAtomic) {
  Buffer<int> x(std::vector<int>{0, 1, 2, 1}), bins(std::vector<int>{0, 0, 0});
  expect_fault(FaultKind::race, [&] { launch(flat(1, 4), histogram, x.get(), bins.get()); });
}

KERNEL atomic_beside_plain(int* out) {
  const auto y = global<int>(out);
  if (threadIdx.x < 2) atomic_add(y, 0, 1);
  FAULT if (threadIdx.x == 2) y[1] = y[0];
}
TEST(EmuFault, PlainReadBesideAtomics) {
  Buffer<int> y(std::vector<int>{0, 0});
  expect_fault(FaultKind::race, [&] { launch(flat(1, 3), atomic_beside_plain, y.get()); });
}

KERNEL wrong_half_of_buffer(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, tile, 128);
  const int i = int(threadIdx.x);
  tile[i] = x[i];
  __syncthreads();
  for (int round = 0; round < 2; ++round) {
    // Fills the half that is read: `round` should be `round + 1`.
    FAULT if (round < 1) tile[64 * (round % 2) + i] = x[64 + i];
    y[64 * round + i] = tile[64 * (round % 2) + 63 - i];
    __syncthreads();
  }
}
TEST(EmuFault, DoubleBufferFillsTheHalfInUse) {
  Buffer<float> x(ramp(128)), y(128);
  expect_fault(FaultKind::race,
               [&] { launch(one_block(64), wrong_half_of_buffer, x.get(), y.get()); });
}

// ---- barriers and warps that part

KERNEL two_barriers(float* out) {
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  if (i < 40) {
    FAULT __syncthreads();
  } else {
    __syncthreads();
  }
  y[i] = 1;
}
TEST(EmuFault, BarrierInBranches) {
  Buffer<float> y(64);
  expect_fault(FaultKind::divergent_barrier, [&] { launch(one_block(64), two_barriers, y.get()); });
}

KERNEL shuffle_against_barrier(float* out) {
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  float v = float(i);
  if (i % 32 < 16) {
    FAULT v += __shfl_xor_sync(kAllLanes, v, 8);
  }
  __syncthreads();
  y[i] = v;
}
TEST(EmuFault, FullMaskInABranch) {
  Buffer<float> y(32);
  expect_fault(FaultKind::divergent_warp,
               [&] { launch(one_block(32), shuffle_against_barrier, y.get()); });
}

KERNEL mask_without_caller(float* out) {
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  FAULT y[i] = __shfl_xor_sync(0x0000ffffu, float(i), 1);
}
TEST(EmuFault, MaskWithoutTheCaller) {
  Buffer<float> y(32);
  expect_fault(FaultKind::bad_mask, [&] { launch(one_block(32), mask_without_caller, y.get()); });
}

KERNEL shuffle_from_outside(float* out) {
  const auto y = global<float>(out);
  const int i = int(threadIdx.x);
  float v = float(i);
  if (i < 16) {
    FAULT v = __shfl_xor_sync(0x0000ffffu, v, 16);
  }
  y[i] = v;
}
TEST(EmuFault, ShuffleFromALaneOutsideTheMask) {
  Buffer<float> y(32);
  expect_fault(FaultKind::bad_mask, [&] { launch(one_block(32), shuffle_from_outside, y.get()); });
}

KERNEL barrier_undeclared(float* out) {
  const auto y = global<float>(out);
  y[int(threadIdx.x)] = 1;
  FAULT __syncthreads();
}
TEST(EmuFault, BarrierInAKernelDeclaredFree) {
  Buffer<float> y(4);
  expect_fault(FaultKind::undeclared_sync,
               [&] { launch(flat(1, 4), barrier_undeclared, y.get()); });
}

// ---- asynchronous copies

KERNEL copy_never_awaited(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, tile, 32);
  const int i = int(threadIdx.x);
  FAULT copy_async<1>(tile, i, x, i);
  copy_async_commit();
  y[i] = 0;
}
TEST(EmuFault, CopyNeverAwaited) {
  Buffer<float> x(ramp(32)), y(32);
  expect_fault(FaultKind::pending_copy,
               [&] { launch(one_block(32), copy_never_awaited, x.get(), y.get()); });
}

KERNEL copy_used_before_wait(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, tile, 32);
  const int i = int(threadIdx.x);
  copy_async<1>(tile, i, x, i);
  copy_async_commit();
  FAULT y[i] = tile[i];
  copy_async_wait<0>();
}
TEST(EmuFault, CopyUsedBeforeItsWait) {
  Buffer<float> x(ramp(32)), y(32);
  expect_fault(FaultKind::uninitialized,
               [&] { launch(one_block(32), copy_used_before_wait, x.get(), y.get()); });
}

KERNEL copy_without_barrier(const float* in, float* out) {
  const auto x = global<const float>(in);
  const auto y = global<float>(out);
  SHARED(float, tile, 32);
  const int i = int(threadIdx.x);
  copy_async<1>(tile, i, x, i);
  copy_async_commit();
  copy_async_wait<0>();
  // A wait is for the own copies only.
  FAULT if (i == 31) y[i] = tile[0];
}
TEST(EmuFault, CopyOfAnotherThreadWithoutBarrier) {
  Buffer<float> x(ramp(32)), y(32);
  expect_fault(FaultKind::race,
               [&] { launch(one_block(32), copy_without_barrier, x.get(), y.get()); });
}

// ---- launches

TEST(EmuFault, LaunchLimits) {
  Buffer<float> y(1);
  const auto refused = [&](const Launch& l, const char* text) {
    try {
      launch(l, write_to, y.get());
      ADD_FAILURE() << "launched: " << text;
    } catch (const KernelFault& fault) {
      EXPECT_EQ(fault.kind, FaultKind::bad_launch);
      EXPECT_NE(std::string(fault.what()).find(text), std::string::npos) << fault.what();
    }
  };
  refused(one_block(1025), "1025 x 1 x 1 threads");
  refused(one_block(0), "0 x 1 x 1 threads");
  refused({.name = "planted", .grid = {0}, .block = {32}}, "0 x 1 x 1 blocks");
  refused({.name = "planted", .grid = {1, 65536}, .block = {32}}, "1 x 65536 x 1 blocks");
  refused(one_block(32, 228 * 1024), "bytes of dynamic shared memory");
}

KERNEL large_tile(float* out) {
  const auto y = global<float>(out);
  FAULT SHARED(float, tile, 16 * 1024);
  tile[int(threadIdx.x)] = 1;
  y[0] = 1;
}
TEST(EmuFault, TooMuchStaticSharedMemory) {
  Buffer<float> y(1);
  expect_fault(FaultKind::bad_launch, [&] { launch(one_block(1), large_tile, y.get()); });
}

}  // namespace
}  // namespace cutaway::cuda::emu
