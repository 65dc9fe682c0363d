#pragma once
#include <string>

#include <cutaway/nn/nn.h>

namespace cutaway::zoo {

// How a residual block that changes its sizes passes its input on (He et al. 2015, section 3.3).
enum class Shortcut : uint8_t {
  pad,         // option A: every stride-th pixel, zeros as new channels; no parameters
  projection,  // option B: a 1×1 convolution and its normalisation
};

struct ResNetOptions {
  Shape blocks;               // of each of the one to four stages
  int64_t width = 64;         // channels of the first stage; doubled at each further stage
  bool bottleneck = false;    // blocks of 1×1, 3×3, 1×1 with 4 · width channels at their ends
  bool small_images = false;  // starts with one 3×3 convolution instead of 7×7/2 and pooling
  Shortcut shortcut = Shortcut::projection;
  bool zero_init_last = false;  // blocks start as identities: last normalisation weight 0
  int64_t in_channels = 3, classes = 1000;
};

// Two 3×3 convolutions with normalisation, and the input added.
class BasicBlock : public nn::Module {
 public:
  struct Options {
    int64_t in = 0, width = 0, stride = 1;
    Shortcut shortcut = Shortcut::projection;
  };
  static constexpr int64_t kExpansion = 1;
  explicit BasicBlock(const Options& options);
  Tensor forward(const Tensor& x) override;

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample;  // empty: the input itself, or option A

 private:
  Options options_;
};

// 1×1, 3×3 and 1×1 convolutions with normalisation, and the input added. The stride is that of the
// 3×3 convolution, as torchvision has it; the paper strides in the first 1×1.
class Bottleneck : public nn::Module {
 public:
  using Options = BasicBlock::Options;
  static constexpr int64_t kExpansion = 4;
  explicit Bottleneck(const Options& options);
  Tensor forward(const Tensor& x) override;

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  nn::Sequential downsample;

 private:
  Options options_;
};

// Deep residual network (He et al. 2015, arXiv 1512.03385) with the names of torchvision's:
// conv1, bn1, layer1.0.conv1, …, layer2.0.downsample.0, …, fc. Convolutions start normal with
// variance 2 / fan-out. Raises ValueError for options that make no network.
class ResNet : public nn::Module {
 public:
  explicit ResNet(const ResNetOptions& options);
  // x [N,in_channels,H,W] → logits [N,classes]
  Tensor forward(const Tensor& x) override;

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layers[4];  // "layer1" …
  nn::Linear fc;

 private:
  template <class Block>
  void add_stages();

  ResNetOptions options_;
};

// Options by name. resnet20, 32, 44, 56, 110: 6n + 2 layers for small images, 16, 32 and 64
// channels, option A, as section 4.2 of the paper has them for CIFAR-10. resnet18, 34, 50, 101,
// 152: the networks of its table 1 for ImageNet, option B. Raises ValueError for other names.
ResNetOptions resnet_options(const std::string& name);

}  // namespace cutaway::zoo
