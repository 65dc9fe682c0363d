// Training data from files: CIFAR, IDX images, folders of WAV files.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/cifar.h>
#include <cutaway/models/depth_law/search.h>

namespace cutaway::depth {
namespace {
namespace fs = std::filesystem;

constexpr size_t kSamples = 4096;  // of a sound, averaged by fours
constexpr int64_t kStep = 4;

uint32_t number(const uint8_t* at, int bytes) {
  uint32_t v = 0;
  for (int i = bytes - 1; i >= 0; --i) v = v << 8 | at[i];
  return v;
}

// Samples of a RIFF file, mean of its channels, −1 … 1: 8 bits (unsigned) or 16 bits PCM.
std::vector<float> sound(const std::string& path) {
  const io::Bytes file = io::read_file(path);
  const auto refuse = [&](const std::string& what) {
    throw IoError("depthlaw", fmt::format("{}: {}", path, what));
  };
  if (file.size() < 12 || std::memcmp(file.data(), "RIFF", 4) != 0 ||
      std::memcmp(file.data() + 8, "WAVE", 4) != 0) {
    refuse("is no WAV file");
  }
  uint32_t channels = 0, bits = 0;
  for (size_t at = 12; at + 8 <= file.size();) {
    const uint8_t* chunk = file.data() + at;
    const size_t size = number(chunk + 4, 4), rest = file.size() - at - 8;
    const uint8_t* body = chunk + 8;
    if (std::memcmp(chunk, "fmt ", 4) == 0) {
      if (size < 16 || rest < 16) refuse("its format chunk is too short");
      channels = number(body + 2, 2);
      bits = number(body + 14, 2);
      if (number(body, 2) != 1 || channels == 0 || (bits != 8 && bits != 16)) {
        refuse("need PCM of 8 or 16 bits");
      }
    } else if (std::memcmp(chunk, "data", 4) == 0) {
      if (channels == 0) refuse("has no format before its data");
      if (size > rest) refuse(fmt::format("is cut off: {} of {} bytes of sound", rest, size));
      const size_t width = bits / 8, frame = width * channels;
      std::vector<float> samples(size / frame);
      for (size_t i = 0; i < samples.size(); ++i) {
        for (size_t c = 0; c < channels; ++c) {
          const uint32_t raw = number(body + i * frame + c * width, int(width));
          const float v =
              bits == 8 ? (float(raw) - 128) / 128 : float(int16_t(uint16_t(raw))) / 32768;
          samples[i] += v / float(channels);
        }
      }
      return samples;
    }
    if (size > rest) break;
    at += 8 + size + size % 2;
  }
  refuse("holds no sound");
  return {};
}

}  // namespace

TrainData read_cifar(const std::string& folder) {
  const data::Dataset d = data::cifar(folder, "train");
  return {"cifar", standardised(d.inputs.to(DType::f32)), d.targets,
          int64_t(d.classes.empty() ? 100 : d.classes.size())};
}

TrainData read_idx_images(const std::string& prefix) {
  const data::Dataset d = data::open(prefix, "train");
  if (d.inputs.dim() < 3) throw IoError("depthlaw", prefix + ": holds no images");
  const int64_t n = d.size(), side = d.inputs.size(-1);
  const Tensor x = d.inputs.to(DType::f32).reshape({n, -1, d.inputs.size(-2), side});
  if (x.size(2) != side) throw IoError("depthlaw", prefix + ": images must be square");
  return {"idx", standardised(x), d.targets, int64_t(amax(d.targets).item()) + 1};
}

// Sub-folders are classes, by name; the middle 4096 samples of each file, shorter ones padded.
TrainData read_wav(const std::string& folder) {
  std::vector<std::string> classes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory()) classes.push_back(entry.path().string());
  }
  if (error) throw IoError("depthlaw", folder + ": " + error.message());
  std::sort(classes.begin(), classes.end());
  std::vector<float> all;
  std::vector<int64_t> labels;
  for (size_t c = 0; c < classes.size(); ++c) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(classes[c])) {
      if (entry.path().extension() == ".wav") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& path : files) {
      const std::vector<float> s = sound(path);
      std::vector<float> part(kSamples);
      const size_t n = std::min(s.size(), kSamples);
      std::copy_n(s.begin() + int64_t((s.size() - n) / 2), n,
                  part.begin() + int64_t((kSamples - n) / 2));
      all.insert(all.end(), part.begin(), part.end());
      labels.push_back(int64_t(c));
    }
  }
  if (labels.empty() || labels.back() == 0) {
    throw IoError("depthlaw", folder + ": need two folders of .wav files at least");
  }
  const auto n = int64_t(labels.size());
  const Tensor x = empty({n, 1, int64_t(kSamples)});
  std::copy(all.begin(), all.end(), x.data<float>());
  return {"wav", standardised(avg_pool1d(x, {.kernel = {kStep}})), index_tensor(labels),
          int64_t(classes.size())};
}

}  // namespace cutaway::depth
