#include <cutaway/nn/layers/transformer.h>

#include <cutaway/autograd/ops/activation.h>
#include <cutaway/autograd/ops/pointwise.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

MultiheadAttentionOptions attention(const TransformerLayerOptions& o) {
  return {.embed_dim = o.d_model,
          .num_heads = o.nhead,
          .dropout = o.dropout,
          .bias = o.bias,
          .batch_first = o.batch_first,
          .num_kv_heads = o.num_kv_heads,
          .rotary = o.rotary};
}
MultiheadAttentionOptions cross_attention(const TransformerLayerOptions& o) {
  MultiheadAttentionOptions a = attention(o);
  a.num_kv_heads = 0;
  a.rotary = false;
  return a;
}
TransformerLayerOptions layer_options(const TransformerOptions& o) {
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .dim_feedforward = o.dim_feedforward,
          .dropout = o.dropout,
          .activation = o.activation,
          .layer_norm_eps = o.layer_norm_eps,
          .batch_first = o.batch_first,
          .norm_first = o.norm_first,
          .bias = o.bias,
          .num_kv_heads = o.num_kv_heads,
          .rotary = o.rotary};
}
LayerNormLayerOptions norm_options(const TransformerLayerOptions& o) {
  return {.normalized_shape = {o.d_model}, .eps = o.layer_norm_eps, .bias = o.bias};
}
LinearOptions widen(const TransformerLayerOptions& o) {
  return {.in = o.d_model, .out = o.dim_feedforward, .bias = o.bias};
}
LinearOptions narrow(const TransformerLayerOptions& o) {
  return {.in = o.dim_feedforward, .out = o.d_model, .bias = o.bias};
}
Tensor activate(Activation a, const Tensor& x) { return a == Activation::gelu ? gelu(x) : relu(x); }
// x + f(norm(x)), or norm(x + f(x)).
template <class F>
Tensor residual(const Tensor& x, LayerNorm& norm, bool norm_first, F&& f) {
  return norm_first ? x + f(norm(x)) : norm(x + f(x));
}
AttendOptions own_masks(const TransformerMasks& m) {
  return {.key_padding_mask = m.key_padding_mask, .attn_mask = m.mask, .is_causal = m.is_causal};
}
AttendOptions memory_masks(const TransformerMasks& m) {
  return {.key_padding_mask = m.memory_key_padding_mask,
          .attn_mask = m.memory_mask,
          .is_causal = m.memory_is_causal};
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerOptions& o)
    : self_attn(attention(o)),
      linear1(widen(o)),
      dropout({.p = o.dropout}),
      linear2(narrow(o)),
      norm1(norm_options(o)),
      norm2(norm_options(o)),
      dropout1({.p = o.dropout}),
      dropout2({.p = o.dropout}),
      options_(o) {
  add("self_attn", self_attn);
  add("linear1", linear1);
  add("dropout", dropout);
  add("linear2", linear2);
  add("norm1", norm1);
  add("norm2", norm2);
  add("dropout1", dropout1);
  add("dropout2", dropout2);
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const TransformerMasks& masks) {
  Scope scope(*this);
  return scope.done(run(x, masks));
}
Tensor TransformerEncoderLayer::run(const Tensor& x, const TransformerMasks& masks) {
  const bool first = options_.norm_first;
  Tensor y = residual(x, norm1, first, [&](const Tensor& h) {
    return dropout1(self_attn(h, h, h, own_masks(masks)).output);
  });
  y = residual(y, norm2, first, [&](const Tensor& h) {
    return dropout2(linear2(dropout(activate(options_.activation, linear1(h)))));
  });
  return y;
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerOptions& o)
    : self_attn(attention(o)),
      multihead_attn(cross_attention(o)),
      linear1(widen(o)),
      dropout({.p = o.dropout}),
      linear2(narrow(o)),
      norm1(norm_options(o)),
      norm2(norm_options(o)),
      norm3(norm_options(o)),
      dropout1({.p = o.dropout}),
      dropout2({.p = o.dropout}),
      dropout3({.p = o.dropout}),
      options_(o) {
  add("self_attn", self_attn);
  add("multihead_attn", multihead_attn);
  add("linear1", linear1);
  add("dropout", dropout);
  add("linear2", linear2);
  add("norm1", norm1);
  add("norm2", norm2);
  add("norm3", norm3);
  add("dropout1", dropout1);
  add("dropout2", dropout2);
  add("dropout3", dropout3);
}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory,
                                           const TransformerMasks& masks) {
  Scope scope(*this);
  const bool first = options_.norm_first;
  Tensor y = residual(x, norm1, first, [&](const Tensor& h) {
    return dropout1(self_attn(h, h, h, own_masks(masks)).output);
  });
  y = residual(y, norm2, first, [&](const Tensor& h) {
    return dropout2(multihead_attn(h, memory, memory, memory_masks(masks)).output);
  });
  y = residual(y, norm3, first, [&](const Tensor& h) {
    return dropout3(linear2(dropout(activate(options_.activation, linear1(h)))));
  });
  return scope.done(std::move(y));
}

