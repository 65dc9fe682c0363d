#pragma once
#include <cutaway/nn/nn.h>

namespace cutaway::zoo {

// Base of models that learn from pictures alone, [N,C,H,W] without labels.
class PictureModel : public nn::Module {
 public:
  // What training makes small, 0-d: the mean over the pictures of a batch.
  virtual Tensor loss(const Tensor& x) = 0;
  // Input and result side by side, for people to look at: by default x and forward(x).
  struct Shown {
    Tensor before, after;
  };
  virtual Shown show(const Tensor& x) { return {x, (*this)(x)}; }
};

struct AutoencoderOptions {
  int64_t channels = 1, height = 28, width = 28;
  int64_t latent = 16, features = 16;  // numbers of a code; channels behind the first convolution
};

// Two convolutions of stride 2 and a linear map to `out` numbers.
class PictureEncoder : public nn::Module {
 public:
  PictureEncoder(const AutoencoderOptions& options, int64_t out);
  Tensor forward(const Tensor& x) override;

  nn::Conv2d conv1, conv2;
  nn::Linear fc;
};
// A linear map, then twice: enlarged, convolved.
class PictureDecoder : public nn::Module {
 public:
  explicit PictureDecoder(const AutoencoderOptions& options);
  Tensor forward(const Tensor& code) override;  // [N,latent] → [N,C,H,W]

  nn::Linear fc;
  nn::Conv2d conv1, conv2;

 private:
  AutoencoderOptions options_;
};

// A picture through few numbers and back; the loss is the mean squared error of a pixel. Raises
// ValueError for sizes below 1.
class Autoencoder : public PictureModel {
 public:
  explicit Autoencoder(const AutoencoderOptions& options);
  Tensor forward(const Tensor& x) override { return decoder(encoder(x)); }
  Tensor loss(const Tensor& x) override;

  PictureEncoder encoder;
  PictureDecoder decoder;
};

// Variational autoencoder (Kingma & Welling 2013): the encoder gives mean and logarithm of the
// variance of a normal code, q; the loss is −log p(x | code) + KL(q ‖ N(0, 1)) with normal pixels
// of deviation 1, constants left out, for one draw of the code. In eval mode the code is its mean.
class Vae : public PictureModel {
 public:
  explicit Vae(const AutoencoderOptions& options);
  Tensor forward(const Tensor& x) override;
  Tensor loss(const Tensor& x) override;
  // n new pictures from codes drawn from N(0, 1), by the default generator.
  Tensor sample(int64_t n);

  PictureEncoder encoder;
  PictureDecoder decoder;

 private:
  struct Code {
    Tensor mean, log_var;
  };
  Code encode(const Tensor& x);
  Tensor draw(const Code& code);

  int64_t latent_;
};

struct UNetOptions {
  int64_t in = 1, out = 1;
  int64_t width = 16;  // channels of the largest scale; doubled at each smaller one
  int64_t depth = 2;   // how often sizes are halved
};
// 3×3 convolution, normalisation and ReLU, twice.
class DoubleConv : public nn::Module {
 public:
  DoubleConv(int64_t in, int64_t out);
  Tensor forward(const Tensor& x) override;

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
};
// U-Net (Ronneberger et al. 2015): down through `depth` scales and up again, each scale on the way
// up sees that on the way down. Padded, so that sizes stay; enlarged by the nearest pixel, so that
// any size goes. x [N,in,H,W] → [N,out,H,W]. Raises ValueError for sizes below 1, ShapeError for
// pictures smaller than 2^depth.
class UNet : public nn::Module {
 public:
  explicit UNet(const UNetOptions& options);
  Tensor forward(const Tensor& x) override;

  nn::ModuleList down, up;  // of DoubleConv: depth + 1, depth
  nn::Conv2d head;

 private:
  UNetOptions options_;
};
// A U-Net that takes noise out of pictures: the loss is the mean squared error of a pixel of
// net(x + noise) against x, the noise normal with this deviation.
class Denoiser : public PictureModel {
 public:
  explicit Denoiser(const UNetOptions& options, double noise = 0.5);
  Tensor forward(const Tensor& x) override { return net(x); }
  Tensor loss(const Tensor& x) override;
  Shown show(const Tensor& x) override;

  UNet net;

 private:
  Tensor noisy(const Tensor& x) const;

  double noise_;
};

}  // namespace cutaway::zoo
