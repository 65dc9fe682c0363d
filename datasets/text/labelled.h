#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cutaway::data {

// Texts with the class of each.
struct LabelledTexts {
  std::string name;
  std::vector<std::string> texts;
  std::vector<int64_t> labels;       // numbers in `classes`
  std::vector<std::string> classes;  // in order of their names, or of their numbers
};

// By name or path, split "train" or "test":
//   glosses        definitions of WordNet 3.0 in 35 topics, which ship with Cutaway
//   FILE.jsonl     objects with `text` and `label` (text or whole number), also gzipped
//   a text corpus  of at least two files, as open_corpus() reads them: passages of 40 words, whose
//                  class is the file
// Every fifth line is for testing; of a corpus the last tenth of each file. Raises ValueError
// listing what there is, and when there are fewer than two classes; IoError as the readers do.
LabelledTexts open_labelled(const std::string& name_or_path, const std::string& split);
// What open_labelled() knows, each with one line about it.
std::vector<std::pair<std::string, std::string>> known_labelled();

}  // namespace cutaway::data
