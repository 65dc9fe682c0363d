#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/nn/onnx/node_call.h>

// Resize and Upsample: each dimension is resized by a small matrix [new size, old size] of weights.
namespace cutaway::onnx {
namespace {

struct Plan {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, outside = 0;
  bool exclude = false;
  double scale = 1, roi_begin = 0, roi_end = 1;  // of the dimension at hand
  int64_t in = 0, out = 0;
};

double position(const Plan& p, int64_t o) {
  const double x = double(o), in = double(p.in), out = double(p.out);
  if (p.coordinates == "asymmetric") return x / p.scale;
  if (p.coordinates == "align_corners") return out > 1 ? x * (in - 1) / (out - 1) : 0;
  if (p.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / p.scale;
  if (p.coordinates == "pytorch_half_pixel") return out > 1 ? (x + 0.5) / p.scale - 0.5 : 0;
  if (p.coordinates == "tf_crop_and_resize") {
    if (out <= 1) return 0.5 * (p.roi_begin + p.roi_end) * (in - 1);
    return p.roi_begin * (in - 1) + x * (p.roi_end - p.roi_begin) * (in - 1) / (out - 1);
  }
  return (x + 0.5) / p.scale - 0.5;
}

double round_to(const std::string& way, double x) {
  if (way == "round_prefer_ceil") return std::floor(x + 0.5);
  if (way == "floor") return std::floor(x);
  if (way == "ceil") return std::ceil(x);
  return std::ceil(x - 0.5);
}

// Weights of four neighbours at distance `t` behind the second (Keys 1981).
void cubic_weights(double a, double t, double (&w)[4]) {
  const double u = 1 - t;
  w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
  w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
  w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
  w[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

// One row of the matrix.
void fill_row(const Plan& p, double at, double* row) {
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i, 0, p.in - 1); };
  if (p.mode == "nearest") {
    row[inside(int64_t(round_to(p.nearest, at)))] = 1;
    return;
  }
  const int64_t low = int64_t(std::floor(at));
  const double t = at - double(low);
  double w[4] = {0, 1 - t, t, 0};
  if (p.mode == "cubic") cubic_weights(p.cubic, t, w);
  double sum = 0;
  for (int64_t k = 0; k < 4; ++k) {
    const int64_t i = low - 1 + k;
    if (p.exclude && (i < 0 || i >= p.in)) continue;
    row[inside(i)] += w[k];
    sum += w[k];
  }
  if (p.exclude && sum != 0) {
    for (int64_t i = 0; i < p.in; ++i) row[i] /= sum;
  }
}

Tensor resize_dimension(const Plan& p, const Tensor& x, int64_t d) {
  std::vector<double> weights(size_t(p.in * p.out)), known(size_t(p.out), 1);
  for (int64_t o = 0; o < p.out; ++o) {
    const double at = position(p, o);
    fill_row(p, at, weights.data() + o * p.in);
    if (p.coordinates == "tf_crop_and_resize" && (at < 0 || at > double(p.in - 1))) {
      known[size_t(o)] = 0;
    }
  }
  const Opts opts{.dtype = x.dtype()};
  const Tensor w = reshape(tensor(weights, opts), {p.out, p.in});
  Tensor y = matmul(movedim(x, d, x.dim() - 1), w, {.transpose_b = true});
  y = where(gt(tensor(known, opts), 0), y, p.outside);
  return movedim(y, x.dim() - 1, d);
}

// Factors and sizes of all dimensions, from inputs (scales, sizes) or old attributes.
void resize_all(NodeCall& c, Plan p, int scales_at, int sizes_at, int roi_at) {
  Tensor x = c.in(0);
  const size_t rank = size_t(x.dim());
  std::vector<double> scales, roi;
  Ints sizes;
  const auto numbers = [&](int i) {
    return c.has(i) && c.in(i).numel() > 0 ? c.in(i).to_vector() : std::vector<double>{};
  };
  if (const Attribute* a = c.attribute("scales", Attribute::Type::reals); a) {
    scales.assign(a->floats.begin(), a->floats.end());
  } else {
    scales = numbers(scales_at);
  }
  if (sizes_at > 0 && c.has(sizes_at)) sizes = c.ints_in(sizes_at);
  if (p.coordinates == "tf_crop_and_resize") roi = numbers(roi_at);
  const bool fits = (scales.size() == rank || (scales.empty() && sizes.size() == rank)) &&
                    (roi.empty() ? p.coordinates != "tf_crop_and_resize" : roi.size() == 2 * rank);
  if (!fits) c.fail(fmt::format("needs a factor or a size for each of {} dimensions", rank));
  for (size_t d = 0; d < rank; ++d) {
    p.in = x.size(int64_t(d));
    if (!roi.empty()) {
      p.roi_begin = roi[d];
      p.roi_end = roi[d + rank];
    }
    const double span = p.roi_end - p.roi_begin;
    p.out = sizes.empty() ? int64_t(std::floor(double(p.in) * span * scales[d])) : sizes[d];
    p.scale = sizes.empty() ? scales[d] : double(p.out) / double(p.in);
    if (p.in == p.out && p.scale == 1 && span == 1) continue;
    if (p.in < 1 || p.out < 0 || p.out > (int64_t(1) << 31) / p.in) {
      c.fail(fmt::format("dimension {} cannot be resized from {} to {}", d, p.in, p.out));
    }
    x = resize_dimension(p, x, int64_t(d));
  }
  c.give(x);
}

void check_mode(NodeCall& c, const Plan& p) {
  if (p.mode != "nearest" && p.mode != "linear" && p.mode != "cubic") {
    c.fail("attribute 'mode' must be nearest, linear or cubic; got " + p.mode);
  }
  if (!c.in(0).is_floating()) c.fail("resizes floats only");
}

void resize_op(NodeCall& c) {
  Plan p;
  p.mode = c.text("mode", "nearest");
  p.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
  p.nearest = c.text("nearest_mode", "round_prefer_floor");
  p.cubic = c.real("cubic_coeff_a", -0.75);
  p.exclude = c.integer("exclude_outside", 0) != 0;
  p.outside = c.real("extrapolation_value", 0);
  check_mode(c, p);
  if (c.opset < 11) {
    p.coordinates = "asymmetric";
    p.nearest = "floor";
    return resize_all(c, p, 1, -1, -1);
  }
  resize_all(c, p, 2, 3, 1);
}

void upsample(NodeCall& c) {
  Plan p;
  p.mode = c.text("mode", "nearest");
  p.coordinates = "asymmetric";
  p.nearest = "floor";
  check_mode(c, p);
  resize_all(c, p, 1, -1, -1);
}

constexpr Operator kOperators[] = {{"Resize", resize_op, "matmul"},
                                   {"Upsample", upsample, "matmul"}};

}  // namespace

std::span<const Operator> resize_operators() { return kOperators; }

}  // namespace cutaway::onnx
