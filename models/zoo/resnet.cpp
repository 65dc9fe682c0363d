#include <cutaway/models/zoo/resnet.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

nn::ConvLayerOptions conv3x3(int64_t in, int64_t out, int64_t stride) {
  return {.in = in, .out = out, .kernel = 3, .stride = stride, .padding = 1, .bias = false};
}
nn::ConvLayerOptions conv1x1(int64_t in, int64_t out, int64_t stride) {
  return {.in = in, .out = out, .kernel = 1, .stride = stride, .bias = false};
}
nn::BatchNormLayerOptions norm(int64_t channels) { return {.num_features = channels}; }

bool changes_sizes(const BasicBlock::Options& o, int64_t out) {
  return o.stride != 1 || o.in != out;
}

nn::Sequential make_downsample(const BasicBlock::Options& o, int64_t out) {
  nn::Sequential s;
  if (o.shortcut == Shortcut::projection && changes_sizes(o, out)) {
    s.append(nn::Conv2d(conv1x1(o.in, out, o.stride)));
    s.append(nn::BatchNorm2d(norm(out)));
  }
  return s;
}

// What is added to the result of a block with `out` channels.
Tensor pass_on(const Tensor& x, const BasicBlock::Options& o, int64_t out,
               nn::Sequential& downsample) {
  if (!changes_sizes(o, out)) return x;
  if (o.shortcut == Shortcut::projection) return downsample(x);
  const int64_t before = (out - o.in) / 2, after = out - o.in - before;
  const Tensor pixels = slice(slice(x, 2, 0, kEnd, o.stride), 3, 0, kEnd, o.stride);
  return before + after == 0 ? pixels : pad(pixels, {0, 0, 0, 0, before, after});
}

nn::ConvLayerOptions stem(const ResNetOptions& o) {
  if (o.small_images) return conv3x3(o.in_channels, o.width, 1);
  return {
      .in = o.in_channels, .out = o.width, .kernel = 7, .stride = 2, .padding = 3, .bias = false};
}

const ResNetOptions& checked(const ResNetOptions& o) {
  bool good = o.blocks.rank() >= 1 && o.blocks.rank() <= 4 && o.width >= 1 && o.in_channels >= 1 &&
              o.classes >= 1;
  for (const int64_t n : o.blocks) good = good && n >= 1;
  if (good) return o;
  throw ValueError(
      "ResNet",
      fmt::format("needs one to four stages of at least one block, width, channels and classes of "
                  "at least 1; got blocks {}, width {}, channels {}, classes {}",
                  to_string(o.blocks), o.width, o.in_channels, o.classes));
}

// Channels at the end of the last stage.
int64_t last_channels(const ResNetOptions& o) {
  const int64_t expansion = o.bottleneck ? Bottleneck::kExpansion : BasicBlock::kExpansion;
  return (o.width << (o.blocks.rank() - 1)) * expansion;
}

}  // namespace

BasicBlock::BasicBlock(const Options& o)
    : conv1(conv3x3(o.in, o.width, o.stride)),
      bn1(norm(o.width)),
      conv2(conv3x3(o.width, o.width, 1)),
      bn2(norm(o.width)),
      downsample(make_downsample(o, o.width)),
      options_(o) {
  add("conv1", conv1);
  add("bn1", bn1);
  add("conv2", conv2);
  add("bn2", bn2);
  if (downsample.size() > 0) add("downsample", downsample);
}

Tensor BasicBlock::forward(const Tensor& x) {
  const Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
  return relu(y + pass_on(x, options_, options_.width, downsample));
}

Bottleneck::Bottleneck(const Options& o)
    : conv1(conv1x1(o.in, o.width, 1)),
      bn1(norm(o.width)),
      conv2(conv3x3(o.width, o.width, o.stride)),
      bn2(norm(o.width)),
      conv3(conv1x1(o.width, o.width * kExpansion, 1)),
      bn3(norm(o.width * kExpansion)),
      downsample(make_downsample(o, o.width * kExpansion)),
      options_(o) {
  add("conv1", conv1);
  add("bn1", bn1);
  add("conv2", conv2);
  add("bn2", bn2);
  add("conv3", conv3);
  add("bn3", bn3);
  if (downsample.size() > 0) add("downsample", downsample);
}

Tensor Bottleneck::forward(const Tensor& x) {
  Tensor y = relu(bn1(conv1(x)));
  y = bn3(conv3(relu(bn2(conv2(y)))));
  return relu(y + pass_on(x, options_, options_.width * kExpansion, downsample));
}

ResNet::ResNet(const ResNetOptions& o)
    : conv1(stem(checked(o))),
      bn1(norm(o.width)),
      fc({.in = last_channels(o), .out = o.classes}),
      options_(o) {
  add("conv1", conv1);
  add("bn1", bn1);
  if (o.bottleneck) {
    add_stages<Bottleneck>();
  } else {
    add_stages<BasicBlock>();
  }
  add("fc", fc);
  for (const auto& [name, module] : named_modules()) {
    if (auto* conv = dynamic_cast<nn::Conv2d*>(module)) {
      nn::init::kaiming_normal_(
          conv->weight, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu});
    }
    if (!o.zero_init_last) continue;
    if (auto* block = dynamic_cast<BasicBlock*>(module)) nn::init::zeros_(block->bn2.weight);
    if (auto* block = dynamic_cast<Bottleneck*>(module)) nn::init::zeros_(block->bn3.weight);
  }
}

template <class Block>
void ResNet::add_stages() {
  int64_t in = options_.width;
  for (int stage = 0; stage < options_.blocks.rank(); ++stage) {
    const int64_t width = options_.width << stage;
    for (int64_t i = 0; i < options_.blocks[stage]; ++i) {
      layers[stage].append(Block({.in = in,
                                  .width = width,
                                  .stride = stage > 0 && i == 0 ? 2 : 1,
                                  .shortcut = options_.shortcut}));
      in = width * Block::kExpansion;
    }
    add(fmt::format("layer{}", stage + 1), layers[stage]);
  }
}

Tensor ResNet::forward(const Tensor& x) {
  Tensor y = relu(bn1(conv1(x)));
  if (!options_.small_images) y = max_pool2d(y, {.kernel = 3, .stride = 2, .padding = 1});
  for (int stage = 0; stage < options_.blocks.rank(); ++stage) y = layers[stage](y);
  return fc(mean(y, Shape{2, 3}));
}

ResNetOptions resnet_options(const std::string& name) {
  for (const int64_t n : {3, 5, 7, 9, 18}) {
    if (name != fmt::format("resnet{}", 6 * n + 2)) continue;
    return {.blocks = {n, n, n}, .width = 16, .small_images = true, .shortcut = Shortcut::pad};
  }
  if (name == "resnet18") return {.blocks = {2, 2, 2, 2}};
  if (name == "resnet34") return {.blocks = {3, 4, 6, 3}};
  if (name == "resnet50") return {.blocks = {3, 4, 6, 3}, .bottleneck = true};
  if (name == "resnet101") return {.blocks = {3, 4, 23, 3}, .bottleneck = true};
  if (name == "resnet152") return {.blocks = {3, 8, 36, 3}, .bottleneck = true};
  throw ValueError("ResNet",
                   fmt::format("there is no \"{}\"; known are: resnet18, 20, 32, 34, 44, 50, 56, "
                               "101, 110, 152",
                               name));
}

}  // namespace cutaway::zoo