TransformerEncoder::TransformerEncoder(const TransformerLayerOptions& layer,
                                       const TransformerStackOptions& o)
    : norm(norm_options(layer)), has_norm_(o.norm) {
  require_at_least("TransformerEncoder", "num_layers", o.num_layers, 0);
  for (int64_t i = 0; i < o.num_layers; ++i) layers.append(TransformerEncoderLayer(layer));
  add("layers", layers);
  if (has_norm_) add("norm", norm);
}
Tensor TransformerEncoder::operator()(const Tensor& x, const TransformerMasks& masks) {
  Scope scope(*this);
  return scope.done(run(x, masks));
}
Tensor TransformerEncoder::run(const Tensor& x, const TransformerMasks& masks) {
  Tensor y = x;
  for (int64_t i = 0; i < layers.size(); ++i) {
    y = layers.get<TransformerEncoderLayer>(i)(y, masks);
  }
  return has_norm_ ? norm(y) : y;
}

TransformerDecoder::TransformerDecoder(const TransformerLayerOptions& layer,
                                       const TransformerStackOptions& o)
    : norm(norm_options(layer)), has_norm_(o.norm) {
  require_at_least("TransformerDecoder", "num_layers", o.num_layers, 0);
  for (int64_t i = 0; i < o.num_layers; ++i) layers.append(TransformerDecoderLayer(layer));
  add("layers", layers);
  if (has_norm_) add("norm", norm);
}
Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory,
                                      const TransformerMasks& masks) {
  Scope scope(*this);
  Tensor y = x;
  for (int64_t i = 0; i < layers.size(); ++i) {
    y = layers.get<TransformerDecoderLayer>(i)(y, memory, masks);
  }
  return scope.done(has_norm_ ? norm(y) : y);
}

Transformer::Transformer(const TransformerOptions& o)
    : encoder(layer_options(o), {.num_layers = o.num_encoder_layers, .norm = true}),
      decoder(layer_options(o), {.num_layers = o.num_decoder_layers, .norm = true}) {
  add("encoder", encoder);
  add("decoder", decoder);
  for (const Named& p : named_parameters()) {
    if (p.value.dim() > 1) init::xavier_uniform_(p.value);
  }
}
Tensor Transformer::operator()(const Tensor& src, const Tensor& tgt, const Seq2SeqMasks& m) {
  Scope scope(*this);
  const Tensor memory = encoder(src, {.mask = m.src_mask,
                                      .key_padding_mask = m.src_key_padding_mask,
                                      .is_causal = m.src_is_causal});
  return scope.done(decoder(tgt, memory,
                            {.mask = m.tgt_mask,
                             .key_padding_mask = m.tgt_key_padding_mask,
                             .is_causal = m.tgt_is_causal,
                             .memory_mask = m.memory_mask,
                             .memory_key_padding_mask = m.memory_key_padding_mask,
                             .memory_is_causal = m.memory_is_causal}));
}

}  // namespace cutaway::nn
