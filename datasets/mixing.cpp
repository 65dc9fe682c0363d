// Transforms of whole batches, and lists of transforms by name.
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/transforms.h>

namespace cutaway::data {
namespace {

// Class numbers [N] as probabilities [N,classes]; probabilities as they are.
Tensor probabilities(const Tensor& y, int64_t classes, const char* who) {
  if (y.dtype() == DType::f32 && y.dim() == 2) return contiguous_raw(y);
  if (y.dtype() != DType::i64 || y.dim() != 1) {
    throw ShapeError(who, fmt::format("needs class numbers [N] or probabilities [N,classes]; got "
                                      "{} {}",
                                      to_string(y.sizes()), name_of(y.dtype())));
  }
  Tensor p = zeros({y.numel(), classes});
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t k = y.data<int64_t>()[i];
    if (k < 0 || k >= classes) {
      throw IndexError(who, fmt::format("class {} is out of range; need 0 to {}", k, classes - 1));
    }
    p.data<float>()[i * classes + k] = 1;
  }
  return p;
}

std::vector<int64_t> shuffle(int64_t n, Draws& draws) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(order[size_t(i)], order[size_t(draws.below(i + 1))]);
  return order;
}

// λ t + (1 − λ) t', t' the rows in another order.
Tensor blend(const Tensor& t, const std::vector<int64_t>& order, double lambda) {
  Tensor out = empty(t.sizes());
  const int64_t n = int64_t(order.size()), width = n > 0 ? t.numel() / n : 0;
  const float* in = t.data<float>();
  float* to = out.data<float>();
  const float a = float(lambda), b = float(1 - lambda);
  for (int64_t r = 0; r < n; ++r) {
    const float *x = in + r * width, *other = in + order[size_t(r)] * width;
    for (int64_t i = 0; i < width; ++i) *to++ = a * x[i] + b * other[i];
  }
  return out;
}

void check_mixing(const char* who, int64_t classes, double alpha) {
  if (classes < 1 || !(alpha > 0) || !std::isfinite(alpha)) {
    throw ValueError(
        who, fmt::format("classes and alpha must be above 0; got {} and {}", classes, alpha));
  }
}

void check_batch(const char* who, const Batch& b, int least) {
  if (b.x.dtype() != DType::f32 || b.x.dim() < least) {
    throw ShapeError(who, fmt::format("needs inputs of f32 in {} dimensions; got {} {}", least,
                                      to_string(b.x.sizes()), name_of(b.x.dtype())));
  }
}

struct Entry {
  const char* name;
  const char* about;
  double number;  // when none is given
  Transform (*image)(double number);
  BatchTransform (*batch)(int64_t classes, double number);
};

int64_t whole(const char* name, double v) {
  if (v != std::floor(v) || std::fabs(v) > 1e6) {
    throw ValueError("augment", fmt::format("{} needs a whole number; got {}", name, v));
  }
  return int64_t(v);
}

const Entry kEntries[] = {
    {"crop", "a crop of the image padded by N pixels (4)", 4,
     [](double n) { return random_crop({.padding = whole("crop", n)}); }, nullptr},
    {"flip", "left and right exchanged with probability P (0.5)", 0.5,
     [](double n) { return random_flip({.p = n}); }, nullptr},
    {"rotate", "turned by up to D degrees (15)", 15, [](double n) { return random_rotation(n); },
     nullptr},
    {"affine", "turned, moved, scaled and sheared, times a strength (1)", 1,
     [](double n) {
       return random_affine({.degrees = 10 * n,
                             .translate = 0.1 * n,
                             .scale_low = 1 / (1 + 0.1 * n),
                             .scale_high = 1 + 0.1 * n,
                             .shear = 5 * n});
     },
     nullptr},
    {"color", "brightness, contrast and saturation by up to V (0.4), hue by a quarter of it", 0.4,
     [](double n) {
       return color_jitter({.brightness = n, .contrast = n, .saturation = n, .hue = n / 4});
     },
     nullptr},
    {"erase", "a rectangle filled with probability P (0.25)", 0.25,
     [](double n) { return random_erasing({.p = n}); }, nullptr},
    {"cutout", "a square of side N filled (8)", 8,
     [](double n) { return cutout(whole("cutout", n)); }, nullptr},
    {"mixup", "two images blended, with Beta(A, A) (0.2)", 0.2, nullptr, mixup},
    {"cutmix", "a rectangle of another image, with Beta(A, A) (1)", 1, nullptr, cutmix},
};

}  // namespace

