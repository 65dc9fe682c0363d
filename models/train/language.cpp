#include <cutaway/models/train/language.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/models/zoo/zoo.h>

namespace cutaway::train {
namespace {

constexpr int64_t kPromptTokens = 32, kSampleTokens = 240;

data::Tokenizer make_tokenizer(const TrainConfig& c, const data::Corpus& corpus,
                               const std::string& run_folder) {
  const std::string stored = run_folder + "/tokenizer.json";
  std::error_code ignored;
  if (!run_folder.empty() && std::filesystem::is_regular_file(stored, ignored)) {
    return data::Tokenizer::load(stored);
  }
  if (c.tokenizer == "byte") return data::Tokenizer::bytes();
  if (c.tokenizer != "char") return data::Tokenizer::load(c.tokenizer);
  std::string all;
  for (const auto& [name, text] : corpus.files) all += text;
  return data::Tokenizer::characters(all);
}

std::vector<int64_t> row_of(const Tensor& ids) {
  const int64_t* first = ids.data<int64_t>();
  return {first, first + ids.numel()};
}

}  // namespace

RunData open_run_data(const TrainConfig& c, const std::string& run_folder) {
  RunData d;
  if (!zoo::is_language_model(c.model)) {
    d.train = data::open(c.data, "train");
    d.test = data::open(c.data, "test");
    return d;
  }
  const data::Corpus corpus = data::open_corpus(c.data);
  d.tokenizer = make_tokenizer(c, corpus, run_folder);
  const data::CorpusTokens tokens = data::corpus_tokens(corpus, *d.tokenizer);
  const int64_t vocabulary = d.tokenizer->vocabulary();
  d.train = data::token_windows(c.data, tokens.train, c.context, vocabulary);
  d.test = data::token_windows(c.data, tokens.validation, c.context, vocabulary);
  d.characters_per_token = double(tokens.validation_characters) / double(tokens.validation.numel());
  return d;
}

zoo::Task task_of(const TrainConfig& c, const RunData& d) {
  return d.tokenizer ? language_task(c, d.tokenizer->vocabulary()) : task_of(d.train);
}

zoo::Task language_task(const TrainConfig& c, int64_t vocabulary) {
  return {.input = {c.context},
          .classes = 0,
          .vocabulary = vocabulary,
          .size = {.layers = c.layers, .heads = c.heads, .width = c.width, .dropout = c.dropout}};
}

LanguageResult language_result(double loss, const RunData& d) {
  return {.perplexity = std::exp(loss),
          .nats_per_character = loss / d.characters_per_token,
          .samples = {}};
}

std::string continue_text(zoo::LanguageModel& model, const data::Tokenizer& tokenizer,
                          const std::string& prompt, const ContinueOptions& o) {
  std::vector<int64_t> ids = tokenizer.encode(prompt, {.special = false}).ids;
  if (ids.empty()) ids = {tokenizer.find("\n").value_or(0)};
  const nn::NamedTensors parameters = model.parameters();
  Tensor start = empty({1, int64_t(ids.size())}, {.dtype = DType::i64});
  std::copy(ids.begin(), ids.end(), start.data<int64_t>());
  if (!parameters.empty()) start = start.to(parameters.front().value.device());
  const Tensor all = model.generate(
      start, o.length, {.temperature = o.temperature, .top_k = o.top_k, .seed = o.seed});
  return tokenizer.decode(row_of(all.to(kCpu)));
}

std::vector<TextSample> text_samples(zoo::LanguageModel& model, const RunData& d, int64_t count) {
  std::vector<TextSample> samples;
  const int64_t windows = d.test.size(), context = d.test.inputs.size(1);
  for (int64_t i = 0; i < std::min(count, windows); ++i) {
    const Tensor row = d.test.inputs.select(0, i * windows / std::min(count, windows));
    std::vector<int64_t> ids = row_of(row.slice(0, 0, std::min(kPromptTokens, context)));
    const std::string prompt = d.tokenizer->decode(ids);
    std::string text = continue_text(model, *d.tokenizer, prompt,
                                     {.length = kSampleTokens, .seed = uint64_t(i + 1)});
    // Tokenizers that lose white space may give another beginning.
    const bool same = text.starts_with(prompt);
    samples.push_back({same ? prompt : std::string(), same ? text.substr(prompt.size()) : text});
  }
  return samples;
}

}  // namespace cutaway::train
