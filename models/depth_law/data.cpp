// Data of section 5: readers and generators.
#include <fmt/format.h>
#include <cmath>
#include <filesystem>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/models/depth_law/search.h>

namespace cutaway::depth {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kClasses = 10;

Tensor standardised(const Tensor& x) {
  const Shape dims = x.dim() == 4 ? Shape{0, 2, 3} : Shape{0};
  return (x - mean(x, dims, {.keepdim = true})) /
         clamp_min(std(x, dims, {.correction = 0, .keepdim = true}), 1e-6);
}

TrainData synth_images(uint64_t seed) {
  constexpr int64_t kCount = 6400, kSide = 16, kWaves = 3;
  Generator g{.seed = seed, .stream = 30};
  const auto numbers = [&](const Shape& s) {
    return rand(s, {.dtype = DType::f64}, &g).to_vector();
  };
  const auto frequency = numbers({kClasses * kWaves * 2}), phase = numbers({kClasses * kWaves * 3});
  const auto shift = numbers({kCount * 2}), amplitude = numbers({kCount});
  const Tensor x = randn({kCount, 3, kSide, kSide}, {}, &g) * 0.7;
  const Tensor y = randint(0, kClasses, {kCount}, {.dtype = DType::i64}, &g);
  float* out = x.data<float>();
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t c = y.data<int64_t>()[i];
    const int64_t dx = int64_t(shift[size_t(2 * i)] * kSide),
                  dy = int64_t(shift[size_t(2 * i + 1)] * kSide);
    const double size = 0.7 + 0.6 * amplitude[size_t(i)];
    for (int64_t p = 0; p < 3 * kSide * kSide; ++p, ++out) {
      const int64_t channel = p / (kSide * kSide), u = (p / kSide + dy) % kSide,
                    v = (p + dx) % kSide;
      for (int64_t w = 0; w < kWaves; ++w) {
        const size_t at = size_t(c * kWaves + w);
        const double fu = std::floor(1 + 3 * frequency[2 * at]),
                     fv = std::floor(3 * frequency[2 * at + 1]);
        const double angle =
            2 * kPi * ((fu * double(u) + fv * double(v)) / kSide + phase[3 * at + size_t(channel)]);
        *out += float(size * std::cos(angle));
      }
    }
  }
  return {"synth", standardised(x), y, kClasses};
}

TrainData synth_vectors(uint64_t seed) {
  constexpr int64_t kCount = 6400, kDim = 128, kBlobs = 30;
  Generator g{.seed = seed, .stream = 31};
  const Tensor centres = normalize(randn({kBlobs, kDim}, {}, &g), 1) * (0.35 * std::sqrt(kDim));
  const Tensor blob = randint(0, kBlobs, {kCount}, {.dtype = DType::i64}, &g);
  const Tensor x = index_select(centres, 0, blob) + randn({kCount, kDim}, {}, &g) * 0.94;
  return {"synth-vec", standardised(x), remainder(blob, kClasses), kClasses};
}

TrainData fashion() {
  const data::Dataset d = data::fashion_mnist("train");
  const int64_t n = std::min<int64_t>(d.size(), 12800);
  const Tensor x = avg_pool2d(d.inputs.slice(0, 0, n).to(DType::f32), 2);
  const Tensor centred = x - mean(x);
  return {"fashion", centred / std(centred), d.targets.slice(0, 0, n).contiguous(), kClasses};
}

// Binary batches of CIFAR-10 (1 label byte) or CIFAR-100 (coarse and fine label), 3×32×32 bytes.
TrainData cifar(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  bool hundred = false;
  for (int i = 1; i <= 5; ++i) {
    const std::string path = fmt::format("{}/data_batch_{}.bin", folder, i);
    if (fs::exists(path)) files.push_back(path);
  }
  if (files.empty() && fs::exists(folder + "/train.bin")) {
    files.push_back(folder + "/train.bin");
    hundred = true;
  }
  if (files.empty()) {
    throw IoError("depthlaw", folder + ": has neither data_batch_1.bin … nor train.bin");
  }
  const size_t row = (hundred ? 2 : 1) + 3072;
  Tensors images, labels;
  for (const std::string& path : files) {
    const io::Bytes bytes = io::read_file(path);
    if (bytes.empty() || bytes.size() % row != 0) {
      throw IoError("depthlaw",
                    fmt::format("{}: {} bytes are no rows of {}", path, bytes.size(), row));
    }
    const int64_t n = int64_t(bytes.size() / row);
    const Tensor x = empty({n, 3, 32, 32}), y = empty({n}, {.dtype = DType::i64});
    for (int64_t i = 0; i < n; ++i) {
      const uint8_t* from = bytes.data() + size_t(i) * row;
      y.data<int64_t>()[i] = from[hundred ? 1 : 0];
      if (from[hundred ? 1 : 0] >= (hundred ? 100 : 10)) {
        throw IoError("depthlaw", fmt::format("{}: label {} of image {} is too large", path,
                                              from[hundred ? 1 : 0], i));
      }
      for (int64_t p = 0; p < 3072; ++p)
        x.data<float>()[i * 3072 + p] = from[row - 3072 + size_t(p)];
    }
    images.push_back(x);
    labels.push_back(y);
  }
  return {"cifar", standardised(cat(images)), cat(labels), hundred ? 100 : 10};
}

}  // namespace

TrainData load_data(const std::string& name, Arch arch, uint64_t seed) {
  TrainData d;
  if (name == "fashion") {
    d = fashion();
  } else if (name == "synth") {
    d = synth_images(seed);
  } else if (name == "synth-vec") {
    d = synth_vectors(seed);
  } else if (name.starts_with("cifar:")) {
    d = cifar(name.substr(6));
  } else {
    throw ValueError("depthlaw", "unknown data \"" + name +
                                     "\"; known are fashion, synth, synth-vec, cifar:DIR");
  }
  if (arch == Arch::mlp) {
    d.x = d.x.flatten(1);
  } else if (d.x.dim() != 4) {
    throw ValueError("depthlaw", name + " holds vectors: it is for --arch mlp");
  } else if (arch == Arch::vit && d.x.size(2) % 4 != 0) {
    const int64_t more = 4 - d.x.size(2) % 4;
    d.x = pad(d.x, {more / 2, more - more / 2, more / 2, more - more / 2});
  }
  return d;
}

void fit_to_data(Spec& spec, const TrainData& d) {
  spec.in = d.x.size(1);
  spec.outputs = d.classes;
  if (d.x.dim() == 4) spec.side = d.x.size(2);
}

}  // namespace cutaway::depth
