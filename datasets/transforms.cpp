#include <cutaway/datasets/transforms.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numbers>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::data {
namespace {

void require(bool good, const char* who, const std::string& rule) {
  if (!good) throw ValueError(who, rule);
}

void require_share(double p, const char* who, const char* name) {
  require(p >= 0 && p <= 1, who, fmt::format("{} must be from 0 to 1; got {}", name, p));
}

// Sizes and values of an image; keeps a row-major copy alive.
struct Image {
  Tensor tensor;
  int64_t c, h, w;
  const float* at;

  Image(const Tensor& t, const char* who) : tensor(t) {
    if (!t.defined() || t.dim() != 3 || t.dtype() != DType::f32) {
      throw ShapeError(who, fmt::format("needs an image [C,H,W] of f32; got {} {}",
                                        t.defined() ? to_string(t.sizes()) : "nothing",
                                        t.defined() ? name_of(t.dtype()) : ""));
    }
    tensor = contiguous_raw(t);
    c = t.size(0), h = t.size(1), w = t.size(2);
    at = tensor.data<float>();
  }
  float pixel(int64_t channel, int64_t y, int64_t x, float outside) const {
    return y < 0 || x < 0 || y >= h || x >= w ? outside : at[(channel * h + y) * w + x];
  }
  Tensor copy() const {
    Tensor out = empty(tensor.sizes());
    std::copy_n(at, tensor.numel(), out.data<float>());
    return out;
  }
};

// Fills rows y0 … y1−1 and columns x0 … x1−1, cut to the image, of all channels.
void fill_box(Tensor& image, int64_t y0, int64_t y1, int64_t x0, int64_t x1, float value) {
  const int64_t c = image.size(0), h = image.size(1), w = image.size(2);
  y0 = std::max<int64_t>(y0, 0), x0 = std::max<int64_t>(x0, 0);
  y1 = std::min(y1, h), x1 = std::min(x1, w);
  float* out = image.data<float>();
  for (int64_t channel = 0; channel < c; ++channel) {
    for (int64_t y = y0; y < y1 && x0 < x1; ++y) {
      std::fill_n(out + (channel * h + y) * w + x0, x1 - x0, value);
    }
  }
}

float clamped(double v) { return float(std::clamp(v, 0.0, 1.0)); }

// Luminance as ITU-R BT.601 weighs it; the value itself for images that are not of three channels.
double grey(const float* pixels, int64_t channels, int64_t plane, int64_t i) {
  if (channels != 3) return pixels[i];
  return 0.299 * pixels[i] + 0.587 * pixels[plane + i] + 0.114 * pixels[2 * plane + i];
}

// Turns the colour circle by `turn` of it; lightness and saturation stay.
void turn_hue(float& r, float& g, float& b, double turn) {
  const double high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
  if (range <= 0) return;
  double hue = high == r ? (g - b) / range : high == g ? 2 + (b - r) / range : 4 + (r - g) / range;
  hue = std::fmod(hue / 6 + turn + 2, 1.0) * 6;
  const auto channel = [&](double shift) {
    const double k = std::fmod(shift + hue, 6.0);
    return clamped(high - range * std::clamp(std::min(k, 4 - k), 0.0, 1.0));
  };
  r = channel(5), g = channel(3), b = channel(1);
}

void jitter(Tensor& image, const ColorOptions& o, Draws& draws) {
  const int64_t c = image.size(0), plane = image.size(1) * image.size(2), n = c * plane;
  float* v = image.data<float>();
  const auto factor = [&](double range) { return draws.uniform(1 - range, 1 + range); };
  const double bright = factor(o.brightness), contrast = factor(o.contrast),
               saturation = factor(o.saturation), hue = draws.uniform(-o.hue, o.hue);
  for (int64_t i = 0; i < n; ++i) v[i] = clamped(v[i] * bright);
  double mean = 0;
  for (int64_t i = 0; i < plane; ++i) mean += grey(v, c, plane, i);
  mean = plane > 0 ? mean / double(plane) : 0;
  for (int64_t i = 0; i < n; ++i) v[i] = clamped(mean + (v[i] - mean) * contrast);
  if (c != 3) return;
  for (int64_t i = 0; i < plane; ++i) {
    const double l = grey(v, c, plane, i);
    for (int64_t k = 0; k < 3; ++k) {
      v[k * plane + i] = clamped(l + (v[k * plane + i] - l) * saturation);
    }
    turn_hue(v[i], v[plane + i], v[2 * plane + i], hue);
  }
}

// The image seen through the map q = A p + b from places of the result to places in it.
Tensor resampled(const Image& in, const double (&a)[4], const double (&b)[2], float fill) {
  Tensor out = empty(in.tensor.sizes());
  float* to = out.data<float>();
  for (int64_t y = 0; y < in.h; ++y) {
    for (int64_t x = 0; x < in.w; ++x) {
      const double sx = a[0] * double(x) + a[1] * double(y) + b[0];
      const double sy = a[2] * double(x) + a[3] * double(y) + b[1];
      const double fx = std::floor(sx), fy = std::floor(sy);
      const float u = float(sx - fx), v = float(sy - fy);
      const bool near = std::fabs(fx) < 1e9 && std::fabs(fy) < 1e9;
      const int64_t x0 = near ? int64_t(fx) : -9, y0 = near ? int64_t(fy) : -9;
      for (int64_t c = 0; c < in.c; ++c) {
        const float top = in.pixel(c, y0, x0, fill) * (1 - u) + in.pixel(c, y0, x0 + 1, fill) * u;
        const float low =
            in.pixel(c, y0 + 1, x0, fill) * (1 - u) + in.pixel(c, y0 + 1, x0 + 1, fill) * u;
        to[(c * in.h + y) * in.w + x] = top * (1 - v) + low * v;
      }
    }
  }
  return out;
}

}  // namespace

