#pragma once
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/conv.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct PadLayerOptions {
  Dims padding = 0;  // one number, or before and after each dimension, the last dimension first
  double value = 0;  // ConstantPad only
};
// Widens the spatial dimensions of x [N,C,spatial…] or [C,spatial…], see pad(). Negative numbers
// cut. Raises ShapeError for other ranks and for lists of another length than 2 · spatial.
class PadLayer : public Module {
 public:
  Tensor forward(const Tensor& x) override;

 protected:
  PadLayer(const char* name, int spatial, PadMode mode, const PadLayerOptions& options);

 private:
  const char* layer_;
  int spatial_;
  PadOptions options_;
  Shape pads_;
};

// Zeros, another constant, the mirror image without the edge, the edge itself, or the other end.
// The numbers of dimensions are those of torch.nn (ZeroPad1d and 3d, CircularPad: PyTorch 2).
template <PadMode mode, int spatial>
class PadLayerOf : public PadLayer {
 public:
  explicit PadLayerOf(const PadLayerOptions& options) : PadLayer(name(), spatial, mode, options) {}

 private:
  static const char* name() {
    switch (mode) {
      case PadMode::reflect:
        return "ReflectionPad";
      case PadMode::replicate:
        return "ReplicationPad";
      case PadMode::circular:
        return "CircularPad";
      default:
        return "ConstantPad";
    }
  }
};
using ConstantPad1d = PadLayerOf<PadMode::constant, 1>;
using ConstantPad2d = PadLayerOf<PadMode::constant, 2>;
using ConstantPad3d = PadLayerOf<PadMode::constant, 3>;
using ZeroPad1d = ConstantPad1d;
using ZeroPad2d = ConstantPad2d;
using ZeroPad3d = ConstantPad3d;
using ReflectionPad1d = PadLayerOf<PadMode::reflect, 1>;
using ReflectionPad2d = PadLayerOf<PadMode::reflect, 2>;
using ReflectionPad3d = PadLayerOf<PadMode::reflect, 3>;
using ReplicationPad1d = PadLayerOf<PadMode::replicate, 1>;
using ReplicationPad2d = PadLayerOf<PadMode::replicate, 2>;
using ReplicationPad3d = PadLayerOf<PadMode::replicate, 3>;
using CircularPad1d = PadLayerOf<PadMode::circular, 1>;
using CircularPad2d = PadLayerOf<PadMode::circular, 2>;
using CircularPad3d = PadLayerOf<PadMode::circular, 3>;

}  // namespace cutaway::nn
