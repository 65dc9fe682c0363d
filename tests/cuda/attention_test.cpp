#include <gtest/gtest.h>

#include <random>

#include <cutaway/core/kernels/attention.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>

#include <tests/cuda/emu_buffer.h>
#include <tests/cuda/orders.h>

namespace cutaway::cuda::emu {
namespace {

template <class T>
std::vector<T> random_values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = T(int(engine() % 2001) - 1000) / T(700);
  return v;
}

enum class Mask { none, causal, allowed, added };

struct Case {
  int64_t batch, queries, keys, depth, width;
  Mask mask = Mask::none;
  bool shared_keys = false;  // k and v serve all heads
};

AttentionArgs arguments(const Case& c) {
  AttentionArgs x{.rank = 1, .batch = c.batch};
  x.sizes[0] = c.batch;
  x.queries = c.queries;
  x.keys = c.keys;
  x.depth = c.depth;
  x.width = c.width;
  x.q_row = c.depth + 3;
  x.k_row = c.depth;
  x.v_row = c.width;
  x.strides[0][0] = c.queries * x.q_row;
  x.strides[1][0] = c.shared_keys ? 0 : c.keys * c.depth;
  x.strides[2][0] = c.shared_keys ? 0 : c.keys * c.width;
  x.mask_row = c.keys;
  x.mask_column = 1;
  x.scale = 0.3;
  x.causal = c.mask == Mask::causal;
  return x;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& want, const char* what) {
  const double tolerance = sizeof(T) == 8 ? 1e-13 : 5e-6;
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // infinities too
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << " " << i;
  }
}

// Forward and backward on both devices.
template <class T>
void compare(const Case& c) {
  constexpr DType kType = sizeof(T) == 8 ? DType::f64 : DType::f32;
  AttentionArgs host = arguments(c), device = host;
  const auto q = random_values<T>(c.batch * c.queries * host.q_row, 1);
  const auto k = random_values<T>(c.batch * c.keys * c.depth, 2);
  const auto v = random_values<T>(c.batch * c.keys * c.width, 3);
  const auto g = random_values<T>(c.batch * c.queries * c.width, 4);
  const auto added = random_values<T>(c.queries * c.keys, 5);
  const auto bits = random_values<float>(c.queries * c.keys, 6);
  std::vector<char> allowed;
  for (int64_t i = 0; i < c.queries * c.keys; ++i) {
    allowed.push_back(bits[size_t(i)] > 0 && i / c.keys != 1);  // query 1 looks nowhere
  }
  const Buffer<T> dq(q), dk(k), dv(v), dg(g), dadded(added);
  const Buffer<char> dallowed(allowed);
  host.q = q.data(), device.q = dq.get();
  host.k = k.data(), device.k = dk.get();
  host.v = v.data(), device.v = dv.get();
  host.upstream = g.data(), device.upstream = dg.get();
  if (c.mask == Mask::added) host.added = added.data(), device.added = dadded.get();
  if (c.mask == Mask::allowed) {
    host.allowed = reinterpret_cast<const bool*>(allowed.data());
    device.allowed = reinterpret_cast<const bool*>(dallowed.get());
  }
  const int64_t sizes[] = {c.batch * c.queries * c.width, c.batch * c.queries,
                           c.batch * c.queries * c.depth, c.batch * c.keys * c.depth,
                           c.batch * c.keys * c.width};
  std::vector<T> want[5];
  for (size_t i = 0; i < 5; ++i) want[i].resize(size_t(sizes[i]));
  const Buffer<T> o(sizes[0]), lse(sizes[1]), gq(sizes[2]), gk(sizes[3]), gv(sizes[4]);
  host.o = want[0].data(), device.o = o.get();
  host.lse = want[1].data(), device.lse = lse.get();
  host.dq = want[2].data(), device.dq = gq.get();
  host.dk = want[3].data(), device.dk = gk.get();
  host.dv = want[4].data(), device.dv = gv.get();
  kernels::attention.find(DeviceKind::cpu, kType)(host);
  kernels::attention.find(DeviceKind::emu, kType)(device);
  expect_near(o.values(), want[0], "o");
  expect_near(lse.values(), want[1], "lse");
  kernels::attention_backward.find(DeviceKind::cpu, kType)(host);
  kernels::attention_backward.find(DeviceKind::emu, kType)(device);
  expect_near(gq.values(), want[2], "dq");
  expect_near(gk.values(), want[3], "dk");
  expect_near(gv.values(), want[4], "dv");
  check_red_zones();
}
template <class T>
void compare_all(Mask mask) {
  compare<T>({2, 5, 7, 3, 4, mask});
  compare<T>({1, 70, 40, 34, 9, mask});
  compare<T>({1, 33, 66, 5, 67, mask, true});
}

TEST(CudaAttention, NoMask) {
  compare_all<float>(Mask::none);
  compare_all<double>(Mask::none);
}
TEST(CudaAttention, Causal) {
  compare_all<float>(Mask::causal);
  compare_all<double>(Mask::causal);
}
TEST(CudaAttention, BooleanMask) {
  compare_all<float>(Mask::allowed);
  compare_all<double>(Mask::allowed);
}
TEST(CudaAttention, AddedMask) {
  compare_all<float>(Mask::added);
  compare_all<double>(Mask::added);
}
TEST(CudaAttention, EmptySizes) {
  compare<float>({0, 3, 3, 2, 2});
  compare<float>({2, 0, 3, 2, 2});
  compare<float>({2, 3, 0, 2, 2});
  compare<float>({2, 3, 3, 0, 2});
  compare<float>({2, 3, 3, 2, 0});
}
TEST(CudaAttention, EveryOrder) {
  for (const Order order : tested_orders()) {
    const OptionsScope scope({.order = order, .seed = 3});
    compare<float>({1, 70, 66, 34, 4, Mask::causal});
    compare<double>({1, 35, 34, 34, 4, Mask::allowed});
  }
}
TEST(CudaAttention, NoBankConflicts) {
  const OptionsScope scope({.check = false, .count = true});
  take_collected();
  compare<float>({1, 128, 128, 64, 64, Mask::causal});
  compare<double>({1, 64, 64, 32, 64});
  const auto launches = take_collected();
  ASSERT_EQ(launches.size(), 6u);
  for (const Collected& l : launches) {
    EXPECT_EQ(l.counters.bank_conflicts(), 0) << l.counters.kernel;
  }
}

}  // namespace
}  // namespace cutaway::cuda::emu
