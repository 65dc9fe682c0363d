#include <cutaway/nn/layers/embedding.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {
namespace {

std::optional<int64_t> row_of(const char* layer, std::optional<int64_t> index, int64_t rows) {
  if (!index) return index;
  const int64_t row = *index < 0 ? *index + rows : *index;
  if (row < 0 || row >= rows) {
    throw ValueError(layer,
                     fmt::format(".padding_idx {} is outside a table of {} rows", *index, rows));
  }
  return row;
}

Tensor table(const char* layer, int64_t rows, int64_t columns, std::optional<int64_t> zero_row,
             Device device = {}) {
  require_at_least(layer, "num_embeddings", rows, 1);
  require_at_least(layer, "embedding_dim", columns, 1);
  const Tensor weight = init::normal_(empty({rows, columns}, {.device = device}));
  if (zero_row) weight[*zero_row].zero_();
  return weight;
}

}  // namespace

Embedding::Embedding(const EmbeddingLayerOptions& o)
    : padding_idx_(row_of("Embedding", o.padding_idx, o.num_embeddings)) {
  weight = table("Embedding", o.num_embeddings, o.embedding_dim, padding_idx_, o.device);
  add("weight", weight);
}
Tensor Embedding::forward(const Tensor& ids) {
  return embedding(weight, ids, {.padding_idx = padding_idx_});
}

EmbeddingBag::EmbeddingBag(const EmbeddingBagLayerOptions& o)
    : mode_(o.mode), padding_idx_(row_of("EmbeddingBag", o.padding_idx, o.num_embeddings)) {
  weight = table("EmbeddingBag", o.num_embeddings, o.embedding_dim, padding_idx_);
  add("weight", weight);
}
Tensor EmbeddingBag::run(const Tensor& ids, const Tensor& offsets, const Tensor& weights) const {
  return embedding_bag(
      weight, ids,
      {.mode = mode_, .padding_idx = padding_idx_, .offsets = offsets, .weights = weights});
}
Tensor EmbeddingBag::operator()(const Tensor& ids, const Tensor& offsets, const Tensor& weights) {
  Scope scope(*this);
  return scope.done(run(ids, offsets, weights));
}
Tensor EmbeddingBag::forward(const Tensor& ids) { return run(ids, {}, {}); }

}  // namespace cutaway::nn
