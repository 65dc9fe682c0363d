#include <cmath>

#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/resize.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

struct Case {
  const char* label;
  Shape x, out;  // x [N,C,…]; spatial sizes of the result
  Resize mode;
  bool align = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"nearest 1-d up", {2, 1, 3}, {7}, Resize::nearest},
      {"nearest 2-d down", {1, 2, 5, 4}, {3, 2}, Resize::nearest},
      {"nearest exact", {1, 2, 5, 4}, {3, 6}, Resize::nearest_exact},
      {"linear 1-d", {2, 2, 3}, {5}, Resize::linear},
      {"bilinear up", {1, 2, 3, 4}, {5, 6}, Resize::linear},
      {"bilinear down", {1, 1, 6, 5}, {3, 2}, Resize::linear},
      {"bilinear aligned", {2, 1, 3, 2}, {4, 5}, Resize::linear, true},
      {"aligned to one", {1, 1, 3, 2}, {1, 3}, Resize::linear, true},
      {"trilinear", {1, 1, 2, 3, 2}, {3, 2, 3}, Resize::linear},
      {"one position", {1, 2, 1}, {3}, Resize::linear},
      {"no samples", {0, 2, 3, 3}, {2, 2}, Resize::nearest},
  };
  return list;
}

// Weight of input i for output o along one dimension, by the definition.
double weight(const Case& k, int64_t n, int64_t m, int64_t o, int64_t i) {
  const double ratio = double(n) / double(m);
  if (k.mode == Resize::nearest) return double(i) == std::floor(double(o) * ratio);
  if (k.mode == Resize::nearest_exact) return double(i) == std::floor((double(o) + 0.5) * ratio);
  double at = (double(o) + 0.5) * ratio - 0.5;
  if (k.align) at = m > 1 ? double(o) * double(n - 1) / double(m - 1) : 0;
  at = std::fmin(std::fmax(at, 0.0), double(n - 1));
  return std::fmax(0.0, 1 - std::fabs(at - double(i)));
}

// Calls f(flat x, flat y, weight) for all pairs of one plane.
template <class F>
void for_pairs(const Case& k, F&& f) {
  const Shape in = k.x.slice(2, k.x.rank());
  for_each_index(k.out, [&](const Shape& o) {
    for_each_index(in, [&](const Shape& i) {
      double w = 1;
      for (int d = 0; d < in.rank(); ++d) w *= weight(k, in[d], k.out[d], o[d], i[d]);
      f(size_t(flat_index(in, i)), size_t(flat_index(k.out, o)), w);
    });
  });
}

Shape result(const Case& k) {
  Shape s = k.x.slice(0, 2);
  for (int64_t n : k.out) s.push_back(n);
  return s;
}

InterpolateOptions options(const Case& k) {
  return {.size = Dims(k.out), .scale = {}, .mode = k.mode, .align_corners = k.align};
}

}  // namespace

void interpolate_samples(SampleList& s) {
  for (const Case& k : cases()) {
    s.add(
        k.label, {s.randn(k.x)},
        [&k](const Tensors& in) { return Tensors{interpolate(in[0], options(k))}; },
        [&k](const Tensors& in) {
          const Ref x(in[0]);
          Ref y(result(k));
          const size_t n = size_t(k.x.slice(2, k.x.rank()).numel()), m = size_t(k.out.numel());
          for (size_t p = 0; p < size_t(k.x[0] * k.x[1]); ++p) {
            for_pairs(k,
                      [&](size_t i, size_t o, double w) { y.v[p * m + o] += w * x.v[p * n + i]; });
          }
          return Tensors{y.tensor()};
        });
  }
  s.error(
      "both",
      [] {
        interpolate(ones({1, 1, 2}), {});
      },
      "needs either size or scale");
  s.error(
      "rank",
      [] {
        interpolate(ones({2, 2}), {.size = Dims(2)});
      },
      "[interpolate] needs x [N,C,1 to 3 sizes]; got [2,2]");
}

void interpolate_grad_samples(SampleList& s) {
  for (const Case& k : cases()) {
    s.add(
        k.label, {s.randn(result(k))},
        [&k](const Tensors& in) { return Tensors{interpolate_grad(in[0], k.x, options(k))}; },
        [&k](const Tensors& in) {
          const Ref g(in[0]);
          Ref x(k.x);
          const size_t n = size_t(k.x.slice(2, k.x.rank()).numel()), m = size_t(k.out.numel());
          for (size_t p = 0; p < size_t(k.x[0] * k.x[1]); ++p) {
            for_pairs(k,
                      [&](size_t i, size_t o, double w) { x.v[p * n + i] += w * g.v[p * m + o]; });
          }
          return Tensors{x.tensor()};
        });
  }
  s.error(
      "sizes",
      [] {
        interpolate_grad(ones({1, 1, 3}), {1, 1, 2}, {.size = Dims(4)});
      },
      "the gradient must have the sizes of the result; got [1,1,3], need [1,1,4]");
}

}  // namespace cutaway
