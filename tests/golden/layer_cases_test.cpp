// Layers of norm, linear maps, recurrence and attention against stored values: forward, gradients
// of inputs and parameters, buffers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/nn.h>
#include <tests/golden/run.h>

namespace cutaway::golden {
namespace {

void linear_layer(Run& r) {
  const Case& c = r.data();
  nn::Linear layer({.in = c.integer("in_features", 0),
                    .out = c.integer("out_features", 0),
                    .bias = c.flag("bias", true)});
  r.finish({{"y", r.fill(layer)(r.input("x"))}});
}
void bilinear_layer(Run& r) {
  const Case& c = r.data();
  nn::Bilinear layer({.in1 = c.integer("in1_features", 0),
                      .in2 = c.integer("in2_features", 0),
                      .out = c.integer("out_features", 0)});
  r.finish({{"y", r.fill(layer)(r.input("x1"), r.input("x2"))}});
}
void embedding_layer(Run& r) {
  const Case& c = r.data();
  nn::EmbeddingLayerOptions o{.num_embeddings = c.integer("num_embeddings", 0),
                              .embedding_dim = c.integer("embedding_dim", 0)};
  if (c.has_option("padding_idx")) o.padding_idx = c.integer("padding_idx", 0);
  nn::Embedding layer(o);
  r.finish({{"y", r.fill(layer)(r.input("ids"))}});
}

TEST(GoldenFile, linear) {
  compare_file("linear", {
                             {"Bilinear", bilinear_layer},
                             {"Embedding", embedding_layer},
                             {"Linear", linear_layer},
                         });
}

template <class L>
void batch_norm_layer(Run& r) {
  const Case& c = r.data();
  nn::BatchNormLayerOptions o{.num_features = c.integer("num_features", 0),
                              .eps = c.number("eps", 1e-5),
                              .affine = c.flag("affine", true),
                              .track_running_stats = c.flag("track_running_stats", true)};
  if (c.options().contains("momentum")) {
    o.momentum.reset();
    if (c.has_option("momentum")) o.momentum = c.number("momentum", 0.1);
  }
  L layer(o);
  r.fill(layer).train(c.flag("train", true));
  std::map<std::string, Tensor> outputs{{"y", layer(r.input("x"))}};
  if (r.has("x_second")) outputs["y_second"] = layer(r.input("x_second"));
  r.finish(outputs);
  for (const nn::Named& b : layer.named_buffers()) r.compare(b.value, "after." + b.name);
}

Shape normalized_of(const Case& c) {
  const std::vector<int64_t> sizes = c.integers("normalized_shape");
  return Shape(std::span<const int64_t>(sizes));
}
void layer_norm_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", layer_norm(r.input("x"), normalized_of(c), r.parameter("weight"),
                             r.parameter("bias"), {.eps = c.number("eps", 1e-5)})}});
}
void rms_norm_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", rms_norm(r.input("x"), normalized_of(c), r.parameter("weight"),
                           {.eps = c.number("eps", 0)})}});
}
void group_norm_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", group_norm(r.input("x"), c.integer("num_groups", 1), r.parameter("weight"),
                             r.parameter("bias"), {.eps = c.number("eps", 1e-5)})}});
}
void instance_norm_of(Run& r) {
  r.finish({{"y", instance_norm(r.input("x"), r.parameter("weight"), r.parameter("bias"),
                                {.eps = r.data().number("eps", 1e-5)})}});
}
void normalize_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", normalize(r.input("x"), c.integer("dim", 1),
                            {.p = c.number("p", 2), .eps = c.number("eps", 1e-12)})}});
}

TEST(GoldenFile, norm) {
  compare_file("norm", {
                           {"BatchNorm1d", batch_norm_layer<nn::BatchNorm1d>},
                           {"BatchNorm2d", batch_norm_layer<nn::BatchNorm2d>},
                           {"BatchNorm3d", batch_norm_layer<nn::BatchNorm3d>},
                           {"group_norm", group_norm_of},
                           {"instance_norm", instance_norm_of},
                           {"layer_norm", layer_norm_of},
                           {"normalize", normalize_of},
                           {"rms_norm", rms_norm_of},
                       });
}

