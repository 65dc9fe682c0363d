#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/nn.h>

namespace cutaway::nn {
namespace {

TEST(Layers, EmbeddingPaddingAndBags) {
  const Embedding fresh({.num_embeddings = 4, .embedding_dim = 2, .padding_idx = -1});
  EXPECT_EQ(fresh.weight[3].to_vector(), (std::vector<double>{0, 0}));
  EXPECT_THROW(Embedding({.num_embeddings = 4, .embedding_dim = 2, .padding_idx = 4}), ValueError);
  EmbeddingBag bag({.num_embeddings = 4, .embedding_dim = 2, .mode = BagMode::sum});
  const Tensor ids = tensor({0, 1, 3}, {.dtype = DType::i64});
  const Tensor y = bag(ids, tensor({0, 2}, {.dtype = DType::i64}));
  EXPECT_EQ(y[0].to_vector(), (bag.weight[0] + bag.weight[1]).to_vector());
  EXPECT_EQ(y[1].to_vector(), bag.weight[3].to_vector());
}

TEST(Layers, FC_349c_BatchNormWithCumulativeAverage) {
  BatchNorm1d norm({.num_features = 1, .momentum = std::nullopt});
  norm(tensor({0, 2}, {2, 1}));
  norm(tensor({4, 8}, {2, 1}));
  norm(tensor({1, 1}, {2, 1}));
  EXPECT_NEAR(norm.running_mean.item(), 2.6666667, 1e-6);
  EXPECT_NEAR(norm.running_var.item(), 3.3333333, 1e-6);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 3);
}

TEST(Layers, FC_e3d0_BatchNormVariances) {
  BatchNorm1d norm({.num_features = 1});
  const std::vector<double> y = norm(tensor({1, 3}, {2, 1})).to_vector();
  EXPECT_NEAR(y[0], -0.999995, 1e-6);
  EXPECT_NEAR(y[1], 0.999995, 1e-6);
  EXPECT_NEAR(norm.running_mean.item(), 0.2, 1e-7);
  EXPECT_NEAR(norm.running_var.item(), 1.1, 1e-6);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
  norm.eval();
  EXPECT_NEAR(norm(tensor({1, 3}, {2, 1})).to_vector()[0], (1 - 0.2) / std::sqrt(1.1 + 1e-5), 1e-6);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
}

TEST(Layers, NormsAgreeWithTheirFunctions) {
  const Tensor x = randn({2, 6, 3});
  LayerNorm layer({.normalized_shape = {6, 3}});
  GroupNorm group({.num_groups = 2, .num_channels = 6});
  InstanceNorm1d instance({.num_features = 6});
  RMSNorm rms({.normalized_shape = {3}, .eps = 1e-6});
  EXPECT_EQ(layer(x).to_vector(), layer_norm(x, {6, 3}).to_vector());
  EXPECT_EQ(group(x).to_vector(), group_norm(x, 2).to_vector());
  EXPECT_EQ(instance(x).to_vector(), instance_norm(x).to_vector());
  EXPECT_EQ(rms(x).to_vector(), rms_norm(x, {3}, Tensor(), {.eps = 1e-6}).to_vector());
  EXPECT_EQ(instance.named_parameters().size(), 0u);
  EXPECT_THROW(group(randn({2, 4, 3})), ShapeError);
  EXPECT_THROW(BatchNorm2d({.num_features = 6})(x), ShapeError);
}

TEST(Layers, FreshParametersAreBounded) {
  manual_seed(3);
  const auto check = [](const Module& m, double bound) {
    for (const Named& p : m.named_parameters()) {
      const double largest = amax(abs(p.value)).item();
      EXPECT_LE(largest, bound) << p.name;
      EXPECT_GT(largest, 0.8 * bound) << p.name;
    }
  };
  check(Linear({.in = 25, .out = 40}), 1 / std::sqrt(25.0));
  check(Conv2d({.in = 4, .out = 40, .kernel = {3, 5}, .groups = 2}), 1 / std::sqrt(30.0));
  check(ConvTranspose1d({.in = 4, .out = 40, .kernel = 3}), 1 / std::sqrt(120.0));
  check(LSTM({.input_size = 5, .hidden_size = 16}), 0.25);
  EXPECT_THROW(Conv2d({.in = 4, .out = 3, .groups = 2}), ValueError);
  EXPECT_THROW(Conv2d({.in = 4, .out = 3, .kernel = 0}), ValueError);
}

TEST(Layers, DropoutScalesWhatItKeeps) {
  Dropout dropout({.p = 0.25});
  const Tensor x = ones({10000});
  const std::vector<double> y = dropout(x).to_vector();
  int64_t kept = 0;
  for (const double v : y) {
    EXPECT_TRUE(v == 0 || std::abs(v - 1 / 0.75) < 1e-6);
    kept += v != 0;
  }
  EXPECT_NEAR(double(kept), 7500, 250);
  EXPECT_TRUE(dropout.eval().training() == false && dropout(x).is_same(x));
  EXPECT_THROW(Dropout({.p = 1.5}), ValueError);
  Dropout2d channels({.p = 0.5});
  const Tensor z = channels(ones({4, 8, 3, 3}));
  EXPECT_EQ(amax(z, Shape{2, 3}).to_vector(), amin(z, Shape{2, 3}).to_vector());
}

TEST(Layers, ActivationsAreTheirFunctions) {
  const Tensor x = tensor({-3, -0.5, 0, 0.5, 3});
  EXPECT_EQ(ReLU{}(x).to_vector(), relu(x).to_vector());
  EXPECT_EQ(GELU{}(x).to_vector(), gelu(x).to_vector());
  EXPECT_EQ(GELU({.tanh = true})(x).to_vector(), gelu_tanh(x).to_vector());
  EXPECT_EQ(LeakyReLU({.negative_slope = 0.2})(x).to_vector(), leaky_relu(x, 0.2).to_vector());
  EXPECT_EQ(Softmax({.dim = 0})(x).to_vector(), softmax(x, 0).to_vector());
  PReLU prelu;
  EXPECT_EQ(prelu(x).to_vector(), leaky_relu(x, 0.25).to_vector());
  EXPECT_EQ(prelu.state_dict()[0].name, "weight");
}

TEST(Layers, ShapesOfPoolingAndReshaping) {
  const Tensor x = randn({2, 3, 8, 6});
  EXPECT_EQ(MaxPool2d({.kernel = 2})(x).sizes(), (Shape{2, 3, 4, 3}));
  EXPECT_EQ(AvgPool2d({.kernel = 3, .stride = 1, .padding = 1})(x).sizes(), (Shape{2, 3, 8, 6}));
  EXPECT_EQ(AdaptiveAvgPool2d(1)(x).sizes(), (Shape{2, 3, 1, 1}));
  EXPECT_EQ(Flatten{}(x).sizes(), (Shape{2, 144}));
  EXPECT_EQ(Unflatten({.dim = 1, .sizes = {3, -1}})(Flatten{}(x)).sizes(), (Shape{2, 3, 48}));
  EXPECT_TRUE(Identity{}(x).is_same(x));
}

TEST(Layers, PixelShuffleMovesChannelsIntoPixels) {
  const Tensor x = reshape(arange(0, 24), {1, 4, 2, 3}).to(DType::f32);
  const Tensor y = PixelShuffle({.factor = 2})(x);
  ASSERT_EQ(y.sizes(), (Shape{1, 1, 4, 6}));
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t column = 0; column < 6; ++column) {
      const int64_t channel = row % 2 * 2 + column % 2;
      EXPECT_EQ(y[0][0][row][column].item(), double(channel * 6 + row / 2 * 3 + column / 2));
    }
  }
  EXPECT_EQ(PixelUnshuffle({.factor = 2})(y).to_vector(), x.to_vector());
  EXPECT_EQ(PixelShuffle({.factor = 2})(x[0]).sizes(), (Shape{1, 4, 6}));
  EXPECT_EQ(PixelShuffle({.factor = 3})(randn({2, 0, 9, 2, 2})).sizes(), (Shape{2, 0, 1, 6, 6}));
  EXPECT_THROW(PixelShuffle({.factor = 3})(x), ShapeError);
  EXPECT_THROW(PixelUnshuffle({.factor = 2})(x), ShapeError);
  EXPECT_THROW(PixelShuffle({.factor = 0}), ValueError);
}

