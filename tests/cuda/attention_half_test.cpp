#include <gtest/gtest.h>

#include <random>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/attention.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/rng.h>
#include <cutaway/cuda/emu/counters.h>
#include <cutaway/cuda/emu/options.h>
#include <cutaway/cuda/lib/attention.h>

#include <tests/cuda/emu_buffer.h>
#include <tests/cuda/orders.h>

namespace cutaway::cuda::emu {
namespace {

struct Case {
  int64_t queries, keys, depth, width;
  bool causal = false, allowed = false, added = false;
  int64_t batch = 2;
};

AttentionArgs arguments(const Case& c) {
  AttentionArgs x{.rank = 1, .batch = c.batch};
  x.sizes[0] = c.batch;
  x.queries = c.queries;
  x.keys = c.keys;
  x.depth = x.q_row = x.k_row = c.depth;
  x.width = x.v_row = c.width;
  x.strides[0][0] = c.queries * c.depth;
  x.strides[1][0] = c.keys * c.depth;
  x.strides[2][0] = c.keys * c.width;
  x.mask_row = c.keys;
  x.mask_column = 1;
  x.scale = 0.3;
  x.causal = c.causal;
  return x;
}

// Numbers of a 16-bit type, and the same in f32.
template <class T>
struct Values {
  std::vector<T> narrow;
  std::vector<float> wide;
  Values(int64_t n, unsigned seed) {
    std::mt19937 engine(seed);
    for (int64_t i = 0; i < n; ++i) {
      narrow.push_back(T(float(int(engine() % 2001) - 1000) / 700.0f));
      wide.push_back(float(narrow.back()));
    }
  }
};

template <class T>
constexpr bool kIsBf16 = std::is_same_v<T, BFloat16>;

// Largest difference, relative to the largest value.
template <class T>
void expect_near(const std::vector<T>& got, const std::vector<float>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  float largest = 1e-6f;
  for (float w : want) largest = std::isfinite(w) ? std::max(largest, std::abs(w)) : largest;
  for (size_t i = 0; i < got.size(); ++i) {
    if (float(got[i]) == want[i]) continue;
    ASSERT_NEAR(float(got[i]), want[i], (kIsBf16<T> ? 1e-2f : 1.5e-3f) * largest) << what << i;
  }
}

// Forward and backward in 16 bits on the emulator, in f32 on the CPU.
template <class T>
void compare(const Case& c) {
  constexpr DType kType = kIsBf16<T> ? DType::bf16 : DType::f16;
  AttentionArgs host = arguments(c), device = host;
  const Values<T> q(c.batch * c.queries * c.depth, 1), k(c.batch * c.keys * c.depth, 2),
      v(c.batch * c.keys * c.width, 3), g(c.batch * c.queries * c.width, 4),
      added(c.queries * c.keys, 5);
  std::vector<char> allowed;
  for (int64_t i = 0; i < c.queries * c.keys; ++i) {
    allowed.push_back(added.wide[size_t(i)] > 0 && i / c.keys != 1);  // query 1 looks nowhere
  }
  const Buffer<T> dq(q.narrow), dk(k.narrow), dv(v.narrow), dg(g.narrow);
  const Buffer<float> dadded(added.wide);
  const Buffer<char> dallowed(allowed);
  host.q = q.wide.data(), device.q = dq.get();
  host.k = k.wide.data(), device.k = dk.get();
  host.v = v.wide.data(), device.v = dv.get();
  host.upstream = g.wide.data(), device.upstream = dg.get();
  if (c.added) host.added = added.wide.data(), device.added = dadded.get();
  if (c.allowed) {
    host.allowed = reinterpret_cast<const bool*>(allowed.data());
    device.allowed = reinterpret_cast<const bool*>(dallowed.get());
  }
  const int64_t sizes[] = {c.batch * c.queries * c.width, c.batch * c.queries * c.depth,
                           c.batch * c.keys * c.depth, c.batch * c.keys * c.width};
  std::vector<float> want[4], lses(size_t(c.batch * c.queries));
  for (size_t i = 0; i < 4; ++i) want[i].resize(size_t(sizes[i]));
  const Buffer<T> o(sizes[0]), gq(sizes[1]), gk(sizes[2]), gv(sizes[3]);
  const Buffer<float> lse(c.batch * c.queries);
  host.o = want[0].data(), device.o = o.get();
  host.lse = lses.data(), device.lse = lse.get();
  host.dq = want[1].data(), device.dq = gq.get();
  host.dk = want[2].data(), device.dk = gk.get();
  host.dv = want[3].data(), device.dv = gv.get();
  kernels::attention.find(DeviceKind::cpu, DType::f32)(host);
  kernels::attention.find(DeviceKind::emu, kType)(device);
  expect_near(o.values(), want[0], "o ");
  const auto logs = lse.values();
  for (size_t i = 0; i < logs.size(); ++i) {
    if (logs[i] == lses[i]) continue;  // infinities too
    EXPECT_NEAR(logs[i], lses[i], 1e-5 * (1 + std::abs(lses[i])));
  }
  kernels::attention_backward.find(DeviceKind::cpu, DType::f32)(host);
  kernels::attention_backward.find(DeviceKind::emu, kType)(device);
  expect_near(gq.values(), want[1], "dq ");
  expect_near(gk.values(), want[2], "dk ");
  expect_near(gv.values(), want[3], "dv ");
  check_red_zones();
}

TEST(CudaAttentionHalf, AgreesWithF32) {
  compare<BFloat16>({.queries = 5, .keys = 7, .depth = 3, .width = 4});
  compare<Float16>({.queries = 70, .keys = 66, .depth = 32, .width = 40});
  compare<BFloat16>({.queries = 30, .keys = 65, .depth = 64, .width = 72});
  compare<Float16>({.queries = 20, .keys = 20, .depth = 128, .width = 17});
}
TEST(CudaAttentionHalf, Masks) {
  compare<BFloat16>({.queries = 70, .keys = 70, .depth = 16, .width = 16, .causal = true});
  compare<Float16>({.queries = 66, .keys = 80, .depth = 8, .width = 24, .causal = true});
  compare<BFloat16>({.queries = 20, .keys = 70, .depth = 16, .width = 8, .allowed = true});
  compare<Float16>({.queries = 70, .keys = 20, .depth = 8, .width = 16, .added = true});
}
TEST(CudaAttentionHalf, EmptySizes) {
  compare<BFloat16>({.queries = 0, .keys = 3, .depth = 2, .width = 2});
  compare<BFloat16>({.queries = 3, .keys = 0, .depth = 2, .width = 2});
  compare<BFloat16>({.queries = 3, .keys = 3, .depth = 0, .width = 2});
  compare<BFloat16>({.queries = 3, .keys = 3, .depth = 2, .width = 0});
  compare<BFloat16>({.queries = 3, .keys = 3, .depth = 2, .width = 2, .batch = 0});
}
TEST(CudaAttentionHalf, EveryOrder) {
  for (const Order order : tested_orders()) {
    const OptionsScope scope({.order = order, .seed = 3});
    compare<Float16>({.queries = 66, .keys = 66, .depth = 24, .width = 8, .causal = true});
  }
}
TEST(CudaAttentionHalf, NoBankConflicts) {
  const OptionsScope scope({.check = false, .count = true});
  take_collected();
  compare<BFloat16>({.queries = 64, .keys = 64, .depth = 64, .width = 64, .causal = true});
  compare<Float16>({.queries = 64, .keys = 64, .depth = 128, .width = 128});
  const auto launches = take_collected();
  ASSERT_EQ(launches.size(), 8u);
  for (const Collected& l : launches) {
    EXPECT_EQ(l.counters.bank_conflicts(), 0) << l.counters.kernel;
  }
}

// How many passes the library ran, chosen or not.
template <class T>
int64_t passes_of_library(const Case& c, AttentionBy by) {
  const AttentionByScope scope(by);
  const int64_t before = library_attention_passes();
  compare<T>(c);
  return library_attention_passes() - before;
}
TEST(CudaAttentionHalf, TheLibraryWhenItIsChosen) {
  const Case small{.queries = 5, .keys = 9, .depth = 16, .width = 8};
  EXPECT_EQ(attention_by(), AttentionBy::own);
  EXPECT_EQ(passes_of_library<BFloat16>(small, AttentionBy::own), 0);
  EXPECT_EQ(passes_of_library<BFloat16>(small, AttentionBy::cudnn), 2);
  EXPECT_EQ(passes_of_library<Float16>(
                {.queries = 70, .keys = 66, .depth = 64, .width = 128, .causal = true},
                AttentionBy::cudnn),
            2);
}
// What it has no plan for stays with the own kernels.
TEST(CudaAttentionHalf, TheLibraryIsNotAskedForEverything) {
  for (const Case& c : {Case{.queries = 5, .keys = 7, .depth = 3, .width = 8},
                        Case{.queries = 5, .keys = 7, .depth = 8, .width = 4},
                        Case{.queries = 6, .keys = 7, .depth = 8, .width = 8, .allowed = true},
                        Case{.queries = 6, .keys = 7, .depth = 8, .width = 8, .added = true},
                        Case{.queries = 3, .keys = 0, .depth = 8, .width = 8}}) {
    EXPECT_EQ(passes_of_library<BFloat16>(c, AttentionBy::cudnn), 0) << c.depth << " " << c.width;
  }
  AttentionArgs x = arguments({.queries = 4, .keys = 4, .depth = 16, .width = 16});
  EXPECT_TRUE(library_attends(DType::f16, x));
  EXPECT_FALSE(library_attends(DType::f32, x));
  x.strides[1][0] = 0;  // heads that share their keys
  EXPECT_FALSE(library_attends(DType::f16, x));
  x.sizes[0] = x.batch = 1;
  EXPECT_TRUE(library_attends(DType::f16, x));
  x.dq = reinterpret_cast<void*>(8);
  EXPECT_FALSE(library_attends(DType::f16, x));
  x.dq = nullptr;
  x.rank = 3;
  EXPECT_FALSE(library_attends(DType::f16, x));
}
// Operands whose heads are columns of a wider matrix, through the op.
TEST(CudaAttentionHalf, TheLibraryTakesSplitHeads) {
  const auto run = [](AttentionBy by, Tensors& grads) {
    const AttentionByScope scope(by);
    Generator random{.seed = 3};
    const Tensor qkv = randn({2, 6, 3 * 32}, {}, &random).to(DType::bf16);
    const Tensor all = qkv.to(Device{DeviceKind::emu, 0}).detach().set_requires_grad();
    Tensors in;
    for (int64_t i = 0; i < 3; ++i) {
      in.push_back(slice(all, 2, 32 * i, 32 * (i + 1)).reshape({2, 6, 4, 8}).transpose(1, 2));
    }
    const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], {.causal = true});
    grads = grad({y}, {all}, {}, {ones_like(y)});
    return y;
  };
  Tensors own_grads, grads;
  const Tensor own = run(AttentionBy::own, own_grads);
  const int64_t before = library_attention_passes();
  const Tensor library = run(AttentionBy::cudnn, grads);
  EXPECT_EQ(library_attention_passes() - before, 2);
  EXPECT_LT(amax(abs(own - library).to(kCpu)).item<double>(), 0.02);
  EXPECT_LT(amax(abs(own_grads[0] - grads[0]).to(kCpu)).item<double>(), 0.05);
}

}  // namespace
}  // namespace cutaway::cuda::emu
