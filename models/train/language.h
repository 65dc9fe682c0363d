#pragma once
#include <string>
#include <vector>

#include <cutaway/models/train/run_data.h>
#include <cutaway/models/zoo/language.h>

namespace cutaway::train {

// What a language model has learnt, from its mean loss per token on the validation text.
LanguageResult language_result(double loss, const RunData& data);

struct ContinueOptions {
  int64_t length = 200;  // tokens
  double temperature = 0.8;
  int64_t top_k = 0;
  uint64_t seed = 1;
};
// The prompt and what the model goes on with. An empty prompt is a line end, or the first token.
std::string continue_text(zoo::LanguageModel& model, const data::Tokenizer& tokenizer,
                          const std::string& prompt, const ContinueOptions& options = {});
// The first `count` texts: what follows the first tokens of evenly spaced windows of the validation
// text.
std::vector<TextSample> text_samples(zoo::LanguageModel& model, const RunData& data,
                                     int64_t count = 3);

}  // namespace cutaway::train
