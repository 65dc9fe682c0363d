#pragma once
#include <cutaway/nn/onnx/node_call.h>

// How Conv and the pools describe their windows. Internal.
namespace cutaway::onnx {

struct Window {
  Shape kernel, stride, dilation;
  Shape begin, end;  // elements added in front and behind
};

// From the attributes kernel_shape, strides, dilations, pads and auto_pad. `kernel` is that of the
// weight, or empty: then kernel_shape must be given.
Window read_window(NodeCall& c, const Tensor& x, Shape kernel);
// x [N,C,spatial…] with `value` around it.
Tensor pad_window(const Tensor& x, const Window& w, double value);
// Raises unless x has one to three spatial dimensions.
void require_images(NodeCall& c, const Tensor& x);

}  // namespace cutaway::onnx
