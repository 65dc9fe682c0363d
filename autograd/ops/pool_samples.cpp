#include <cmath>
#include <functional>

#include <cutaway/autograd/op.h>
#include <cutaway/autograd/ops/pool.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

// Windows by the definition: for each output the list of input positions it covers, and its
// divisor.
struct Window {
  std::vector<Shape> positions;
  double divisor = 0;
};
using WindowOf = std::function<Window(const Shape& out)>;

// Joins one-dimensional windows (first … last in steps, padded count) into their product.
Window product(const std::vector<std::vector<int64_t>>& along, const std::vector<double>& counts) {
  Window w;
  w.divisor = 1;
  for (double c : counts) w.divisor *= c;
  Shape lengths;
  for (const auto& a : along) lengths.push_back(int64_t(a.size()));
  for_each_index(lengths, [&](const Shape& i) {
    Shape at;
    for (int d = 0; d < i.rank(); ++d) at.push_back(along[size_t(d)][size_t(i[d])]);
    w.positions.push_back(at);
  });
  return w;
}

WindowOf plain_windows(const Shape& in, const Shape& kernel, const Shape& stride, const Shape& pad,
                       const Shape& dilation, bool include_pad) {
  return [=](const Shape& out) {
    std::vector<std::vector<int64_t>> along;
    std::vector<double> counts;
    for (int d = 0; d < out.rank(); ++d) {
      std::vector<int64_t> list;
      double count = 0;
      for (int64_t k = 0; k < kernel[d]; ++k) {
        const int64_t i = out[d] * stride[d] - pad[d] + k * dilation[d];
        if (i >= 0 && i < in[d]) list.push_back(i);
        if (include_pad ? i < in[d] + pad[d] : i >= 0 && i < in[d]) ++count;
      }
      along.push_back(list);
      counts.push_back(count);
    }
    return product(along, counts);
  };
}

WindowOf adaptive_windows(const Shape& in, const Shape& size) {
  return [=](const Shape& out) {
    std::vector<std::vector<int64_t>> along;
    std::vector<double> counts;
    for (int d = 0; d < out.rank(); ++d) {
      std::vector<int64_t> list;
      const int64_t end = int64_t(std::ceil(double((out[d] + 1) * in[d]) / double(size[d])));
      for (int64_t i = out[d] * in[d] / size[d]; i < end; ++i) list.push_back(i);
      counts.push_back(double(list.size()));
      along.push_back(list);
    }
    return product(along, counts);
  };
}

// Sizes of one plane (the last `spatial` ones) and the position of an element of plane p.
size_t place(const Shape& plane, int64_t p, const Shape& at) {
  return size_t(p * plane.numel() + flat_index(plane, at));
}

Shape joined(const Shape& lead, const Shape& tail) {
  Shape s = lead;
  for (int64_t n : tail) s.push_back(n);
  return s;
}

// All cases have sizes [planes, in…]; `out` are the spatial sizes of the result.
Tensors max_reference(const Tensor& x, const Shape& out, const WindowOf& window) {
  const Ref in(x);
  const Shape plane = in.sizes.slice(in.sizes.rank() - out.rank(), in.sizes.rank());
  const Shape sizes = joined(in.sizes.slice(0, in.sizes.rank() - out.rank()), out);
  Ref y(sizes), index(sizes);
  for (int64_t p = 0; p < sizes.numel() / std::max<int64_t>(out.numel(), 1); ++p) {
    for_each_index(out, [&](const Shape& o) {
      double best = -INFINITY;
      int64_t at = -1;
      for (const Shape& i : window(o).positions) {
        const double v = in.v[place(plane, p, i)];
        if (at < 0 || v > best || (std::isnan(v) && !std::isnan(best))) {
          best = v;
          at = flat_index(plane, i);
        }
      }
      y.v[place(out, p, o)] = best;
      index.v[place(out, p, o)] = double(at);
    });
  }
  return {y.tensor(), index.tensor()};
}

Tensors avg_reference(const Tensor& x, const Shape& out, const WindowOf& window, double fixed = 0) {
  const Ref in(x);
  const Shape plane = in.sizes.slice(in.sizes.rank() - out.rank(), in.sizes.rank());
  Ref y(joined(in.sizes.slice(0, in.sizes.rank() - out.rank()), out));
  for (int64_t p = 0; p < y.sizes.numel() / std::max<int64_t>(out.numel(), 1); ++p) {
    for_each_index(out, [&](const Shape& o) {
      const Window w = window(o);
      double sum = 0;
      for (const Shape& i : w.positions) sum += in.v[place(plane, p, i)];
      y.v[place(out, p, o)] = sum / (fixed != 0 ? fixed : w.divisor);
    });
  }
  return {y.tensor()};
}

