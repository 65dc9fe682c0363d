#include <tests/nn/parity/table.h>

namespace cutaway::parity {
namespace {

// [N,C,spatial…] with `n` spatial dimensions.
Shape sizes_of(int n, int64_t channels = 4) {
  Shape s{2, channels};
  for (int d = 0; d < n; ++d) s.push_back(7 - d);
  return s;
}

template <class L>
Section conv(const char* layer, const char* here, int n) {
  using O = nn::ConvLayerOptions;
  const auto call = on(sizes_of(n));
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.in = 4;
               o.out = 4;
               o.kernel = 3;
               o.padding = 1;
             },
             call)
      .family("Conv1d, Conv2d, Conv3d")
      .TAKES("in_channels", in = 2)
      .TAKES("out_channels", out = 8)
      .TAKES("kernel_size", kernel = 2)
      .TAKES("stride", stride = 2)
      .TAKES("padding", padding = 0)
      .takes("padding", ".same_padding = true",
             [](O& o) {
               o.padding = 0;
               o.dilation = 2;
               o.same_padding = true;
             })
      .TAKES("dilation", dilation = 2)
      .TAKES("groups", groups = 2)
      .TAKES("bias", bias = false)
      .TAKES("padding_mode", padding_mode = PadMode::reflect)
      .TAKES("padding_mode", padding_mode = PadMode::replicate)
      .TAKES("padding_mode", padding_mode = PadMode::circular);
}

template <class L>
Section conv_transpose(const char* layer, const char* here, int n) {
  using O = nn::ConvTransposeLayerOptions;
  const auto call = on(sizes_of(n));
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.in = 4;
               o.out = 4;
               o.kernel = 3;
               o.stride = 2;
             },
             call)
      .family("ConvTranspose1d, ConvTranspose2d, ConvTranspose3d")
      .TAKES("in_channels", in = 2)
      .TAKES("out_channels", out = 8)
      .TAKES("kernel_size", kernel = 2)
      .TAKES("stride", stride = 3)
      .TAKES("padding", padding = 1)
      .TAKES("output_padding", output_padding = 1)
      .TAKES("groups", groups = 2)
      .TAKES("bias", bias = false)
      .TAKES("dilation", dilation = 2)
      .lacks("padding_mode", "PyTorch itself takes zeros only");
}

template <class L>
Section padding(const char* layer, const char* here, const char* family, int n) {
  using O = nn::PadLayerOptions;
  const auto call = on(sizes_of(n));
  auto rows = Layer<L, O, decltype(call)>(
                  layer, here, [](O& o) { o.padding = 2; }, call)
                  .family(family)
                  .TAKES("padding", padding = 1);
  if (std::string(layer).starts_with("Constant")) rows.TAKES("value", value = 1.5);
  return rows;
}
#define PADDING(NAME, FAMILY, N) padding<nn::NAME>(#NAME, "nn::" #NAME, FAMILY, N)

template <class L>
Section max_pool(const char* layer, const char* here, int n, bool (*indices)()) {
  using O = PoolOptions;
  const auto call = on(sizes_of(n));
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.kernel = 2;
               o.stride = 2;
             },
             call)
      .family("MaxPool1d, MaxPool2d, MaxPool3d")
      .TAKES("kernel_size", kernel = 3)
      .TAKES("stride", stride = 1)
      .TAKES("padding", padding = 1)
      .TAKES("dilation", dilation = 2)
      .by("return_indices", "pool.with_indices(x)", indices)
      .TAKES("ceil_mode", ceil_mode = true);
}
template <class L>
Section avg_pool(const char* layer, const char* here, int n) {
  using O = PoolOptions;
  Shape sizes = sizes_of(n);
  sizes[2] = 8;  // ceil_mode shows where padding is
  const auto call = on(sizes);
  auto rows = Layer<L, O, decltype(call)>(
                  layer, here,
                  [](O& o) {
                    o.kernel = 3;
                    o.stride = 2;
                    o.padding = 1;
                  },
                  call)
                  .family("AvgPool1d, AvgPool2d, AvgPool3d")
                  .TAKES("kernel_size", kernel = 2)
                  .TAKES("stride", stride = 1)
                  .TAKES("padding", padding = 0)
                  .TAKES("ceil_mode", ceil_mode = true)
                  .TAKES("count_include_pad", count_include_pad = false);
  if (n > 1) rows.TAKES("divisor_override", divisor_override = 3);
  return rows;
}
// What adaptive pools are made from: their sizes alone.
struct Output {
  Dims all = 2;
  operator const Dims&() const { return all; }
};
template <class L>
Section adaptive(const char* layer, const char* here, const char* family, int n,
                 bool (*indices)() = nullptr) {
  const auto call = on(sizes_of(n));
  auto rows = Layer<L, Output, decltype(call)>(
                  layer, here, [](Output&) {}, call)
                  .family(family)
                  .takes("output_size", "pool(3)", [](Output& o) { o.all = 3; });
  if (indices) rows.by("return_indices", "pool.with_indices(x)", indices);
  return rows;
}
#define ADAPTIVE_AVG(N)                                                                          \
  adaptive<nn::AdaptiveAvgPool##N##d>("AdaptiveAvgPool" #N "d", "nn::AdaptiveAvgPool" #N "d",    \
                                      "AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d", \
                                      N)
