#include <cutaway/nn/layers/padding.h>

#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

PadLayer::PadLayer(const char* name, int spatial, PadMode mode, const PadLayerOptions& o)
    : layer_(name), spatial_(spatial), options_{mode, o.value} {
  pads_ = o.padding.expand(name, 2 * spatial);
}

Tensor PadLayer::forward(const Tensor& x) {
  if (x.dim() != spatial_ + 1 && x.dim() != spatial_ + 2) {
    throw ShapeError(layer_, fmt::format("x must have {} or {} dimensions; got {}", spatial_ + 1,
                                         spatial_ + 2, to_string(x.sizes())));
  }
  return pad(x, pads_, options_);
}

}  // namespace cutaway::nn
