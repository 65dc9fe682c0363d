#pragma once
#include <cutaway/core/tensor.h>

namespace cutaway {

// One number for every spatial dimension, or one each: `.stride = 2`, `.padding = {1, 2}`.
class Dims {
 public:
  Dims(int64_t all) : values_{all} {}
  Dims(int all) : values_{all} {}
  Dims(std::initializer_list<int64_t> each) : values_(each) {}
  Dims(const Shape& each) : values_(each) {}
  // The list for n dimensions; raises ShapeError when it has another length than 1 or n.
  Shape expand(const char* op, int n) const;

 private:
  Shape values_;
};

struct ConvOptions {
  Dims stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
};
struct ConvTransposeOptions {
  Dims stride = 1, padding = 0, output_padding = 0, dilation = 1;
  int64_t groups = 1;
};

// Cross-correlation. x [N,C,spatial…] or [C,spatial…], weight [K,C/groups,kernel…], bias [K] or
// undefined → [N,K,out…], out = ⌊(n + 2·padding − dilation·(kernel − 1) − 1)/stride⌋ + 1. 1, 2 or 3
// spatial dimensions. Raises ShapeError when channels, groups or sizes do not fit.
Tensor conv1d(TensorArg x, TensorArg weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv2d(TensorArg x, TensorArg weight, const Tensor& bias = {},
              const ConvOptions& options = {});
Tensor conv3d(TensorArg x, TensorArg weight, const Tensor& bias = {},
              const ConvOptions& options = {});
// The adjoint of convolution in x: weight [C,K/groups,kernel…] → [N,K,out…],
// out = (n − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1.
Tensor conv_transpose1d(TensorArg x, TensorArg weight, const Tensor& bias = {},
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose2d(TensorArg x, TensorArg weight, const Tensor& bias = {},
                        const ConvTransposeOptions& options = {});
Tensor conv_transpose3d(TensorArg x, TensorArg weight, const Tensor& bias = {},
                        const ConvTransposeOptions& options = {});

}  // namespace cutaway
