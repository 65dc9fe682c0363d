#include <cutaway/nn/layers/attention.h>

#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/layers/transformer.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::nn {
namespace {

TEST(MultiheadAttention, FC_6ac0_FullyPaddedSample) {
  for (const bool weights : {false, true}) {
    MultiheadAttention mha({.embed_dim = 4, .num_heads = 2, .batch_first = true});
    {
      NoGradGuard no_grad;
      mha.out_proj.bias.copy_(tensor({1, 2, 3, 4}));
    }
    const Tensor x = randn({2, 3, 4});
    Tensor mask = zeros({2, 3}, {.dtype = DType::boolean});
    mask[1].fill_(1);
    const Tensor y = mha(x, x, x, {.key_padding_mask = mask, .need_weights = weights}).output;
    const Tensor first = x.slice(0, 0, 1);
    EXPECT_LE(amax(abs(y.slice(0, 0, 1) - mha(first, first, first).output)).item(), 1e-6);
    EXPECT_EQ(y[1][2].to_vector(), (std::vector<double>{1, 2, 3, 4}));
    optim::Sgd sgd(mha.parameters(), {.lr = 0.1});
    sum(square(y)).backward();
    sgd.step_and_zero();
    for (const Named& p : mha.parameters()) {
      EXPECT_TRUE(all(isfinite(p.value)).item<bool>()) << p.name;
    }
  }
}

TEST(MultiheadAttention, CausalAgreesWithMask) {
  MultiheadAttention mha({.embed_dim = 4, .num_heads = 1});
  const Tensor x = randn({3, 2, 4});
  const Tensor later = triu(ones({3, 3}), 1).to(DType::boolean);
  const Tensor want = mha(x, x, x, {.attn_mask = later}).output;
  for (const bool weights : {false, true}) {
    const Tensor got = mha(x, x, x, {.is_causal = true, .need_weights = weights}).output;
    EXPECT_LE(amax(abs(got - want)).item(), 1e-6);
  }
  const Tensor alone = x.select(1, 0);
  EXPECT_LE(amax(abs(mha(alone).select(0, 0) - mha(alone.unsqueeze(1)).select(0, 0)[0])).item(),
            1e-6);
}

TEST(MultiheadAttention, RejectsWrongSizes) {
  EXPECT_THROW(MultiheadAttention({.embed_dim = 5, .num_heads = 2}), ValueError);
  MultiheadAttention mha({.embed_dim = 4, .num_heads = 2});
  EXPECT_THROW(mha(ones({3, 2, 5})), ShapeError);
  EXPECT_THROW(mha(ones({4})), ShapeError);
  const Tensor x = ones({3, 2, 4});
  EXPECT_THROW(mha(x, x, x, {.key_padding_mask = zeros({3, 3})}), ShapeError);
  EXPECT_THROW(mha(x, x, x, {.attn_mask = zeros({2, 3})}), ShapeError);
}

}  // namespace
}  // namespace cutaway::nn
