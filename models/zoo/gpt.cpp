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

// The token drawn from each row of logits [B,V]: [B,1].
Tensor pick(const Tensor& logits, const GenerateOptions& o, Generator& generator) {
  if (o.temperature == 0) return argmax(logits, -1, {.keepdim = true});
  const Tensor scores = logits / o.temperature;
  if (o.top_k == 0 || o.top_k >= logits.size(1)) {
    return multinomial(softmax(scores, -1), 1, {}, &generator);
  }
  const ValuesIndices best = topk(scores, o.top_k);
  return gather(best.indices, 1, multinomial(softmax(best.values, -1), 1, {}, &generator));
}

// Eval mode while alive.
class EvalGuard {
 public:
  explicit EvalGuard(nn::Module& module) : module_(module), before_(module.training()) {
    module_.eval();
  }
  ~EvalGuard() { module_.train(before_); }
  EvalGuard(const EvalGuard&) = delete;

 private:
  nn::Module& module_;
  bool before_;
};

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

Tensor GptAttention::forward(const Tensor& x) {
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  const Tensor all = reshape(c_attn(x), {batch, length, 3, heads_, width / heads_});
  const Tensor qkv = permute(all, {2, 0, 3, 1, 4});  // [3,B,heads,T,width/heads]
  const Tensor y = scaled_dot_product_attention(
      qkv[0], qkv[1], qkv[2], {.causal = true, .dropout = training() ? dropout_ : 0});
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

Tensor Gpt::hidden(const Tensor& tokens) {
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) > options_.context) {
    throw ShapeError("Gpt", fmt::format("tokens must be [B,T] with T from 1 to {}; got {}",
                                        options_.context, to_string(tokens.sizes())));
  }
  const Opts ids{.dtype = DType::i64, .device = tokens.device()};
  Tensor x = drop(wte(tokens) + wpe(arange(0, tokens.size(1), 1, ids)));
  for (int64_t i = 0; i < h.size(); ++i) x = h[i](x);
  return ln_f(x);
}

Tensor Gpt::forward(const Tensor& tokens) { return linear(hidden(tokens), wte.weight); }

Tensor Gpt::loss(const Tensor& tokens, const Tensor& targets) {
  if (targets.sizes() != tokens.sizes()) {
    throw ShapeError("Gpt", fmt::format("targets must have the sizes of tokens; got {}, need {}",
                                        to_string(targets.sizes()), to_string(tokens.sizes())));
  }
  const Tensor logits = (*this)(tokens);
  return cross_entropy(reshape(logits, {tokens.numel(), options_.vocabulary}),
                       reshape(targets, {tokens.numel()}));
}

Tensor Gpt::generate(const Tensor& tokens, int64_t n, const GenerateOptions& o) {
  if (n < 0 || o.top_k < 0 || !(o.temperature >= 0)) {
    throw ValueError("generate", fmt::format("n, top_k and temperature must not be negative; got "
                                             "{}, {}, {}",
                                             n, o.top_k, o.temperature));
  }
  NoGradGuard no_grad;
  EvalGuard eval(*this);
  Generator generator{.seed = o.seed};
  Tensor all = tokens;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t length = all.dim() == 2 ? all.size(1) : 0;
    const bool fits = length <= options_.context;
    const Tensor seen = fits ? all : slice(all, 1, length - options_.context);
    const Tensor last = select(hidden(seen), 1, -1);
    // Drawn on the host, so that a seed gives one text on every device.
    const Tensor logits = linear(last, wte.weight).to(kCpu).to(DType::f32);
    all = cat({all, pick(logits, o, generator).to(tokens.dtype()).to(tokens.device())}, 1);
  }
  return all;
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
