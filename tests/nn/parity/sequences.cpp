#include <tests/nn/parity/table.h>

namespace cutaway::parity {
namespace {

Sections embeddings() {
  const auto read = [](nn::Embedding& layer) { return Tensors{layer(ids({1, 0, 1, 2}, {2, 2}))}; };
  const auto bags = [](nn::EmbeddingBag& layer) {
    return Tensors{layer(ids({1, 0, 1, 2, 2}, {5}), ids({0, 2, 4}, {3}))};
  };
  const char* dense = "gradients are dense: one pass over the rows that were read";
  return {
    LAYER(Embedding, nn::EmbeddingLayerOptions, read, o.num_embeddings = 4; o.embedding_dim = 3)
        .TAKES("num_embeddings", num_embeddings = 5)
        .TAKES("embedding_dim", embedding_dim = 2)
        .TAKES("padding_idx", padding_idx = 1)
        .TAKES("max_norm", max_norm = 0.5)
        .takes("norm_type", ".norm_type = 1",
               [](nn::EmbeddingLayerOptions& o) {
                 o.max_norm = 0.5;
                 o.norm_type = 1;
               })
        .TAKES("scale_grad_by_freq", scale_grad_by_freq = true)
        .lacks("sparse", dense),
        LAYER(EmbeddingBag, nn::EmbeddingBagLayerOptions, bags, o.num_embeddings = 4;
              o.embedding_dim = 3)
            .TAKES("num_embeddings", num_embeddings = 5)
            .TAKES("embedding_dim", embedding_dim = 2)
            .TAKES("max_norm", max_norm = 0.5)
            .takes("norm_type", ".norm_type = 1",
                   [](nn::EmbeddingBagLayerOptions& o) {
                     o.max_norm = 0.5;
                     o.norm_type = 1;
                   })
            .TAKES("scale_grad_by_freq", scale_grad_by_freq = true)
            .TAKES("mode", mode = BagMode::sum)
            .TAKES("mode", mode = BagMode::max)
            .lacks("sparse", dense)
            .TAKES("include_last_offset", include_last_offset = true)
            .TAKES("padding_idx", padding_idx = 1),
  };
}

template <class L>
auto recurrent(const char* layer, const char* here) {
  using O = nn::RecurrentOptions;
  const auto call = [](L& rnn) {
    const nn::RecurrentResult r = rnn(numbers({5, 2, 3}), nn::RecurrentStart{.lengths = {5, 3}});
    return Tensors{r.output, r.h_n};
  };
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.input_size = 3;
               o.hidden_size = 4;
               o.num_layers = 2;
             },
             call)
      .TAKES("input_size", input_size = 2)
      .TAKES("hidden_size", hidden_size = 6)
      .TAKES("num_layers", num_layers = 1)
      .TAKES("bias", bias = false)
      .TAKES("batch_first", batch_first = true)
      .TAKES("dropout", dropout = 0.5)
      .TAKES("bidirectional", bidirectional = true);
}
template <class L, class O>
auto cell(const char* layer, const char* here) {
  const auto call = on({2, 3});
  return Layer<L, O, decltype(call)>(
             layer, here,
             [](O& o) {
               o.input_size = 3;
               o.hidden_size = 4;
             },
             call)
      .TAKES("input_size", input_size = 2)
      .TAKES("hidden_size", hidden_size = 5)
      .TAKES("bias", bias = false);
}

Sections recurrences() {
  auto rnn = recurrent<nn::RNN>("RNN", "nn::RNN");
  rnn.TAKES("nonlinearity", relu = true);
  auto lstm = recurrent<nn::LSTM>("LSTM", "nn::LSTM");
  lstm.TAKES("proj_size", proj_size = 2);
  auto rnn_cell = cell<nn::RNNCell, nn::RNNCellOptions>("RNNCell", "nn::RNNCell");
  rnn_cell.TAKES("nonlinearity", relu = true);
  const auto step = [](nn::LSTMCell& layer) {
    const nn::LSTMState s = layer(numbers({2, 3}));
    return Tensors{s.h, s.c};
  };
  return {
    rnn, recurrent<nn::GRU>("GRU", "nn::GRU"), lstm, rnn_cell,
        cell<nn::GRUCell, nn::CellOptions>("GRUCell", "nn::GRUCell"),
        LAYER(LSTMCell, nn::CellOptions, step, o.input_size = 3; o.hidden_size = 4)
            .TAKES("input_size", input_size = 2)
            .TAKES("hidden_size", hidden_size = 5)
            .TAKES("bias", bias = false)
  };
}

template <class L>
auto transformer_layer(const char* layer, const char* here, Tensors (*call)(L&)) {
  using O = nn::TransformerLayerOptions;
  return Layer<L, O, Tensors (*)(L&)>(
             layer, here,
             [](O& o) {
               o.d_model = 8;
               o.nhead = 2;
               o.dim_feedforward = 6;
               o.dropout = 0;
             },
             call)
      .TAKES("d_model", d_model = 4)
      .TAKES("nhead", nhead = 4)
      .TAKES("dim_feedforward", dim_feedforward = 5)
      .TAKES("dropout", dropout = 0.5)
      .TAKES("activation", activation = nn::Activation::gelu)
      .TAKES("layer_norm_eps", layer_norm_eps = 0.1)
      .TAKES("batch_first", batch_first = true)
      .TAKES("norm_first", norm_first = true);
}

