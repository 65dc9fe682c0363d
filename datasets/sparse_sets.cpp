// Lines of sparse features as data sets.
#include <fmt/format.h>
#include <cctype>
#include <filesystem>
#include <fstream>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/sparse_text.h>
#include <cutaway/datasets/targets.h>
#include <cutaway/datasets/text_lines.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

// What a file begins with, unpacked: its first line, or as much as shows what it is.
std::string first_line(const std::string& path) {
  std::string head(4096, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), int64_t(head.size()));
  head.resize(size_t(in.gcount()));
  if (head.starts_with("\x1F\x8B") || head.starts_with("\x04\x22\x4D\x18")) {
    const io::Bytes all = io::read_unpacked(path);
    head.assign(all.begin(), all.begin() + int64_t(std::min<size_t>(all.size(), 4096)));
  }
  return head.substr(0, head.find('\n'));
}

bool begins_with_counts(const std::string& path) {
  const std::string line = first_line(path);
  std::string_view left = line;
  if (left.ends_with('\r')) left.remove_suffix(1);
  int counts = 0;
  for (int64_t count = 0; !left.empty(); ++counts) {
    if (!TextLines::number(cut(left, ' '), count)) return false;
  }
  return counts == 3;
}

// A target and one feature, as in files of LIBSVM, which often have no ending of their own.
bool begins_like_libsvm(const std::string& path) {
  const std::string line = first_line(path);
  std::string_view left = line;
  std::string_view target = cut(left, ' ');
  if (target.starts_with('+')) target.remove_prefix(1);
  double number = 0;
  int64_t index = 0;
  std::string_view feature = cut(left, ' ');
  if (!TextLines::number(target, number)) return false;
  return TextLines::number(cut(feature, ':'), index) && TextLines::number(feature, number);
}

// The file with the test part of a training file: NAME.t, or "test" for the last "train" in its
// name. Empty when there is none.
std::string test_part(const std::string& path) {
  std::string stem = path;
  if (stem.ends_with(".gz")) stem.resize(stem.size() - 3);
  if (std::string beside = find_file(stem + ".t"); !beside.empty()) return beside;
  const size_t at = stem.rfind("train");
  if (at == std::string::npos || stem.find('/', at) != std::string::npos) return {};
  return find_file(stem.substr(0, at) + "test" + stem.substr(at + 5));
}

Csr appended(Csr a, const Csr& b) {
  for (int64_t r = 0; r < b.rows(); ++r) {
    const auto index = b.row(r);
    a.index.insert(a.index.end(), index.begin(), index.end());
    if (!b.value.empty()) {
      a.value.insert(a.value.end(), b.values(r).begin(), b.values(r).end());
    }
    a.start.push_back(a.entries());
  }
  a.cols = std::max(a.cols, b.cols);
  return a;
}

// Columns are counted from 1 unless some line of either part has an index 0.
void count_from_zero(Csr& features) {
  for (const int32_t i : features.index) {
    if (i == 0) return;
  }
  for (int32_t& i : features.index) --i;
  features.cols = std::max<int64_t>(features.cols - 1, 0);
}

// Those rows of a part that a split asks for: the first `train` ones and the rest, or, where there
// is one file only (train < 0), every fifth.
std::vector<int64_t> rows_of_split(int64_t rows, int64_t train, const std::string& split) {
  std::vector<int64_t> all;
  for (int64_t r = 0; r < rows; ++r) {
    const bool wanted = train < 0 ? in_split(r, split) : (r >= train) == (split == "test");
    if (wanted) all.push_back(r);
  }
  return all;
}

}  // namespace

bool is_libsvm(const std::string& path) {
  for (const char* ending : {".svm", ".libsvm", ".svmlight"}) {
    if (has_ending(path, ending)) return true;
  }
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && begins_like_libsvm(path);
}

Dataset libsvm_dataset(const std::string& path, const std::string& split) {
  require_split(split);
  const LibsvmOptions options{.first = LibsvmOptions::First::zero};
  LibsvmRows all = load_libsvm(path, options);
  int64_t train = -1;
  if (const std::string beside = test_part(path); !beside.empty()) {
    train = all.rows();
    const LibsvmRows test = load_libsvm(beside, options);
    if (test.multi_label() != all.multi_label()) {
      throw IoError("libsvm", fmt::format("{} has sets of labels, {} one target a row",
                                          all.multi_label() ? path : beside,
                                          all.multi_label() ? beside : path));
    }
    all.features = appended(std::move(all.features), test.features);
    all.labels = appended(std::move(all.labels), test.labels);
    all.targets.insert(all.targets.end(), test.targets.begin(), test.targets.end());
  }
  count_from_zero(all.features);
  const std::vector<int64_t> rows = rows_of_split(all.rows(), train, split);
  Dataset d{.name = path, .inputs = dense(take_rows(all.features, rows), path)};
  if (all.multi_label()) {
    d.targets = dense(take_rows(all.labels, rows), path + ": labels");
    return d;
  }
  const Targets y = make_targets(all.targets);
  d.classes = y.classes;
  d.targets = empty({int64_t(rows.size())}, {.dtype = y.values.dtype()});
  for (size_t i = 0; i < rows.size(); ++i) {
    if (y.values.dtype() == DType::i64) {
      d.targets.data<int64_t>()[i] = y.values.data<int64_t>()[rows[i]];
    } else {
      d.targets.data<float>()[i] = y.values.data<float>()[rows[i]];
    }
  }
  return d;
}

bool is_xmc(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const std::string train = find_file(path + "/train.txt");
    return !train.empty() && !find_file(path + "/test.txt").empty() && begins_with_counts(train);
  }
  return has_ending(path, ".xmc") || (has_ending(path, ".txt") && begins_with_counts(path));
}

Dataset xmc_dataset(const std::string& path, const std::string& split) {
  require_split(split);
  std::error_code ignored;
  const bool folder = fs::is_directory(path, ignored);
  const std::string train = folder ? find_file(path + "/train.txt") : path;
  const std::string test = folder ? find_file(path + "/test.txt") : test_part(path);
  const bool from_test = !test.empty() && split == "test";
  MultiLabelRows rows = load_xmc(from_test ? test : train);
  if (test.empty()) {
    const std::vector<int64_t> some = rows_of_split(rows.rows(), -1, split);
    rows = {take_rows(rows.features, some), take_rows(rows.labels, some)};
  }
  return {.name = path,
          .inputs = dense(rows.features, path),
          .targets = dense(rows.labels, path + ": labels")};
}

}  // namespace cutaway::data
