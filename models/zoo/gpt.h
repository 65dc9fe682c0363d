#pragma once
#include <cutaway/models/zoo/language.h>

namespace cutaway::zoo {

struct GptOptions {
  int64_t vocabulary = 50257, context = 1024;  // the defaults are GPT-2 small
  int64_t layers = 12, heads = 12, width = 768;
  double dropout = 0;  // of embeddings, attention weights and what each residual adds
  bool bias = true;    // in projections and normalisations
  Device device = {};  // where parameters are made; on meta they take no memory
};

struct Conv1DOptions {
  int64_t in = 0, out = 0;
  bool bias = true;
  double std = 0.02;  // of the weight at the start; the bias starts at 0
  Device device = {};
};
// y = x W + b, as GPT-2 stores its projections: x [...,in], weight [in,out] (the transpose of
// nn::Linear's), bias [out], y [...,out].
class Conv1D : public nn::Module {
 public:
  explicit Conv1D(const Conv1DOptions& options);
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;
};

// Keys and values of the tokens that a layer has seen: [B,heads,T,width/heads].
struct KeysValues {
  Tensor keys, values;
};

// Causal self-attention of several heads: x [B,T,width] → [B,T,width]. Never holds T·T weights,
// unless they are dropped.
class GptAttention : public nn::Module {
 public:
  explicit GptAttention(const GptOptions& options);
  Tensor forward(const Tensor& x) override { return run(x, nullptr); }
  // The same for the tokens after those in `past`, which grows by them. Unless past is empty, one
  // token.
  using Module::operator();
  Tensor operator()(const Tensor& x, KeysValues& past);

  Conv1D c_attn;  // queries, keys and values side by side
  Conv1D c_proj;
  nn::Dropout resid_dropout;

 private:
  Tensor run(const Tensor& x, KeysValues* past);

  int64_t heads_;
  double dropout_;
};

// width → 4 · width → width with GELU (tanh form) between: x [...,width] → [...,width].
class GptMlp : public nn::Module {
 public:
  explicit GptMlp(const GptOptions& options);
  Tensor forward(const Tensor& x) override;

  Conv1D c_fc, c_proj;
  nn::Dropout dropout;
};

// x + attn(ln_1(x)), then the same with the MLP: x [B,T,width] → [B,T,width].
class GptBlock : public nn::Module {
 public:
  explicit GptBlock(const GptOptions& options);
  Tensor forward(const Tensor& x) override;
  using Module::operator();
  Tensor operator()(const Tensor& x, KeysValues& past);  // as that of GptAttention

  nn::LayerNorm ln_1;
  GptAttention attn;
  nn::LayerNorm ln_2;
  GptMlp mlp;
};

// GPT-2 (Radford et al. 2019) with its names and orientation of weights: wte, wpe, h.0.ln_1,
// h.0.attn.c_attn, …, ln_f; the output layer is the token table wte itself. Starts normal with
// deviation 0.02, projections into the residual stream with 0.02/√(2 · layers), biases 0. Raises
// ValueError for sizes below 1 and when heads does not divide width. generate() keeps the keys and
// values of earlier tokens; a text that outgrows `context` is read anew at every step, from its
// last `context` tokens.
class Gpt : public LanguageModel {
 public:
  explicit Gpt(const GptOptions& options);

  // tokens (i64) [B,T] → logits [B,T,vocabulary]. Raises ShapeError unless 1 ≤ T ≤ context,
  // IndexError for a token outside the vocabulary.
  Tensor forward(const Tensor& tokens) override;
  const GptOptions& options() const { return options_; }

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::ModuleList h;  // of GptBlock
  nn::LayerNorm ln_f;

 protected:
  Tensor next_scores(const Tensor& tokens, Tensors& memory) override;

 private:
  Tensor hidden(const Tensor& tokens, Tensors* memory = nullptr);

  GptOptions options_;
};

// A state dict of published GPT-2 weights under the names of Gpt: without "transformer." in front,
// the constant causal masks (h.N.attn.bias, h.N.attn.masked_bias) and the second name of the token
// table (lm_head.weight).
nn::NamedTensors gpt2_state(const nn::NamedTensors& published);

}  // namespace cutaway::zoo
