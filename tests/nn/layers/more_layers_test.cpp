// What values stored from PyTorch cannot show of layers: draws, errors, recorded steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/record.h>
#include <cutaway/core/error.h>
#include <cutaway/core/rng.h>
#include <cutaway/nn/nn.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::nn {
namespace {

TEST(MoreLayers, alpha_dropout_keeps_mean_and_variance) {
  manual_seed(1);
  const Tensor x = randn({20000});
  AlphaDropout drop({.p = 0.3});
  const VarMean s = var_mean(drop(x));
  EXPECT_NEAR(s.mean.item(), 0, 0.03);
  EXPECT_NEAR(s.var.item(), 1, 0.05);
  FeatureAlphaDropout channels({.p = 0.5});
  // A channel is dropped as a whole: then it has one value.
  const Tensor y = channels(randn({8, 16, 5}));
  const std::vector<double> spread = (amax(y, 2) - amin(y, 2)).to_vector();
  const int64_t dropped =
      std::count_if(spread.begin(), spread.end(), [](double v) { return v == 0; });
  EXPECT_GT(dropped, 32);
  EXPECT_LT(dropped, 96);
  EXPECT_TRUE(channels.eval().training() == false && channels(x.unsqueeze(0)).numel() == 20000);
  EXPECT_THROW(channels(ones({3})), ShapeError);
  EXPECT_THROW(Dropout1d()(ones({2, 3})), ShapeError);
  EXPECT_THROW(AlphaDropout({.p = -0.1}), ValueError);
}

TEST(MoreLayers, rrelu_draws_slopes_in_its_range) {
  manual_seed(1);
  RReLU layer({.lower = 0.2, .upper = 0.6});
  const Tensor y = layer(full({1000}, -1));
  EXPECT_GE(amin(-y).item(), 0.2);
  EXPECT_LT(amax(-y).item(), 0.6);
  EXPECT_NEAR(mean(-y).item(), 0.4, 0.02);
  EXPECT_EQ(layer(ones({2})).to_vector(), (std::vector<double>{1, 1}));
  EXPECT_THROW(RReLU({.lower = 1, .upper = 0}), ValueError);
}

TEST(MoreLayers, options_out_of_range_raise) {
  EXPECT_THROW(Hardshrink({.lambd = -1}), ValueError);
  EXPECT_THROW(GLU()(ones({2, 3})), ShapeError);
  EXPECT_THROW(Softmax2d()(ones({2, 3})), ShapeError);
  EXPECT_THROW(ReflectionPad2d({.padding = {1, 2, 3}}), ShapeError);
  EXPECT_THROW(ReflectionPad2d({.padding = 1})(ones({4, 4})), ShapeError);
  EXPECT_THROW(LPPool2d({.norm_type = 0}), ValueError);
  EXPECT_THROW(ChannelShuffle({.groups = 2})(ones({1, 3, 2})), ShapeError);
  EXPECT_THROW(MaxUnpool2d({.kernel = 2})(ones({1, 2, 2}), zeros({1, 2, 3})), ShapeError);
  EXPECT_THROW(LocalResponseNorm({.size = 0}), ValueError);
  EXPECT_THROW(Embedding({.num_embeddings = 2, .embedding_dim = 2, .max_norm = 0}), ValueError);
  EXPECT_THROW(MultiheadAttention({.embed_dim = 8, .num_heads = 4, .num_kv_heads = 3}), ValueError);
  EXPECT_THROW(MultiheadAttention({.embed_dim = 6, .num_heads = 2, .rotary = true}), ValueError);
  EXPECT_THROW(LearnedPositions({.length = 2, .width = 3})(ones({3, 3})), ShapeError);
  EXPECT_THROW(rotary(ones({2, 3})), ShapeError);
}

// The golden cases have one and two dimensions.
TEST(MoreLayers, circular_padding_wraps_in_three_dimensions) {
  manual_seed(4);
  const Tensor x = randn({1, 2, 3, 4, 5});
  const Tensor y = CircularPad3d({.padding = {1, 2, 0, 1, 2, 0}})(x);
  ASSERT_EQ(y.sizes(), (Shape{1, 2, 5, 5, 8}));
  for (const auto& [d, h, w] : {std::array{0, 0, 0}, {1, 4, 7}, {4, 3, 6}}) {
    const Tensor want = x[0][1][(d + 1) % 3][h % 4][(w + 4) % 5];
    EXPECT_EQ(y[0][1][d][h][w].item(), want.item()) << d << h << w;
  }
}

TEST(MoreLayers, packing_checks_lengths_and_pads_lists) {
  const Tensor x = ones({3, 2, 1});
  EXPECT_THROW(pack_padded_sequence(x, {1, 3}), ValueError);
  EXPECT_THROW(pack_padded_sequence(x, {4, 1}), ValueError);
  EXPECT_THROW(pack_padded_sequence(x, {2}), ValueError);
  const PackedSequence p = pack_sequence({tensor({1, 2}), tensor({3, 4, 5})}, false);
  EXPECT_EQ(p.data.to_vector(), (std::vector<double>{3, 1, 4, 2, 5}));
  EXPECT_EQ(p.batch_sizes, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(p.lengths(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(pad_packed_sequence(p, {.batch_first = true, .padding_value = 9}).x.to_vector(),
            (std::vector<double>{1, 2, 9, 3, 4, 5}));
  EXPECT_THROW(pad_packed_sequence(p, {.total_length = 2}), ValueError);
  EXPECT_EQ(pad_sequence({tensor({1, 2}), tensor({3})}).to_vector(),
            (std::vector<double>{1, 3, 2, 0}));
  EXPECT_THROW(pad_sequence({}), ValueError);
}

TEST(MoreLayers, ctc_counts_every_alignment) {
  // Two steps, three classes: "1" is spelled by 11, 1–, –1.
  const Tensor p = tensor({0.5, 0.3, 0.2, 0.6, 0.1, 0.3}, {2, 3});
  const Tensor loss = ctc_loss(log(p), index_tensor(std::vector<int64_t>{1}), {2}, {1},
                               {.reduction = Reduction::none});
  EXPECT_NEAR(loss.item(), -std::log(0.3 * 0.1 + 0.3 * 0.6 + 0.5 * 0.1), 1e-6);
  const Tensor target = index_tensor(std::vector<int64_t>{1});
  EXPECT_THROW(ctc_loss(log(p), target, {3}, {1}), ValueError);
  EXPECT_THROW(ctc_loss(log(p), target, {2}, {2}), ValueError);
  EXPECT_THROW(ctc_loss(log(p), target, {2}, {1}, {.blank = 1}), IndexError);
  EXPECT_THROW(ctc_loss(ones({2}), target, {2}, {1}), ShapeError);
}

TEST(MoreLayers, products_of_rotary_vectors_depend_on_distance) {
  const Tensor a = randn({1, 8}, {.dtype = DType::f64}), b = randn({1, 8}, {.dtype = DType::f64});
  const auto product = [&](int64_t i, int64_t j) {
    return sum(rotary(a, i) * rotary(b, j)).item();
  };
  EXPECT_NEAR(product(3, 7), product(103, 107), 1e-10);
  EXPECT_NEAR(norm(rotary(a, 50)).item(), norm(a).item(), 1e-12);
  EXPECT_GT(std::abs(product(3, 7) - product(3, 8)), 1e-6);
}

template <class Net>
void expect_replays_like_eager(const Net& start) {
  Net eager = clone(start), replayed = clone(start);
  optim::Sgd first(eager.parameters(), {.lr = 0.1}), second(replayed.parameters(), {.lr = 0.1});
  const auto step_of = [](Net& net, optim::Sgd& sgd) {
    return [&net, &sgd](const Tensors& in) {
      const Tensor loss = mean(square(net(in[0]) - 1.0));
      loss.backward();
      sgd.step_and_zero();
      return Tensors{loss};
    };
  };
  RecordedStep step(step_of(replayed, second));
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({4, 3});
    EXPECT_EQ(step_of(eager, first)({x})[0].item(), step({x})[0].item()) << i;
  }
  EXPECT_GT(step.stats().replayed, 0) << step.why_eager();
}

TEST(MoreLayers, normed_weights_are_recorded_and_copied) {
  manual_seed(2);
  const Linear linear({.in = 3, .out = 2});
  const WeightNorm<Linear> normed(linear);
  EXPECT_STREQ(normed.type(), "WeightNorm");
  EXPECT_EQ(normed.num_parameters(), 10);
  const WeightNorm<Linear> copy = clone(normed);
  EXPECT_FALSE(copy.weight_v.is_same(normed.weight_v));
  const Tensor x = randn({4, 3});
  Linear plain = linear;
  const std::vector<double> a = plain(x).to_vector(), b = clone(normed)(x).to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  expect_replays_like_eager(normed);
  // The weight of the other has the largest singular value 1, after some training calls.
  SpectralNorm<Linear> spectral(linear);
  for (int i = 0; i < 30; ++i) spectral(x);
  const Tensor unit = spectral.eval().training() ? Tensor() : spectral(eye(3)) - linear.bias;
  const Tensor gram = matmul(t(unit), unit);  // 2×2: λ² − tr λ + det
  const double trace = linalg::trace(gram).item(), det = linalg::det(gram).item();
  EXPECT_NEAR((trace + std::sqrt(trace * trace - 4 * det)) / 2, 1, 1e-4);
}

}  // namespace
}  // namespace cutaway::nn
