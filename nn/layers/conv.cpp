#include <cutaway/nn/layers/conv.h>

#include <cmath>

#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

void check_channels(const char* name, int64_t in, int64_t out, int64_t groups) {
  require_at_least(name, "in", in, 1);
  require_at_least(name, "out", out, 1);
  require_at_least(name, "groups", groups, 1);
  if (in % groups != 0 || out % groups != 0) {
    throw ValueError(
        name, fmt::format(".groups must divide .in and .out; got groups {}, in {}, out {}", groups,
                          in, out));
  }
}

// [first, second, kernel…]
Shape weight_sizes(const char* name, int64_t first, int64_t second, const Dims& kernel,
                   int spatial) {
  Shape sizes{first, second};
  for (const int64_t k : kernel.expand(name, spatial)) {
    require_at_least(name, "kernel", k, 1);
    sizes.push_back(k);
  }
  return sizes;
}

void make_parameters(const Shape& sizes, int64_t out, bool with_bias, Tensor& weight,
                     Tensor& bias) {
  weight = empty(sizes);
  const double bound = 1 / std::sqrt(double(init::fans(weight).in));
  init::uniform_(weight, -bound, bound);
  if (with_bias) bias = init::uniform_(empty({out}), -bound, bound);
}

// What stands on the two sides of each spatial dimension.
struct Sides {
  Shape before, after;
};
Sides padding_sides(const char* name, int spatial, const ConvLayerOptions& o) {
  const Shape padding = o.padding.expand(name, spatial);
  if (!o.same_padding) return {padding, padding};
  const Shape kernel = o.kernel.expand(name, spatial);
  const Shape dilation = o.dilation.expand(name, spatial);
  const Shape stride = o.stride.expand(name, spatial);
  Sides s;
  for (int d = 0; d < spatial; ++d) {
    if (stride[d] != 1 || padding[d] != 0) {
      throw ValueError(name, fmt::format(".same_padding needs stride 1 and padding 0; got stride "
                                         "{}, padding {}",
                                         to_string(stride), to_string(padding)));
    }
    const int64_t total = dilation[d] * (kernel[d] - 1);
    s.before.push_back(total / 2);
    s.after.push_back(total - total / 2);
  }
  return s;
}

}  // namespace

ConvLayer::ConvLayer(const char* name, int spatial, const ConvLayerOptions& o)
    : spatial_(spatial), options_(o) {
  check_channels(name, o.in, o.out, o.groups);
  make_parameters(weight_sizes(name, o.out, o.in / o.groups, o.kernel, spatial), o.out, o.bias,
                  weight, bias);
  add("weight", weight);
  add("bias", bias);
  const Sides sides = padding_sides(name, spatial, o);
  options_.padding = sides.before;
  if (o.padding_mode == PadMode::constant && sides.before == sides.after) return;
  for (int d = spatial - 1; d >= 0; --d) {
    pads_.push_back(sides.before[d]);
    pads_.push_back(sides.after[d]);
  }
  options_.padding = 0;
}

Tensor ConvLayer::forward(const Tensor& x) {
  const ConvOptions o{options_.stride, options_.padding, options_.dilation, options_.groups};
  const Tensor wide = pads_.empty() ? x : pad(x, pads_, {.mode = options_.padding_mode});
  if (spatial_ == 1) return conv1d(wide, weight, bias, o);
  if (spatial_ == 2) return conv2d(wide, weight, bias, o);
  return conv3d(wide, weight, bias, o);
}

ConvTransposeLayer::ConvTransposeLayer(const char* name, int spatial,
                                       const ConvTransposeLayerOptions& o)
    : spatial_(spatial), options_(o) {
  check_channels(name, o.in, o.out, o.groups);
  make_parameters(weight_sizes(name, o.in, o.out / o.groups, o.kernel, spatial), o.out, o.bias,
                  weight, bias);
  add("weight", weight);
  add("bias", bias);
}

Tensor ConvTransposeLayer::forward(const Tensor& x) {
  const ConvTransposeOptions o{options_.stride, options_.padding, options_.output_padding,
                               options_.dilation, options_.groups};
  if (spatial_ == 1) return conv_transpose1d(x, weight, bias, o);
  if (spatial_ == 2) return conv_transpose2d(x, weight, bias, o);
  return conv_transpose3d(x, weight, bias, o);
}

}  // namespace cutaway::nn
