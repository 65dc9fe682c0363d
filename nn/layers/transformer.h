#pragma once
#include <cutaway/nn/layers/attention.h>
#include <cutaway/nn/layers/container.h>
#include <cutaway/nn/layers/norm.h>

namespace cutaway::nn {

enum class Activation : uint8_t { relu, gelu };

struct TransformerLayerOptions {
  int64_t d_model = 0, nhead = 1, dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = Activation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // x + f(norm(x)) instead of norm(x + f(x))
  bool bias = true;
  int64_t num_kv_heads = 0;  // of self-attention, see MultiheadAttentionOptions; 0: nhead
  bool rotary = false;       // rotary positions in self-attention
};
// Masks as in AttendOptions; memory: what a decoder looks at besides its own input.
struct TransformerMasks {
  Tensor mask, key_padding_mask;
  bool is_causal = false;
  Tensor memory_mask, memory_key_padding_mask;
  bool memory_is_causal = false;
};

// Self-attention and two linear layers, each with a residual (Vaswani et al. 2017), with the names
// and defaults of torch.nn.TransformerEncoderLayer.
class TransformerEncoderLayer : public Module {
 public:
  explicit TransformerEncoderLayer(const TransformerLayerOptions& options);
  Tensor operator()(const Tensor& x, const TransformerMasks& masks = {});
  Tensor forward(const Tensor& x) override { return run(x, {}); }

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;

 private:
  Tensor run(const Tensor& x, const TransformerMasks& masks);

  TransformerLayerOptions options_;
};

// Self-attention, attention to `memory`, two linear layers, each with a residual.
class TransformerDecoderLayer : public Module {
 public:
  explicit TransformerDecoderLayer(const TransformerLayerOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& memory, const TransformerMasks& masks = {});

  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;

 private:
  TransformerLayerOptions options_;
};

struct TransformerStackOptions {
  int64_t num_layers = 6;
  bool norm = false;  // a LayerNorm after the last layer, as norm_first needs
};
// num_layers layers, all with fresh parameters.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerLayerOptions& layer, const TransformerStackOptions& options);
  Tensor operator()(const Tensor& x, const TransformerMasks& masks = {});
  Tensor forward(const Tensor& x) override { return run(x, {}); }

  ModuleList layers;
  LayerNorm norm;

 private:
  Tensor run(const Tensor& x, const TransformerMasks& masks);

  bool has_norm_;
};
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerLayerOptions& layer, const TransformerStackOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& memory, const TransformerMasks& masks = {});

  ModuleList layers;
  LayerNorm norm;

 private:
  bool has_norm_;
};

struct TransformerOptions {
  int64_t d_model = 512, nhead = 8, num_encoder_layers = 6, num_decoder_layers = 6;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = Activation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  int64_t num_kv_heads = 0;
  bool rotary = false;
};
// Masks of the source, of the target, and of what the target sees of the source.
struct Seq2SeqMasks {
  Tensor src_mask, src_key_padding_mask;
  Tensor tgt_mask, tgt_key_padding_mask;
  Tensor memory_mask, memory_key_padding_mask;
  bool src_is_causal = false, tgt_is_causal = false, memory_is_causal = false;
};
// An encoder of src and a decoder of tgt that looks at what the encoder gives, each with a
// LayerNorm behind it, as torch.nn.Transformer. Matrices start with xavier_uniform_.
class Transformer : public Module {
 public:
  explicit Transformer(const TransformerOptions& options);
  // src [S,N,E], tgt [T,N,E] → [T,N,E]; with batch_first the first two change places.
  Tensor operator()(const Tensor& src, const Tensor& tgt, const Seq2SeqMasks& masks = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace cutaway::nn
