// Writes sets in the layouts that read_folder reads.
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/core/text.h>
#include <cutaway/models/haste/sets.h>

namespace cutaway::haste {
namespace {
namespace fs = std::filesystem;

// One name or text a line: line ends within become blanks.
std::string as_lines(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& one : all) {
    for (const char c : one) text += c == '\n' || c == '\r' ? ' ' : c;
    text += '\n';
  }
  return text;
}

std::string label_lines(const Csr& labels) {
  std::string text;
  for (int64_t r = 0; r < labels.rows(); ++r) {
    text += fmt::format("{}\n", fmt::join(labels.row(r), " "));
  }
  return text;
}

std::string json_lines(const XmcData& data) {
  std::string text;
  for (int64_t r = 0; r < data.rows(); ++r) {
    const auto at = size_t(r);
    const auto labels = data.labels.row(r);
    const std::string name = data.sample_names.empty() ? std::to_string(r) : data.sample_names[at];
    text += fmt::format(
        "{{\"uid\": {}, \"title\": \"\", \"content\": {}, \"target_ind\": [{}], \"target_rel\": ",
        json_quoted(name), json_quoted(data.texts[at]), fmt::join(labels, ", "));
    text +=
        fmt::format("[{}]}}\n", fmt::join(std::vector<const char*>(labels.size(), "1.0"), ", "));
  }
  return text;
}

std::string json_titles(const XmcData& data) {
  std::string text;
  for (int64_t l = 0; l < data.num_labels(); ++l) {
    const std::string name =
        data.label_names.empty() ? std::to_string(l) : data.label_names[size_t(l)];
    text += fmt::format("{{\"uid\": \"{}\", \"title\": {}}}\n", l, json_quoted(name));
  }
  return text;
}

std::string filter_lines(const Csr& filter) {
  std::string text;
  for (int64_t r = 0; r < filter.rows(); ++r) {
    for (const int32_t l : filter.row(r)) text += fmt::format("{} {}\n", r, l);
  }
  return text;
}

}  // namespace

void write_folder(const XmcSet& set, const std::string& folder, FolderFormat format, bool packed) {
  check_data(set.train, set.name + ", training part");
  check_data(set.test, set.name + ", test part");
  if (format != FolderFormat::sparse && (set.train.texts.empty() || set.test.texts.empty())) {
    throw ValueError("xmc", set.name + " has no texts: it can be written as sparse features only");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError("write", fmt::format("cannot make {}: {}", folder, error.message()));
  const auto path = [&](const char* name) { return folder + "/" + name + (packed ? ".gz" : ""); };
  const auto put = [&](const char* name, const std::string& text) {
    io::write_text(path(name), text);
  };
  if (format == FolderFormat::sparse) {
    data::save_xmc(set.train, path("train.txt"));
    data::save_xmc(set.test, path("test.txt"));
    if (!set.train.words.empty()) put("words.txt", as_lines(set.train.words));
  } else if (format == FolderFormat::raw) {
    put("train_raw_texts.txt", as_lines(set.train.texts));
    put("train_labels.txt", label_lines(set.train.labels));
    put("test_raw_texts.txt", as_lines(set.test.texts));
    put("test_labels.txt", label_lines(set.test.labels));
  } else {
    put("trn.json", json_lines(set.train));
    put("tst.json", json_lines(set.test));
    put("lbl.json", json_titles(set.train));
  }
  if (format != FolderFormat::json && !set.train.label_names.empty()) {
    put("labels.txt", as_lines(set.train.label_names));
  }
  if (set.filter.rows()) put("filter_labels_test.txt", filter_lines(set.filter));
}

}  // namespace cutaway::haste