#define ADAPTIVE_MAX(N)                                             \
  adaptive<nn::AdaptiveMaxPool##N##d>(                              \
      "AdaptiveMaxPool" #N "d", "nn::AdaptiveMaxPool" #N "d",       \
      "AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d", N, \
      [] { return gives_indices(nn::AdaptiveMaxPool##N##d(2), N); })

// Positions of what max pooling takes: values read there are the results.
template <class Pool>
bool gives_indices(Pool pool, int n) {
  const Tensor x = numbers(sizes_of(n));
  const nn::PooledIndices found = pool.with_indices(x);
  const Tensor read = gather(flatten(x, 2), 2, flatten(found.indices, 2));
  return read.to_vector() == found.values.to_vector();
}
#define MAX_POOL(N)                                                      \
  max_pool<nn::MaxPool##N##d>("MaxPool" #N "d", "nn::MaxPool" #N "d", N, \
                              [] { return gives_indices(nn::MaxPool##N##d({.kernel = 2}), N); })

template <class Unpool, class Pool>
Section max_unpool(const char* layer, const char* here, int n) {
  using O = nn::UnpoolOptions;
  // What comes in are pools of two, whatever the layer makes of them.
  const auto call = [n](Unpool& unpool) {
    const nn::PooledIndices p = Pool({.kernel = 2}).with_indices(numbers(sizes_of(n)));
    return Tensors{unpool(p.values, p.indices * 0)};
  };
  return Layer<Unpool, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.kernel = 3;
               o.stride = 2;
             },
             call)
      .family("MaxUnpool1d, MaxUnpool2d, MaxUnpool3d")
      .TAKES("kernel_size", kernel = 4)
      .TAKES("stride", stride = 3)
      .TAKES("padding", padding = 1);
}

template <class L>
Section lp_pool(const char* layer, const char* here, int n) {
  using O = nn::LpPoolOptions;
  const auto call = on(sizes_of(n), 3);
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.kernel = 2;
               o.stride = 2;
             },
             call)
      .family("LPPool1d, LPPool2d")
      .TAKES("norm_type", norm_type = 3)
      .TAKES("kernel_size", kernel = 3)
      .TAKES("stride", stride = 1)
      .TAKES("ceil_mode", ceil_mode = true);
}

Sections pools() {
  return {
      MAX_POOL(1),
      MAX_POOL(2),
      MAX_POOL(3),
      max_unpool<nn::MaxUnpool1d, nn::MaxPool1d>("MaxUnpool1d", "nn::MaxUnpool1d", 1),
      max_unpool<nn::MaxUnpool2d, nn::MaxPool2d>("MaxUnpool2d", "nn::MaxUnpool2d", 2),
      max_unpool<nn::MaxUnpool3d, nn::MaxPool3d>("MaxUnpool3d", "nn::MaxUnpool3d", 3),
      avg_pool<nn::AvgPool1d>("AvgPool1d", "nn::AvgPool1d", 1),
      avg_pool<nn::AvgPool2d>("AvgPool2d", "nn::AvgPool2d", 2),
      avg_pool<nn::AvgPool3d>("AvgPool3d", "nn::AvgPool3d", 3),
      lp_pool<nn::LPPool1d>("LPPool1d", "nn::LPPool1d", 1),
      lp_pool<nn::LPPool2d>("LPPool2d", "nn::LPPool2d", 2),
      ADAPTIVE_AVG(1),
      ADAPTIVE_AVG(2),
      ADAPTIVE_AVG(3),
      ADAPTIVE_MAX(1),
      ADAPTIVE_MAX(2),
      ADAPTIVE_MAX(3),
      absent("FractionalMaxPool2d", "pools of random sizes: no kernel"),
      absent("FractionalMaxPool3d", "pools of random sizes: no kernel"),
  };
}

