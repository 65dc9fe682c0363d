#include <cutaway/models/haste/encoder.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>

namespace cutaway::haste {
namespace {

void fill_normal(Tensor& t, double deviation, Generator& random) {
  NoGradGuard off;
  t.copy_(randn(t.sizes(), {}, &random) * deviation);
}

}  // namespace

Batch make_batch(const Csr& features, std::span<const int64_t> rows) {
  int64_t count = 0;
  for (int64_t row : rows) count += int64_t(features.row(row).size());
  Batch b{.rows = int64_t(rows.size()),
          .ids = empty({count}, {.dtype = DType::i64}),
          .offsets = empty({int64_t(rows.size())}, {.dtype = DType::i64}),
          .weights = ones({count})};
  int64_t *ids = b.ids.data<int64_t>(), *offsets = b.offsets.data<int64_t>(), at = 0;
  float* weights = b.weights.data<float>();
  for (int64_t row : rows) {
    *offsets++ = at;
    const auto words = features.row(row);
    std::copy(words.begin(), words.end(), ids + at);
    if (!features.value.empty()) {
      const auto values = features.values(row);
      std::copy(values.begin(), values.end(), weights + at);
    }
    at += int64_t(words.size());
  }
  return b;
}

BagEncoder::BagEncoder(const RunOptions& o, int64_t words, Generator& random)
    : embedding({.num_embeddings = words, .embedding_dim = o.hidden, .mode = BagMode::sum}),
      bias(zeros({o.hidden}, {.requires_grad = true})),
      residual({.in = o.hidden, .out = o.hidden}) {
  add("embedding", embedding);
  add("bias", bias);
  add("residual", residual);
  fill_normal(embedding.weight, o.embed_scale / std::sqrt(double(o.hidden)), random);
  fill_normal(residual.weight, 0.5 / std::sqrt(double(o.hidden)), random);
  NoGradGuard off;
  residual.bias.zero_();
}

Tensor BagEncoder::encode(const Batch& batch) {
  const Tensor h = relu(embedding(batch.ids, batch.offsets, batch.weights) + bias);
  return h + residual(h);
}

WordEncoder::WordEncoder(const RunOptions& o, int64_t words, Generator& random)
    : embedding({.num_embeddings = words + 1, .embedding_dim = o.hidden}),
      layers({.d_model = o.hidden,
              .nhead = o.heads,
              .dim_feedforward = 2 * o.hidden,
              .dropout = 0,
              .activation = nn::Activation::gelu,
              .batch_first = true,
              .norm_first = true},
             {.num_layers = o.blocks, .norm = true}),
      words_(o.words) {
  add("embedding", embedding);
  add("layers", layers);
  for (const nn::Named& p : parameters()) {
    Tensor value = p.value;
    if (value.dim() >= 2) fill_normal(value, 0.02, random);
  }
  fill_normal(embedding.weight, o.embed_scale, random);
}

Tensor WordEncoder::encode(const Batch& batch) {
  const int64_t total = batch.ids.numel(), pad = embedding.weight.size(0) - 1;
  const int64_t *ids = batch.ids.data<int64_t>(), *begin = batch.offsets.data<int64_t>();
  const float* weights = batch.weights.data<float>();
  Tensor words = full({batch.rows, words_}, pad, {.dtype = DType::i64});
  Tensor share = zeros({batch.rows, words_, 1}), padded = ones({batch.rows, words_});
  std::vector<int64_t> order;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t from = begin[row], to = row + 1 < batch.rows ? begin[row + 1] : total;
    order.resize(size_t(to - from));
    std::iota(order.begin(), order.end(), from);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return weights[a] > weights[b]; });
    // A row without words reads the padding word.
    const int64_t n = std::clamp<int64_t>(to - from, 1, words_);
    for (int64_t i = 0; i < n; ++i) {
      if (to > from) words.data<int64_t>()[row * words_ + i] = ids[order[size_t(i)]];
      share.data<float>()[row * words_ + i] = 1 / float(n);
      padded.data<float>()[row * words_ + i] = 0;
    }
  }
  const Tensor x = layers(embedding(words), {.key_padding_mask = padded.to(DType::boolean)});
  return sum(x * share, {1});
}

std::unique_ptr<Encoder> make_encoder(const RunOptions& o, int64_t words, Generator& random) {
  if (o.encoder == "transformer") return std::make_unique<WordEncoder>(o, words, random);
  return std::make_unique<BagEncoder>(o, words, random);
}

}  // namespace cutaway::haste
