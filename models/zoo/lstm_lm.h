#pragma once
#include <cutaway/models/zoo/language.h>

namespace cutaway::zoo {

struct LstmLmOptions {
  int64_t vocabulary = 0, layers = 2, width = 256;
  double dropout = 0;  // of embeddings, between the layers, and of what the last one gives
};

// LSTM language model (Zaremba et al. 2014) whose output layer is the token table itself (Press and
// Wolf 2017): encoder.weight, rnn.weight_ih_l0, …, decoder.weight (the tensor of encoder.weight),
// decoder.bias. The table starts uniform in ±0.1, the bias 0, the LSTM as nn::LSTM. Raises
// ValueError for sizes below 1.
class LstmLm : public LanguageModel {
 public:
  explicit LstmLm(const LstmLmOptions& options);
  // tokens (i64) [B,T] → logits [B,T,vocabulary], from states of 0. Raises ShapeError, IndexError
  // for a token outside the vocabulary.
  Tensor forward(const Tensor& tokens) override;

  nn::Embedding encoder;
  nn::LSTM rnn;
  nn::Dropout drop;
  nn::Linear decoder;

 protected:
  Tensor next_scores(const Tensor& tokens, Tensors& memory) override;
};

}  // namespace cutaway::zoo
