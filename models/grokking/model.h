#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::grokking {

struct NetworkOptions {
  int64_t vocabulary = 0;  // tokens, "=" being the last
  int64_t entities = 0;    // the first of them
  int64_t length = 2;      // tokens of an input, without "="
  int64_t classes = 0;
  int64_t d = 64, heads = 4, hidden = 256;
  double embed_scale = 1;   // factor on the initial embedding (Liu et al. 2023)
  double output_scale = 1;  // α: factor on the logits (Kumar et al. 2024)
  uint64_t seed = 1;
};

// What both models share: an embedding E [vocabulary, d], and logits [B, classes] for token ids
// [B, length].
class Network : public nn::Module {
 public:
  explicit Network(const NetworkOptions& options) : options(options) {}
  // Logits of inputs whose tokens are embedded as given: [B, length, d].
  virtual Tensor from_embedded(const Tensor& x) = 0;

  NetworkOptions options;
  Tensor E;
  // The rows of E that stand for entities, [entities, d].
  Tensor entities() const { return E.slice(0, 0, options.entities); }
};

// One block, causal attention, no LayerNorm, no biases in attention: tokens (a, b, "="), prediction
// at the last place.
//
// In one block keys and values depend on token and place only, the query on "=" alone: forward
// makes tables of them and each input only looks up, weighs, and runs W_O, the MLP and the
// unembedding at the last place (Note: one block). from_embedded is the plain transformer over all
// places and gives the same numbers.
class Transformer : public Network {
 public:
  // Raises ValueError when d is not divisible by heads.
  explicit Transformer(const NetworkOptions& options);
  Tensor forward(const Tensor& ids) override;
  Tensor from_embedded(const Tensor& x) override;

 private:
  Tensor last(const Tensor& y, const Tensor& x) const;
  Tensor P, W_Q, W_K, W_V, W_O, W_in, b_in, W_out, b_out, U;
};

// concat(E[a], E[b], …) → hidden (ReLU) → logits: the model of the runs without weight decay.
class Mlp : public Network {
 public:
  explicit Mlp(const NetworkOptions& options);
  Tensor forward(const Tensor& ids) override;
  Tensor from_embedded(const Tensor& x) override;

 private:
  Tensor W_in, b_in, W_out, b_out;
};

}  // namespace cutaway::grokking
