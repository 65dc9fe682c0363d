#include <cutaway/models/haste/predict.h>

#include <fmt/format.h>
#include <cmath>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/models/haste/run_files.h>

namespace cutaway::haste {

std::vector<std::string> label_names(const XmcData& data) {
  if (!data.label_names.empty()) return data.label_names;
  std::vector<std::string> names;
  for (int64_t i = 0; i < data.num_labels(); ++i) names.push_back(std::to_string(i));
  return names;
}

Predictor::Predictor(const std::string& folder) {
  for (const char* name : {"/config.json", "/checkpoint/best.safetensors"}) {
    if (std::filesystem::exists(folder + name)) continue;
    throw IoError("xmc", fmt::format("{} holds no trained run: {} is missing", folder, name + 1),
                  "make one: cutaway xmc train --data debian-deps --out " + folder);
  }
  const RunOptions options = load_options(folder + "/config.json");
  check_options(options);
  vectorizer_ = load_vectorizer(folder + "/vectorizer.tsv");
  if (vectorizer_.words.empty()) {
    throw ValueError("xmc", fmt::format("the features of {} are numbers without words", folder),
                     "raw text needs a run on text; cutaway xmc eval takes numbers");
  }
  weights_ = load_weights(folder + "/checkpoint/best.safetensors");
  names_ = load_names(folder + "/labels.txt");
  if (int64_t(vectorizer_.words.size()) != weights_.info.words ||
      names_.size() != weights_.order.label.size()) {
    throw IoError("xmc",
                  fmt::format("{}: the weights have {} words and {} labels, the lists {} and {}",
                              folder, weights_.info.words, weights_.order.label.size(),
                              vectorizer_.words.size(), names_.size()));
  }
  model_ = model_of(options, weights_);
  weights_.tensors.clear();
}

std::vector<Predictor::Answer> Predictor::predict(const std::string& text, int64_t k) {
  const TopK best = top_labels(*model_, vectorizer_.vectors({text}), weights_.order, k);
  std::vector<Answer> answers;
  for (int64_t i = 0; i < k; ++i) {
    const int32_t label = best.labels(0)[size_t(i)];
    if (label < 0) break;
    answers.push_back(
        {names_[size_t(label)], 1 / (1 + std::exp(-double(best.scores(0)[size_t(i)])))});
  }
  return answers;
}

std::vector<std::string> Predictor::known_words(const std::string& text) const {
  std::vector<std::string> known;
  const Csr v = vectorizer_.vectors({text});
  for (int32_t w : v.row(0)) known.push_back(vectorizer_.words[size_t(w)]);
  return known;
}

}  // namespace cutaway::haste
