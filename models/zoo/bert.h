#pragma once
#include <string>

#include <cutaway/nn/nn.h>

namespace cutaway::zoo {

struct BertOptions {
  int64_t vocabulary = 30522, context = 512, types = 2;  // the defaults are BERT base
  int64_t layers = 12, heads = 12, width = 768, hidden = 3072;
  double dropout = 0.1;  // of embeddings, attention weights and what each residual adds
  double eps = 1e-12;    // of normalisations
  bool pooler = true;
  Device device = {};  // where parameters are made; on meta they take no memory
};
// Options by name: bert-base; minilm-l6 and minilm-l12, the sentence encoders of width 384 (Wang et
// al. 2020); bert-tiny, 2 layers of width 128 (Turc et al. 2019). Raises ValueError for others.
BertOptions bert_options(const std::string& name);

struct BertInput {
  Tensor tokens;          // i64 [B,T]
  Tensor attention_mask;  // [B,T], not 0 where there is a token; undefined: everywhere
  Tensor token_types;     // i64 [B,T]; undefined: zeros
};
struct BertOutput {
  Tensor hidden;  // [B,T,width]
  Tensor pooled;  // [B,width], tanh of a linear map of the first place; undefined without a pooler
};

// Token, position and type tables, added and normalised.
class BertEmbeddings : public nn::Module {
 public:
  explicit BertEmbeddings(const BertOptions& options);
  Tensor operator()(const Tensor& tokens, const Tensor& token_types);

  nn::Embedding word_embeddings, position_embeddings, token_type_embeddings;
  nn::LayerNorm norm;  // "LayerNorm"
  nn::Dropout dropout;
};

// A linear map, then the residual and its normalisation.
class BertResidual : public nn::Module {
 public:
  BertResidual(const BertOptions& options, int64_t in);
  Tensor operator()(const Tensor& x, const Tensor& residual);

  nn::Linear dense;
  nn::LayerNorm norm;  // "LayerNorm"
  nn::Dropout dropout;
};

// Queries, keys and values of several heads.
class BertSelfAttention : public nn::Module {
 public:
  explicit BertSelfAttention(const BertOptions& options);
  // `may` is undefined, or boolean and broadcasts to [B,heads,T,T].
  Tensor operator()(const Tensor& x, const Tensor& may);

  nn::Linear query, key, value;

 private:
  int64_t heads_;
  double dropout_;
};

class BertAttention : public nn::Module {
 public:
  explicit BertAttention(const BertOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& may);

  BertSelfAttention self;
  BertResidual output;
};

// width → hidden with GELU.
class BertIntermediate : public nn::Module {
 public:
  explicit BertIntermediate(const BertOptions& options);
  Tensor forward(const Tensor& x) override { return gelu(dense(x)); }

  nn::Linear dense;
};

// Attention, then two linear maps; both normalised behind the residual.
class BertLayer : public nn::Module {
 public:
  explicit BertLayer(const BertOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& may);

  BertAttention attention;
  BertIntermediate intermediate;
  BertResidual output;
};

class BertEncoder : public nn::Module {
 public:
  explicit BertEncoder(const BertOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& may);

  nn::ModuleList layer;  // of BertLayer
};

class BertPooler : public nn::Module {
 public:
  explicit BertPooler(const BertOptions& options);
  Tensor forward(const Tensor& x) override;

  nn::Linear dense;
};

// Bidirectional encoder of tokens (Devlin et al. 2018) with the names of weights of Hugging Face's
// BertModel: embeddings.word_embeddings, encoder.layer.0.attention.self.query, …, pooler.dense.
// Starts normal with deviation 0.02, biases 0. Raises ValueError for sizes below 1 and when heads
// does not divide width.
class Bert : public nn::Module {
 public:
  explicit Bert(const BertOptions& options);
  // Raises ShapeError unless 1 ≤ T ≤ context, IndexError for a token outside the vocabulary.
  BertOutput operator()(const BertInput& input);
  // The hidden vectors of tokens alone.
  using Module::operator();
  Tensor forward(const Tensor& tokens) override { return run({tokens, {}, {}}).hidden; }
  // The mean of the hidden vectors of the tokens of each text, of length 1: [B,width]. Sentences of
  // like meaning are near (Reimers & Gurevych 2019).
  Tensor sentence_embeddings(const BertInput& input);
  const BertOptions& options() const { return options_; }

  BertEmbeddings embeddings;
  BertEncoder encoder;
  BertPooler pooler;

 private:
  BertOutput run(const BertInput& input);

  BertOptions options_;
};

// Classes of texts: dropout and a linear map of the pooled vector, as Hugging Face's
// BertForSequenceClassification: bert.…, classifier.weight. Token 0 is padding.
class BertClassifier : public nn::Module {
 public:
  BertClassifier(const BertOptions& options, int64_t classes);
  // tokens (i64) [B,T] → logits [B,classes]
  Tensor forward(const Tensor& tokens) override;

  Bert bert;
  nn::Dropout dropout;
  nn::Linear classifier;
};

// A state dict of published weights under the names of Bert: without "bert." in front, without
// heads of other tasks (cls.…, classifier.…) and constant positions; "gamma" and "beta" of old
// files are weight and bias.
nn::NamedTensors bert_state(const nn::NamedTensors& published);

}  // namespace cutaway::zoo
