// data::open: which reader a path belongs to.
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/datasets/array_sets.h>
#include <cutaway/datasets/cifar.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/image_decode.h>
#include <cutaway/datasets/images.h>
#include <cutaway/datasets/json_set.h>
#include <cutaway/datasets/sparse_text.h>
#include <cutaway/datasets/text/text_files.h>
#include <cutaway/datasets/text_lines.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

bool is_csv(const std::string& path) {
  return has_ending(path, ".csv") || has_ending(path, ".tsv");
}

Dataset open_idx(const std::string& prefix, const std::string&) {
  return idx_dataset(prefix, find_file(prefix + "-images-idx3-ubyte"),
                     find_file(prefix + "-labels-idx1-ubyte"));
}

constexpr Format kFormats[] = {
    {"FILE.csv", "a table (.csv, .tsv); the last column is the target", is_csv, csv_dataset},
    {"FILE.jsonl",
     "JSON lines of numbers; the target is the field target, label, class, y or the last",
     is_json_lines, open_json_lines},
    {"FILE.npz", "arrays x, y, or x_train, y_train, x_test, y_test; names: docs/data.md", is_npz,
     npz_dataset},
    {"NPY", "folder of such arrays: x.npy, y.npy, …", is_npy_folder, npy_dataset},
    {"FILE.mat", "such arrays of MATLAB, versions 4 to 7.3", is_mat, mat_dataset},
    {"CIFAR", "folder of data_batch_1.bin … test_batch.bin (CIFAR-10), train.bin, test.bin (100)",
     is_cifar, cifar},
    {"PREFIX", "PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte", is_idx_prefix, open_idx},
    {"FILE.xmc",
     "sets of labels in the Extreme Classification Repository's text format; also .txt, "
     "or a folder with train.txt and test.txt",
     is_xmc, xmc_dataset},
    {"FILE.svm",
     "text of LIBSVM or SVMlight; also .libsvm, .svmlight, or any file of such lines; "
     "FILE.t is the test part",
     is_libsvm, libsvm_dataset},
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

void require_split(const std::string& split) {
  if (split != "train" && split != "test") {
    throw ValueError("data", fmt::format("unknown split \"{}\"; need train or test", split));
  }
}

std::string find_file(const std::string& path) {
  for (const char* end : {"", ".gz"}) {
    std::error_code ignored;
    if (fs::is_regular_file(path + end, ignored)) return path + end;
  }
  return {};
}

bool has_ending(const std::string& path, std::string_view ending) {
  std::string lower = path;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  if (lower.ends_with(".gz")) lower.resize(lower.size() - 3);
  std::error_code ignored;
  return lower.ends_with(ending) && fs::is_regular_file(path, ignored);
}

OpenOptions parse_resize(const std::string& text) {
  if (text.empty()) return {};
  std::string_view left = text;
  const std::string_view first = cut(left, 'x'), second = left.empty() ? first : left;
  OpenOptions o;
  if (!TextLines::number(first, o.height) || !TextLines::number(second, o.width) ||
      std::min(o.height, o.width) < 1 || std::max(o.height, o.width) > kLongestSide ||
      text.ends_with('x')) {
    throw ValueError("data", fmt::format("resize needs HEIGHTxWIDTH or one number for both, each 1 "
                                         "to {}; got {}",
                                         kLongestSide, TextLines::shown(text)));
  }
  return o;
}

std::vector<std::pair<std::string, std::string>> known_datasets() {
  std::vector<std::pair<std::string, std::string>> all = {
      {"fashion-mnist",
       "28×28 greys of clothing, 10 classes; 60 000 + 10 000 with the Debian package "
       "dataset-fashion-mnist, else an extract of 5 000 + 1 000"},
      {"digits", "8×8 handwritten digits, 10 classes; 1 438 + 359, ships with Cutaway"}};
  for (const Format& f : formats()) all.emplace_back(f.name, f.about);
  all.emplace_back("PICTURES",
                   "folder with a sub-folder of .jpg, .png or .bmp files for each class, or with "
                   "train and test of that kind");
  return all;
}

Dataset open(const std::string& name, const std::string& split, const OpenOptions& options) {
  require_split(split);
  const bool named = name == "fashion-mnist" || name == "digits";
  if (!named && is_image_folder(name)) {
    return image_folder(name, split, {.height = options.height, .width = options.width});
  }
  if (options.height != 0 || options.width != 0) {
    throw ValueError("data",
                     fmt::format("\"{}\" is no folder of pictures; only those are resized", name));
  }
  if (named) return name == "digits" ? digits(split) : fashion_mnist(split);
  for (const Format& f : formats()) {
    if (f.fits(name)) return f.open(name, split);
  }
  if (is_corpus(name)) {
    throw ValueError("data",
                     fmt::format("\"{}\" is text; this model reads examples with a target", name),
                     "--model gpt, lstm or bert-tiny");
  }
  std::string known;
  for (const auto& [n, about] : known_datasets()) known += fmt::format("\n    {:<14} {}", n, about);
  throw ValueError("data", fmt::format("there is no data set \"{}\"; known are:{}", name, known));
}

}  // namespace cutaway::data