BatchTransform mixup(int64_t classes, double alpha) {
  check_mixing("mixup", classes, alpha);
  return [classes, alpha](Batch& b, Draws& draws) {
    check_batch("mixup", b, 1);
    const double lambda = draws.beta(alpha, alpha);
    const auto order = shuffle(b.x.size(0), draws);
    b.y = blend(probabilities(b.y, classes, "mixup"), order, lambda);
    b.x = blend(contiguous_raw(b.x), order, lambda);
  };
}

BatchTransform cutmix(int64_t classes, double alpha) {
  check_mixing("cutmix", classes, alpha);
  return [classes, alpha](Batch& b, Draws& draws) {
    check_batch("cutmix", b, 4);
    const double lambda = draws.beta(alpha, alpha), side = std::sqrt(1 - lambda);
    const auto order = shuffle(b.x.size(0), draws);
    const Tensor x = contiguous_raw(b.x);
    const int64_t n = x.size(0), h = x.size(2), w = x.size(3), planes = x.size(1);
    const int64_t cy = draws.below(h), cx = draws.below(w);
    const int64_t ry = int64_t(double(h) * side / 2), rx = int64_t(double(w) * side / 2);
    const int64_t y0 = std::max<int64_t>(cy - ry, 0), y1 = std::min(cy + ry, h);
    const int64_t x0 = std::max<int64_t>(cx - rx, 0), x1 = std::min(cx + rx, w);
    Tensor out = empty(x.sizes());
    std::copy_n(x.data<float>(), x.numel(), out.data<float>());
    for (int64_t i = 0; i < n * planes; ++i) {
      const int64_t from = order[size_t(i / planes)] * planes + i % planes;
      for (int64_t y = y0; y < y1; ++y) {
        std::copy_n(x.data<float>() + (from * h + y) * w + x0, x1 - x0,
                    out.data<float>() + (i * h + y) * w + x0);
      }
    }
    const double kept = 1 - double((y1 - y0) * (x1 - x0)) / double(std::max<int64_t>(h * w, 1));
    b.y = blend(probabilities(b.y, classes, "cutmix"), order, kept);
    b.x = out;
  };
}

BatchTransform one_of(std::vector<BatchTransform> choices) {
  if (choices.empty()) throw ValueError("one_of", "needs at least one choice");
  return [choices = std::move(choices)](Batch& b, Draws& draws) {
    choices[size_t(draws.below(int64_t(choices.size())))](b, draws);
  };
}

Augmentation parse_augmentation(const std::string& list, int64_t classes) {
  Augmentation all;
  std::vector<BatchTransform> mixing;
  size_t at = 0;
  while (at < list.size()) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string item = list.substr(at, end - at);
    at = end + 1;
    const size_t colon = std::min(item.find(':'), item.size());
    const std::string name = item.substr(0, colon);
    const auto* e = std::find_if(std::begin(kEntries), std::end(kEntries),
                                 [&](const Entry& entry) { return name == entry.name; });
    if (e == std::end(kEntries)) {
      std::string known;
      for (const auto& [n, about] : known_augmentations()) {
        known += fmt::format("\n    {:<8} {}", n, about);
      }
      throw ValueError("augment", fmt::format("there is no \"{}\"; known are:{}", name, known));
    }
    double number = e->number;
    if (colon < item.size()) {
      const char* const stop = item.data() + item.size();
      const auto [read, error] = std::from_chars(item.data() + colon + 1, stop, number);
      if (error != std::errc() || read != stop || !std::isfinite(number)) {
        throw ValueError("augment", fmt::format("\"{}\" needs a number after the colon", item));
      }
    }
    if (e->image) all.images.push_back(e->image(number));
    if (e->batch) mixing.push_back(e->batch(classes, number));
  }
  if (mixing.size() == 1) all.batches = mixing;
  if (mixing.size() > 1) all.batches = {one_of(mixing)};
  return all;
}

std::vector<std::pair<std::string, std::string>> known_augmentations() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Entry& e : kEntries) all.emplace_back(e.name, e.about);
  return all;
}

}  // namespace cutaway::data
