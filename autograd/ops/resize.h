#pragma once
#include <optional>
#include <vector>

#include <cutaway/autograd/ops/conv.h>

namespace cutaway {

enum class Resize : uint8_t { nearest, nearest_exact, linear };
struct InterpolateOptions {
  std::optional<Dims> size;                  // either the spatial sizes of the result …
  std::optional<std::vector<double>> scale;  // … or factors: size = ⌊n·scale⌋ in f64
  Resize mode = Resize::nearest;             // linear: bilinear in 2-d, trilinear in 3-d
  bool align_corners = false;                // linear only
  bool recompute_scale = false;  // coordinates use m/n instead of the factor that was given
};
// Resizes the spatial dimensions of x [N,C,spatial…] (1 to 3 of them), with the meaning of
// torch.nn.functional.interpolate. By default a given factor, not m/n, maps coordinates; give size
// for the other. Raises ShapeError, ValueError.
Tensor interpolate(TensorArg x, const InterpolateOptions& options);
// The adjoint of interpolate for an input with sizes x_sizes.
Tensor interpolate_grad(TensorArg g, const Shape& x_sizes, const InterpolateOptions& options);

}  // namespace cutaway
