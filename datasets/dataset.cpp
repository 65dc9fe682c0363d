#include <cutaway/datasets/dataset.h>

#include <fmt/format.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/readers.h>
#include <cutaway/datasets/text/text_files.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

const std::vector<std::string> kFashionClasses = {"T-shirt", "trouser",   "pullover", "dress",
                                                  "coat",    "sandal",    "shirt",    "sneaker",
                                                  "bag",     "ankle boot"};
// Mean and standard deviation of the training images, greys in [0, 1].
constexpr double kFashionMean = 0.2860, kFashionStd = 0.3530;

// The file, plain or gzipped; empty when neither is there.
std::string find_file(const fs::path& stem) {
  for (const char* end : {"", ".gz"}) {
    std::error_code ignored;
    const std::string path = stem.string() + end;
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return {};
}

Dataset from_idx(const std::string& name, const std::string& images, const std::string& labels) {
  Dataset d;
  d.name = name;
  const Tensor x = load_idx(images), y = load_idx(labels);
  if (x.dim() < 2 || y.dim() != 1 || x.size(0) != y.size(0)) {
    throw IoError("idx", fmt::format("{} and {} do not belong together: sizes {} and {}", images,
                                     labels, to_string(x.sizes()), to_string(y.sizes())));
  }
  Shape sizes = x.sizes();
  if (sizes.rank() == 3) sizes.insert(1, 1);  // one channel
  d.inputs = make_view(x, Layout::contiguous(sizes));
  d.targets = cast_raw(y, DType::i64);
  if (x.dtype() == DType::u8) d.scale = 1.0 / 255;
  return d;
}

// Rows that belong to a split: every fifth is "test".
std::vector<int64_t> split_rows(int64_t n, const std::string& split) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < n; ++i) {
    if ((i % 5 == 4) == (split == "test")) rows.push_back(i);
  }
  return rows;
}

Dataset from_csv(const std::string& name, const std::string& path, const std::string& split) {
  const CsvTable table = load_csv(path);
  const int64_t width = table.values.size(1) - 1;
  if (width < 1)
    throw IoError("csv", path + ": needs at least one input column and a target column");
  const std::vector<int64_t> rows = split_rows(table.values.size(0), split);
  Dataset d;
  d.name = name;
  d.classes = table.categories.back();
  d.inputs = empty({int64_t(rows.size()), width});
  Tensor targets = empty({int64_t(rows.size())}, {.dtype = DType::f64});
  const double* v = table.values.data<double>();
  bool whole = true;
  for (size_t r = 0; r < rows.size(); ++r) {
    const double* row = v + rows[r] * (width + 1);
    for (int64_t c = 0; c < width; ++c)
      d.inputs.data<float>()[int64_t(r) * width + c] = float(row[c]);
    targets.data<double>()[r] = row[width];
    whole = whole && row[width] >= 0 && row[width] < 0x1p62 && row[width] == std::floor(row[width]);
  }
  d.targets = cast_raw(targets, whole ? DType::i64 : DType::f32);
  return d;
}

void require_split(const std::string& split) {
  if (split != "train" && split != "test") {
    throw ValueError("data", fmt::format("unknown split \"{}\"; need train or test", split));
  }
}

}  // namespace

std::string samples_folder() {
  if (const char* set = std::getenv("CUTAWAY_SAMPLES")) return set;
  std::error_code ignored;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int level = 0; level < 5 && !folder.empty(); ++level, folder = folder.parent_path()) {
    for (const char* place : {"datasets/samples", "share/cutaway/samples"}) {
      if (fs::is_directory(folder / place, ignored)) return (folder / place).string();
    }
  }
  return "datasets/samples";
}

Dataset fashion_mnist(const std::string& split) {
  require_split(split);
  const std::string full = split == "train" ? "train" : "t10k";
  std::vector<fs::path> folders;
  if (const char* set = std::getenv("CUTAWAY_DATA"))
    folders.push_back(fs::path(set) / "fashion-mnist");
  folders.push_back("/usr/share/datasets/fashion-mnist");
  Dataset d;
  for (const fs::path& folder : folders) {
    const std::string images = find_file(folder / (full + "-images-idx3-ubyte"));
    const std::string labels = find_file(folder / (full + "-labels-idx1-ubyte"));
    if (images.empty() || labels.empty()) continue;
    d = from_idx("fashion-mnist", images, labels);
    break;
  }
  if (!d.inputs.defined()) {
    const fs::path stem =
        fs::path(samples_folder()) / "fashion" / (split == "train" ? "train5k" : "test1k");
    d = from_idx("fashion-mnist (extract)", stem.string() + "-images-idx3-ubyte.gz",
                 stem.string() + "-labels-idx1-ubyte.gz");
  }
  d.classes = kFashionClasses;
  d.mean = kFashionMean;
  d.std = kFashionStd;
  return d;
}

Dataset digits(const std::string& split) {
  require_split(split);
  Dataset d = from_csv("digits", samples_folder() + "/digits/digits.csv.gz", split);
  d.inputs = make_view(d.inputs, Layout::contiguous({d.inputs.size(0), 1, 8, 8}));
  d.scale = 1.0 / 16;
  d.classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return d;
}

std::vector<std::pair<std::string, std::string>> known_datasets() {
  return {{"fashion-mnist",
           "28×28 greys of clothing, 10 classes; 60 000 + 10 000 with the Debian package "
           "dataset-fashion-mnist, else an extract of 5 000 + 1 000"},
          {"digits", "8×8 handwritten digits, 10 classes; 1 438 + 359, ships with Cutaway"},
          {"austen",
           "two novels of Jane Austen, 0.9 M characters; for language models, as are .txt "
           "and .txt.gz files and folders of them"},
          {"FILE.csv", "a table; last column is the target, every fifth row is for testing"},
          {"PREFIX", "PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, plain or .gz"}};
}

Dataset open(const std::string& name, const std::string& split) {
  require_split(split);
  if (name == "fashion-mnist") return fashion_mnist(split);
  if (name == "digits") return digits(split);
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored) && name.find(".csv") != std::string::npos)
    return from_csv(name, name, split);
  const std::string images = find_file(name + "-images-idx3-ubyte");
  const std::string labels = find_file(name + "-labels-idx1-ubyte");
  if (!images.empty() && !labels.empty()) return from_idx(name, images, labels);
  if (is_corpus(name)) {
    throw ValueError("data",
                     fmt::format("\"{}\" is text; this model reads examples with a target", name),
                     "--model gpt or lstm");
  }
  std::string known;
  for (const auto& [n, about] : known_datasets()) known += fmt::format("\n    {:<14} {}", n, about);
  throw ValueError("data", fmt::format("there is no data set \"{}\"; known are:{}", name, known));
}

}  // namespace cutaway::data
