#include <cutaway/models/train/language.h>

#include <algorithm>
#include <cmath>

namespace cutaway::train {
namespace {

constexpr int64_t kPromptTokens = 32, kSampleTokens = 240;

std::vector<int64_t> row_of(const Tensor& ids) {
  const int64_t* first = ids.data<int64_t>();
  return {first, first + ids.numel()};
}

}  // namespace

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
