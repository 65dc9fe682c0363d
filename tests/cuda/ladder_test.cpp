#include <gtest/gtest.h>

#include <random>

#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>
#include <cutaway/cuda/ladder.h>

#include <tests/cuda/emu_buffer.h>

namespace cutaway::cuda::emu {
namespace {

std::vector<float> random_values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = float(int(engine() % 2001) - 1000) / 700.0f;
  return v;
}

// Runs every step on the same operands and compares it with the first.
template <class Args, class Run>
void expect_same(const Ladder<Args>& ladder, int64_t results, Run&& run) {
  std::vector<float> want;
  for (const LadderStep<Args>& step : ladder) {
    const Buffer<float> out(results);
    run(step, out.get());
    const auto got = out.values();
    if (want.empty()) want = got;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << step.name << " at " << i;
    }
  }
}

void compare_gemm(int64_t m, int64_t n, int64_t k) {
  const Buffer<float> a(random_values(m * k, 1)), b(random_values(k * n, 2));
  expect_same(ladders(DeviceKind::emu).gemm, m * n,
              [&](const LadderStep<MatmulArgs>& step, float* out) {
                MatmulArgs x{.m = m, .n = n, .k = k};
                x.a_row = k;
                x.b_row = x.c_row = n;
                x.a_column = x.b_column = 1;
                x.a = a.get();
                x.b = b.get();
                x.c = out;
                step.run(x);
              });
}
TEST(CudaLadder, GemmStepsAgree) {
  compare_gemm(1, 1, 1);
  compare_gemm(33, 35, 37);
  compare_gemm(36, 132, 20);
  compare_gemm(130, 68, 36);
  compare_gemm(0, 4, 4);
  const OptionsScope scope({.order = Order::shuffled, .seed = 5});
  compare_gemm(20, 24, 36);
}

void compare_attention(int64_t queries, int64_t keys, int64_t depth, int64_t width, bool causal) {
  const int64_t batch = 2;
  const Buffer<float> q(random_values(batch * queries * depth, 1)),
      k(random_values(batch * keys * depth, 2)), v(random_values(batch * keys * width, 3)),
      lse(batch * queries);
  expect_same(ladders(DeviceKind::emu).attention, batch * queries * width,
              [&](const LadderStep<AttentionArgs>& step, float* out) {
                AttentionArgs x{.rank = 1, .batch = batch};
                x.sizes[0] = batch;
                x.strides[0][0] = queries * depth;
                x.strides[1][0] = keys * depth;
                x.strides[2][0] = keys * width;
                x.queries = queries;
                x.keys = keys;
                x.depth = x.q_row = x.k_row = depth;
                x.width = x.v_row = width;
                x.scale = 0.3;
                x.causal = causal;
                x.q = q.get();
                x.k = k.get();
                x.v = v.get();
                x.o = out;
                x.lse = lse.get();
                step.run(x);
              });
}
TEST(CudaLadder, AttentionStepsAgree) {
  compare_attention(5, 7, 3, 4, false);
  compare_attention(35, 35, 33, 64, true);
  compare_attention(3, 3, 2, 70, true);
}

// The last two steps of each ladder.
TEST(CudaLadder, TiledStepsHaveNoBankConflicts) {
  const OptionsScope scope({.check = false, .count = true});
  take_collected();
  compare_gemm(128, 128, 32);
  compare_attention(64, 64, 32, 64, true);
  const auto launches = take_collected();
  ASSERT_EQ(launches.size(), 7u);
  for (const Collected& l : launches) {
    if (l.counters.kernel == "attention_online") continue;
    EXPECT_EQ(l.counters.bank_conflicts(), 0) << l.counters.kernel;
  }
  // Each step reads less than the one before.
  EXPECT_LT(launches[1].counters.bytes_read(), launches[0].counters.bytes_read() / 2);
  EXPECT_LT(launches[2].counters.bytes_read(), launches[1].counters.bytes_read());
  EXPECT_LT(launches[5].counters.bytes_read(), launches[4].counters.bytes_read());
}

TEST(CudaLadder, EveryStepSaysItsIdea) {
  for (const auto& step : ladders(DeviceKind::emu).gemm)
    EXPECT_GT(std::string(step.idea).size(), 60u);
  for (const auto& step : ladders(DeviceKind::emu).attention)
    EXPECT_GT(std::string(step.idea).size(), 60u);
}

}  // namespace
}  // namespace cutaway::cuda::emu
