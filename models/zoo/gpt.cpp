#include <cutaway/models/zoo/gpt.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

const GptOptions& checked(const GptOptions& o) {
  const std::pair<const char*, int64_t> sizes[] = {{"vocabulary", o.vocabulary},
                                                   {"context", o.context},
                                                   {"layers", o.layers},
                                                   {"heads", o.heads},
                                                   {"width", o.width}};
  for (const auto& [name, value] : sizes) {
    if (value < 1) {
      throw ValueError("Gpt", fmt::format(".{} must be at least 1; got {}", name, value));
    }
  }
  if (o.width % o.heads != 0) {
    throw ValueError(
        "Gpt", fmt::format(".heads must divide .width; got heads {}, width {}", o.heads, o.width));
  }
  return o;
}

Conv1DOptions projection(const GptOptions& o, int64_t in, int64_t out) {
  return {.in = in, .out = out, .bias = o.bias, .device = o.device};
}
// The last layer of a branch: 2 · layers of them add up in the residual stream.
Conv1DOptions into_residual(const GptOptions& o, int64_t in) {
  Conv1DOptions c = projection(o, in, o.width);
  c.std /= std::sqrt(2.0 * double(o.layers));
  return c;
}
nn::LayerNorm norm(const GptOptions& o) {
  nn::LayerNorm layer({.normalized_shape = {o.width}, .bias = o.bias});
  layer.to(o.device);
  return layer;
}
nn::EmbeddingLayerOptions table(const GptOptions& o, int64_t rows) {
  return {.num_embeddings = rows, .embedding_dim = o.width, .device = o.device};
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Conv1D::Conv1D(const Conv1DOptions& o) {
  weight = nn::init::normal_(empty({o.in, o.out}, {.device = o.device}), 0, o.std);
  if (o.bias) bias = zeros({o.out}, {.device = o.device});
  add("weight", weight);
  add("bias", bias);
}
Tensor Conv1D::forward(const Tensor& x) { return linear(x, weight.t(), bias); }

GptAttention::GptAttention(const GptOptions& o)
    : c_attn(projection(o, o.width, 3 * o.width)),
      c_proj(into_residual(o, o.width)),
      resid_dropout({.p = o.dropout}),
      heads_(o.heads),
      dropout_(o.dropout) {
  add("c_attn", c_attn);
  add("c_proj", c_proj);
  add("resid_dropout", resid_dropout);
}

Tensor GptAttention::operator()(const Tensor& x, KeysValues& past) {
  Scope scope(*this);
  return scope.done(run(x, &past));
}

Tensor GptAttention::run(const Tensor& x, KeysValues* past) {
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  const Tensor all = reshape(c_attn(x), {batch, length, 3, heads_, width / heads_});
  const Tensor qkv = permute(all, {2, 0, 3, 1, 4});  // [3,B,heads,T,width/heads]
  Tensor keys = qkv[1], values = qkv[2];
  const bool later = past && past->keys.defined();
  if (later) {
    keys = cat({past->keys, keys}, 2);
    values = cat({past->values, values}, 2);
  }
  if (past) *past = {keys, values};
  const Tensor y = scaled_dot_product_attention(
      qkv[0], keys, values, {.causal = !later, .dropout = training() ? dropout_ : 0});
  return resid_dropout(c_proj(reshape(transpose(y, 1, 2), x.sizes())));
}

GptMlp::GptMlp(const GptOptions& o)
    : c_fc(projection(o, o.width, 4 * o.width)),
      c_proj(into_residual(o, 4 * o.width)),
      dropout({.p = o.dropout}) {
  add("c_fc", c_fc);
  add("c_proj", c_proj);
  add("dropout", dropout);
}
Tensor GptMlp::forward(const Tensor& x) { return dropout(c_proj(gelu_tanh(c_fc(x)))); }

GptBlock::GptBlock(const GptOptions& o) : ln_1(norm(o)), attn(o), ln_2(norm(o)), mlp(o) {
  add("ln_1", ln_1);
  add("attn", attn);
  add("ln_2", ln_2);
  add("mlp", mlp);
}
Tensor GptBlock::forward(const Tensor& x) {
  const Tensor y = x + attn(ln_1(x));
  return y + mlp(ln_2(y));
}
Tensor GptBlock::operator()(const Tensor& x, KeysValues& past) {
  Scope scope(*this);
  const Tensor y = x + attn(ln_1(x), past);
  return scope.done(y + mlp(ln_2(y)));
}

Gpt::Gpt(const GptOptions& o)
    : wte(table(checked(o), o.vocabulary)),
      wpe(table(o, o.context)),
      drop({.p = o.dropout}),
      ln_f(norm(o)),
      options_(o) {
  nn::init::normal_(wte.weight, 0, 0.02);
  nn::init::normal_(wpe.weight, 0, 0.02);
  for (int64_t i = 0; i < o.layers; ++i) h.append(GptBlock(o));
  add("wte", wte);
  add("wpe", wpe);
  add("drop", drop);
  add("h", h);
  add("ln_f", ln_f);
}

// `memory` holds keys and values of each layer; with it, tokens come after those that it is from.
Tensor Gpt::hidden(const Tensor& tokens, Tensors* memory) {
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) > options_.context) {
    throw ShapeError("Gpt", fmt::format("tokens must be [B,T] with T from 1 to {}; got {}",
                                        options_.context, to_string(tokens.sizes())));
  }
  if (memory && memory->empty()) memory->resize(2 * size_t(h.size()));
  const bool later = memory && (*memory)[0].defined();
  const int64_t begin = later ? (*memory)[0].size(2) : 0;
  const Tensor positions =
      arange(begin, begin + tokens.size(1), 1, {.dtype = DType::i64, .device = tokens.device()});
  Tensor x = drop(wte(tokens) + wpe(positions));
  for (int64_t i = 0; i < h.size(); ++i) {
    if (!memory) {
      x = h[i](x);
      continue;
    }
    Tensor &keys = (*memory)[2 * size_t(i)], &values = (*memory)[2 * size_t(i) + 1];
    KeysValues past{keys, values};
    x = h.get<GptBlock>(i)(x, past);
    keys = past.keys;
    values = past.values;
  }
  return ln_f(x);
}

Tensor Gpt::forward(const Tensor& tokens) { return linear(hidden(tokens), wte.weight); }

Tensor Gpt::next_scores(const Tensor& tokens, Tensors& memory) {
  const int64_t length = tokens.size(1);
  Tensor x;
  if (length > options_.context) {
    x = hidden(slice(tokens, 1, length - options_.context));
  } else if (memory.empty()) {
    x = hidden(tokens, &memory);
  } else {
    x = hidden(slice(tokens, 1, length - 1), &memory);
  }
  return linear(select(x, 1, -1), wte.weight);
}

nn::NamedTensors gpt2_state(const nn::NamedTensors& published) {
  const std::string prefix = "transformer.";
  nn::NamedTensors state;
  for (const nn::Named& t : published) {
    const bool prefixed = t.name.compare(0, prefix.size(), prefix) == 0;
    const std::string name = prefixed ? t.name.substr(prefix.size()) : t.name;
    const bool mask = ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias");
    if (!mask && name != "lm_head.weight") state.push_back({name, t.value});
  }
  return state;
}

}  // namespace cutaway::zoo
