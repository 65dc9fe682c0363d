#include <cutaway/datasets/array_sets.h>

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <optional>

#include <cutaway/core/error.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/mat_file.h>
#include <cutaway/datasets/targets.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

constexpr const char* kInputs[] = {"x",       "input",    "inputs", "image", "images",
                                   "feature", "features", "data",   "fea"};
constexpr const char* kTargets[] = {"y",       "target",    "targets",    "label",
                                    "labels",  "truelabel", "truelabels", "class",
                                    "classes", "gnd",       "gt",         "truth"};

// "s.X_train{2}" → "xtrain".
std::string plain_name(const std::string& name) {
  std::string out;
  for (const char c : name.substr(0, name.find_first_of("{("))) {
    if (c == '.') out.clear();
    if (std::isalnum(static_cast<unsigned char>(c))) {
      out += char(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

std::string listed(const io::NamedArrays& arrays) {
  std::string out;
  for (size_t i = 0; i < arrays.size() && i < 12; ++i) {
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", arrays[i].first,
                       to_string(arrays[i].second.sizes()));
  }
  return arrays.empty() ? "no arrays" : out + (arrays.size() > 12 ? ", …" : "");
}

// Inputs [N,…] and targets [N] or [N,K] of one split; several arrays of one name are views.
struct SplitArrays {
  std::vector<Tensor> inputs, targets;
};

class Finder {
 public:
  Finder(const std::string& name, const io::NamedArrays& arrays, NamedSet options)
      : name_(name), arrays_(arrays), options_(options) {}

  // The arrays of a split; "" for arrays without one. None when there are no inputs of it.
  std::optional<SplitArrays> find(const std::string& split) const {
    SplitArrays part{named(kInputs, split), named(kTargets, split)};
    if (part.inputs.empty() && part.targets.empty()) return std::nullopt;
    if (split.empty() && (part.inputs.empty() || part.targets.empty())) complete(part);
    if (part.inputs.empty() || part.targets.empty()) {
      fail(fmt::format("there are {} without {}", part.inputs.empty() ? "targets" : "inputs",
                       part.inputs.empty() ? "inputs" : "targets"));
    }
    fit(part);
    return part;
  }

  [[noreturn]] void fail(const std::string& rule) const {
    throw IoError("data", fmt::format("{}: {}; it holds {}", name_, rule, listed(arrays_)),
                  "name the arrays x and y, or x_train, y_train, x_test, y_test");
  }

 private:
  std::vector<Tensor> named(std::span<const char* const> words, const std::string& split) const {
    for (const std::string word : words) {
      std::vector<Tensor> found;
      for (const auto& [name, array] : arrays_) {
        const std::string plain = plain_name(name);
        if (plain == word + split || plain == split + word) found.push_back(array);
      }
      if (!found.empty()) return found;
    }
    return {};
  }

  // With one array of a known name and one more that has more than one element, that is the other.
  void complete(SplitArrays& part) const {
    auto& have = part.inputs.empty() ? part.targets : part.inputs;
    auto& lacks = part.inputs.empty() ? part.inputs : part.targets;
    if (have.size() != 1) return;
    std::vector<Tensor> others;
    for (const auto& [name, array] : arrays_) {
      if (array.numel() > 1 && array.storage() != have[0].storage()) others.push_back(array);
    }
    if (others.size() == 1) lacks = others;
  }

  // Examples become the first dimension.
  void fit(SplitArrays& part) const {
    for (Tensor& y : part.targets) {
      if (y.dim() == 0) fail("the targets are one number");
      const bool column = y.dim() == 2 && (y.size(1) == 1 || (options_.matlab && y.size(0) == 1));
      if (column) y = make_view(contiguous_raw(y), Layout::contiguous({y.numel()}));
      if (y.dim() > 2) fail(fmt::format("targets have sizes {}", to_string(y.sizes())));
    }
    Tensor& y = part.targets[0];
    for (const Tensor& other : part.targets) {
      if (other.sizes() != y.sizes() || other.to_vector() != y.to_vector()) {
        fail("the targets of several views differ");
      }
    }
    const Tensor& x = part.inputs[0];
    if (x.dim() == 0) fail("the inputs are one number");
    const auto has = [&](int64_t n) {
      return x.size(0) == n || (options_.matlab && x.size(-1) == n);
    };
    if (options_.matlab && y.dim() == 2 && !has(y.size(0)) && has(y.size(1))) {
      y = contiguous_raw(make_view(y, y.layout().permute({1, 0})));
    }
    for (Tensor& input : part.inputs) input = examples_first(input, y.size(0));
  }

  Tensor examples_first(const Tensor& x, int64_t n) const {
    if (x.dim() > 0 && x.size(0) == n) return channels_first(x);
    if (!options_.matlab || x.dim() < 2 || x.dim() > 4 || x.size(-1) != n) {
      fail(fmt::format("inputs {} for {} targets", to_string(x.sizes()), n));
    }
    // [D,N], [H,W,N], [H,W,C,N]
    const Shape order = x.dim() == 2   ? Shape{1, 0}
                        : x.dim() == 3 ? Shape{2, 0, 1}
                                       : Shape{3, 2, 0, 1};
    return with_channel(contiguous_raw(make_view(x, x.layout().permute(order))));
  }

  static Tensor channels_first(const Tensor& x) {
    const bool last = x.dtype() == DType::u8 && x.dim() == 4 &&
                      (x.size(3) == 1 || x.size(3) == 3) && x.size(1) != 1 && x.size(1) != 3;
    if (!last) return with_channel(x);
    return contiguous_raw(make_view(x, x.layout().permute({0, 3, 1, 2})));
  }

  static Tensor with_channel(const Tensor& x) {
    Shape sizes = x.sizes();
    if (sizes.rank() == 1 || (sizes.rank() == 3 && x.dtype() == DType::u8)) sizes.insert(1, 1);
    return make_view(contiguous_raw(x), Layout::contiguous(sizes));
  }

  const std::string& name_;
  const io::NamedArrays& arrays_;
  NamedSet options_;
};

// One tensor: u8 pixels as they are, else f32; several views side by side.
Tensor joined_inputs(const SplitArrays& part) {
  if (part.inputs.size() == 1) {
    const Tensor& x = part.inputs[0];
    return x.dtype() == DType::u8 ? contiguous_raw(x) : cast_raw(contiguous_raw(x), DType::f32);
  }
  const int64_t n = part.targets[0].size(0);
  int64_t width = 0;
  for (const Tensor& x : part.inputs) width += x.numel() / std::max<int64_t>(n, 1);
  Tensor out = empty({n, width});
  int64_t column = 0;
  for (const Tensor& x : part.inputs) {
    const Tensor from = cast_raw(contiguous_raw(x), DType::f32);
    const int64_t own = from.numel() / std::max<int64_t>(n, 1);
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(from.data<float>() + i * own, own, out.data<float>() + i * width + column);
    }
    column += own;
  }
  return out;
}

// The place of the only 1 in rows [N,K] of zeros; none when a row is something else.
std::optional<std::vector<double>> one_hot_classes(const Tensor& rows) {
  const std::vector<double> v = rows.to_vector();
  const auto width = size_t(rows.size(1));
  std::vector<double> classes;
  for (size_t at = 0; at < v.size(); at += width) {
    const auto row = v.begin() + int64_t(at), end = row + int64_t(width);
    if (std::count(row, end, 1.0) != 1 || std::count(row, end, 0.0) != int64_t(width) - 1) {
      return std::nullopt;
    }
    classes.push_back(double(std::find(row, end, 1.0) - row));
  }
  return classes;
}

// Targets of both parts together.
Targets joined_targets(const std::vector<SplitArrays>& parts, const Finder& finder) {
  std::vector<double> numbers;
  bool vectors = true, one_hot = true;
  for (const SplitArrays& p : parts) vectors = vectors && p.targets[0].dim() == 1;
  for (const SplitArrays& p : parts) {
    if (vectors) {
      const std::vector<double> v = p.targets[0].to_vector();
      numbers.insert(numbers.end(), v.begin(), v.end());
    } else if (p.targets[0].dim() != 2 || p.targets[0].size(1) != parts[0].targets[0].size(1)) {
      finder.fail("the targets of the splits have other sizes");
    } else if (const auto classes = one_hot_classes(p.targets[0]); classes && one_hot) {
      numbers.insert(numbers.end(), classes->begin(), classes->end());
    } else {
      one_hot = false;
    }
  }
  return vectors || one_hot ? make_targets(numbers, {.renumber = vectors}) : Targets{};
}

Tensor slice_of(const Tensor& t, int64_t first, int64_t count) {
  return contiguous_raw(make_view(t, t.layout().slice(0, first, first + count, 1)));
}

}  // namespace

Dataset named_dataset(const std::string& name, const io::NamedArrays& arrays,
                      const std::string& split, NamedSet options) {
  require_split(split);
  const Finder finder(name, arrays, options);
  std::vector<SplitArrays> parts;
  for (const char* part : {"train", "test", "val"}) {
    if (parts.size() == 2 || (parts.empty() && std::strcmp(part, "train") != 0)) continue;
    if (auto found = finder.find(part)) parts.push_back(std::move(*found));
  }
  if (parts.empty()) {
    if (auto found = finder.find("")) parts.push_back(std::move(*found));
  }
  if (parts.empty()) finder.fail("there are neither inputs nor targets");
  const SplitArrays& wanted = parts[parts.size() == 2 && split == "test" ? 1 : 0];
  const int64_t n = wanted.targets[0].size(0);
  const Targets all = joined_targets(parts, finder);
  Dataset d{.name = name, .inputs = joined_inputs(wanted), .classes = all.classes};
  if (d.inputs.dtype() == DType::u8) d.scale = 1.0 / 255;
  if (all.values.defined()) {
    d.targets = slice_of(all.values, &wanted == &parts[0] ? 0 : parts[0].targets[0].size(0), n);
  } else {
    d.targets = cast_raw(contiguous_raw(wanted.targets[0]), DType::f32);
  }
  return parts.size() == 2 ? d : take_split(d, split);
}

bool is_npz(const std::string& path) {
  return has_ending(path, ".npz") && !path.ends_with(".gz");  // packed inside
}

Dataset npz_dataset(const std::string& path, const std::string& split) {
  return named_dataset(path, io::load_npz(path), split);
}

bool is_npy_folder(const std::string& path) {
  std::error_code ignored;
  if (has_ending(path, ".npy")) return true;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (has_ending(entry.path().string(), ".npy")) return true;
  }
  return false;
}

Dataset npy_dataset(const std::string& path, const std::string& split) {
  const bool file = has_ending(path, ".npy");
  const std::string folder = file ? fs::absolute(path).parent_path().string() : path;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (has_ending(entry.path().string(), ".npy")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  io::NamedArrays arrays;
  for (const std::string& one : paths) {
    std::string name = fs::path(one).filename().string();
    name.resize(name.size() - (one.ends_with(".gz") ? 7 : 4));
    arrays.emplace_back(name, io::load_npy(one));
  }
  return named_dataset(path, arrays, split);
}

bool is_mat(const std::string& path) { return has_ending(path, ".mat"); }

Dataset mat_dataset(const std::string& path, const std::string& split) {
  return named_dataset(path, load_mat(path).arrays, split, {.matlab = true});
}

}  // namespace cutaway::data
