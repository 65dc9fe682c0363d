#include <cutaway/datasets/cifar.h>

#include <fmt/format.h>
#include <cstring>
#include <filesystem>
#include <vector>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/formats.h>
#include <cutaway/datasets/text_lines.h>

namespace cutaway::data {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32;
// Mean and standard deviation of the training images over all channels, values in [0, 1].
constexpr double kMean[] = {0.4734, 0.4782}, kStd[] = {0.2516, 0.2682};
constexpr const char* kTenClasses[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                       "dog",      "frog",       "horse", "ship", "truck"};

// The files of a split; none when the folder holds none. `kind` becomes that of the folder.
std::vector<std::string> files_of(const std::string& folder, const std::string& split,
                                  Cifar& kind) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& name) {
    const std::string path = find_file(folder + "/" + name);
    if (!path.empty()) files.push_back(path);
    return !path.empty();
  };
  kind = Cifar::ten;
  if (split == "test") {
    if (add("test_batch.bin")) return files;
  } else {
    std::string missing;
    for (int i = 1; i <= 5; ++i) {
      const std::string name = fmt::format("data_batch_{}.bin", i);
      if (!add(name)) {
        if (missing.empty()) missing = name;
      } else if (!missing.empty()) {
        throw IoError("cifar", fmt::format("{}: {} is missing, {} is there", folder, missing, name),
                      "unpack the archive again");
      }
    }
    if (!files.empty()) return files;
  }
  kind = Cifar::hundred;
  add(split + ".bin");
  return files;
}

std::vector<std::string> class_names(const std::string& folder, Cifar kind) {
  const bool ten = kind == Cifar::ten;
  const std::string path = folder + (ten ? "/batches.meta.txt" : "/fine_label_names.txt");
  std::vector<std::string> names;
  if (std::filesystem::is_regular_file(path)) {
    const io::Bytes bytes = io::read_file(path);
    TextLines lines("cifar", path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    for (std::string_view line; lines.next(line);) {
      if (!line.empty()) names.emplace_back(line);
    }
    const size_t need = ten ? 10 : 100;
    if (names.size() != need) {
      throw IoError("cifar",
                    fmt::format("{}: {} names of classes; need {}", path, names.size(), need));
    }
  } else if (ten) {
    names.assign(std::begin(kTenClasses), std::end(kTenClasses));
  }
  return names;
}

}  // namespace

CifarBatch parse_cifar(const std::string& name, std::span<const uint8_t> bytes, Cifar kind) {
  const bool ten = kind == Cifar::ten;
  const int64_t labels = ten ? 1 : 2, row = labels + kPixels, size = int64_t(bytes.size());
  if (size == 0 || size % row != 0) {
    throw IoError("cifar", fmt::format("{}: {} bytes are no records of {}", name, size, row),
                  ten ? "" : "CIFAR-10 has files data_batch_1.bin and test_batch.bin");
  }
  const int64_t n = size / row;
  CifarBatch out{empty({n, 3, 32, 32}, {.dtype = DType::u8}), empty({n}, {.dtype = DType::i64}),
                 ten ? Tensor() : empty({n}, {.dtype = DType::i64})};
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t* from = bytes.data() + i * row;
    const auto label = [&](int64_t at, int64_t count, const char* what) {
      if (from[at] >= count) {
        throw IoError("cifar", fmt::format("{}: record {} (byte {}): {} {} is too large; there are "
                                           "{} classes",
                                           name, i, i * row + at, what, from[at], count));
      }
      return int64_t(from[at]);
    };
    if (!ten) out.coarse.data<int64_t>()[i] = label(0, 20, "coarse label");
    out.labels.data<int64_t>()[i] = label(labels - 1, ten ? 10 : 100, "label");
    std::memcpy(out.images.data<uint8_t>() + i * kPixels, from + labels, size_t(kPixels));
  }
  return out;
}

CifarBatch load_cifar(const std::string& path, Cifar kind) {
  return parse_cifar(path, io::read_maybe_gzip(path), kind);
}

bool is_cifar(const std::string& folder) {
  for (const char* name : {"data_batch_1.bin", "test_batch.bin", "train.bin", "test.bin"}) {
    if (!find_file(folder + "/" + name).empty()) return true;
  }
  return false;
}

Dataset cifar(const std::string& folder, const std::string& split) {
  require_split(split);
  Cifar kind{};
  const std::vector<std::string> files = files_of(folder, split, kind);
  if (files.empty()) {
    throw IoError("cifar",
                  fmt::format("{}: has neither {} nor {}.bin", folder,
                              split == "test" ? "test_batch.bin" : "data_batch_1.bin …", split));
  }
  std::vector<CifarBatch> batches;
  int64_t n = 0;
  for (const std::string& path : files) {
    batches.push_back(load_cifar(path, kind));
    n += batches.back().labels.numel();
  }
  const auto at = size_t(kind == Cifar::ten ? 0 : 1);
  Dataset d{.name = folder,
            .inputs = empty({n, 3, 32, 32}, {.dtype = DType::u8}),
            .targets = empty({n}, {.dtype = DType::i64}),
            .classes = class_names(folder, kind),
            .scale = 1.0 / 255,
            .mean = kMean[at],
            .std = kStd[at]};
  int64_t first = 0;
  for (const CifarBatch& b : batches) {
    const int64_t count = b.labels.numel();
    std::memcpy(d.inputs.data<uint8_t>() + first * kPixels, b.images.data<uint8_t>(),
                size_t(count * kPixels));
    std::memcpy(d.targets.data<int64_t>() + first, b.labels.data<int64_t>(), size_t(count) * 8);
    first += count;
  }
  return d;
}

}  // namespace cutaway::data