Transform random_crop(CropOptions o) {
  require(o.height >= 0 && o.width >= 0 && o.padding >= 0 && o.padding < (1 << 20), "random_crop",
          fmt::format("sizes and padding must not be negative; got {}×{}, padding {}", o.height,
                      o.width, o.padding));
  return [o](const Tensor& t, Draws& draws) {
    const Image in(t, "random_crop");
    const int64_t h = o.height ? o.height : in.h, w = o.width ? o.width : in.w;
    const int64_t spare_y = in.h + 2 * o.padding - h, spare_x = in.w + 2 * o.padding - w;
    if (spare_y < 0 || spare_x < 0) {
      throw ShapeError("random_crop", fmt::format("the image must have at least {}×{} with padding "
                                                  "{}; got {}",
                                                  h, w, o.padding, to_string(t.sizes())));
    }
    const int64_t dy = draws.below(spare_y + 1) - o.padding,
                  dx = draws.below(spare_x + 1) - o.padding;
    Tensor out = full({in.c, h, w}, o.fill);
    const int64_t x0 = std::max<int64_t>(0, -dx), x1 = std::min(w, in.w - dx);
    for (int64_t c = 0; c < in.c; ++c) {
      for (int64_t y = std::max<int64_t>(0, -dy); y < std::min(h, in.h - dy) && x0 < x1; ++y) {
        std::copy_n(in.at + (c * in.h + y + dy) * in.w + x0 + dx, x1 - x0,
                    out.data<float>() + (c * h + y) * w + x0);
      }
    }
    return out;
  };
}

Transform random_flip(FlipOptions o) {
  require_share(o.p, "random_flip", "p");
  return [o](const Tensor& t, Draws& draws) {
    const Image in(t, "random_flip");
    if (!draws.chance(o.p)) return in.tensor;
    Tensor out = in.copy();
    float* v = out.data<float>();
    for (int64_t c = 0; c < in.c; ++c) {
      float* plane = v + c * in.h * in.w;
      for (int64_t y = 0; y < in.h && !o.vertical; ++y) {
        std::reverse(plane + y * in.w, plane + (y + 1) * in.w);
      }
      for (int64_t y = 0; y < in.h / 2 && o.vertical; ++y) {
        std::swap_ranges(plane + y * in.w, plane + (y + 1) * in.w, plane + (in.h - 1 - y) * in.w);
      }
    }
    return out;
  };
}