Sections paddings() {
  const char* constant = "ConstantPad1d, ConstantPad2d, ConstantPad3d";
  const char* reflection = "ReflectionPad1d, ReflectionPad2d, ReflectionPad3d";
  const char* replication = "ReplicationPad1d, ReplicationPad2d, ReplicationPad3d";
  return {PADDING(ConstantPad1d, constant, 1),       PADDING(ConstantPad2d, constant, 2),
          PADDING(ConstantPad3d, constant, 3),       PADDING(ZeroPad2d, "ZeroPad2d", 2),
          PADDING(ReflectionPad1d, reflection, 1),   PADDING(ReflectionPad2d, reflection, 2),
          PADDING(ReflectionPad3d, reflection, 3),   PADDING(ReplicationPad1d, replication, 1),
          PADDING(ReplicationPad2d, replication, 2), PADDING(ReplicationPad3d, replication, 3)};
}

template <class L>
Section upsampling(const char* layer, const char* here) {
  using O = nn::UpsamplingOptions;
  const auto call = on({1, 2, 3, 4});
  return Layer<L, O, decltype(call)>(
             layer, here, [](O& o) { o.scale = {{2.0}}; }, call)
      .family("UpsamplingNearest2d, UpsamplingBilinear2d")
      .takes("size", ".size = {5, 7}",
             [](O& o) {
               o.scale.reset();
               o.size = Dims{5, 7};
             })
      .TAKES("scale_factor", scale = {{3.0}});
}

Sections resizing() {
  return {
    LAYER(Upsample, nn::UpsampleOptions, on({1, 2, 3, 4}), o.scale = {{1.6}};
          o.mode = Resize::linear)
        .takes("size", ".size = {5, 7}",
               [](nn::UpsampleOptions& o) {
                 o.scale.reset();
                 o.size = Dims{5, 7};
               })
        .TAKES("scale_factor", scale = {{3.0}})
        .TAKES("mode", mode = Resize::nearest)
        .TAKES("mode", mode = Resize::nearest_exact)
        .lacks("mode", "bicubic: no kernel")
        .TAKES("align_corners", align_corners = true)
        .TAKES("recompute_scale_factor", recompute_scale = true),
        upsampling<nn::UpsamplingNearest2d>("UpsamplingNearest2d", "nn::UpsamplingNearest2d"),
        upsampling<nn::UpsamplingBilinear2d>("UpsamplingBilinear2d", "nn::UpsamplingBilinear2d"),
        LAYER(PixelShuffle, nn::PixelShuffleOptions, on({1, 18, 2, 2}), o.factor = 1)
            .TAKES("upscale_factor", factor = 3),
        LAYER(PixelUnshuffle, nn::PixelShuffleOptions, on({1, 2, 6, 6}), o.factor = 1)
            .TAKES("downscale_factor", factor = 3),
        LAYER(ChannelShuffle, nn::ChannelShuffleOptions, on({1, 6, 2, 2}), o.groups = 1)
            .TAKES("groups", groups = 3),
        LAYER(Flatten, nn::FlattenOptions, on({2, 3, 4, 5}), o.start_dim = 1)
            .TAKES("start_dim", start_dim = 2)
            .TAKES("end_dim", end_dim = 2),
        LAYER(Unflatten, nn::UnflattenOptions, on({6, 6}), o.sizes = {2, 3})
            .TAKES("dim", dim = 0)
            .TAKES("unflattened_size", sizes = {3, -1}),
        LAYER(Unfold, nn::UnfoldOptions, on({2, 3, 6, 5}), o.kernel = 2)
            .TAKES("kernel_size", kernel = {3, 2})
            .TAKES("dilation", dilation = 2)
            .TAKES("padding", padding = 1)
            .TAKES("stride", stride = 2),
        LAYER(Fold, nn::FoldOptions, on({2, 8, 12}), o.output = {5, 4}; o.kernel = 2)
            .TAKES("output_size", output = {4, 5})
            .TAKES("kernel_size", kernel = {4, 1})
            .TAKES("dilation", dilation = 2)
            .TAKES("padding", padding = 1)
            .TAKES("stride", stride = 2),
  };
}

}  // namespace

Sections layers_of_images() {
  Sections all{
      conv<nn::Conv1d>("Conv1d", "nn::Conv1d", 1),
      conv<nn::Conv2d>("Conv2d", "nn::Conv2d", 2),
      conv<nn::Conv3d>("Conv3d", "nn::Conv3d", 3),
      conv_transpose<nn::ConvTranspose1d>("ConvTranspose1d", "nn::ConvTranspose1d", 1),
      conv_transpose<nn::ConvTranspose2d>("ConvTranspose2d", "nn::ConvTranspose2d", 2),
      conv_transpose<nn::ConvTranspose3d>("ConvTranspose3d", "nn::ConvTranspose3d", 3),
  };
  for (const Sections& more : {paddings(), pools(), resizing()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace cutaway::parity