// What a stack is made from: options of its layers and of itself.
struct Stack {
  nn::TransformerLayerOptions layer{.d_model = 8, .nhead = 2, .dim_feedforward = 6, .dropout = 0};
  nn::TransformerStackOptions stack{.num_layers = 1};
};
struct Encoder : nn::TransformerEncoder {
  explicit Encoder(const Stack& s) : TransformerEncoder(s.layer, s.stack) {}
};
struct Decoder : nn::TransformerDecoder {
  explicit Decoder(const Stack& s) : TransformerDecoder(s.layer, s.stack) {}
};

Section multihead() {
  const auto attend = [](nn::MultiheadAttention& mha) {
    const nn::AttendResult r =
        mha(numbers({3, 2, 8}), numbers({4, 2, 8}, 1), numbers({4, 2, 8}), {.need_weights = true});
    return Tensors{r.output, r.weights};
  };
  return LAYER(MultiheadAttention, nn::MultiheadAttentionOptions, attend, o.embed_dim = 8;
               o.num_heads = 2)
      .TAKES("embed_dim", embed_dim = 4)
      .TAKES("num_heads", num_heads = 4)
      .TAKES("dropout", dropout = 0.5)
      .TAKES("bias", bias = false)
      .TAKES("add_bias_kv", add_bias_kv = true)
      .TAKES("add_zero_attn", add_zero_attn = true)
      .TAKES("kdim", kdim = 6)
      .TAKES("vdim", vdim = 6)
      .TAKES("batch_first", batch_first = true);
}

Sections transformers() {
  const auto decode = [](nn::TransformerDecoderLayer& layer) {
    return Tensors{layer(numbers({3, 2, 8}), numbers({4, 2, 8}, 1))};
  };
  const auto encode = [](nn::TransformerEncoderLayer& layer) {
    return Tensors{layer(numbers({3, 2, 8}))};
  };
  const auto decode_all = [](Decoder& layer) {
    return Tensors{layer(numbers({3, 2, 8}), numbers({4, 2, 8}, 1))};
  };
  const auto encode_all = on({3, 2, 8});
  const auto both = [](nn::Transformer& layer) {
    return Tensors{layer(numbers({4, 2, 8}), numbers({3, 2, 8}, 1))};
  };
  return {
    transformer_layer<nn::TransformerEncoderLayer>("TransformerEncoderLayer",
                                                   "nn::TransformerEncoderLayer", encode),
        transformer_layer<nn::TransformerDecoderLayer>("TransformerDecoderLayer",
                                                       "nn::TransformerDecoderLayer", decode),
        Layer<Encoder, Stack, decltype(encode_all)>(
            "TransformerEncoder", "nn::TransformerEncoder(layer, stack)", [](Stack&) {}, encode_all)
            .TAKES("encoder_layer", layer.nhead = 4)
            .TAKES("num_layers", stack.num_layers = 2)
            .TAKES("norm", stack.norm = true)
            .lacks("enable_nested_tensor", "a way of PyTorch's to leave out padding")
            .lacks("mask_check", "belongs to enable_nested_tensor"),
        Layer<Decoder, Stack, decltype(decode_all)>(
            "TransformerDecoder", "nn::TransformerDecoder(layer, stack)", [](Stack&) {}, decode_all)
            .TAKES("decoder_layer", layer.nhead = 4)
            .TAKES("num_layers", stack.num_layers = 2)
            .TAKES("norm", stack.norm = true),
        LAYER(Transformer, nn::TransformerOptions, both, o.d_model = 8; o.nhead = 2;
              o.num_encoder_layers = 1; o.num_decoder_layers = 1; o.dim_feedforward = 6;
              o.dropout = 0)
            .TAKES("d_model", d_model = 4)
            .TAKES("nhead", nhead = 4)
            .TAKES("num_encoder_layers", num_encoder_layers = 2)
            .TAKES("num_decoder_layers", num_decoder_layers = 2)
            .TAKES("dim_feedforward", dim_feedforward = 5)
            .TAKES("dropout", dropout = 0.5)
            .TAKES("activation", activation = nn::Activation::gelu)
            .lacks("custom_encoder", "use encoder and decoder layers of your own instead")
            .lacks("custom_decoder", "use encoder and decoder layers of your own instead")
            .TAKES("layer_norm_eps", layer_norm_eps = 0.1)
            .TAKES("batch_first", batch_first = true)
            .TAKES("norm_first", norm_first = true),
  };
}

}  // namespace

Sections layers_of_sequences() {
  Sections all = embeddings();
  for (const Sections& more : {recurrences(), Sections{multihead()}, transformers()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace cutaway::parity
