#pragma once
#include <optional>
#include <string>
#include <vector>

#include <cutaway/datasets/text/text_files.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/models/zoo/language.h>

namespace cutaway::train {

// Both splits of a run's data; with text, what turns it into tokens.
struct RunData {
  data::Dataset train, test;
  std::optional<data::Tokenizer> tokenizer;
  double characters_per_token = 1;  // of the validation text
};
// Opens config.data: text when config.model is a language model, else a data set. The tokenizer is
// that of the run folder when it has one, else config.tokenizer: "char", "byte", or a file or
// folder as Tokenizer::load reads it. Raises ValueError, IoError.
RunData open_run_data(const TrainConfig& config, const std::string& run_folder = {});

// What the model of a run is made for.
zoo::Task task_of(const TrainConfig& config, const RunData& data);
// The same for a language model, from the number of its tokens.
zoo::Task language_task(const TrainConfig& config, int64_t vocabulary);

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
