// Data of section 5: generators, and all data by name.
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/models/depth_law/search.h>

namespace cutaway::depth {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kClasses = 10;

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

// Sequences of 16 of 32 words; the answer is the most frequent word (5 times), or the first.
TrainData synth_sequences(uint64_t seed, bool majority) {
  constexpr int64_t kCount = 6400, kWords = 32, kLength = 16, kTimes = 5;
  Generator g{.seed = seed, .stream = 32};
  const Tensor x = randint(0, kWords, {kCount, kLength}, {.dtype = DType::i64}, &g);
  const Tensor y = empty({kCount}, {.dtype = DType::i64});
  for (int64_t i = 0; i < kCount; ++i) {
    int64_t* words = x.data<int64_t>() + i * kLength;
    y.data<int64_t>()[i] = words[0];
    if (!majority) continue;
    // The first word five times; any other at most three times in what is left.
    int64_t count[kWords] = {};
    for (int64_t t = kTimes; t < kLength; ++t) {
      while (words[t] == words[0] || count[words[t]] == 3) words[t] = (words[t] + 1) % kWords;
      ++count[words[t]];
    }
    for (int64_t t = 1; t < kTimes; ++t) words[t] = words[0];
    const std::vector<int64_t> before(words, words + kLength), order = permutation(kLength, g);
    for (int64_t t = 0; t < kLength; ++t) words[t] = before[size_t(order[size_t(t)])];
  }
  return {majority ? "synth-seq" : "synth-copy", x, y, kWords, kWords};
}

}  // namespace

Tensor standardised(const Tensor& x) {
  const Shape dims = x.dim() == 4 ? Shape{0, 2, 3} : x.dim() == 3 ? Shape{0, 2} : Shape{0};
  return (x - mean(x, dims, {.keepdim = true})) /
         clamp_min(std(x, dims, {.correction = 0, .keepdim = true}), 1e-6);
}

TrainData load_data(const std::string& name, Arch arch, uint64_t seed) {
  TrainData d;
  if (name == "fashion") {
    d = fashion();
  } else if (name == "synth") {
    d = synth_images(seed);
  } else if (name == "synth-vec") {
    d = synth_vectors(seed);
  } else if (name == "synth-seq" || name == "synth-copy") {
    d = synth_sequences(seed, name == "synth-seq");
  } else if (name.starts_with("cifar:")) {
    d = read_cifar(name.substr(6));
  } else if (name.starts_with("idx:")) {
    d = read_idx_images(name.substr(4));
  } else if (name.starts_with("wav:")) {
    d = read_wav(name.substr(4));
  } else {
    throw ValueError("depthlaw", "unknown data \"" + name +
                                     "\"; known are fashion, synth, synth-vec, synth-seq, "
                                     "synth-copy, cifar:DIR, idx:PREFIX, wav:DIR");
  }
  if (d.vocabulary > 0) {
    if (arch != Arch::vit)
      throw ValueError("depthlaw", name + " holds words: it is for --arch vit");
  } else if (arch == Arch::mlp) {
    d.x = d.x.flatten(1);
  } else if (d.x.dim() == 2) {
    throw ValueError("depthlaw", name + " holds vectors: it is for --arch mlp");
  } else if (arch == Arch::vit && d.x.dim() == 3) {
    throw ValueError("depthlaw", name + " holds sounds: it is for --arch mlp, cnn or resnet");
  } else if (arch == Arch::vit && d.x.size(2) % 4 != 0) {
    const int64_t more = 4 - d.x.size(2) % 4;
    d.x = pad(d.x, {more / 2, more - more / 2, more / 2, more - more / 2});
  }
  return d;
}

void fit_to_data(Spec& spec, const TrainData& d) {
  spec.in = d.x.size(1);
  spec.outputs = d.classes;
  if (d.vocabulary > 0) {
    spec.vocabulary = d.vocabulary;
    spec.tokens = d.x.size(1);
  }
  if (d.x.dim() > 2) {
    spec.side = d.x.size(2);
    spec.spatial = int(d.x.dim()) - 2;
  }
}

}  // namespace cutaway::depth
