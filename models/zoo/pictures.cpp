#include <cutaway/models/zoo/pictures.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

const AutoencoderOptions& checked(const AutoencoderOptions& o) {
  if (o.channels < 1 || o.height < 1 || o.width < 1 || o.latent < 1 || o.features < 1) {
    throw ValueError("Autoencoder", "sizes must be at least 1");
  }
  return o;
}
const UNetOptions& checked(const UNetOptions& o) {
  if (o.in < 1 || o.out < 1 || o.width < 1 || o.depth < 0) {
    throw ValueError("UNet", "in, out and width must be at least 1, depth at least 0");
  }
  return o;
}

nn::ConvLayerOptions conv3x3(int64_t in, int64_t out, int64_t stride = 1) {
  return {.in = in, .out = out, .kernel = 3, .stride = stride, .padding = 1};
}
int64_t half(int64_t n) { return (n + 1) / 2; }

}  // namespace

PictureEncoder::PictureEncoder(const AutoencoderOptions& o, int64_t out)
    : conv1(conv3x3(checked(o).channels, o.features, 2)),
      conv2(conv3x3(o.features, 2 * o.features, 2)),
      fc({.in = 2 * o.features * half(half(o.height)) * half(half(o.width)), .out = out}) {
  add("conv1", conv1);
  add("conv2", conv2);
  add("fc", fc);
}
Tensor PictureEncoder::forward(const Tensor& x) {
  return fc(flatten(relu(conv2(relu(conv1(x)))), 1));
}

PictureDecoder::PictureDecoder(const AutoencoderOptions& o)
    : fc({.in = o.latent, .out = 2 * o.features * half(half(o.height)) * half(half(o.width))}),
      conv1(conv3x3(2 * o.features, o.features)),
      conv2(conv3x3(o.features, o.channels)),
      options_(o) {
  add("fc", fc);
  add("conv1", conv1);
  add("conv2", conv2);
}
Tensor PictureDecoder::forward(const Tensor& code) {
  const int64_t h = options_.height, w = options_.width;
  Tensor y = unflatten(relu(fc(code)), 1, {2 * options_.features, half(half(h)), half(half(w))});
  y = relu(conv1(interpolate(y, {.size = Dims{half(h), half(w)}})));
  return conv2(interpolate(y, {.size = Dims{h, w}}));
}

Autoencoder::Autoencoder(const AutoencoderOptions& o) : encoder(o, o.latent), decoder(o) {
  add("encoder", encoder);
  add("decoder", decoder);
}
Tensor Autoencoder::loss(const Tensor& x) { return mse_loss((*this)(x), x); }

Vae::Vae(const AutoencoderOptions& o) : encoder(o, 2 * o.latent), decoder(o), latent_(o.latent) {
  add("encoder", encoder);
  add("decoder", decoder);
}
Vae::Code Vae::encode(const Tensor& x) {
  const Tensors both = chunk(encoder(x), 2, 1);
  return {both[0], both[1]};
}
Tensor Vae::draw(const Code& code) {
  if (!training()) return code.mean;
  const Tensor noise = randn(code.mean.sizes(), {code.mean.dtype(), code.mean.device()});
  return code.mean + exp(code.log_var * 0.5) * noise;
}
Tensor Vae::forward(const Tensor& x) { return decoder(draw(encode(x))); }
Tensor Vae::loss(const Tensor& x) {
  const Code code = encode(x);
  const Tensor error = square(decoder(draw(code)) - x);
  const Tensor divergence = square(code.mean) + exp(code.log_var) - 1.0 - code.log_var;
  return (sum(error) + sum(divergence)) * (0.5 / double(x.size(0)));
}
Tensor Vae::sample(int64_t n) {
  const Tensor& like = decoder.fc.weight;
  return decoder(randn({n, latent_}, {like.dtype(), like.device()}));
}

DoubleConv::DoubleConv(int64_t in, int64_t out)
    : conv1(conv3x3(in, out)),
      bn1({.num_features = out}),
      conv2(conv3x3(out, out)),
      bn2({.num_features = out}) {
  add("conv1", conv1);
  add("bn1", bn1);
  add("conv2", conv2);
  add("bn2", bn2);
}
Tensor DoubleConv::forward(const Tensor& x) { return relu(bn2(conv2(relu(bn1(conv1(x)))))); }

UNet::UNet(const UNetOptions& o)
    : head({.in = checked(o).width, .out = o.out, .kernel = 1}), options_(o) {
  for (int64_t i = 0; i <= o.depth; ++i) {
    down.append(DoubleConv(i == 0 ? o.in : o.width << (i - 1), o.width << i));
  }
  for (int64_t i = o.depth - 1; i >= 0; --i) {
    up.append(DoubleConv((o.width << (i + 1)) + (o.width << i), o.width << i));
  }
  add("down", down);
  add("up", up);
  add("head", head);
}
Tensor UNet::forward(const Tensor& x) {
  const int64_t least = int64_t(1) << options_.depth;
  if (x.dim() != 4 || x.size(2) < least || x.size(3) < least) {
    throw ShapeError("UNet", fmt::format("x must be [N,{},H,W] of at least {}×{} pixels; got {}",
                                         options_.in, least, least, to_string(x.sizes())));
  }
  Tensors scales;
  Tensor y = x;
  for (int64_t i = 0; i < down.size(); ++i) {
    y = down[i](i == 0 ? y : max_pool2d(y, 2));
    scales.push_back(y);
  }
  for (int64_t i = 0; i < up.size(); ++i) {
    const Tensor& beside = scales[size_t(options_.depth - 1 - i)];
    const Tensor large = interpolate(y, {.size = Dims{beside.size(2), beside.size(3)}});
    y = up[i](cat({large, beside}, 1));
  }
  return head(y);
}

Denoiser::Denoiser(const UNetOptions& o, double noise) : net(o), noise_(noise) { add("net", net); }
Tensor Denoiser::noisy(const Tensor& x) const {
  return x + randn(x.sizes(), {x.dtype(), x.device()}) * noise_;
}
Tensor Denoiser::loss(const Tensor& x) { return mse_loss((*this)(noisy(x)), x); }
Denoiser::Shown Denoiser::show(const Tensor& x) {
  const Tensor seen = noisy(x);
  return {seen, (*this)(seen)};
}

}  // namespace cutaway::zoo
