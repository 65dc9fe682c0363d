#pragma once
#include <memory>
#include <span>

#include <cutaway/core/rng.h>
#include <cutaway/models/haste/data.h>
#include <cutaway/models/haste/options.h>
#include <cutaway/nn/nn.h>

namespace cutaway::haste {

// Rows of a sparse matrix, as an encoder reads them: row i holds ids[offsets[i]] … with their
// weights.
struct Batch {
  int64_t rows = 0;
  Tensor ids;      // [K], i64
  Tensor offsets;  // [rows], i64
  Tensor weights;  // [K], f32
};
Batch make_batch(const Csr& features, std::span<const int64_t> rows);

// From words to features: h [rows,hidden]. All parameters are drawn from a generator of their own,
// so that runs side by side do not meet.
class Encoder : public nn::Module {
 public:
  using nn::Module::operator();
  virtual Tensor encode(const Batch& batch) = 0;
};

// h₀ = ReLU(Σ_w tfidf_w E_w + b), h = h₀ + W h₀ + c.
class BagEncoder : public Encoder {
 public:
  BagEncoder(const RunOptions& options, int64_t words, Generator& random);
  Tensor encode(const Batch& batch) override;

  nn::EmbeddingBag embedding;
  Tensor bias;
  nn::Linear residual;
};

// A Transformer over the `words` words of largest weight of each row, in no order: there are no
// positions. h = mean over the words of the last layer.
class WordEncoder : public Encoder {
 public:
  WordEncoder(const RunOptions& options, int64_t words, Generator& random);
  Tensor encode(const Batch& batch) override;

  nn::Embedding embedding;
  nn::TransformerEncoder layers;

 private:
  int64_t words_;
};

std::unique_ptr<Encoder> make_encoder(const RunOptions& options, int64_t words, Generator& random);

}  // namespace cutaway::haste
