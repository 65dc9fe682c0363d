#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/vit.h>
#include <cutaway/nn/optim/optimizer.h>
#include <tests/models/zoo/one_thread.h>

namespace cutaway::zoo {
namespace {

TEST(Vit, parameters_of_the_published_size) {
  VitOptions o = vit_options("vit-tiny");
  EXPECT_EQ(o.layers, 12);
  const auto parameters = [&](int64_t layers) {
    o.layers = layers;
    return Vit(o).num_parameters();
  };
  // timm's vit_tiny_patch16_224, of which every layer has as many.
  EXPECT_EQ(parameters(1) + 11 * (parameters(2) - parameters(1)), 5717416);
  EXPECT_THROW(vit_options("vit-huge"), ValueError);
}

TEST(Vit, patches_are_read_row_by_row) {
  const OneThread guard;
  const VitOptions o{.height = 4,
                     .width = 6,
                     .channels = 1,
                     .classes = 2,
                     .patch = 2,
                     .dim = 4,
                     .layers = 1,
                     .heads = 2};
  PatchEmbedding embed(o);
  const Tensor x = reshape(arange(0, 24), {1, 1, 4, 6}).to(DType::f32);
  const Tensor y = embed(x);
  ASSERT_EQ(y.sizes(), (Shape{1, 6, 4}));
  const Tensor patch = tensor({14, 15, 20, 21});  // row 1, column 1
  const Tensor want = linear(patch, reshape(embed.proj.weight, {4, 4}), embed.proj.bias);
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y[0][4][i].item(), want[i].item(), 1e-4);
}

TEST(Vit, learns_where_a_bright_patch_is) {
  const OneThread guard;
  manual_seed(2);
  Vit net({.height = 8,
           .width = 8,
           .channels = 1,
           .classes = 4,
           .patch = 4,
           .dim = 16,
           .layers = 2,
           .heads = 2});
  const std::vector<nn::Named> names = net.named_parameters();
  EXPECT_EQ(names[0].name, "cls_token");
  EXPECT_EQ(names[3].name, "patch_embed.proj.bias");
  EXPECT_EQ(names[4].name, "blocks.0.norm1.weight");
  const Tensor x = zeros({4, 1, 8, 8});
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t c = 0; c < 4; ++c) x[i][0][i / 2 * 4 + r][i % 2 * 4 + c].fill_(1);
    }
  }
  const Tensor y = arange(0, 4);
  double last = 0;
  optim::AdamW adam(net.parameters(), {.lr = 0.01});
  for (int step = 0; step < 60; ++step) {
    const Tensor loss = cross_entropy(net(x), y);
    last = loss.item();
    loss.backward();
    adam.step_and_zero();
  }
  EXPECT_LT(last, 0.2);
  EXPECT_THROW(net(zeros({1, 1, 8, 4})), ShapeError);
  EXPECT_THROW(Vit({.height = 9, .width = 8, .patch = 4}), ValueError);
  EXPECT_THROW(Vit({.dim = 10, .heads = 4}), ValueError);
}

}  // namespace
}  // namespace cutaway::zoo
