// Folders in the layouts of the Extreme Classification Repository.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/json_lines.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/models/haste/sets.h>
#include <cutaway/models/haste/text_lines.h>

namespace cutaway::haste {
namespace {
namespace fs = std::filesystem;

// The first of the names that is there, plain or .gz; empty when none is.
std::string found(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (const char* end : {"", ".gz"}) {
      const std::string path = folder + "/" + name + end;
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path;
    }
  }
  return {};
}

std::string needed(const std::string& folder, std::initializer_list<const char*> names) {
  const std::string path = found(folder, names);
  if (path.empty()) {
    throw IoError("xmc", fmt::format("{} has no file {}", folder, *names.begin()));
  }
  return path;
}

std::string text_of(const std::string& path) {
  const io::Bytes bytes = io::read_unpacked(path);
  return std::string(bytes.begin(), bytes.end());
}

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = text_of(path);
  std::vector<std::string> all;
  Lines lines(path, text);
  for (std::string_view line; lines.next(line);) all.emplace_back(line);
  return all;
}

void add_labels(const Lines& lines, std::vector<int32_t>& own, Csr& labels) {
  std::sort(own.begin(), own.end());
  if (const auto twice = std::adjacent_find(own.begin(), own.end()); twice != own.end()) {
    lines.fail(fmt::format("label {} is there twice", *twice));
  }
  labels.index.insert(labels.index.end(), own.begin(), own.end());
  labels.start.push_back(labels.entries());
  if (!own.empty()) labels.cols = std::max(labels.cols, int64_t(own.back()) + 1);
}

// Lines of labels "3 17 20".
Csr read_labels(const std::string& path) {
  const std::string text = text_of(path);
  Csr labels;
  Lines lines(path, text);
  std::vector<int32_t> own;
  for (std::string_view line; lines.next(line); add_labels(lines, own, labels)) {
    own.clear();
    while (!line.empty()) {
      const std::string_view piece = cut(line, ' ');
      int64_t label = -1;
      if (piece.empty()) continue;
      if (!Lines::number(piece, label) || label < 0 || label >= kMostColumns) {
        lines.fail("need labels 0 … 2^27 − 1; got " + Lines::shown(piece));
      }
      own.push_back(int32_t(label));
    }
  }
  return labels;
}

XmcData read_raw(const std::string& folder, const char* texts, const char* labels) {
  XmcData part;
  const std::string path = needed(folder, {labels});
  part.texts = lines_of(needed(folder, {texts}));
  part.labels = read_labels(path);
  if (part.labels.rows() != int64_t(part.texts.size())) {
    throw IoError("xmc", fmt::format("{}: {} lines of labels for {} lines of text", path,
                                     part.labels.rows(), part.texts.size()));
  }
  return part;
}

XmcData read_json(const std::string& path) {
  const std::string text = text_of(path);
  XmcData part;
  Lines lines(path, text);
  std::vector<int32_t> own;
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const io::JsonFields f =
        io::parse_json_fields(fmt::format("{}:{}", path, lines.number()), std::string(line));
    const auto* list = f.list("target_ind");
    if (!list) lines.fail("has no list of numbers target_ind");
    const auto* relevance = f.list("target_rel");
    if (relevance && relevance->size() != list->size()) {
      lines.fail(fmt::format("{} values in target_rel for {} in target_ind", relevance->size(),
                             list->size()));
    }
    own.clear();
    for (size_t i = 0; i < list->size(); ++i) {
      const double label = (*list)[i];
      if (!(label >= 0 && label < double(kMostColumns)) || label != std::floor(label)) {
        lines.fail(fmt::format("label {} is not 0 … 2^27 − 1", label));
      }
      if (!relevance || (*relevance)[i] > 0) own.push_back(int32_t(label));
    }
    add_labels(lines, own, part.labels);
    std::string words;
    for (const char* field : {"title", "content"}) {
      if (const auto* value = f.text(field)) words += (words.empty() ? "" : " ") + *value;
    }
    const auto* uid = f.text("uid");
    part.texts.push_back(std::move(words));
    part.sample_names.push_back(uid ? *uid : "");
  }
  return part;
}