struct Case {
  const char* label;
  Shape x;
  PoolOptions o;
  Shape out;
};

WindowOf windows(const Case& k) {
  const int n = k.out.rank();
  const Shape kernel = k.o.kernel.expand("", n);
  return plain_windows(k.x.slice(k.x.rank() - n, k.x.rank()), kernel,
                       k.o.stride ? k.o.stride->expand("", n) : kernel, k.o.padding.expand("", n),
                       k.o.dilation.expand("", n), k.o.count_include_pad);
}

}  // namespace

void max_pool_samples(SampleList& s) {
  static const std::vector<Case> cases = {
      {"1-d", {2, 3, 7}, {.kernel = 3, .stride = Dims(2)}, {3}},
      {"2-d", {2, 2, 6, 4}, {.kernel = 2}, {3, 2}},
      {"2-d padded, overlapping",
       {1, 2, 5, 5},
       {.kernel = 3, .stride = Dims(2), .padding = 1},
       {3, 3}},
      {"dilated", {1, 1, 7, 6}, {.kernel = 2, .stride = Dims(1), .dilation = {3, 2}}, {4, 4}},
      {"ceil", {1, 1, 5, 5}, {.kernel = 2, .stride = Dims(2), .ceil_mode = true}, {3, 3}},
      {"3-d", {1, 2, 4, 2, 3}, {.kernel = {2, 1, 2}, .stride = Dims{2, 1, 1}}, {2, 2, 2}},
      {"no batch dimension", {3, 4, 4}, {.kernel = 2}, {2, 2}},
      {"no samples", {0, 2, 4, 4}, {.kernel = 2}, {2, 2}},
  };
  for (const Case& k : cases) {
    s.add(
        k.label, {s.distinct(k.x)},
        [&k](const Tensors& in) { return max_pool_with_indices(in[0], k.o, k.out.rank()); },
        [&k](const Tensors& in) { return max_reference(in[0], k.out, windows(k)); });
  }
  s.add(
      "adaptive", {s.distinct({1, 2, 5, 4})},
      [](const Tensors& in) {
        return Tensors{adaptive_max_pool2d(in[0], {3, 2})};
      },
      [](const Tensors& in) {
        return Tensors{max_reference(in[0], {3, 2}, adaptive_windows({5, 4}, {3, 2}))[0]};
      });
  s.error(
      "padding",
      [] {
        max_pool1d(ones({1, 1, 6}), {.kernel = 3, .padding = 2});
      },
      "[max_pool1d] padding must be between 0 and half the kernel; got padding [2], kernel [3]");
  s.error(
      "window",
      [] {
        max_pool2d(ones({1, 1, 2, 2}), 3);
      },
      "the window must fit into the padded input; got [1,1,2,2]");
  s.error(
      "rank",
      [] {
        max_pool2d(ones({2, 2}), 2);
      },
      "[max_pool2d] needs [N,C,2 sizes] or [C,2 sizes]; got [2,2]");
}

