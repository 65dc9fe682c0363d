#pragma once
#include <cstdint>
#include <vector>

#include <cutaway/core/rng.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/models/zoo/zoo.h>
#include <cutaway/nn/module.h>

namespace cutaway::train {

// What a model must handle for this data set: classes, tokens, or classes of tokens. Raises
// ValueError when its targets are not class numbers from 0 to 9999.
zoo::Task task_of(const data::Dataset& dataset);

struct Evaluation {
  double loss = 0;                              // cross-entropy; of models of pictures their own
  double accuracy = 0;                          // NaN for models of pictures, which tell no classes
  std::vector<std::vector<int64_t>> confusion;  // [true][predicted]; of classes
  std::vector<int64_t> predicted;               // in the order of the data set; of classes
};
// Mean loss, accuracy and confusion counts over a data set, in eval mode without recording, on the
// device of the model's parameters. Models that draw draw the same numbers each time, and leave the
// default generator where it was.
Evaluation evaluate(nn::Module& model, const data::Dataset& dataset, int64_t batch = 256);

// While alive the default generator is this one; after that again what it was.
class OwnDraws {
 public:
  explicit OwnDraws(Generator generator) : before_(default_generator()) {
    default_generator() = generator;
  }
  ~OwnDraws() { default_generator() = before_; }
  OwnDraws(const OwnDraws&) = delete;

 private:
  Generator before_;
};
// For what is drawn in tests and pictures, the same each time.
inline constexpr Generator kTestDraws{.seed = 0, .stream = uint64_t(6) << 41};

// Number of rows whose largest logit is at the target: its class number, or its largest share.
int64_t count_correct(const Tensor& logits, const Tensor& targets);

// Whether inputs are texts with a class each, padded by token 0.
bool is_padded_text(const data::Dataset& dataset);
// Tokens of each row of [N,T] up to the last that is no padding; at least 1.
std::vector<int64_t> text_lengths(const Tensor& tokens);
// Such tokens [N,T] without the columns at the end that are all padding; their number stays a
// multiple of 16, so that few sizes occur.
Tensor without_padding(const Tensor& tokens);

}  // namespace cutaway::train
