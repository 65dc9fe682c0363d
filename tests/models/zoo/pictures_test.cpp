#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/pictures.h>
#include <cutaway/nn/optim/optimizer.h>
#include <tests/models/zoo/one_thread.h>

namespace cutaway::zoo {
namespace {

// Squares at one of nine places of pictures of 9×7.
Tensor squares() {
  Tensor x = zeros({9, 1, 9, 7});
  for (int64_t i = 0; i < 9; ++i) {
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 2; ++c) x[i][0][i / 3 * 3 + r][i % 3 * 2 + c].fill_(1);
    }
  }
  return x;
}

double train(PictureModel& model, const Tensor& x, int steps, double lr) {
  optim::AdamW adam(model.parameters(), {.lr = lr});
  double last = 0;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = model.loss(x);
    last = loss.item();
    loss.backward();
    adam.step_and_zero();
  }
  return last;
}

TEST(Pictures, autoencoder_learns_to_give_pictures_back) {
  const OneThread guard;
  manual_seed(4);
  Autoencoder net({.height = 9, .width = 7, .latent = 8, .features = 8});
  const Tensor x = squares();
  EXPECT_EQ(net.encoder(x).sizes(), (Shape{9, 8}));
  EXPECT_EQ(net(x).sizes(), x.sizes());
  const double first = net.loss(x).item();
  EXPECT_LT(train(net, x, 150, 1e-2), 0.2 * first);
  EXPECT_THROW(Autoencoder({.latent = 0}), ValueError);
}

TEST(Pictures, vae_loss_is_error_and_divergence) {
  const OneThread guard;
  manual_seed(4);
  Vae net({.height = 9, .width = 7, .latent = 2, .features = 4});
  const Tensor x = squares();
  net.eval();  // the code is its mean, no noise
  const Tensor code = net.encoder(x);
  const Tensor m = slice(code, 1, 0, 2), v = slice(code, 1, 2, 4);
  // KL(N(m, e^v) ‖ N(0, 1)) of each number, and half the squared errors.
  const Tensor kl = (exp(v) + square(m) - 1.0 - v) * 0.5;
  const double want = (sum(kl).item() + 0.5 * sum(square(net(x) - x)).item()) / 9;
  EXPECT_NEAR(net.loss(x).item(), want, 1e-4 * want);
  EXPECT_EQ(net(x).to_vector(), net(x).to_vector());
  net.train();
  EXPECT_NE(net(x).to_vector(), net(x).to_vector());
  EXPECT_EQ(net.sample(5).sizes(), (Shape{5, 1, 9, 7}));
  const double first = net.loss(x).item();
  EXPECT_LT(train(net, x, 100, 1e-2), first);
}

TEST(Pictures, unet_keeps_odd_sizes_and_takes_noise_out) {
  const OneThread guard;
  manual_seed(4);
  UNet net({.in = 2, .out = 3, .width = 4, .depth = 2});
  EXPECT_EQ(net(zeros({2, 2, 9, 7})).sizes(), (Shape{2, 3, 9, 7}));
  EXPECT_THROW(net(zeros({2, 2, 3, 7})), ShapeError);
  EXPECT_THROW(UNet({.width = 0}), ValueError);
  EXPECT_EQ(net.named_parameters()[0].name, "down.0.conv1.weight");
  Denoiser denoiser({.width = 4, .depth = 1}, 0.4);
  const Tensor x = squares();
  // Noise of deviation 0.4 left alone costs 0.16 a pixel.
  EXPECT_LT(train(denoiser, x, 150, 1e-2), 0.08);
  const PictureModel::Shown shown = denoiser.show(x);
  EXPECT_NEAR(mse_loss(shown.before, x).item(), 0.16, 0.04);
}

}  // namespace
}  // namespace cutaway::zoo