void avg_pool_samples(SampleList& s) {
  static const std::vector<Case> cases = {
      {"1-d", {2, 3, 7}, {.kernel = 3, .stride = Dims(2)}, {3}},
      {"2-d", {2, 2, 6, 4}, {.kernel = 2}, {3, 2}},
      {"padding counts", {1, 2, 5, 5}, {.kernel = 3, .stride = Dims(2), .padding = 1}, {3, 3}},
      {"padding left out",
       {1, 2, 5, 5},
       {.kernel = 3, .stride = Dims(2), .padding = 1, .count_include_pad = false},
       {3, 3}},
      {"ceil", {1, 1, 6}, {.kernel = 3, .stride = Dims(2), .padding = 1, .ceil_mode = true}, {4}},
      {"3-d", {1, 2, 4, 2, 3}, {.kernel = {2, 1, 2}, .stride = Dims{2, 1, 1}}, {2, 2, 2}},
      {"no samples", {0, 2, 4, 4}, {.kernel = 2}, {2, 2}},
  };
  for (const Case& k : cases) {
    s.add(
        k.label, {s.randn(k.x)},
        [&k](const Tensors& in) {
          const int n = k.out.rank();
          return Tensors{n == 1   ? avg_pool1d(in[0], k.o)
                         : n == 2 ? avg_pool2d(in[0], k.o)
                                  : avg_pool3d(in[0], k.o)};
        },
        [&k](const Tensors& in) { return avg_reference(in[0], k.out, windows(k)); });
  }
  s.add(
      "fixed divisor", {s.randn({1, 1, 4, 4})},
      [](const Tensors& in) {
        return Tensors{avg_pool2d(in[0], PoolOptions{.kernel = 2, .divisor_override = 3})};
      },
      [](const Tensors& in) {
        return avg_reference(in[0], {2, 2},
                             plain_windows({4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true), 3);
      });
  for (const auto& [in_size, out_size] : {std::pair<int64_t, int64_t>{5, 3}, {3, 5}, {10, 4}}) {
    const Shape x{in_size}, y{out_size};
    s.add(
        "adaptive " + to_string(x) + " to " + to_string(y), {s.randn({2, 1, in_size})},
        [y](const Tensors& in) { return Tensors{adaptive_avg_pool1d(in[0], y)}; },
        [x, y](const Tensors& in) { return avg_reference(in[0], y, adaptive_windows(x, y)); });
  }
  s.error(
      "dilation",
      [] {
        avg_pool1d(ones({1, 1, 6}), {.kernel = 2, .dilation = 2});
      },
      "average pooling has no dilation");
}

void avg_pool_grad_samples(SampleList& s) {
  static const Case k{
      "overlapping, padded", {2, 5, 4}, {.kernel = 3, .stride = Dims(2), .padding = 1}, {3, 2}};
  s.add(
      k.label, {s.randn({2, 3, 2})},
      [](const Tensors& in) { return Tensors{avg_pool_grad(in[0], k.x, k.o, 2)}; },
      [](const Tensors& in) {
        const Ref g(in[0]);
        Ref x(k.x);
        const WindowOf window = windows(k);
        for (int64_t p = 0; p < 2; ++p) {
          for_each_index(k.out, [&](const Shape& o) {
            const Window w = window(o);
            for (const Shape& i : w.positions) {
              x.v[place({5, 4}, p, i)] += g.v[place(k.out, p, o)] / w.divisor;
            }
          });
        }
        return Tensors{x.tensor()};
      });
}

void plane_scatter_samples(SampleList& s) {
  s.add(
      "repeated positions", {s.randn({2, 3, 4}), s.integers({2, 3, 4}, 0, 5)},
      [](const Tensors& in) {
        return Tensors{max_unpool(in[0], in[1], {2, 3, 5}, 1)};
      },
      [](const Tensors& in) {
        const Ref g(in[0]), index(in[1]);
        Ref x({2, 3, 5});
        for (size_t i = 0; i < g.v.size(); ++i) x.v[i / 4 * 5 + size_t(index.v[i])] += g.v[i];
        return Tensors{x.tensor()};
      });
  s.error(
      "index",
      [] {
        max_unpool(ones({1, 2}), full({1, 2}, 7, {.dtype = DType::i64}), {1, 4}, 1);
      },
      "[max_unpool] index 7 at position 0 is out of range; a plane has 4 elements");
  s.error(
      "sizes",
      [] {
        max_unpool(ones({1, 3}), full({1, 2}, 0, {.dtype = DType::i64}), {1, 4}, 1);
      },
      "values and indices must have the same sizes; got [1,3] and [1,2]");
}

void plane_gather_samples(SampleList& s) {
  s.add(
      "planes", {s.randn({2, 3, 5}), s.integers({2, 3, 4}, 0, 5)},
      [](const Tensors& in) { return Tensors{max_pool_gather(in[0], in[1], 1)}; },
      [](const Tensors& in) {
        const Ref x(in[0]), index(in[1]);
        Ref y({2, 3, 4});
        for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = x.v[i / 4 * 5 + size_t(index.v[i])];
        return Tensors{y.tensor()};
      });
  s.error(
      "type",
      [] {
        max_pool_gather(ones({1, 4}), ones({1, 2}), 1);
      },
      "indices must be i64; got f32");
}

}  // namespace cutaway
