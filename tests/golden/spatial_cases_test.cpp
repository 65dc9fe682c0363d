// Convolution, pooling, resizing and windows against stored values: forward and gradients.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/nn.h>
#include <tests/golden/run.h>

namespace cutaway::golden {
namespace {

Shape shape_of(const std::vector<int64_t>& v) { return Shape(std::span<const int64_t>(v)); }
Shape dims_of(const Case& c, const char* option, int64_t fallback) {
  return shape_of(c.integers(option, {fallback}));
}

// padding = "same": as much in front as behind, which the stored kernels allow.
Shape same_padding(const Shape& weight, const Shape& dilation) {
  Shape padding;
  for (int d = 0; d < dilation.rank(); ++d) {
    padding.push_back(dilation[d] * (weight[d + 2] - 1) / 2);
  }
  return padding;
}

auto conv(Tensor (*f)(TensorArg, TensorArg, const Tensor&, const ConvOptions&)) {
  return [f](Run& r) {
    const Case& c = r.data();
    const Tensor weight = r.parameter("weight");
    const Shape dilation = dims_of(c, "dilation", 1);
    const bool same = c.options().value("padding", nlohmann::json()).is_string();
    const ConvOptions o{
        .stride = dims_of(c, "stride", 1),
        .padding = same ? same_padding(weight.sizes(), dilation) : dims_of(c, "padding", 0),
        .dilation = dilation,
        .groups = c.integer("groups", 1)};
    r.finish({{"y", f(r.input("x"), weight, r.parameter("bias"), o)}});
  };
}
auto conv_transpose(Tensor (*f)(TensorArg, TensorArg, const Tensor&, const ConvTransposeOptions&)) {
  return [f](Run& r) {
    const Case& c = r.data();
    const ConvTransposeOptions o{.stride = dims_of(c, "stride", 1),
                                 .padding = dims_of(c, "padding", 0),
                                 .output_padding = dims_of(c, "output_padding", 0),
                                 .dilation = dims_of(c, "dilation", 1),
                                 .groups = c.integer("groups", 1)};
    r.finish({{"y", f(r.input("x"), r.parameter("weight"), r.parameter("bias"), o)}});
  };
}

PadMode pad_mode(const std::string& text) {
  return text == "circular"    ? PadMode::circular
         : text == "reflect"   ? PadMode::reflect
         : text == "replicate" ? PadMode::replicate
                               : PadMode::constant;
}

void conv_layer(Run& r) {
  const Case& c = r.data();
  nn::Conv2d layer({.in = c.integer("in_channels", 0),
                    .out = c.integer("out_channels", 0),
                    .kernel = dims_of(c, "kernel_size", 1),
                    .padding = dims_of(c, "padding", 0),
                    .padding_mode = pad_mode(c.text("padding_mode"))});
  r.finish({{"y", r.fill(layer)(r.input("x"))}});
}

TEST(GoldenFile, conv) {
  compare_file("conv", {
                           {"conv1d", conv(conv1d)},
                           {"conv2d", conv(conv2d)},
                           {"conv3d", conv(conv3d)},
                           {"Conv2d", conv_layer},
                           {"conv_transpose1d", conv_transpose(conv_transpose1d)},
                           {"conv_transpose2d", conv_transpose(conv_transpose2d)},
                           {"conv_transpose3d", conv_transpose(conv_transpose3d)},
                       });
}

PoolOptions pool_options(const Case& c) {
  PoolOptions o{.kernel = dims_of(c, "kernel_size", 1),
                .padding = dims_of(c, "padding", 0),
                .dilation = dims_of(c, "dilation", 1),
                .ceil_mode = c.flag("ceil_mode", false),
                .count_include_pad = c.flag("count_include_pad", true)};
  if (c.has_option("stride")) o.stride = dims_of(c, "stride", 1);
  if (c.has_option("divisor_override")) o.divisor_override = c.integer("divisor_override", 0);
  return o;
}

using Pool = Tensor (*)(TensorArg, const PoolOptions&);
using AdaptivePool = Tensor (*)(TensorArg, Dims);

auto avg_pool(Pool f) {
  return [f](Run& r) { r.finish({{"y", f(r.input("x"), pool_options(r.data()))}}); };
}
auto max_pool(Pool f, int spatial) {
  return [f, spatial](Run& r) {
    const PoolOptions o = pool_options(r.data());
    const Tensors both = max_pool_with_indices(r.input("x"), o, spatial);
    r.finish({{"y", both[0]}, {"indices", both[1]}});
    r.compare(f(r.input("x"), o), "output.y");
  };
}
auto adaptive_avg(AdaptivePool f) {
  return [f](Run& r) { r.finish({{"y", f(r.input("x"), dims_of(r.data(), "output_size", 1))}}); };
}
auto adaptive_max(AdaptivePool f, int spatial) {
  return [f, spatial](Run& r) {
    const Shape size = dims_of(r.data(), "output_size", 1);
    const Tensors both = adaptive_max_pool_with_indices(r.input("x"), size, spatial);
    r.finish({{"y", both[0]}, {"indices", both[1]}});
    r.compare(f(r.input("x"), size), "output.y");
  };
}

TEST(GoldenFile, pool) {
  compare_file("pool", {
                           {"adaptive_avg_pool1d", adaptive_avg(adaptive_avg_pool1d)},
                           {"adaptive_avg_pool2d", adaptive_avg(adaptive_avg_pool2d)},
                           {"adaptive_avg_pool3d", adaptive_avg(adaptive_avg_pool3d)},
                           {"adaptive_max_pool1d", adaptive_max(adaptive_max_pool1d, 1)},
                           {"adaptive_max_pool2d", adaptive_max(adaptive_max_pool2d, 2)},
                           {"adaptive_max_pool3d", adaptive_max(adaptive_max_pool3d, 3)},
                           {"avg_pool1d", avg_pool(avg_pool1d)},
                           {"avg_pool2d", avg_pool(avg_pool2d)},
                           {"avg_pool3d", avg_pool(avg_pool3d)},
                           {"max_pool1d", max_pool(max_pool1d, 1)},
                           {"max_pool2d", max_pool(max_pool2d, 2)},
                           {"max_pool3d", max_pool(max_pool3d, 3)},
                       });
}

void interpolate_of(Run& r) {
  const Case& c = r.data();
  const std::string mode = c.text("mode");
  InterpolateOptions o{.mode = mode == "nearest"         ? Resize::nearest
                               : mode == "nearest-exact" ? Resize::nearest_exact
                                                         : Resize::linear,
                       .align_corners = c.flag("align_corners", false),
                       .recompute_scale = c.flag("recompute_scale_factor", false)};
  if (c.has_option("size")) o.size = dims_of(c, "size", 1);
  if (c.has_option("scale_factor")) o.scale = c.numbers("scale_factor");
  r.finish({{"y", interpolate(r.input("x"), o)}});
}
void pad_of(Run& r) {
  const Case& c = r.data();
  const PadOptions o{.mode = pad_mode(c.text("mode")), .value = c.number("value", 0)};
  r.finish({{"y", pad(r.input("x"), dims_of(c, "pad", 0), o)}});
}

Window2d window_of(const Case& c) {
  Window2d w;
  const auto set = [&](int64_t(&into)[2], const char* option) {
    if (!c.has_option(option)) return;
    for (size_t d = 0; d < 2; ++d) into[d] = c.integers(option).at(d);
  };
  set(w.kernel, "kernel_size");
  set(w.stride, "stride");
  set(w.padding, "padding");
  set(w.dilation, "dilation");
  return w;
}
void unfold_of(Run& r) { r.finish({{"y", unfold2d(r.input("x"), window_of(r.data()))}}); }
void fold_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", fold2d(r.input("x"), dims_of(c, "output_size", 1), window_of(c))}});
}
void windows_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", unfold(r.input("x"), c.integer("dim", 0), c.integer("size", 1),
                         c.integer("step", 1))}});
}

void pixel_shuffle_of(Run& r) {
  r.finish({{"y", nn::PixelShuffle({.factor = r.data().integer("factor", 1)})(r.input("x"))}});
}
void pixel_unshuffle_of(Run& r) {
  r.finish({{"y", nn::PixelUnshuffle({.factor = r.data().integer("factor", 1)})(r.input("x"))}});
}

TEST(GoldenFile, resize) {
  compare_file("resize", {
                             {"fold", fold_of},
                             {"interpolate", interpolate_of},
                             {"pad", pad_of},
                             {"pixel_shuffle", pixel_shuffle_of},
                             {"pixel_unshuffle", pixel_unshuffle_of},
                             {"Tensor.unfold", windows_of},
                             {"unfold", unfold_of},
                         });
}

}  // namespace
}  // namespace cutaway::golden
