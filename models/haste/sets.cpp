// From documents to numbered samples, and the names that sets go by.
#include <cutaway/models/haste/sets.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <unordered_map>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/datasets/dataset.h>

namespace cutaway::haste {
namespace {
namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  const io::Bytes bytes = io::read_unpacked(path);
  return std::string(bytes.begin(), bytes.end());
}

// Labels with enough training samples, the most frequent first.
std::vector<std::string> frequent_labels(const std::vector<Document>& documents, int64_t least) {
  std::unordered_map<std::string, int64_t> count;
  for (const Document& d : documents) {
    for (const std::string& l : d.labels) count[l] += !d.test;
  }
  std::vector<std::pair<int64_t, std::string>> kept;
  for (const auto& [label, n] : count) {
    if (n >= std::max<int64_t>(1, least)) kept.emplace_back(-n, label);
  }
  std::sort(kept.begin(), kept.end());
  std::vector<std::string> names;
  for (auto& [n, label] : kept) names.push_back(std::move(label));
  return names;
}

bool whole_numbers(const Csr& m) {
  return std::all_of(m.value.begin(), m.value.end(),
                     [](float v) { return v >= 1 && v == std::floor(v); });
}

// Sparse files with counts become tf-idf; files that hold weights stay as they are.
void weigh_counts(XmcSet& set, bool weigh) {
  if (!weigh || !whole_numbers(set.train.features) || !whole_numbers(set.test.features)) return;
  set.vectorizer = fit_vectorizer(set.train.features, set.train.words);
  set.vectorizer.weigh(set.train.features);
  set.vectorizer.weigh(set.test.features);
}

void same_sizes(const XmcSet& set, const std::string& what) {
  if (set.train.num_features() == set.test.num_features() &&
      set.train.num_labels() == set.test.num_labels()) {
    return;
  }
  throw IoError("xmc", fmt::format("{}: the training part has {} features and {} labels, the test "
                                   "part {} and {}",
                                   what, set.train.num_features(), set.train.num_labels(),
                                   set.test.num_features(), set.test.num_labels()));
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines(1);
  for (const char c : text_of(path)) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\r') {
      lines.back() += c;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

XmcSet wordnet_sample(const SetOptions& o) {
  const std::string stem = data::samples_folder() + "/xmc/wordnet_xmc_";
  XmcSet set;
  set.train = {data::load_xmc(stem + "train.txt.gz")};
  set.test = {data::load_xmc(stem + "test.txt.gz")};
  set.train.words = set.test.words = lines_of(stem + "vocab.txt.gz");
  set.train.label_names = set.test.label_names = lines_of(stem + "labels.txt.gz");
  same_sizes(set, stem);
  weigh_counts(set, o.weigh);
  return set;
}

XmcSet sparse_files(const SetOptions& o) {
  if (o.test.empty()) {
    throw ValueError("xmc", fmt::format("{} is a training part; name its test part too", o.name),
                     "--test FILE");
  }
  XmcSet set;
  set.train = {data::load_xmc(o.name)};
  set.test = {data::load_xmc(o.test)};
  same_sizes(set, o.name + ", " + o.test);
  weigh_counts(set, o.weigh);
  return set;
}

XmcSet debian(const SetOptions& o, const std::string& path, bool tags) {
  DebianOptions options = o.debian;
  options.tags = tags;
  return build_set(o.name, debian_documents(read_packages(path), options), o.build);
}

XmcSet wordnet(const SetOptions& o, const std::string& file) {
  const std::string path = file.empty() ? "/usr/share/wordnet/data.noun" : file;
  std::error_code ignored;
  if (file.empty() && !fs::is_regular_file(path, ignored)) {
    throw IoError("xmc", "WordNet is not on this machine: there is no " + path,
                  "apt-get install wordnet-base, or --data wordnet-sample");
  }
  return build_set(o.name, parse_wordnet(path, text_of(path)), o.build);
}

XmcSet open_named(const SetOptions& o) {
  const size_t colon = o.name.find(':');
  const std::string kind = o.name.substr(0, colon);
  const std::string file = colon == std::string::npos ? "" : o.name.substr(colon + 1);
  const std::string sample = data::samples_folder() + "/xmc/debian_packages.gz";
  if (kind == "synth") return make_synth(o.synth);
  if (kind == "debian-deps") return debian(o, file, false);
  if (kind == "debian-tags") return debian(o, file, true);
  if (kind == "debian-sample") return debian(o, sample, false);
  if (kind == "debian-sample-tags") return debian(o, sample, true);
  if (kind == "wordnet") return wordnet(o, file);
  if (kind == "wordnet-sample") return wordnet_sample(o);
  std::error_code ignored;
  if (fs::is_directory(o.name, ignored)) {
    XmcSet set = read_folder(o.name);
    if (set.vectorizer.idf.empty()) weigh_counts(set, o.weigh);
    return set;
  }
  if (fs::is_regular_file(o.name, ignored)) return sparse_files(o);
  throw ValueError("xmc",
                   fmt::format("there is no set \"{}\"; need synth, debian-deps, debian-tags, "
                               "debian-sample, debian-sample-tags, wordnet, wordnet-sample, a "
                               "folder or a file of sparse text",
                               o.name));
}

}  // namespace

XmcSet build_set(const std::string& name, const std::vector<Document>& documents,
                 const BuildOptions& options) {
  XmcSet set;
  set.name = name;
  const std::vector<std::string> labels = frequent_labels(documents, options.min_positives);
  std::unordered_map<std::string_view, int32_t> number;
  for (size_t l = 0; l < labels.size(); ++l) number.emplace(labels[l], int32_t(l));
  for (XmcData* part : {&set.train, &set.test}) {
    part->labels.cols = int64_t(labels.size());
    for (const Document& d : documents) {
      if (d.test != (part == &set.test)) continue;
      std::vector<int32_t> own;
      for (const std::string& l : d.labels) {
        if (const auto at = number.find(l); at != number.end()) own.push_back(at->second);
      }
      if (own.empty()) continue;
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      part->labels.index.insert(part->labels.index.end(), own.begin(), own.end());
      part->labels.start.push_back(part->labels.entries());
      part->texts.push_back(d.text);
      part->sample_names.push_back(d.name);
    }
    if (part->texts.empty()) {
      throw ValueError("xmc",
                       fmt::format("{}: no {} sample has a label with {} or more positives", name,
                                   part == &set.test ? "test" : "training", options.min_positives));
    }
    part->label_names = labels;
  }
  set.vectorizer = fit_vectorizer(set.train.texts, options.min_words);
  for (XmcData* part : {&set.train, &set.test}) {
    part->features = set.vectorizer.vectors(part->texts);
    part->words = set.vectorizer.words;
  }
  return set;
}

XmcSet open_set(const SetOptions& o) {
  XmcSet set = open_named(o);
  set.name = o.name;
  if (!o.filter.empty()) {
    set.filter = parse_filter(o.filter, text_of(o.filter), set.test.rows(), set.test.num_labels());
  }
  if (set.train.rows() == 0) throw ValueError("xmc", o.name + ": the training part is empty");
  if (set.test.rows() == 0) throw ValueError("xmc", o.name + ": the test part is empty");
  check_data(set.train, o.name + ", training part");
  check_data(set.test, o.name + ", test part");
  return set;
}

}  // namespace cutaway::haste
