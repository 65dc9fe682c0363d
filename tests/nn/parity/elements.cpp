#include <tests/nn/parity/table.h>

namespace cutaway::parity {
namespace {

Sections activations() {
  const Shape x{3, 6};
  return {
      PLAIN(ReLU, x),
      PLAIN(ReLU6, x),
      PLAIN(SELU, x),
      PLAIN(SiLU, x),
      PLAIN(Mish, x),
      PLAIN(Tanh, x),
      PLAIN(Sigmoid, x),
      PLAIN(LogSigmoid, x),
      PLAIN(Softsign, x),
      PLAIN(Tanhshrink, x),
      PLAIN(Hardsigmoid, x),
      PLAIN(Hardswish, x),
      plain<nn::Softmax2d>("Softmax2d", "nn::Softmax2d", {2, 3, 2, 2}),
      LAYER(LeakyReLU, nn::LeakyReLUOptions, on(x), o.negative_slope = 0.1)
          .TAKES("negative_slope", negative_slope = 0.3),
      LAYER(ELU, nn::ELUOptions, on(x), o.alpha = 1).TAKES("alpha", alpha = 0.5),
      LAYER(CELU, nn::CELUOptions, on(x), o.alpha = 1).TAKES("alpha", alpha = 0.5),
      LAYER(Softplus, nn::SoftplusOptions, on(x), o.beta = 1)
          .TAKES("beta", beta = 2)
          .lacks("threshold", "not needed: ours is exact where PyTorch turns linear"),
      LAYER(Hardtanh, nn::HardtanhOptions, on(x), o.min_val = -1)
          .TAKES("min_val", min_val = -0.5)
          .TAKES("max_val", max_val = 0.5)
          .lacks("min_value", "PyTorch's old name of min_val")
          .lacks("max_value", "PyTorch's old name of max_val"),
      LAYER(GELU, nn::GELUOptions, on(x), o.tanh = false).TAKES("approximate", tanh = true),
      LAYER(PReLU, nn::PReLUOptions, on(x), o.init = 0.25)
          .TAKES("num_parameters", num_parameters = 6)
          .TAKES("init", init = 0.5),
      LAYER(RReLU, nn::RReLUOptions, on(x), o.upper = 0.4)
          .TAKES("lower", lower = 0.3)
          .TAKES("upper", upper = 0.6),
      LAYER(GLU, nn::DimOptions, on({4, 6}), o.dim = -1).TAKES("dim", dim = 0),
      LAYER(Hardshrink, nn::ShrinkOptions, on(x), o.lambd = 0.5).TAKES("lambd", lambd = 1),
      LAYER(Softshrink, nn::ShrinkOptions, on(x), o.lambd = 0.5).TAKES("lambd", lambd = 1),
      LAYER(Threshold, nn::ThresholdOptions, on(x), o.threshold = 0.1)
          .TAKES("threshold", threshold = 0.7)
          .TAKES("value", value = -3),
      LAYER(Softmax, nn::SoftmaxOptions, on(x), o.dim = -1).TAKES("dim", dim = 0),
      LAYER(LogSoftmax, nn::SoftmaxOptions, on(x), o.dim = -1).TAKES("dim", dim = 0),
      LAYER(Softmin, nn::DimOptions, on(x), o.dim = -1).TAKES("dim", dim = 0),
  };
}

template <class L>
Section dropout(const char* layer, const char* here, const Shape& sizes) {
  const auto call = on(sizes);
  return Layer<L, nn::DropoutOptions, decltype(call)>(
             layer, here, [](nn::DropoutOptions& o) { o.p = 0.5; }, call)
      .TAKES("p", p = 0);
}
#define DROPOUT(NAME, ...) dropout<nn::NAME>(#NAME, "nn::" #NAME, __VA_ARGS__)

template <class L>
Section batch_norm(const char* layer, const char* here, const Shape& sizes) {
  using O = nn::BatchNormLayerOptions;
  const auto call = on(sizes, 1);
  return Layer<L, O, decltype(call)>(
             layer, here, [](O& o) { o.num_features = 3; }, call)
      .family("BatchNorm1d, BatchNorm2d, BatchNorm3d")
      .TAKES("num_features", num_features = 4)
      .TAKES("eps", eps = 0.1)
      .TAKES("momentum", momentum = 0.5)
      .TAKES("momentum", momentum = std::nullopt)
      .TAKES("affine", affine = false)
      .TAKES("track_running_stats", track_running_stats = false);
}
template <class L>
Section instance_norm(const char* layer, const char* here, const Shape& sizes) {
  using O = nn::InstanceNormOptions;
  const auto call = on(sizes, 1);
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.num_features = 3;
               o.track_running_stats = true;
             },
             call)
      .family("InstanceNorm1d, InstanceNorm2d, InstanceNorm3d")
      .TAKES("num_features", num_features = 4)
      .TAKES("eps", eps = 0.1)
      .TAKES("momentum", momentum = 0.5)
      .TAKES("affine", affine = true)
      .TAKES("track_running_stats", track_running_stats = false);
}