Transform random_affine(AffineOptions o) {
  const char* who = "random_affine";
  require(o.degrees >= 0 && o.degrees <= 360, who,
          fmt::format("degrees must be from 0 to 360; got {}", o.degrees));
  require_share(o.translate, who, "translate");
  require(
      o.scale_low > 0 && o.scale_low <= o.scale_high && std::isfinite(o.scale_high), who,
      fmt::format("scales must be above 0 and in order; got {} and {}", o.scale_low, o.scale_high));
  require(o.shear >= 0 && o.shear < 90, who,
          fmt::format("shear must be from 0 to below 90 degrees; got {}", o.shear));
  return [o](const Tensor& t, Draws& draws) {
    const Image in(t, "random_affine");
    const double to_radians = std::numbers::pi / 180;
    const double angle = draws.uniform(-o.degrees, o.degrees) * to_radians;
    const double shear = std::tan(draws.uniform(-o.shear, o.shear) * to_radians);
    const double scale = draws.uniform(o.scale_low, o.scale_high);
    const double mx = draws.uniform(-o.translate, o.translate) * double(in.w),
                 my = draws.uniform(-o.translate, o.translate) * double(in.h);
    // Inverse of scale · rotation · shear.
    const double c = std::cos(angle) / scale, s = std::sin(angle) / scale;
    const double a[4] = {c + shear * s, s - shear * c, -s, c};
    const double cx = double(in.w - 1) / 2, cy = double(in.h - 1) / 2;
    const double b[2] = {cx - a[0] * (cx + mx) - a[1] * (cy + my),
                         cy - a[2] * (cx + mx) - a[3] * (cy + my)};
    return resampled(in, a, b, float(o.fill));
  };
}

Transform random_rotation(double degrees, double fill) {
  return random_affine({.degrees = degrees, .fill = fill});
}

Transform color_jitter(ColorOptions o) {
  for (const double v : {o.brightness, o.contrast, o.saturation}) {
    require_share(v, "color_jitter", "brightness, contrast and saturation");
  }
  require(o.hue >= 0 && o.hue <= 0.5, "color_jitter",
          fmt::format("hue must be from 0 to 0.5; got {}", o.hue));
  return [o](const Tensor& t, Draws& draws) {
    Tensor out = Image(t, "color_jitter").copy();
    jitter(out, o, draws);
    return out;
  };
}

Transform normalize(std::vector<double> mean, std::vector<double> std) {
  require(!mean.empty() && mean.size() == std.size(), "normalize",
          fmt::format("needs as many means as deviations; got {} and {}", mean.size(), std.size()));
  for (const double s : std) {
    require(s > 0 && std::isfinite(s), "normalize",
            fmt::format("deviations must be above 0; got {}", s));
  }
  return [mean = std::move(mean), std = std::move(std)](const Tensor& t, Draws&) {
    const Image in(t, "normalize");
    if (mean.size() != 1 && int64_t(mean.size()) != in.c) {
      throw ShapeError("normalize", fmt::format("has numbers for {} channels; got {}", mean.size(),
                                                to_string(t.sizes())));
    }
    Tensor out = in.copy();
    float* v = out.data<float>();
    for (int64_t c = 0; c < in.c; ++c) {
      const size_t k = mean.size() == 1 ? 0 : size_t(c);
      for (int64_t i = 0; i < in.h * in.w; ++i, ++v) *v = float((*v - mean[k]) / std[k]);
    }
    return out;
  };
}

Transform random_erasing(EraseOptions o) {
  require_share(o.p, "random_erasing", "p");
  require(o.area_low > 0 && o.area_low <= o.area_high && o.area_high <= 1, "random_erasing",
          fmt::format("areas must be above 0, in order and at most 1; got {} and {}", o.area_low,
                      o.area_high));
  require(o.aspect > 0 && o.aspect <= 1, "random_erasing",
          fmt::format("aspect must be above 0 and at most 1; got {}", o.aspect));
  return [o](const Tensor& t, Draws& draws) {
    const Image in(t, "random_erasing");
    if (!draws.chance(o.p)) return in.tensor;
    Tensor out = in.copy();
    for (int attempt = 0; attempt < 10; ++attempt) {  // until the rectangle fits
      const double area = draws.uniform(o.area_low, o.area_high) * double(in.h * in.w);
      const double log_aspect = draws.uniform(std::log(o.aspect), -std::log(o.aspect));
      const int64_t h = std::llround(std::sqrt(area * std::exp(log_aspect))),
                    w = std::llround(std::sqrt(area * std::exp(-log_aspect)));
      if (h >= in.h || w >= in.w) continue;
      const int64_t y = draws.below(in.h - h + 1), x = draws.below(in.w - w + 1);
      fill_box(out, y, y + h, x, x + w, float(o.fill));
      break;
    }
    return out;
  };
}

Transform cutout(int64_t side, double fill) {
  require(side >= 1 && side < (1 << 20), "cutout",
          fmt::format("side must be at least 1; got {}", side));
  return [side, fill](const Tensor& t, Draws& draws) {
    const Image in(t, "cutout");
    Tensor out = in.copy();
    const int64_t y = draws.below(in.h) - side / 2, x = draws.below(in.w) - side / 2;
    fill_box(out, y, y + side, x, x + side, float(fill));
    return out;
  };
}

}  // namespace cutaway::data
