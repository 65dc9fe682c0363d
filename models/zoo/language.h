#pragma once
#include <cutaway/nn/nn.h>

namespace cutaway::zoo {

struct GenerateOptions {
  double temperature = 1;  // divides the logits; 0 takes the likeliest token
  int64_t top_k = 0;       // draw among this many likeliest tokens; 0: among all
  uint64_t seed = 0;       // of the draws; the default generator is not touched
};

// Base of models of token sequences. Their forward gives the scores of the next token at every
// place: tokens (i64) [B,T] → logits [B,T,vocabulary].
class LanguageModel : public nn::Module {
 public:
  // Mean cross entropy of targets [B,T], the tokens that follow; those of −100 do not count. Raises
  // ShapeError when targets have other sizes than tokens.
  Tensor loss(const Tensor& tokens, const Tensor& targets);
  // tokens [B,T] with n more, each drawn from the scores of the model in eval mode: [B,T+n]. Raises
  // ShapeError unless T ≥ 1, ValueError for n, top_k or temperature below 0.
  Tensor generate(const Tensor& tokens, int64_t n, const GenerateOptions& options = {});

 protected:
  // Scores of the token that follows tokens [B,T]: [B,vocabulary]. `memory` is what the model keeps
  // from one call to the next: empty at first, later from the same tokens without the last one.
  virtual Tensor next_scores(const Tensor& tokens, Tensors& memory) = 0;
};

}  // namespace cutaway::zoo
