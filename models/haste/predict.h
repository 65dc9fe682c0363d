#pragma once
#include <memory>
#include <string>
#include <vector>

#include <cutaway/models/haste/checkpoint.h>

namespace cutaway::haste {

// Names of a set's labels; their numbers where it has none.
std::vector<std::string> label_names(const XmcData& data);

// A trained run that answers raw text: its options, best weights, words and label names.
class Predictor {
 public:
  // Raises IoError when the folder holds no trained run, ValueError when its features have no
  // names.
  explicit Predictor(const std::string& folder);

  struct Answer {
    std::string label;
    double probability = 0;  // σ of the logit
  };
  // The k most probable labels, best first.
  std::vector<Answer> predict(const std::string& text, int64_t k);
  // Words of the text that the model knows.
  std::vector<std::string> known_words(const std::string& text) const;

  int64_t labels() const { return model_->labels(); }
  int64_t words() const { return int64_t(vectorizer_.words.size()); }
  int64_t epoch() const { return weights_.info.epoch; }

 private:
  Weights weights_;
  std::unique_ptr<Model> model_;
  Vectorizer vectorizer_;
  std::vector<std::string> names_;
};

}  // namespace cutaway::haste
