#include <cutaway/models/depth_law/network.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::depth {
namespace {

constexpr int64_t kKernel = 3, kPatch = 4, kHeads = 2;

}  // namespace

std::string Spec::outside_of_law() const {
  if (layer_scale > 0) return "LayerScale";
  if (zero_init) return "zero-init branches";
  if (batch_norm) return "BatchNorm";
  return arch == Arch::vit ? "LayerNorm" : "";
}

Arch arch_named(const std::string& name) {
  if (name == "mlp") return Arch::mlp;
  if (name == "cnn") return Arch::cnn;
  if (name == "resnet") return Arch::resnet;
  if (name == "vit") return Arch::vit;
  throw ValueError("depthlaw", "--arch is mlp, cnn, resnet or vit; got " + name);
}

void set_init(Spec& spec, const std::string& name) {
  if (name == "he") {
    spec.mean_field = false;
  } else if (name == "mf") {
    spec.mean_field = true;
  } else if (name == "res-sqrtK") {
    spec.branch = Branch::sqrt_k;
  } else if (name == "res-K") {
    spec.branch = Branch::k;
  } else {
    throw ValueError("depthlaw", "--init is he, res-sqrtK, res-K or mf; got " + name);
  }
}

Tensor Network::draw(const Shape& sizes, double variance) {
  const Tensor x = randn(sizes, {.dtype = dtype_}, &generator_) * std::sqrt(variance);
  return x.detach().set_requires_grad();
}

Shape Network::weight_sizes(int64_t out, int64_t in) const {
  const bool matrix = spec_.arch == Arch::mlp || spec_.arch == Arch::vit || spec_.dense;
  if (matrix) return {out, in};
  return spec_.spatial == 1 ? Shape{out, in, kKernel} : Shape{out, in, kKernel, kKernel};
}

Network::Network(const Spec& spec, uint64_t seed, DType dtype)
    : spec_(spec), generator_{.seed = seed, .stream = 20}, dtype_(dtype) {
  if (spec_.depth < 1) {
    throw ValueError("depthlaw", fmt::format("depth must be at least 1; got {}", spec_.depth));
  }
  if (spec_.width < 1) {
    throw ValueError("depthlaw", fmt::format("width must be at least 1; got {}", spec_.width));
  }
  if (spec_.in == 0) spec_.in = spec_.arch == Arch::vit ? 1 : spec_.width;
  const int64_t n = spec_.width;
  if (spec_.arch == Arch::resnet) {
    init_residual();
  } else if (spec_.arch == Arch::vit) {
    init_transformer();
  } else {
    const double gain = spec_.activation == Activation::linear ? 1 : 2;
    for (int64_t l = 0; l < spec_.depth; ++l) {
      const Shape sizes = weight_sizes(n, l == 0 ? spec_.in : n);
      weights_.push_back(draw(sizes, gain / double(sizes.numel() / n)));
    }
  }
  readout_ = draw({spec_.outputs, n}, spec_.mean_field ? 1 / double(n * n) : 1 / double(n));
}

// Branch weights have variance c/(K^a · fan-in); a stem brings other inputs to the width.
void Network::init_residual() {
  const int64_t n = spec_.width;
  const double k = double(spec_.depth);
  const double power = spec_.branch == Branch::plain ? 0 : spec_.branch == Branch::sqrt_k ? 1 : 2;
  const double shrink = std::pow(k, -power);
  if (spec_.in != n) {
    const Shape stem = weight_sizes(n, spec_.in);
    weights_.push_back(draw(stem, 1 / double(stem.numel() / n)));
  }
  const Shape sizes = weight_sizes(n, n);
  const double he = 2 / double(sizes.numel() / n);
  for (int64_t l = 0; l < spec_.depth; ++l) {
    const bool two = spec_.block == Block::last || spec_.block == Block::both;
    if (two) weights_.push_back(draw(sizes, he * (spec_.block == Block::both ? shrink : 1)));
    weights_.push_back(draw(sizes, spec_.zero_init ? 0 : he * shrink));
  }
}

// Patch embedding, positions, then q k v, projection and two matrices for each block.
void Network::init_transformer() {
  if (spec_.depth % 2 != 0) {
    throw ValueError("depthlaw", fmt::format("a transformer has two units a block: depth must be "
                                             "even; got {}",
                                             spec_.depth));
  }
  const bool words = spec_.vocabulary > 0;
  const int64_t n = spec_.width, patch = spec_.in * kPatch * kPatch;
  if (n % kHeads != 0 || (!words && spec_.side % kPatch != 0)) {
    throw ValueError("depthlaw",
                     "a transformer needs an even width and sides of whole 4×4 patches");
  }
  const int64_t tokens = words ? spec_.tokens : (spec_.side / kPatch) * (spec_.side / kPatch);
  weights_.push_back(words ? draw({spec_.vocabulary, n}, 1) : draw({n, patch}, 1 / double(patch)));
  weights_.push_back(draw({tokens, n}, 0.0004));
  for (int64_t b = 0; b < spec_.depth / 2; ++b) {
    weights_.push_back(draw({3 * n, n}, 1 / double(n)));
    weights_.push_back(draw({n, n}, 1 / double(n)));
    weights_.push_back(draw({2 * n, n}, 2 / double(n)));
    weights_.push_back(draw({n, 2 * n}, 1 / double(2 * n)));
  }
}