Sections norms() {
  const Shape flat{4, 3}, line{2, 3, 5}, plane{2, 3, 4, 2}, volume{2, 3, 2, 3, 2};
  return {
      batch_norm<nn::BatchNorm1d>("BatchNorm1d", "nn::BatchNorm1d", flat),
      batch_norm<nn::BatchNorm2d>("BatchNorm2d", "nn::BatchNorm2d", plane),
      batch_norm<nn::BatchNorm3d>("BatchNorm3d", "nn::BatchNorm3d", volume),
      instance_norm<nn::InstanceNorm1d>("InstanceNorm1d", "nn::InstanceNorm1d", line),
      instance_norm<nn::InstanceNorm2d>("InstanceNorm2d", "nn::InstanceNorm2d", plane),
      instance_norm<nn::InstanceNorm3d>("InstanceNorm3d", "nn::InstanceNorm3d", volume),
      LAYER(LayerNorm, nn::LayerNormLayerOptions, on({2, 3, 4}), o.normalized_shape = {4})
          .TAKES("normalized_shape", normalized_shape = {3, 4})
          .TAKES("eps", eps = 0.1)
          .TAKES("elementwise_affine", elementwise_affine = false),
      LAYER(GroupNorm, nn::GroupNormOptions, on({2, 6, 3}), o.num_channels = 6)
          .TAKES("num_groups", num_groups = 3)
          .TAKES("num_channels", num_channels = 4)
          .TAKES("eps", eps = 0.1)
          .TAKES("affine", affine = false),
      LAYER(LocalResponseNorm, nn::LocalResponseNormOptions, on({2, 6, 3}), o.alpha = 0.5)
          .TAKES("size", size = 3)
          .TAKES("alpha", alpha = 1)
          .TAKES("beta", beta = 0.5)
          .TAKES("k", k = 2),
      absent("CrossMapLRN2d", "PyTorch's old form of LocalResponseNorm"),
      absent("SyncBatchNorm", "statistics of one process only"),
  };
}

Fingerprint one_layer() {
  nn::ModuleList list;
  list.append(nn::Linear({.in = 3, .out = 2}));
  return observe(list, [&] { return Tensors{list[0](numbers({2, 3}))}; });
}

Sections linear_maps() {
  const auto pair = [](nn::Bilinear& layer) {
    return Tensors{layer(numbers({2, 3}), numbers({2, 4}, 1))};
  };
  return {
    LAYER(Linear, nn::LinearOptions, on({2, 3}), o.in = 3; o.out = 4)
        .TAKES("in_features", in = 5)
        .TAKES("out_features", out = 2)
        .TAKES("bias", bias = false),
        LAYER(Bilinear, nn::BilinearOptions, pair, o.in1 = 3; o.in2 = 4; o.out = 2)
            .TAKES("in1_features", in1 = 2)
            .TAKES("in2_features", in2 = 2)
            .TAKES("out_features", out = 3)
            .TAKES("bias", bias = false),
        PLAIN(Identity, {2, 3}),
        other("Sequential", "nn::Sequential",
              [] {
                nn::Sequential net(nn::Linear({.in = 3, .out = 2}), nn::ReLU{});
                return observe(net, [&] { return Tensors{net(numbers({2, 3}))}; });
              }),
        called(other("ModuleList", "nn::ModuleList", one_layer), "modules", "list.append(layer)",
               [] { return nn::ModuleList().append(nn::ReLU{}).size() == 1; }),
        called(other("ModuleDict", "nn::ModuleList", one_layer), "modules",
               "list.append(\"name\", layer)",
               [] {
                 nn::ModuleList list;
                 list.append("first", nn::Linear({.in = 1, .out = 1}));
                 return list.named_parameters()[0].name == "first.weight";
               }),
        absent("ParameterList", "tensors are members; lists of them come from heap_parameters()"),
        absent("ParameterDict", "tensors are members; lists of them come from heap_parameters()"),
  };
}

}  // namespace

Sections layers_of_elements() {
  Sections all = activations();
  const Sections dropouts{
      DROPOUT(Dropout, {4, 6}),         DROPOUT(Dropout1d, {4, 6, 2}),
      DROPOUT(Dropout2d, {4, 6, 2, 1}), DROPOUT(Dropout3d, {4, 6, 1, 2, 1}),
      DROPOUT(AlphaDropout, {4, 6}),    DROPOUT(FeatureAlphaDropout, {4, 6, 2})};
  for (const Sections& more : {dropouts, norms(), linear_maps()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace cutaway::parity
