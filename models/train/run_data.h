#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/datasets/text/tokenizer.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/models/zoo/graph.h>

namespace cutaway::train {

// Both splits of a run's data.
struct RunData {
  data::Dataset train, test;
  std::optional<data::Tokenizer> tokenizer;    // of text
  double characters_per_token = 1;             // of the validation text of a language model
  std::shared_ptr<const zoo::NodeTask> graph;  // whose nodes the examples are
};
// Opens config.data for config.model: a data set; for models of pictures without its targets; for
// language models text; for models of texts texts with classes, padded by token 0 to the longest
// one or config.context; for models of graphs the numbers of nodes. The tokenizer is that of the
// run folder when it has one, else config.tokenizer: "char", "byte", "wordpiece" (of models of
// texts: 8192 tokens of the training texts), or a file or folder as Tokenizer::load reads it.
// Raises ValueError, which lists what suits the model, and IoError.
RunData open_run_data(const TrainConfig& config, const std::string& run_folder = {});

// Data for models of this kind by name, each with one line about it.
std::vector<std::pair<std::string, std::string>> known_data(zoo::Kind kind);

// What the model of a run is made for.
zoo::Task task_of(const TrainConfig& config, const RunData& data);
// The same for a language model, from the number of its tokens.
zoo::Task language_task(const TrainConfig& config, int64_t vocabulary);

}  // namespace cutaway::train
