#include <algorithm>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

using Op = std::function<Tensor(const Tensor&)>;
using From = std::function<Shape(const Shape&)>;

Sample& add_moved(SampleList& list, const char* label, Tensor x, const Shape& want, Op op,
                  From from) {
  return list.add(
      label, {std::move(x)}, [op](const Tensors& in) { return Tensors{op(in[0])}; },
      [=](const Tensors& in) { return moved(in[0], want, from); });
}

// Padding of the last dimension, by its own rules; -1 stands for the constant.
int64_t pad_source(PadMode mode, int64_t i, int64_t n) {
  while (i < 0 || i >= n) {
    if (mode == PadMode::constant) return -1;
    if (mode == PadMode::replicate) return std::clamp<int64_t>(i, 0, n - 1);
    if (mode == PadMode::circular) i += i < 0 ? n : -n;
    if (mode == PadMode::reflect) i = i < 0 ? -i : 2 * n - 2 - i;
  }
  return i;
}

Sample& add_pad(SampleList& list, const char* label, const Shape& sizes, const Shape& pads,
                PadOptions options) {
  return list.add(
      label, {list.randn(sizes)},
      [=](const Tensors& in) { return Tensors{pad(in[0], pads, options)}; },
      [=](const Tensors& in) {
        const Ref x(in[0]);
        Shape want = sizes;
        for (int k = 0; k < pads.rank(); ++k) want[want.rank() - 1 - k / 2] += pads[k];
        Ref out(want, options.value);
        size_t at = 0;
        for_each_index(want, [&](Shape i) {
          bool inside = true;
          for (int k = 0; k < pads.rank(); k += 2) {
            const int d = want.rank() - 1 - k / 2;
            i[d] = pad_source(options.mode, i[d] - pads[k], sizes[d]);
            inside = inside && i[d] >= 0;
          }
          if (inside) out.v[at] = x.v[size_t(flat_index(sizes, i))];
          ++at;
        });
        return Tensors{out.tensor()};
      });
}

// The adjoint of `op` on tensors of these sizes, by its backward rule.
void add_adjoint(SampleList& list, const char* label, const Shape& sizes, const Shape& of_result,
                 Op op, From from) {
  list.add(
      label, {list.randn(of_result)},
      [=](const Tensors& in) {
        Tensor x = zeros(sizes, {.dtype = in[0].dtype(), .device = in[0].device()});
        x.set_requires_grad();
        const GradModeGuard recording(true);
        return grad(Tensors{op(x)}, {x}, {.create_graph = true}, {in[0]});
      },
      [=](const Tensors& in) {
        const Ref g(in[0]);
        Ref out(sizes);
        size_t at = 0;
        for_each_index(of_result, [&](const Shape& i) {
          out.v[size_t(flat_index(sizes, from(i)))] += g.v[at++];
        });
        return Tensors{out.tensor()};
      });
}

From modulo(const Shape& sizes) {
  return [sizes](const Shape& i) {
    Shape from = sizes;
    const int shift = i.rank() - sizes.rank();
    for (int d = 0; d < sizes.rank(); ++d) from[d] = i[shift + d] % sizes[d];
    return from;
  };
}

From reflected(int64_t before, int64_t n) {
  return [=](Shape i) {
    i[i.rank() - 1] = pad_source(PadMode::reflect, i.back() - before, n);
    return i;
  };
}

}  // namespace

void flip_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, const Shape& dims) {
    return &add_moved(
        list, label, list.randn(sizes), sizes, [=](const Tensor& x) { return flip(x, dims); },
        [=](Shape i) {
          for (int64_t d : dims) {
            const int at = int(d < 0 ? d + sizes.rank() : d);
            if (sizes.rank()) i[at] = sizes[at] - 1 - i[at];
          }
          return i;
        });
  };
  add("rows", {3, 2}, {0});
  add("both", {2, 3}, {0, -1});
  add("middle", {2, 3, 2}, {1});
  add("none", {3}, {});
  add("0-d", {}, {0});
  add("empty", {0, 2}, {0});
  add("long", {3, 1500}, {1})->grad = false;
  list.error(
      "twice",
      [] {
        flip(zeros({2, 3}), {1, -1});
      },
      "[flip] a dimension is named twice; got [1,-1] for x [2,3]");
}

void roll_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t shift, int dim) {
    return &add_moved(
        list, label, list.randn(sizes), sizes,
        [=](const Tensor& x) { return roll(x, {shift}, {dim}); },
        [=](Shape i) {
          const int64_t n = sizes[dim];
          i[dim] = ((i[dim] - shift % n) % n + n) % n;
          return i;
        });
  };
  add("by 1", {4, 2}, 1, 0);
  add("back", {2, 5}, -2, 1);
  add("more than once around", {5}, 7, 0);
  add("empty", {0}, 3, 0);
  add("smallest shift", {3}, INT64_MIN, 0);
  add("long", {2, 1500}, 400, 1)->grad = false;
  add_moved(
      list, "flattened", list.randn({2, 2}), {2, 2}, [](const Tensor& x) { return roll(x, {1}); },
      [](const Shape& i) {
        const int64_t from = (i[0] * 2 + i[1] + 3) % 4;
        return Shape{from / 2, from % 2};
      });
  list.error(
      "count",
      [] {
        roll(zeros({2, 3}), {1, 2}, {0});
      },
      "[roll] needs one shift for each dimension; dims are [0]; got [1,2] for x [2,3]");
}