TEST(Layers, UpsampleInterpolates) {
  const Tensor x = tensor({1, 2, 3, 4}, {1, 1, 2, 2});
  EXPECT_EQ(Upsample({.scale = {{2.0}}})(x).to_vector(),
            (std::vector<double>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  const Tensor smooth =
      Upsample({.size = {{3, 3}}, .mode = Resize::linear, .align_corners = true})(x);
  EXPECT_EQ(smooth.to_vector(), (std::vector<double>{1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4}));
  EXPECT_THROW(Upsample({}), ValueError);
}

TEST(Layers, SamePaddingKeepsSizes) {
  const Tensor x = tensor({1, 2, 3, 4, 5}, {1, 1, 5});
  Conv1d even({.in = 1, .out = 1, .kernel = 4, .bias = false, .same_padding = true});
  init::constant_(even.weight, 1);
  // One zero before, two after: the odd one goes to the end.
  EXPECT_EQ(even(x).to_vector(), (std::vector<double>{6, 10, 14, 12, 9}));
  Conv2d wide({.in = 2, .out = 3, .kernel = {3, 4}, .dilation = {2, 3}, .same_padding = true});
  EXPECT_EQ(wide(randn({2, 2, 7, 8})).sizes(), (Shape{2, 3, 7, 8}));
  Conv1d around({.in = 1,
                 .out = 1,
                 .kernel = 3,
                 .bias = false,
                 .padding_mode = PadMode::circular,
                 .same_padding = true});
  init::constant_(around.weight, 1);
  EXPECT_EQ(around(x).to_vector(), (std::vector<double>{8, 6, 9, 12, 10}));
  EXPECT_THROW(Conv1d({.in = 1, .out = 1, .kernel = 3, .stride = 2, .same_padding = true}),
               ValueError);
  EXPECT_THROW(Conv1d({.in = 1, .out = 1, .kernel = 3, .padding = 1, .same_padding = true}),
               ValueError);
}

}  // namespace
}  // namespace cutaway::nn
