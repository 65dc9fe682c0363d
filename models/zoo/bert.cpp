#include <cutaway/models/zoo/bert.h>

#include <fmt/format.h>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::zoo {
namespace {

const BertOptions& checked(const BertOptions& o) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"vocabulary", o.vocabulary}, {"context", o.context}, {"types", o.types},
      {"layers", o.layers},         {"heads", o.heads},     {"width", o.width},
      {"hidden", o.hidden}};
  for (const auto& [name, value] : sizes) {
    if (value < 1) {
      throw ValueError("Bert", fmt::format(".{} must be at least 1; got {}", name, value));
    }
  }
  if (o.width % o.heads != 0) {
    throw ValueError(
        "Bert", fmt::format(".heads must divide .width; got heads {}, width {}", o.heads, o.width));
  }
  return o;
}

nn::Embedding table(const BertOptions& o, int64_t rows) {
  nn::Embedding e({.num_embeddings = rows, .embedding_dim = o.width, .device = o.device});
  nn::init::normal_(e.weight, 0, 0.02);
  return e;
}
nn::Linear dense_map(const BertOptions& o, int64_t in, int64_t out) {
  nn::Linear layer({.in = in, .out = out});
  nn::init::normal_(layer.weight, 0, 0.02);
  nn::init::zeros_(layer.bias);
  layer.to(o.device);
  return layer;
}
nn::LayerNorm norm_of(const BertOptions& o) {
  nn::LayerNorm layer({.normalized_shape = {o.width}, .eps = o.eps});
  layer.to(o.device);
  return layer;
}

bool begins_with(const std::string& name, const std::string& begin) {
  return name.compare(0, begin.size(), begin) == 0;
}
// The name with `old` at its end replaced.
std::string renamed(const std::string& name, const std::string& old, const std::string& now) {
  const bool found =
      name.size() >= old.size() && name.compare(name.size() - old.size(), old.size(), old) == 0;
  return found ? name.substr(0, name.size() - old.size()) + now : name;
}

}  // namespace

BertOptions bert_options(const std::string& name) {
  if (name == "bert-base") return {};
  if (name == "minilm-l6") return {.layers = 6, .heads = 12, .width = 384, .hidden = 1536};
  if (name == "minilm-l12") return {.layers = 12, .heads = 12, .width = 384, .hidden = 1536};
  if (name == "bert-tiny") return {.layers = 2, .heads = 2, .width = 128, .hidden = 512};
  throw ValueError("Bert",
                   fmt::format("there is no \"{}\"; known are: bert-base, bert-tiny, minilm-l6, "
                               "minilm-l12",
                               name));
}

BertEmbeddings::BertEmbeddings(const BertOptions& o)
    : word_embeddings(table(checked(o), o.vocabulary)),
      position_embeddings(table(o, o.context)),
      token_type_embeddings(table(o, o.types)),
      norm(norm_of(o)),
      dropout({.p = o.dropout}) {
  add("word_embeddings", word_embeddings);
  add("position_embeddings", position_embeddings);
  add("token_type_embeddings", token_type_embeddings);
  add("LayerNorm", norm);
  add("dropout", dropout);
}
Tensor BertEmbeddings::operator()(const Tensor& tokens, const Tensor& token_types) {
  Scope scope(*this);
  const Tensor types = token_types.defined() ? token_types : zeros_like(tokens);
  const Tensor positions =
      arange(0, tokens.size(1), 1, {.dtype = DType::i64, .device = tokens.device()});
  const Tensor sum =
      word_embeddings(tokens) + token_type_embeddings(types) + position_embeddings(positions);
  return scope.done(dropout(norm(sum)));
}

BertResidual::BertResidual(const BertOptions& o, int64_t in)
    : dense(dense_map(o, in, o.width)), norm(norm_of(o)), dropout({.p = o.dropout}) {
  add("dense", dense);
  add("LayerNorm", norm);
  add("dropout", dropout);
}
Tensor BertResidual::operator()(const Tensor& x, const Tensor& residual) {
  Scope scope(*this);
  return scope.done(norm(dropout(dense(x)) + residual));
}

BertSelfAttention::BertSelfAttention(const BertOptions& o)
    : query(dense_map(o, o.width, o.width)),
      key(dense_map(o, o.width, o.width)),
      value(dense_map(o, o.width, o.width)),
      heads_(o.heads),
      dropout_(o.dropout) {
  add("query", query);
  add("key", key);
  add("value", value);
}
Tensor BertSelfAttention::operator()(const Tensor& x, const Tensor& may) {
  Scope scope(*this);
  const auto split = [&](const Tensor& y) {
    return transpose(unflatten(y, -1, {heads_, y.size(-1) / heads_}), 1, 2);
  };
  const Tensor y =
      scaled_dot_product_attention(split(query(x)), split(key(x)), split(value(x)),
                                   {.mask = may, .dropout = training() ? dropout_ : 0});
  return scope.done(reshape(transpose(y, 1, 2), x.sizes()));
}

