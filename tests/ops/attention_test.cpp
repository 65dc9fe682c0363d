#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr Opts kBool{.dtype = DType::boolean};

// Numbers in (-1, 1), different for every seed.
Tensor waves(const Shape& sizes, double seed, DType dtype = DType::f64) {
  Values v(size_t(sizes.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(seed + 1.7 * double(i) * (1 + seed));
  return tensor(std::span<const double>(v), {.dtype = dtype}).reshape(sizes);
}

struct Outcome {
  Tensor y;
  Tensors grads;
};

Outcome run_with(bool fused, Tensors in, const AttentionOptions& options,
                 bool create_graph = false) {
  for (Tensor& t : in) t = t.detach().set_requires_grad();
  const Tensor y = fused ? scaled_dot_product_attention(in[0], in[1], in[2], options)
                         : attention_composite(in[0], in[1], in[2], options);
  const Tensor g = waves(y.sizes(), 9, y.dtype());
  return {y, grad({y}, in, {.create_graph = create_graph}, {g})};
}

void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  const Values x = a.to_vector(), y = b.to_vector();
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::fabs(y[i]))) << "element " << i;
  }
}

TEST(Attention, FC_d7a2_RowWithEveryKeyMasked) {
  const Tensors in{tensor({1, 1}, {2, 1}), tensor({1, 2}, {2, 1}), tensor({1, 2}, {2, 1})};
  const AttentionOptions options{.mask = tensor({1, 0, 0, 0}, {2, 2}, kBool)};
  for (const bool fused : {true, false}) {
    for (const bool create_graph : {true, false}) {
      const Outcome r = run_with(fused, in, options, create_graph);
      EXPECT_EQ(r.y.to_vector(), (Values{1, 0}));
      EXPECT_EQ(r.grads[0].to_vector(), (Values{0, 0}));
      EXPECT_EQ(r.grads[1].to_vector(), (Values{0, 0}));
      EXPECT_EQ(r.grads[2].to_vector()[1], 0);
    }
  }
}

TEST(Attention, FC_fa60_CausalAndPaddingTogether) {
  const Tensors in{zeros({2, 1}), zeros({2, 1}), tensor({5, 9}, {2, 1})};
  const AttentionOptions options{.mask = tensor({0, 1}, kBool), .causal = true};
  for (const bool fused : {true, false}) {
    const Outcome r = run_with(fused, in, options);
    EXPECT_EQ(r.y.to_vector(), (Values{0, 9}));
    for (const Tensor& g : r.grads) {
      for (const double x : g.to_vector()) EXPECT_TRUE(std::isfinite(x));
    }
  }
}

TEST(Attention, FusedAgreesWithComposite) {
  struct Case {
    int64_t queries, keys, depth, width;
    AttentionOptions options;
  };
  const Tensor padded = ge(waves({2, 1, 1, 130}, 3), 0), added = waves({65, 130}, 4);
  const Case cases[] = {{65, 130, 8, 5, {}},
                        {130, 130, 4, 4, {.causal = true}},
                        {7, 130, 4, 4, {.mask = padded}},
                        {130, 130, 4, 4, {.mask = padded, .causal = true, .scale = 3}},
                        {65, 130, 4, 4, {.mask = added}}};
  for (const Case& c : cases) {
    const Tensors in{waves({2, 3, c.queries, c.depth}, 1), waves({2, 3, c.keys, c.depth}, 2),
                     waves({2, 3, c.keys, c.width}, 5)};
    const Outcome fused = run_with(true, in, c.options), plain = run_with(false, in, c.options);
    expect_near(fused.y, plain.y, 1e-12);
    for (int i = 0; i < 3; ++i) expect_near(fused.grads[i], plain.grads[i], 1e-11);
  }
}

TEST(Attention, HeadsAsViewsAndSixteenBits) {
  const Tensor x = waves({2, 9, 3, 4}, 1, DType::f32);  // [B, T, H, D]
  const Tensor heads = x.transpose(1, 2);
  const Tensor want = attention_composite(heads, heads, heads, {.causal = true});
  expect_near(scaled_dot_product_attention(heads, heads, heads, {.causal = true}), want, 1e-6);
  const Tensor half = heads.to(DType::bf16);
  const Outcome r = run_with(true, {half, half, half}, {.causal = true});
  EXPECT_EQ(r.y.dtype(), DType::bf16);
  EXPECT_EQ(r.grads[0].dtype(), DType::bf16);
  expect_near(r.y, want, 2e-2);
}

TEST(Attention, GradientOfAnAddedMask) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor q = waves({2, 3}, 1), k = waves({4, 3}, 2), v = waves({4, 2}, 3);
  Tensor mask = tensor({0, 1, -inf, 0, -inf, -inf, -inf, -inf}, {2, 4}, {.dtype = DType::f64});
  mask.set_requires_grad();
  const Tensor y = scaled_dot_product_attention(q, k, v, {.mask = mask});
  const Tensor g = waves({2, 2}, 4);
  const Values d = grad({y}, {mask}, {}, {g})[0].to_vector();
  double sum = 0;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(std::isfinite(d[i]));
    if (i == 2 || i > 3) {
      EXPECT_EQ(d[i], 0);
    }
    sum += d[i];
  }
  EXPECT_NEAR(sum, 0, 1e-14);  // adding a number to a whole row changes nothing
  EXPECT_NE(d[0], 0);
}

TEST(Attention, DropoutDropsWeightsAndKeepsTheMean) {
  manual_seed(3);
  const Tensor q = zeros({1, 400, 2}), v = ones({1, 50, 1});
  const Tensor y = scaled_dot_product_attention(q, zeros({1, 50, 2}), v, {.dropout = 0.5});
  double sum = 0;
  for (const double x : y.to_vector()) {
    EXPECT_NEAR(x * 25, std::round(x * 25), 1e-4);  // a whole number of weights 2/50
    sum += x;
  }
  EXPECT_NEAR(sum / 400, 1, 0.03);  // five standard deviations of the mean
  EXPECT_THROW(scaled_dot_product_attention(q, q, q, {.dropout = 1.5}), ValueError);
}

TEST(Attention, NaNIsNotHidden) {
  Tensor k = ones({200, 2});
  k.data<float>()[2 * 150] = std::nanf("");
  const Tensor y = scaled_dot_product_attention(ones({1, 2}), k, ones({200, 1}));
  EXPECT_TRUE(std::isnan(y.item()));
}

TEST(Attention, MemoryDoesNotGrowWithTheSquare) {
  constexpr int64_t kLength = 2048;
  Tensor q = waves({1, kLength, 8}, 1, DType::f32).set_requires_grad();
  const Tensor g = ones({1, kLength, 8});
  reset_peak_memory();
  const int64_t before = memory_stats().peak;
  scaled_dot_product_attention(q, q, q, {.causal = true}).backward(g);
  EXPECT_LT(memory_stats().peak - before, kLength * kLength * 4 / 4);
}

TEST(Attention, SameBitsForEveryThreadCount) {
  const Tensors in{waves({2, 2, 130, 8}, 1), waves({2, 2, 130, 8}, 2), waves({2, 2, 130, 8}, 3)};
  const int before = num_threads();
  set_num_threads(1);
  const Outcome one = run_with(true, in, {});
  set_num_threads(3);
  const Outcome three = run_with(true, in, {});
  set_num_threads(before);
  EXPECT_EQ(one.y.to_vector(), three.y.to_vector());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(one.grads[i].to_vector(), three.grads[i].to_vector());
}

}  // namespace
}  // namespace cutaway