Tensor Network::act(const Tensor& x) const {
  switch (spec_.activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    default:
      return x;
  }
}

Tensor Network::apply(const Tensor& x, const Tensor& w) const {
  if (w.dim() == 2) return linear(x, w);
  const PadMode mode = spec_.padding == Padding::circular ? PadMode::circular
                       : spec_.padding == Padding::zero   ? PadMode::constant
                                                          : PadMode::reflect;
  const Tensor z = w.dim() == 3 ? conv1d(pad(x, {1, 1}, {.mode = mode}), w)
                                : conv2d(pad(x, {1, 1, 1, 1}, {.mode = mode}), w);
  return spec_.batch_norm
             ? batch_norm(z, Tensor(), Tensor(), Tensor(), Tensor(), {.training = true})
             : z;
}

Tensor Network::chain(const Tensor& x, Tensors* units) const {
  Tensor h = x;
  for (const Tensor& w : weights_) {
    const Tensor z = apply(h, w);
    if (units) units->push_back(z);
    h = act(z);
  }
  return h;
}

Tensor Network::residual(const Tensor& x, Tensors* units) const {
  const double scale = spec_.layer_scale > 0 ? spec_.layer_scale : 1;
  size_t next = 0;
  Tensor h = x;
  if (spec_.in != spec_.width) h = apply(h, weights_[next++]);
  for (int64_t l = 0; l < spec_.depth; ++l) {
    Tensor b;
    switch (spec_.block) {
      case Block::post:
        b = act(apply(h, weights_[next]));
        break;
      case Block::pre:
        b = apply(act(h), weights_[next]);
        break;
      default:
        b = apply(act(apply(act(h), weights_[next])), weights_[next + 1]);
        ++next;
    }
    ++next;
    h = h + b * scale;
    if (units) units->push_back(h);
  }
  return h;
}

// Words [B,tokens], or x [B,in,side,side] as 4×4 patches → [B,tokens,width].
Tensor Network::embed(const Tensor& x) const {
  const int64_t b = x.size(0), g = spec_.side / kPatch;
  if (spec_.vocabulary > 0) {
    return index_select(weights_[0], 0, x.reshape({-1})).reshape({b, spec_.tokens, spec_.width}) +
           weights_[1];
  }
  const Tensor patches = x.reshape({b, spec_.in, g, kPatch, g, kPatch})
                             .permute({0, 2, 4, 1, 3, 5})
                             .reshape({b, g * g, spec_.in * kPatch * kPatch});
  return linear(patches, weights_[0]) + weights_[1];
}

// Pre- or post-norm blocks. Units are the residual sums.
Tensor Network::transformer(const Tensor& x, Tensors* units) const {
  Tensor h = embed(x);
  const int64_t b = x.size(0), n = spec_.width, tokens = h.size(1);
  const double scale = spec_.layer_scale > 0 ? spec_.layer_scale : 1;
  const auto norm = [&](const Tensor& t) { return layer_norm(t, Shape{n}); };
  const auto join = [&](const Tensor& branch) {
    h = h + branch * scale;
    if (units) units->push_back(h);
    if (spec_.post_norm) h = norm(h);
  };
  for (size_t next = 2; next + 3 < weights_.size(); next += 4) {
    const Tensor u = spec_.post_norm ? h : norm(h);
    const Tensor qkv = linear(u, weights_[next]).reshape({b, tokens, 3, kHeads, n / kHeads});
    const auto part = [&](int64_t i) { return qkv.select(2, i).transpose(1, 2); };
    const Tensor y = attention_composite(part(0), part(1), part(2));
    join(linear(y.transpose(1, 2).reshape({b, tokens, n}), weights_[next + 1]));
    const Tensor v = spec_.post_norm ? h : norm(h);
    join(linear(act(linear(v, weights_[next + 2])), weights_[next + 3]));
  }
  return mean(spec_.post_norm ? h : norm(h), 1);
}

Tensor Network::forward(const Tensor& x, Tensors* units) const {
  Tensor h;
  switch (spec_.arch) {
    case Arch::resnet:
      h = residual(x, units);
      break;
    case Arch::vit:
      h = transformer(x, units);
      break;
    default:
      h = chain(x, units);
  }
  if (h.dim() > 2) h = mean(h.flatten(2), 2);  // global average pooling
  return linear(h, readout_);
}

Tensor Network::random_input(int64_t batch, Generator& generator) const {
  if (spec_.vocabulary > 0) {
    return randint(0, spec_.vocabulary, {batch, spec_.tokens}, {.dtype = DType::i64}, &generator);
  }
  const bool matrix = spec_.arch == Arch::mlp || spec_.dense;
  Shape sizes{batch, spec_.in};
  for (int i = 0; i < (spec_.arch == Arch::vit ? 2 : spec_.spatial) && !matrix; ++i) {
    sizes.push_back(spec_.side);
  }
  const Tensor x = randn(sizes, {.dtype = dtype_}, &generator);
  if (!matrix) return x;
  return normalize(x, 1) * std::sqrt(double(spec_.in));
}

}  // namespace cutaway::depth