BertAttention::BertAttention(const BertOptions& o) : self(o), output(o, o.width) {
  add("self", self);
  add("output", output);
}
Tensor BertAttention::operator()(const Tensor& x, const Tensor& may) {
  Scope scope(*this);
  return scope.done(output(self(x, may), x));
}

BertIntermediate::BertIntermediate(const BertOptions& o) : dense(dense_map(o, o.width, o.hidden)) {
  add("dense", dense);
}

BertLayer::BertLayer(const BertOptions& o) : attention(o), intermediate(o), output(o, o.hidden) {
  add("attention", attention);
  add("intermediate", intermediate);
  add("output", output);
}
Tensor BertLayer::operator()(const Tensor& x, const Tensor& may) {
  Scope scope(*this);
  const Tensor y = attention(x, may);
  return scope.done(output(intermediate(y), y));
}

BertEncoder::BertEncoder(const BertOptions& o) {
  for (int64_t i = 0; i < o.layers; ++i) layer.append(BertLayer(o));
  add("layer", layer);
}
Tensor BertEncoder::operator()(const Tensor& x, const Tensor& may) {
  Scope scope(*this);
  Tensor y = x;
  for (int64_t i = 0; i < layer.size(); ++i) y = layer.get<BertLayer>(i)(y, may);
  return scope.done(std::move(y));
}

BertPooler::BertPooler(const BertOptions& o) : dense(dense_map(o, o.width, o.width)) {
  add("dense", dense);
}
Tensor BertPooler::forward(const Tensor& x) { return tanh(dense(select(x, 1, 0))); }

Bert::Bert(const BertOptions& o) : embeddings(o), encoder(o), pooler(o), options_(o) {
  add("embeddings", embeddings);
  add("encoder", encoder);
  if (o.pooler) add("pooler", pooler);
}

BertOutput Bert::run(const BertInput& input) {
  const Tensor& tokens = input.tokens;
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) > options_.context) {
    throw ShapeError("Bert", fmt::format("tokens must be [B,T] with T from 1 to {}; got {}",
                                         options_.context, to_string(tokens.sizes())));
  }
  for (const Tensor* t : {&input.attention_mask, &input.token_types}) {
    if (t->defined() && t->sizes() != tokens.sizes()) {
      throw ShapeError("Bert", fmt::format("mask and types must have the sizes of tokens; got {}, "
                                           "need {}",
                                           to_string(t->sizes()), to_string(tokens.sizes())));
    }
  }
  Tensor may;
  if (input.attention_mask.defined()) {
    may = reshape(ne(input.attention_mask, 0), {tokens.size(0), 1, 1, tokens.size(1)});
  }
  const Tensor hidden = encoder(embeddings(tokens, input.token_types), may);
  return {hidden, options_.pooler ? pooler(hidden) : Tensor()};
}

BertOutput Bert::operator()(const BertInput& input) {
  Scope scope(*this);
  BertOutput out = run(input);
  scope.done(out.hidden);
  return out;
}

Tensor Bert::sentence_embeddings(const BertInput& input) {
  const Tensor hidden = (*this)(input).hidden;
  if (!input.attention_mask.defined()) return normalize(mean(hidden, 1), 1);
  const Tensor counted = unsqueeze(ne(input.attention_mask, 0).to(hidden.dtype()), 2);
  return normalize(sum(hidden * counted, 1) / clamp_min(sum(counted, 1), 1e-9), 1);
}

BertClassifier::BertClassifier(const BertOptions& o, int64_t classes)
    : bert(o), dropout({.p = o.dropout}), classifier(dense_map(o, o.width, classes)) {
  if (!o.pooler) throw ValueError("BertClassifier", "classes are told from the pooler's result");
  add("bert", bert);
  add("dropout", dropout);
  add("classifier", classifier);
}
Tensor BertClassifier::forward(const Tensor& tokens) {
  const BertInput input{tokens, ne(tokens, 0), {}};
  return classifier(dropout(bert(input).pooled));
}

nn::NamedTensors bert_state(const nn::NamedTensors& published) {
  nn::NamedTensors state;
  for (const nn::Named& t : published) {
    std::string name = begins_with(t.name, "bert.") ? t.name.substr(5) : t.name;
    const bool other = begins_with(name, "cls.") || begins_with(name, "classifier.") ||
                       name == "embeddings.position_ids";
    name = renamed(renamed(name, ".gamma", ".weight"), ".beta", ".bias");
    if (!other) state.push_back({name, t.value});
  }
  return state;
}

}  // namespace cutaway::zoo