std::vector<std::string> read_json_titles(const std::string& path) {
  const std::string text = text_of(path);
  std::vector<std::string> titles;
  Lines lines(path, text);
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const io::JsonFields f =
        io::parse_json_fields(fmt::format("{}:{}", path, lines.number()), std::string(line));
    const auto* title = f.text("title");
    const auto* uid = f.text("uid");
    titles.push_back(title ? *title : uid ? *uid : "");
  }
  return titles;
}

// Gives both parts the labels of the larger one, names, and features from their texts.
void finish(XmcSet& set, std::vector<std::string> names, const std::string& names_path) {
  int64_t labels = std::max(set.train.num_labels(), set.test.num_labels());
  if (!names.empty()) {
    if (int64_t(names.size()) < labels) {
      throw IoError("xmc", fmt::format("{} names {} labels, label {} is used", names_path,
                                       names.size(), labels - 1));
    }
    labels = int64_t(names.size());
  }
  set.vectorizer = fit_vectorizer(set.train.texts);
  for (XmcData* part : {&set.train, &set.test}) {
    part->labels.cols = labels;
    part->label_names = names;
    part->features = set.vectorizer.vectors(part->texts);
    part->words = set.vectorizer.words;
  }
}

}  // namespace

Csr parse_filter(const std::string& name, std::string_view text, int64_t rows, int64_t labels) {
  Lines lines(name, text);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (std::string_view line; lines.next(line);) {
    if (line.empty()) continue;
    const std::string whole(line);
    const std::string_view first = cut(line, ' ');
    int64_t row = -1, label = -1;
    if (!Lines::number(first, row) || !Lines::number(line, label)) {
      lines.fail("need \"row label\"; got " + Lines::shown(whole));
    }
    if (row < 0 || row >= rows) {
      lines.fail(fmt::format("row {} is out of range; there are {} test samples", row, rows));
    }
    if (label < 0 || label >= labels) {
      lines.fail(fmt::format("label {} is out of range; there are {} labels", label, labels));
    }
    pairs.emplace_back(row, label);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Csr filter;
  filter.cols = labels;
  size_t at = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (; at < pairs.size() && pairs[at].first == r; ++at) {
      filter.index.push_back(int32_t(pairs[at].second));
    }
    filter.start.push_back(filter.entries());
  }
  return filter;
}

XmcSet read_folder(const std::string& folder) {
  XmcSet set;
  set.name = folder;
  const std::string json = found(folder, {"trn.json", "train.json"});
  if (!json.empty()) {
    set.train = read_json(json);
    set.test = read_json(needed(folder, {"tst.json", "test.json"}));
    const std::string names = found(folder, {"lbl.json"});
    finish(set, names.empty() ? std::vector<std::string>() : read_json_titles(names), names);
  } else if (!found(folder, {"train_raw_texts.txt"}).empty()) {
    set.train = read_raw(folder, "train_raw_texts.txt", "train_labels.txt");
    set.test = read_raw(folder, "test_raw_texts.txt", "test_labels.txt");
    const std::string names = found(folder, {"labels.txt", "Y.txt"});
    finish(set, names.empty() ? std::vector<std::string>() : lines_of(names), names);
  } else {
    set.train = {data::load_xmc(needed(folder, {"train.txt"}))};
    set.test = {data::load_xmc(needed(folder, {"test.txt"}))};
    const std::string words = found(folder, {"words.txt"}), names = found(folder, {"labels.txt"});
    if (!words.empty()) set.train.words = set.test.words = lines_of(words);
    if (!names.empty()) set.train.label_names = set.test.label_names = lines_of(names);
    if (set.train.num_features() != set.test.num_features() ||
        set.train.num_labels() != set.test.num_labels()) {
      throw IoError("xmc", folder +
                               ": train.txt and test.txt have other numbers of features or "
                               "labels");
    }
  }
  const std::string filter = found(folder, {"filter_labels_test.txt"});
  if (!filter.empty()) {
    set.filter = parse_filter(filter, text_of(filter), set.test.rows(), set.test.num_labels());
  }
  return set;
}

}  // namespace cutaway::haste
