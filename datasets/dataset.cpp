#include <cutaway/datasets/dataset.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/readers.h>
#include <cutaway/datasets/targets.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

const std::vector<std::string> kFashionClasses = {"T-shirt", "trouser",   "pullover", "dress",
                                                  "coat",    "sandal",    "shirt",    "sneaker",
                                                  "bag",     "ankle boot"};
// Mean and standard deviation of the training images, greys in [0, 1].
constexpr double kFashionMean = 0.2860, kFashionStd = 0.3530;

}  // namespace

Dataset idx_dataset(const std::string& name, const std::string& images, const std::string& labels) {
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

bool is_idx_prefix(const std::string& prefix) {
  return !find_file(prefix + "-images-idx3-ubyte").empty() &&
         !find_file(prefix + "-labels-idx1-ubyte").empty();
}

Dataset csv_dataset(const std::string& path, const std::string& split) {
  const CsvTable table = load_csv(path, {.separator = has_ending(path, ".tsv") ? '\t' : ','});
  const int64_t width = table.values.size(1) - 1;
  if (width < 1)
    throw IoError("csv", path + ": needs at least one input column and a target column");
  const int64_t rows = table.values.size(0);
  const double* v = table.values.data<double>();
  Dataset d{.name = path, .inputs = empty({rows, width})};
  std::vector<double> last;
  for (int64_t r = 0; r < rows; ++r, v += width + 1) {
    std::transform(v, v + width, d.inputs.data<float>() + r * width,
                   [](double x) { return float(x); });
    last.push_back(v[width]);
  }
  d.targets = make_targets(last, {.renumber = false}).values;
  d.classes = table.categories.back();
  return take_split(d, split);
}

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
    d = idx_dataset("fashion-mnist", images, labels);
    break;
  }
  if (!d.inputs.defined()) {
    const fs::path stem =
        fs::path(samples_folder()) / "fashion" / (split == "train" ? "train5k" : "test1k");
    d = idx_dataset("fashion-mnist (extract)", stem.string() + "-images-idx3-ubyte.gz",
                    stem.string() + "-labels-idx1-ubyte.gz");
  }
  d.classes = kFashionClasses;
  d.mean = kFashionMean;
  d.std = kFashionStd;
  return d;
}

Dataset digits(const std::string& split) {
  require_split(split);
  Dataset d = csv_dataset(samples_folder() + "/digits/digits.csv.gz", split);
  d.name = "digits";
  d.inputs = make_view(d.inputs, Layout::contiguous({d.inputs.size(0), 1, 8, 8}));
  d.scale = 1.0 / 16;
  d.classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return d;
}

}  // namespace cutaway::data
