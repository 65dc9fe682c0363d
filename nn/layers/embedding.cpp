#include <cutaway/nn/layers/embedding.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
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

// Rows of the table that `ids` read get at most the norm `largest`, in place.
void limit_rows(Tensor& weight, const Tensor& ids, double largest, double p) {
  if (ids.is_meta() || ids.numel() == 0) return;
  NoGradGuard no_grad;
  const Tensor rows = unique(ids).values;
  const Tensor read = index_select(weight, 0, rows);
  const Tensor norms = norm(read, 1, {.p = p, .keepdim = true});
  const Tensor factors = where(gt(norms, largest), largest / (norms + 1e-7), 1.0);
  weight.copy_(index_copy(weight, 0, rows, read * factors));
}

// The table, its gradient rows divided by the number of times that ids read them.
Tensor by_frequency(const Tensor& weight, const Tensor& ids) {
  const Tensor flat = reshape(ids, {ids.numel()}).to(DType::i64);
  const Tensor counts = clamp_min(bincount(flat, weight.size(0)), 1).to(weight.dtype());
  const Tensor fixed = weight.detach();
  // The difference is 0, so the values stay as they are.
  return fixed + (weight - fixed) / unsqueeze(counts, 1);
}

void check_norm(const char* layer, std::optional<double> max_norm) {
  if (max_norm && !(*max_norm > 0)) {
    throw ValueError(layer, fmt::format(".max_norm must be positive; got {}", *max_norm));
  }
}

}  // namespace

Embedding::Embedding(const EmbeddingLayerOptions& o)
    : padding_idx_(row_of("Embedding", o.padding_idx, o.num_embeddings)),
      max_norm_(o.max_norm),
      norm_type_(o.norm_type),
      scale_grad_by_freq_(o.scale_grad_by_freq) {
  check_norm("Embedding", o.max_norm);
  weight = table("Embedding", o.num_embeddings, o.embedding_dim, padding_idx_, o.device);
  add("weight", weight);
}
Tensor Embedding::forward(const Tensor& ids) {
  if (max_norm_) limit_rows(weight, ids, *max_norm_, norm_type_);
  const EmbeddingOptions o{.padding_idx = padding_idx_};
  if (scale_grad_by_freq_ && !ids.is_meta()) return embedding(by_frequency(weight, ids), ids, o);
  return embedding(weight, ids, o);
}

EmbeddingBag::EmbeddingBag(const EmbeddingBagLayerOptions& o) : options_(o) {
  options_.padding_idx = row_of("EmbeddingBag", o.padding_idx, o.num_embeddings);
  check_norm("EmbeddingBag", o.max_norm);
  weight = table("EmbeddingBag", o.num_embeddings, o.embedding_dim, options_.padding_idx);
  add("weight", weight);
}
Tensor EmbeddingBag::run(const Tensor& ids, const Tensor& offsets, const Tensor& weights) {
  if (options_.max_norm) limit_rows(weight, ids, *options_.max_norm, options_.norm_type);
  const Tensor begins = options_.include_last_offset && offsets.defined()
                            ? slice(offsets, 0, 0, offsets.size(0) - 1)
                            : offsets;
  const Tensor rows =
      options_.scale_grad_by_freq && !ids.is_meta() ? by_frequency(weight, ids) : weight;
  return embedding_bag(rows, ids,
                       {.mode = options_.mode,
                        .padding_idx = options_.padding_idx,
                        .offsets = begins,
                        .weights = weights});
}
Tensor EmbeddingBag::operator()(const Tensor& ids, const Tensor& offsets, const Tensor& weights) {
  Scope scope(*this);
  return scope.done(run(ids, offsets, weights));
}
Tensor EmbeddingBag::forward(const Tensor& ids) { return run(ids, {}, {}); }

}  // namespace cutaway::nn