template <class L>
void recurrent_layer(Run& r) {
  const Case& c = r.data();
  L layer({.input_size = c.integer("input_size", 0),
           .hidden_size = c.integer("hidden_size", 0),
           .num_layers = c.integer("num_layers", 1),
           .bias = c.flag("bias", true),
           .batch_first = c.flag("batch_first", false),
           .bidirectional = c.flag("bidirectional", false)});
  r.fill(layer);
  nn::RecurrentStart start{.h0 = r.input("h_0"), .c0 = r.input("c_0")};
  start.lengths = c.integers("lengths");
  const nn::RecurrentResult result = layer(r.input("x"), start);
  std::map<std::string, Tensor> outputs{{"y", result.output}, {"h_n", result.h_n}};
  if (result.c_n.defined()) outputs["c_n"] = result.c_n;
  r.finish(outputs);
}
void lstm_cell(Run& r) {
  nn::LSTMCell cell({.input_size = r.data().integer("input_size", 3),
                     .hidden_size = r.data().integer("hidden_size", 4)});
  const nn::LSTMState s = r.fill(cell)(r.input("x"), {r.input("h"), r.input("c")});
  r.finish({{"h", s.h}, {"c", s.c}});
}
void gru_cell(Run& r) {
  nn::GRUCell cell({.input_size = r.data().integer("input_size", 3),
                    .hidden_size = r.data().integer("hidden_size", 4)});
  r.finish({{"h", r.fill(cell)(r.input("x"), r.input("h"))}});
}

TEST(GoldenFile, recurrent) {
  compare_file("recurrent", {
                                {"GRU", recurrent_layer<nn::GRU>},
                                {"GRUCell", gru_cell},
                                {"LSTM", recurrent_layer<nn::LSTM>},
                                {"LSTMCell", lstm_cell},
                            });
}

void attention_of(Run& r) {
  const Case& c = r.data();
  AttentionOptions o{.causal = c.flag("is_causal", false)};
  o.mask = r.input("mask");
  if (c.has_option("scale")) o.scale = c.number("scale", 0);
  r.finish({{"y", scaled_dot_product_attention(r.input("q"), r.input("k"), r.input("v"), o)}});
}
void multihead_attention(Run& r) {
  const Case& c = r.data();
  nn::MultiheadAttention mha({.embed_dim = c.integer("embed_dim", 0),
                              .num_heads = c.integer("num_heads", 1),
                              .bias = c.flag("bias", true),
                              .batch_first = c.flag("batch_first", false),
                              .kdim = c.integer("kdim", 0),
                              .vdim = c.integer("vdim", 0)});
  r.fill(mha);
  const Tensor q = r.input("query");
  const Tensor k = r.has("key") ? r.input("key") : q;
  const Tensor v = r.has("value") ? r.input("value") : q;
  nn::AttendOptions o{.key_padding_mask = r.input("key_padding_mask"),
                      .attn_mask = r.input("attn_mask"),
                      .need_weights = true,
                      .average_attn_weights = c.name() != "mha.head_weights"};
  const nn::AttendResult result = mha(q, k, v, o);
  r.finish({{"y", result.output}, {"weights", result.weights}});
  o.need_weights = false;  // the fused path gives the same output
  r.compare(mha(q, k, v, o).output, "output.y");
}

nn::TransformerLayerOptions transformer_options(const Case& c) {
  return {
      .d_model = c.integer("d_model", 0),
      .nhead = c.integer("nhead", 1),
      .dim_feedforward = c.integer("dim_feedforward", 0),
      .dropout = c.number("dropout", 0.1),
      .activation = c.text("activation") == "gelu" ? nn::Activation::gelu : nn::Activation::relu,
      .batch_first = c.flag("batch_first", false),
      .norm_first = c.flag("norm_first", false)};
}
void encoder_layer(Run& r) {
  nn::TransformerEncoderLayer layer(transformer_options(r.data()));
  r.fill(layer);
  r.finish({{"y", layer(r.input("src"), {.mask = r.input("src_mask")})}});
}
void decoder_layer(Run& r) {
  nn::TransformerDecoderLayer layer(transformer_options(r.data()));
  r.fill(layer);
  r.finish({{"y", layer(r.input("tgt"), r.input("memory"),
                        {.mask = r.input("tgt_mask"),
                         .memory_key_padding_mask = r.input("memory_key_padding_mask")})}});
}
void encoder(Run& r) {
  nn::TransformerEncoder stack(transformer_options(r.data()), {.num_layers = 2, .norm = true});
  r.fill(stack);
  r.finish({{"y", stack(r.input("src"))}});
}
void decoder(Run& r) {
  nn::TransformerDecoder stack(transformer_options(r.data()), {.num_layers = 2, .norm = true});
  r.fill(stack);
  r.finish({{"y", stack(r.input("tgt"), r.input("memory"))}});
}

TEST(GoldenFile, attention) {
  compare_file("attention", {
                                {"MultiheadAttention", multihead_attention},
                                {"scaled_dot_product_attention", attention_of},
                                {"TransformerDecoder", decoder},
                                {"TransformerDecoderLayer", decoder_layer},
                                {"TransformerEncoder", encoder},
                                {"TransformerEncoderLayer", encoder_layer},
                            });
}

}  // namespace
}  // namespace cutaway::golden
