#pragma once
#include <optional>

#include <cutaway/autograd/ops/index.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct EmbeddingLayerOptions {
  int64_t num_embeddings = 0, embedding_dim = 0;
  // This row is 0 at the start and gets no gradient; negative counts from the end.
  std::optional<int64_t> padding_idx;
  // Rows of a larger norm are scaled down to it, in the table itself, before they are read.
  std::optional<double> max_norm;
  double norm_type = 2;             // p of that norm
  bool scale_grad_by_freq = false;  // divide a row's gradient by how often the batch reads it
  Device device = {};               // of the table
};
// Rows of a table: ids [...] → [...,embedding_dim]. weight [num_embeddings, embedding_dim], normal.
// Raises ValueError for a padding_idx outside the table, IndexError for such ids.
class Embedding : public Module {
 public:
  explicit Embedding(const EmbeddingLayerOptions& options);
  Tensor forward(const Tensor& ids) override;

  Tensor weight;

 private:
  std::optional<int64_t> padding_idx_;
  std::optional<double> max_norm_;
  double norm_type_;
  bool scale_grad_by_freq_;
};

struct EmbeddingBagLayerOptions {
  int64_t num_embeddings = 0, embedding_dim = 0;
  std::optional<double> max_norm;  // as for Embedding
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  BagMode mode = BagMode::mean;
  // offsets hold one entry more, the number of ids; it begins no bag.
  bool include_last_offset = false;
  std::optional<int64_t> padding_idx;  // such ids do not count; negative counts from the end
};
// Rows of a table reduced over bags: ids [B,L], or [K] with offsets [B] → [B,embedding_dim], see
// embedding_bag().
class EmbeddingBag : public Module {
 public:
  explicit EmbeddingBag(const EmbeddingBagLayerOptions& options);
  using Module::operator();
  Tensor operator()(const Tensor& ids, const Tensor& offsets, const Tensor& weights = {});
  Tensor forward(const Tensor& ids) override;

  Tensor weight;

 private:
  Tensor run(const Tensor& ids, const Tensor& offsets, const Tensor& weights);

  EmbeddingBagLayerOptions options_;
};

}  // namespace cutaway::nn
