// Further layers and losses of torch.nn against stored values: forward, gradients, buffers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/nn.h>
#include <tests/golden/run.h>

namespace cutaway::golden {
namespace {

Shape list_of(const Case& c, const char* option, int64_t fallback) {
  const std::vector<int64_t> v = c.integers(option, {fallback});
  return Shape(std::span<const int64_t>(v));
}

// A layer of one tensor x, made from the options of the case, in eval mode.
template <class Make>
auto layer_of(Make make) {
  return [make](Run& r) {
    auto layer = make(r.data());
    layer.eval();
    r.finish({{"y", layer(r.input("x"))}});
  };
}
template <class L>
auto of_dim() {
  return layer_of([](const Case& c) { return L({.dim = c.integer("dim", -1)}); });
}
template <class L>
auto of_lambda() {
  return layer_of([](const Case& c) { return L({.lambd = c.number("lambd", 0.5)}); });
}
template <class L>
auto padding() {
  return layer_of([](const Case& c) {
    return L({.padding = list_of(c, "padding", 0), .value = c.number("value", 0)});
  });
}
template <class L>
auto lp_pool() {
  return layer_of([](const Case& c) {
    nn::LpPoolOptions o{.norm_type = c.number("norm_type", 2),
                        .kernel = list_of(c, "kernel_size", 1),
                        .ceil_mode = c.flag("ceil_mode", false)};
    if (c.has_option("stride")) o.stride = list_of(c, "stride", 1);
    return L(o);
  });
}
template <class Pool, class Unpool>
void max_unpool_layer(Run& r) {
  const Case& c = r.data();
  PoolOptions o{.kernel = list_of(c, "kernel_size", 1), .padding = list_of(c, "padding", 0)};
  if (c.has_option("stride")) o.stride = list_of(c, "stride", 1);
  const Tensor x = r.input("x");
  const nn::PooledIndices pooled = Pool(o).with_indices(x);
  Unpool unpool({.kernel = o.kernel, .stride = o.stride, .padding = o.padding});
  r.finish({{"y", unpool(pooled.values, pooled.indices, x.sizes().slice(2, x.dim()))}});
}
nn::UnfoldOptions windows_of(const Case& c) {
  return {.kernel = list_of(c, "kernel_size", 1),
          .dilation = list_of(c, "dilation", 1),
          .padding = list_of(c, "padding", 0),
          .stride = list_of(c, "stride", 1)};
}
template <class L>
auto upsampling() {
  return layer_of([](const Case& c) {
    nn::UpsamplingOptions o;
    if (c.has_option("size")) o.size = list_of(c, "size", 1);
    if (c.has_option("scale_factor")) o.scale = c.numbers("scale_factor");
    return L(o);
  });
}

template <class L>
void instance_norm_layer(Run& r) {
  const Case& c = r.data();
  L layer({.num_features = c.integer("num_features", 0),
           .momentum = c.number("momentum", 0.1),
           .affine = c.flag("affine", false),
           .track_running_stats = c.flag("track_running_stats", false)});
  r.fill(layer).train(c.flag("train", true));
  r.finish({{"y", layer(r.input("x"))}});
  for (const nn::Named& b : layer.named_buffers()) r.compare(b.value, "after." + b.name);
}
template <class L>
auto weight_normed(L layer) {
  return [layer](Run& r) {
    nn::WeightNormOptions o;
    if (r.data().options().contains("dim")) {
      o.dim.reset();
      if (r.data().has_option("dim")) o.dim = r.data().integer("dim", 0);
    }
    nn::WeightNorm<L> normed(nn::clone(layer), o);
    r.finish({{"y", r.fill(normed)(r.input("x"))}});
  };
}
template <class L>
auto spectral_normed(L layer, int64_t dim) {
  return [layer, dim](Run& r) {
    nn::SpectralNorm<L> normed(nn::clone(layer), {.dim = dim});
    r.fill(normed).train(r.data().flag("train", true));
    r.finish({{"y", normed(r.input("x"))}});
    for (const nn::Named& b : normed.named_buffers()) r.compare(b.value, "after." + b.name);
  };
}

void embedding_layer(Run& r) {
  const Case& c = r.data();
  nn::EmbeddingLayerOptions o{.num_embeddings = c.integer("num_embeddings", 0),
                              .embedding_dim = c.integer("embedding_dim", 0),
                              .norm_type = c.number("norm_type", 2),
                              .scale_grad_by_freq = c.flag("scale_grad_by_freq", false)};
  if (c.has_option("max_norm")) o.max_norm = c.number("max_norm", 0);
  nn::Embedding layer(o);
  r.finish({{"y", r.fill(layer)(r.input("ids"))}});
}
void embedding_bag_layer(Run& r) {
  const Case& c = r.data();
  const std::string mode = c.text("mode");
  nn::EmbeddingBagLayerOptions o{.num_embeddings = c.integer("num_embeddings", 0),
                                 .embedding_dim = c.integer("embedding_dim", 0),
                                 .scale_grad_by_freq = c.flag("scale_grad_by_freq", false),
                                 .mode = mode == "sum"   ? BagMode::sum
                                         : mode == "max" ? BagMode::max
                                                         : BagMode::mean,
                                 .include_last_offset = c.flag("include_last_offset", false)};
  if (c.has_option("max_norm")) o.max_norm = c.number("max_norm", 0);
  if (c.has_option("padding_idx")) o.padding_idx = c.integer("padding_idx", 0);
  nn::EmbeddingBag layer(o);
  r.finish({{"y", r.fill(layer)(r.input("ids"), r.input("offsets"), r.input("weights"))}});
}

nn::RecurrentOptions recurrent_options(const Case& c) {
  return {.input_size = c.integer("input_size", 0),
          .hidden_size = c.integer("hidden_size", 0),
          .num_layers = c.integer("num_layers", 1),
          .bidirectional = c.flag("bidirectional", false),
          .proj_size = c.integer("proj_size", 0),
          .relu = c.text("nonlinearity") == "relu"};
}
template <class L>
void recurrent_layer(Run& r) {
  L layer(recurrent_options(r.data()));
  const nn::RecurrentResult result = r.fill(layer)(r.input("x"), nn::RecurrentStart{});
  std::map<std::string, Tensor> outputs{{"y", result.output}, {"h_n", result.h_n}};
  if (result.c_n.defined()) outputs["c_n"] = result.c_n;
  r.finish(outputs);
}
template <class L>
void packed_layer(Run& r) {
  L layer(recurrent_options(r.data()));
  r.fill(layer);
  const nn::PackedSequence x = nn::pack_padded_sequence(r.input("x"), r.data().integers("lengths"),
                                                        {.enforce_sorted = false});
  EXPECT_EQ(x.lengths(), r.data().integers("lengths"));
  const nn::PackedResult result = layer(x);
  const nn::PaddedSequence padded =
      nn::pad_packed_sequence(result.output, {.padding_value = -1, .total_length = 5});
  EXPECT_EQ(padded.lengths, r.data().integers("lengths"));
  std::map<std::string, Tensor> outputs{
      {"data", result.output.data}, {"y", padded.x}, {"h_n", result.h_n}};
  if (result.c_n.defined()) outputs["c_n"] = result.c_n;
  r.finish(outputs);
}
void rnn_cell(Run& r) {
  nn::RNNCell cell(
      {.input_size = 3, .hidden_size = 4, .relu = r.data().text("nonlinearity") == "relu"});
  r.finish({{"y", r.fill(cell)(r.input("x"), r.input("h"))}});
}

void multihead_attention(Run& r) {
  const Case& c = r.data();
  nn::MultiheadAttention mha({.embed_dim = 8,
                              .num_heads = 2,
                              .batch_first = true,
                              .add_bias_kv = c.flag("add_bias_kv", false),
                              .add_zero_attn = c.flag("add_zero_attn", false)});
  r.fill(mha);
  const Tensor q = r.input("query"), k = r.input("key");
  nn::AttendOptions o{.key_padding_mask = r.input("key_padding_mask"),
                      .attn_mask = r.input("attn_mask"),
                      .need_weights = true};
  const nn::AttendResult result = mha(q, k, k, o);
  r.finish({{"y", result.output}, {"weights", result.weights}});
  o.need_weights = false;
  r.compare(mha(q, k, k, o).output, "output.y");
  o.attn_mask = {};  // the stored mask is the causal one
  o.is_causal = true;
  r.compare(mha(q, k, k, o).output, "output.y");
}
void grouped_query(Run& r) {
  nn::MultiheadAttention mha({.embed_dim = 8,
                              .num_heads = 4,
                              .batch_first = true,
                              .num_kv_heads = 2,
                              .rotary = r.data().flag("rotary", false)});
  r.fill(mha);
  const Tensor x = r.input("x");
  r.finish({{"y", mha(x, x, x, {.is_causal = true}).output}});
}
void rotary_of(Run& r) {
  const nn::RotaryOptions o{r.data().number("base", 0), r.data().flag("interleaved", false)};
  r.finish({{"y", nn::rotary(r.input("x"), 0, o)}});
}
void transformer(Run& r) {
  const Case& c = r.data();
  nn::Transformer layer({.d_model = c.integer("d_model", 0),
                         .nhead = c.integer("nhead", 1),
                         .num_encoder_layers = c.integer("num_encoder_layers", 0),
                         .num_decoder_layers = c.integer("num_decoder_layers", 0),
                         .dim_feedforward = c.integer("dim_feedforward", 0),
                         .dropout = 0,
                         .norm_first = c.flag("norm_first", false)});
  r.fill(layer);
  const Tensor padding = r.input("padding");
  r.finish({{"y", layer(r.input("src"), r.input("tgt"),
                        {.src_key_padding_mask = padding,
                         .tgt_mask = r.input("tgt_mask"),
                         .memory_key_padding_mask = padding})}});
}

Comparisons first_layers() {
  return {
      {"ChannelShuffle",
       layer_of([](const Case& c) { return nn::ChannelShuffle({c.integer("groups", 1)}); })},
      {"CircularPad1d", padding<nn::CircularPad1d>()},
      {"CircularPad2d", padding<nn::CircularPad2d>()},
      {"ConstantPad1d", padding<nn::ConstantPad1d>()},
      {"ConstantPad2d", padding<nn::ConstantPad2d>()},
      {"ConstantPad3d", padding<nn::ConstantPad3d>()},
      {"Embedding", embedding_layer},
      {"EmbeddingBag", embedding_bag_layer},
      {"Fold", layer_of([](const Case& c) {
         const nn::UnfoldOptions w = windows_of(c);
         return nn::Fold({list_of(c, "output_size", 1), w.kernel, w.dilation, w.padding, w.stride});
       })},
      {"GLU", of_dim<nn::GLU>()},
      {"GRU.packed", packed_layer<nn::GRU>},
      {"Hardshrink", of_lambda<nn::Hardshrink>()},
      {"InstanceNorm1d", instance_norm_layer<nn::InstanceNorm1d>},
      {"InstanceNorm2d", instance_norm_layer<nn::InstanceNorm2d>},
      {"LPPool1d", lp_pool<nn::LPPool1d>()},
      {"LPPool2d", lp_pool<nn::LPPool2d>()},
      {"LSTM", recurrent_layer<nn::LSTM>},
      {"LSTM.packed", packed_layer<nn::LSTM>},
      {"LocalResponseNorm", layer_of([](const Case& c) {
         return nn::LocalResponseNorm({.size = c.integer("size", 1),
                                       .alpha = c.number("alpha", 1e-4),
                                       .beta = c.number("beta", 0.75),
                                       .k = c.number("k", 1)});
       })},
  };
}
Comparisons more_layers() {
  const nn::Linear linear({.in = 4, .out = 3});
  return {
      {"MaxUnpool1d", max_unpool_layer<nn::MaxPool1d, nn::MaxUnpool1d>},
      {"MaxUnpool2d", max_unpool_layer<nn::MaxPool2d, nn::MaxUnpool2d>},
      {"MaxUnpool3d", max_unpool_layer<nn::MaxPool3d, nn::MaxUnpool3d>},
      {"MultiheadAttention", multihead_attention},
      {"RNN", recurrent_layer<nn::RNN>},
      {"RNN.packed", packed_layer<nn::RNN>},
      {"RNNCell", rnn_cell},
      {"RReLU", layer_of([](const Case& c) {
         return nn::RReLU({c.number("lower", 0), c.number("upper", 0)});
       })},
      {"ReflectionPad1d", padding<nn::ReflectionPad1d>()},
      {"ReflectionPad2d", padding<nn::ReflectionPad2d>()},
      {"ReflectionPad3d", padding<nn::ReflectionPad3d>()},
      {"ReplicationPad1d", padding<nn::ReplicationPad1d>()},
      {"ReplicationPad2d", padding<nn::ReplicationPad2d>()},
      {"ReplicationPad3d", padding<nn::ReplicationPad3d>()},
      {"SinusoidalPositions", layer_of([](const Case&) { return nn::SinusoidalPositions(); })},
      {"Softmax2d", layer_of([](const Case&) { return nn::Softmax2d(); })},
      {"Softmin", of_dim<nn::Softmin>()},
      {"Softshrink", of_lambda<nn::Softshrink>()},
      {"Tanhshrink", layer_of([](const Case&) { return nn::Tanhshrink(); })},
      {"Threshold", layer_of([](const Case& c) {
         return nn::Threshold({c.number("threshold", 0), c.number("value", 0)});
       })},
      {"Transformer", transformer},
      {"Unfold", layer_of([](const Case& c) { return nn::Unfold(windows_of(c)); })},
      {"UpsamplingBilinear2d", upsampling<nn::UpsamplingBilinear2d>()},
      {"UpsamplingNearest2d", upsampling<nn::UpsamplingNearest2d>()},
      {"ZeroPad2d", padding<nn::ZeroPad2d>()},
      {"grouped_query", grouped_query},
      {"rotary", rotary_of},
      {"spectral_norm.linear", spectral_normed(linear, 0)},
      {"spectral_norm.transposed",
       spectral_normed(nn::ConvTranspose1d({.in = 2, .out = 3, .kernel = 2}), 1)},
      {"weight_norm.conv", weight_normed(nn::Conv1d({.in = 2, .out = 3, .kernel = 2}))},
      {"weight_norm.linear", weight_normed(linear)},
  };
}

TEST(GoldenFile, layers) {
  Comparisons by_op = first_layers();
  by_op.merge(more_layers());
  compare_file("layers", by_op);
}

Reduction reduction_of(const Case& c) {
  const std::string text = c.text("reduction", "mean");
  return text == "none" ? Reduction::none : text == "sum" ? Reduction::sum : Reduction::mean;
}
// A loss of x and target, with options made from the case.
template <class L, class Make>
auto loss_of(Make make) {
  return [make](Run& r) {
    L loss(make(r));
    r.finish({{"y", loss(r.input("x"), r.input("target"))}});
  };
}
template <class L>
auto plain_loss() {
  return loss_of<L>([](Run& r) { return LossOptions{reduction_of(r.data())}; });
}
void triplet_of(Run& r) {
  nn::TripletMarginWithDistanceLoss loss(
      {.distance = [](const Tensor& a, const Tensor& b) { return sum(abs(a - b), -1); },
       .margin = r.data().number("margin", 1),
       .swap = r.data().flag("swap", false),
       .reduction = reduction_of(r.data())});
  r.finish({{"y", loss(r.input("anchor"), r.input("positive"), r.input("negative"))}});
}
void gaussian_of(Run& r) {
  nn::GaussianNLLLoss loss({.full = r.data().flag("full", false)});
  r.finish({{"y", loss(r.input("x"), r.input("target"), r.input("var"))}});
}
void pairwise_of(Run& r) {
  nn::PairwiseDistance distance(
      {.p = r.data().number("p", 2), .keepdim = r.data().flag("keepdim", false)});
  r.finish({{"y", distance(r.input("x1"), r.input("x2"))}});
}
void ctc_of(Run& r) {
  const Case& c = r.data();
  nn::CTCLoss loss({.blank = c.integer("blank", 0),
                    .zero_infinity = c.flag("zero_infinity", false),
                    .reduction = reduction_of(c)});
  r.finish({{"y", loss(log_softmax(r.input("x"), -1), r.input("target"),
                       c.integers("input_lengths"), c.integers("target_lengths"))}});
}

TEST(GoldenFile, losses) {
  compare_file(
      "losses",
      {{"BCELoss", loss_of<nn::BCELoss>([](golden::Run& r) {
          return BceOptions{{}, reduction_of(r.data())};
        })},
       {"CTCLoss", ctc_of},
       {"GaussianNLLLoss", gaussian_of},
       {"HingeEmbeddingLoss", loss_of<nn::HingeEmbeddingLoss>([](golden::Run& r) {
          return MarginOptions{r.data().number("margin", 1), reduction_of(r.data())};
        })},
       {"MultiLabelMarginLoss", plain_loss<nn::MultiLabelMarginLoss>()},
       {"MultiLabelSoftMarginLoss", loss_of<nn::MultiLabelSoftMarginLoss>([](golden::Run& r) {
          return MultiLabelOptions{r.input("weight"), reduction_of(r.data())};
        })},
       {"MultiMarginLoss", loss_of<nn::MultiMarginLoss>([](golden::Run& r) {
          return MultiMarginOptions{r.data().integer("p", 1), r.data().number("margin", 1),
                                    r.input("weight"), reduction_of(r.data())};
        })},
       {"PairwiseDistance", pairwise_of},
       {"PoissonNLLLoss", loss_of<nn::PoissonNLLLoss>([](golden::Run& r) {
          return PoissonNllOptions{.log_input = r.data().flag("log_input", true),
                                   .full = r.data().flag("full", false)};
        })},
       {"SoftMarginLoss", plain_loss<nn::SoftMarginLoss>()},
       {"TripletMarginWithDistanceLoss", triplet_of}});
}

}  // namespace
}  // namespace cutaway::golden