void pad_samples(SampleList& list) {
  add_pad(list, "constant", {2, 3}, {1, 2}, {.value = 1.5});
  add_pad(list, "constant, two dimensions", {2, 3}, {1, 0, 2, 1}, {});
  add_pad(list, "cut and add", {5}, {-2, 1}, {});
  add_pad(list, "cut beyond", {3}, {-5, 4}, {.value = 2});
  add_pad(list, "empty", {0}, {2, 1}, {.value = 3});
  add_pad(list, "reflect", {2, 4}, {3, 2}, {.mode = PadMode::reflect});
  add_pad(list, "reflect image", {1, 3, 3}, {1, 2, 2, 1}, {.mode = PadMode::reflect});
  add_pad(list, "replicate", {2, 2}, {3, 1, 0, 2}, {.mode = PadMode::replicate});
  add_pad(list, "circular", {3, 2}, {2, 1, 3, 0}, {.mode = PadMode::circular});
  add_pad(list, "reflect and cut", {4}, {2, -1}, {.mode = PadMode::reflect});
  add_pad(list, "long", {3, 600}, {100, 50}, {.mode = PadMode::circular}).grad = false;
  list.error(
      "reflect",
      [] {
        pad(zeros({3}), {3, 0}, {.mode = PadMode::reflect});
      },
      "[pad] reflect needs pads smaller than the size; got [3,0] for x [3]");
  list.error(
      "circular",
      [] {
        pad(zeros({3}), {0, 4}, {.mode = PadMode::circular});
      },
      "[pad] circular needs pads of at most the size; got [0,4] for x [3]");
  list.error(
      "odd", [] { pad(zeros({3}), {1}); }, "[pad] pads come in pairs");
  list.error(
      "too much",
      [] {
        pad(zeros({3}), {-2, -2});
      },
      "[pad] nothing may be cut away twice");
}

void repeat_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, const Shape& times, Op op) {
    Shape want = sizes;
    while (want.rank() < times.rank()) want.insert(0, 1);
    for (int d = 0; d < times.rank(); ++d) want[want.rank() - times.rank() + d] *= times[d];
    return &add_moved(list, label, list.randn(sizes), want, std::move(op), modulo(sizes));
  };
  const auto by = [](const Shape& times) {
    return [times](const Tensor& x) { return repeat(x, times); };
  };
  add("both dimensions", {2, 3}, {2, 2}, by({2, 2}));
  add("new dimension", {3}, {2, 2}, by({2, 2}));
  add("0-d", {}, {3}, by({3}));
  add("no times", {2, 2}, {0, 1}, by({0, 1}));
  add("empty", {0, 2}, {2, 1}, by({2, 1}));
  add("tile", {2, 2}, {2}, [](const Tensor& x) { return tile(x, {2}); });
  add("long", {2, 400}, {1, 3}, by({1, 3}))->grad = false;
  list.error(
      "too few",
      [] {
        repeat(zeros({2, 3}), {2});
      },
      "[repeat] needs a number for every dimension; got [2] for x [2,3]");
  list.error(
      "negative", [] { repeat(zeros({2}), {-1}); },
      "[repeat] numbers of repeats must not be negative");
}

void repeat_interleave_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& sizes, int64_t n, int dim) {
    Shape want = sizes;
    want[dim] *= n;
    add_moved(
        list, label, list.randn(sizes), want,
        [=](const Tensor& x) { return repeat_interleave(x, n, dim); },
        [=](Shape i) {
          i[dim] /= n;
          return i;
        });
  };
  add("rows", {2, 2}, 3, 0);
  add("columns", {2, 3}, 2, 1);
  add("no times", {2}, 0, 0);
  add("empty", {0, 2}, 2, 0);
  list.error(
      "negative", [] { repeat_interleave(zeros({2}), -1, 0); },
      "[repeat_interleave] the number of repeats must not be negative");
}

void remap_adjoint_samples(SampleList& list) {
  add_adjoint(
      list, "reflect", {2, 4}, {2, 9},
      [](const Tensor& x) {
        return pad(x, {3, 2}, {.mode = PadMode::reflect});
      },
      reflected(3, 4));
  add_adjoint(
      list, "repeat", {2, 2}, {3, 4, 4},
      [](const Tensor& x) {
        return repeat(x, {3, 2, 2});
      },
      modulo({2, 2}));
  add_adjoint(
      list, "interleave", {2, 2}, {2, 6},
      [](const Tensor& x) { return repeat_interleave(x, 3, 1); },
      [](const Shape& i) {
        return Shape{i[0], i[1] / 3};
      });
  add_adjoint(
      list, "of nothing", {2}, {0}, [](const Tensor& x) { return repeat(x, {0}); }, modulo({2}));
}

}  // namespace cutaway
