#include <cutaway/datasets/text/labelled.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/text/text_files.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kPassageWords = 40;

// Texts and names of their classes, of both splits.
struct Examples {
  std::vector<std::string> texts, labels;
  std::vector<bool> test;

  void add(std::string text, std::string label, bool for_testing) {
    texts.push_back(std::move(text));
    labels.push_back(std::move(label));
    test.push_back(for_testing);
  }
};

bool every_fifth(size_t i) { return i % 5 == 4; }

// Lines of class, word, definition.
Examples glosses(const std::string& path) {
  const std::string text = load_text(path);
  std::string_view rest = text;
  Examples e;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
      throw IoError("glosses", fmt::format("{}:{}: needs class, word and definition", path,
                                           e.texts.size() + 1));
    }
    e.add(std::string(line.substr(second + 1)), std::string(line.substr(0, first)),
          every_fifth(e.texts.size()));
  }
  return e;
}

Examples json_lines(const std::string& path) {
  const JsonLines lines = load_json_lines(path, {"text", "label"});
  const JsonColumn &text = lines.column("text"), &label = lines.column("label");
  if (text.texts.empty()) throw IoError("json lines", path + ": \"text\" must be text");
  Examples e;
  for (size_t i = 0; i < text.texts.size(); ++i) {
    std::string name;
    if (label.texts.empty()) {
      const double v = label.values.data<double>()[i];
      if (v < 0 || v > 1e6 || v != std::floor(v)) {
        throw IoError("json lines", fmt::format("{}: object {}: the label {} is no class number",
                                                path, i + 1, v));
      }
      name = fmt::format("{}", int64_t(v));
    } else {
      name = label.texts[i];
    }
    e.add(text.texts[i], std::move(name), every_fifth(i));
  }
  return e;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n";
  std::vector<std::string_view> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) return words;
    words.push_back(text.substr(0, text.find_first_of(kSpace)));
    text.remove_prefix(words.back().size());
  }
}

Examples passages(const std::string& name) {
  Examples e;
  for (const auto& [path, text] : open_corpus(name).files) {
    const std::string file = fs::path(path).filename();
    const std::vector<std::string_view> words = words_of(text);
    const int64_t count = int64_t(words.size()) / kPassageWords;
    for (int64_t i = 0; i < count; ++i) {
      std::string passage;
      for (int64_t w = 0; w < kPassageWords; ++w) {
        passage.append(w ? " " : "").append(words[size_t(i * kPassageWords + w)]);
      }
      e.add(std::move(passage), file.substr(0, file.find('.')), i >= count - count / 10);
    }
  }
  return e;
}

// By their numbers where all are numbers.
std::vector<std::string> ordered(const std::vector<std::string>& labels) {
  const std::set<std::string> names(labels.begin(), labels.end());
  std::vector<std::string> list(names.begin(), names.end());
  const bool numbers = std::all_of(list.begin(), list.end(), [](const std::string& s) {
    return !s.empty() && s.size() < 8 && s.find_first_not_of("0123456789") == std::string::npos;
  });
  if (numbers) {
    std::stable_sort(list.begin(), list.end(), [](const std::string& a, const std::string& b) {
      return std::stoll(a) < std::stoll(b);
    });
  }
  return list;
}

Examples read(const std::string& name) {
  if (name == "glosses") return glosses(samples_folder() + "/text/wordnet_gloss_topics.tsv.gz");
  if (has_ending(name, ".jsonl")) return json_lines(name);
  if (is_corpus(name)) return passages(name);
  std::string known;
  for (const auto& [n, about] : known_labelled()) known += fmt::format("\n    {:<14} {}", n, about);
  throw ValueError(
      "data", fmt::format("there are no texts with classes \"{}\"; known are:{}", name, known));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> known_labelled() {
  return {{"glosses",
           "definitions of WordNet 3.0 in 35 topics; 16 266 + 4 066 texts, ships with Cutaway"},
          {"austen", "passages of 40 words of two novels of Jane Austen, classes: which novel"},
          {"FILE.jsonl", "objects with text and label, plain or .gz; every fifth is for testing"},
          {"FOLDER", "of .txt and .txt.gz files; passages of 40 words, classes: which file"}};
}

LabelledTexts open_labelled(const std::string& name, const std::string& split) {
  require_split(split);
  Examples all = read(name);
  LabelledTexts out{.name = name, .texts = {}, .labels = {}, .classes = ordered(all.labels)};
  if (out.classes.size() < 2) {
    throw ValueError("data", fmt::format("{}: needs texts of at least two classes; there {}", name,
                                         out.classes.empty() ? "is none" : "is one"));
  }
  for (size_t i = 0; i < all.texts.size(); ++i) {
    if (all.test[i] != (split == "test")) continue;
    const auto at = std::find(out.classes.begin(), out.classes.end(), all.labels[i]);
    out.texts.push_back(std::move(all.texts[i]));
    out.labels.push_back(at - out.classes.begin());
  }
  return out;
}

}  // namespace cutaway::data
