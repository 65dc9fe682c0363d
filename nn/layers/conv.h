#pragma once
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/conv.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct ConvLayerOptions {
  int64_t in = 0, out = 0;  // channels
  Dims kernel = 1;
  Dims stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  PadMode padding_mode = PadMode::constant;  // what stands in the padding: zeros, or see pad()
  // In place of .padding: as much as keeps the spatial sizes, dilation · (kernel − 1) in all, of
  // which the odd one goes to the end. PyTorch's padding="same".
  bool same_padding = false;
};
// Cross-correlation with a learned kernel: x [N,in,spatial…] → [N,out,spatial…], see conv2d. weight
// [out, in/groups, kernel…] and bias [out], both uniform in ±1/√(in/groups · kernel size). Raises
// ValueError when groups does not divide the channels, and for same_padding with another stride
// than 1 or with padding.
class ConvLayer : public Module {
 public:
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;

 protected:
  ConvLayer(const char* name, int spatial, const ConvLayerOptions& options);

 private:
  int spatial_;
  ConvLayerOptions options_;
  Shape pads_;  // of pad(), for other modes than zeros and for unequal sides
};
class Conv1d : public ConvLayer {
 public:
  explicit Conv1d(const ConvLayerOptions& options) : ConvLayer("Conv1d", 1, options) {}
};
class Conv2d : public ConvLayer {
 public:
  explicit Conv2d(const ConvLayerOptions& options) : ConvLayer("Conv2d", 2, options) {}
};
class Conv3d : public ConvLayer {
 public:
  explicit Conv3d(const ConvLayerOptions& options) : ConvLayer("Conv3d", 3, options) {}
};

struct ConvTransposeLayerOptions {
  int64_t in = 0, out = 0;
  Dims kernel = 1;
  Dims stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
// The adjoint of a convolution, see conv_transpose2d. weight [in, out/groups, kernel…].
class ConvTransposeLayer : public Module {
 public:
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;

 protected:
  ConvTransposeLayer(const char* name, int spatial, const ConvTransposeLayerOptions& options);

 private:
  int spatial_;
  ConvTransposeLayerOptions options_;
};
class ConvTranspose1d : public ConvTransposeLayer {
 public:
  explicit ConvTranspose1d(const ConvTransposeLayerOptions& options)
      : ConvTransposeLayer("ConvTranspose1d", 1, options) {}
};
class ConvTranspose2d : public ConvTransposeLayer {
 public:
  explicit ConvTranspose2d(const ConvTransposeLayerOptions& options)
      : ConvTransposeLayer("ConvTranspose2d", 2, options) {}
};
class ConvTranspose3d : public ConvTransposeLayer {
 public:
  explicit ConvTranspose3d(const ConvTransposeLayerOptions& options)
      : ConvTransposeLayer("ConvTranspose3d", 3, options) {}
};

}  // namespace cutaway::nn
