#include <cutaway/autograd/ops/index.h>
#include <cutaway/autograd/ops/sample_tools.h>

namespace cutaway {
namespace {

// The values of t spread over `sizes` by broadcasting, in row-major order.
std::vector<double> spread(const Tensor& t, const Shape& sizes) {
  return Ref(moved(t, sizes,
                   [&](const Shape& i) {
                     Shape from = t.sizes();
                     const int shift = sizes.rank() - from.rank();
                     for (int d = 0; d < from.rank(); ++d)
                       from[d] = t.sizes()[d] == 1 ? 0 : i[shift + d];
                     return from;
                   })[0])
      .v;
}

}  // namespace

void nonzero_samples(SampleList& list) {
  const auto add = [&](const char* label, Tensor x) {
    list.add(
        label, {std::move(x)}, [](const Tensors& in) { return Tensors{nonzero(in[0])}; },
        [](const Tensors& in) {
          const Ref x(in[0]);
          std::vector<double> rows;
          int64_t count = 0;
          size_t k = 0;
          for_each_index(x.sizes, [&](const Shape& i) {
            if (x.v[k++] == 0) return;
            for (int64_t v : i) rows.push_back(double(v));
            ++count;
          });
          Ref out({count, x.sizes.rank()});
          out.v = rows;
          return Tensors{out.tensor()};
        });
  };
  add("mask", list.bools({3, 4}));
  add("numbers", list.integers({2, 2, 3}, -1, 2));
  add("floats", tensor({0, 1, -0.0, 2}, {.dtype = DType::f64}));
  add("0-d", tensor({2}, Shape{}, {.dtype = DType::f64}));
  add("none", zeros({3}, {.dtype = DType::f64}));
  add("empty", list.randn({0, 2}));
  add("long", list.bools({200, 300}));
  list.error(
      "meta", [] { nonzero(zeros({2}, {.device = kMeta})); },
      "[nonzero] the size of the result depends on values");
}

void masked_select_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& x, const Shape& mask, const Shape& both) {
    list.add(
        label, {list.randn(x), list.bools(mask)},
        [](const Tensors& in) { return Tensors{masked_select(in[0], in[1])}; },
        [both](const Tensors& in) {
          const auto values = spread(in[0], both), chosen = spread(in[1], both);
          std::vector<double> out;
          for (size_t i = 0; i < values.size(); ++i) {
            if (chosen[i] != 0) out.push_back(values[i]);
          }
          Ref y({int64_t(out.size())});
          y.v = out;
          return Tensors{y.tensor()};
        });
  };
  add("matrix", {3, 4}, {3, 4}, {3, 4});
  add("mask of rows", {3, 2}, {3, 1}, {3, 2});
  add("x repeated", {3}, {2, 3}, {2, 3});
  add("0-d", {}, {}, {});
  add("empty", {0, 3}, {3}, {0, 3});
  list.error(
      "type", [] { masked_select(zeros({2}), zeros({2})); },
      "[masked_select] the mask must be bool; got f32 [2]");
  list.error(
      "sizes", [] { masked_select(zeros({2}), zeros({3}, {.dtype = DType::boolean})); },
      "[masked_select] sizes must be equal or 1");
}

void masked_scatter_samples(SampleList& list) {
  const auto add = [&](const char* label, const Shape& x, const Shape& mask, const Shape& src) {
    list.add(
        label, {list.randn(x), list.bools(mask), list.randn(src)},
        [](const Tensors& in) { return Tensors{masked_scatter(in[0], in[1], in[2])}; },
        [](const Tensors& in) {
          Ref out(in[0]);
          const Ref src(in[2]);
          const auto chosen = spread(in[1], out.sizes);
          size_t k = 0;
          for (size_t i = 0; i < out.v.size(); ++i) {
            if (chosen[i] != 0) out.v[i] = src.v[k++];
          }
          return Tensors{out.tensor()};
        });
  };
  add("matrix", {3, 4}, {3, 4}, {12});
  add("mask of columns", {3, 2}, {2}, {2, 4});
  add("0-d", {}, {}, {1});
  add("empty", {0, 2}, {2}, {0});
  list.error(
      "too few",
      [] { masked_scatter(zeros({3}), ones({3}, {.dtype = DType::boolean}), ones({2})); },
      "[masked_scatter] src needs an element for each true place; got 2 for 3");
}

}  // namespace cutaway
