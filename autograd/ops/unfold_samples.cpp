#include <cutaway/autograd/ops/arrange.h>
#include <cutaway/autograd/ops/sample_tools.h>
#include <cutaway/autograd/ops/shape.h>

namespace cutaway {
namespace {

struct UnfoldCase {
  const char* label;
  Shape sizes;
  int dim;
  int64_t size, step;
};
const UnfoldCase kCases[] = {
    {"overlapping", {5}, 0, 3, 1},
    {"step", {2, 7}, 1, 3, 2},
    {"gaps", {7, 2}, 0, 2, 3},
    {"middle", {2, 4, 2}, 1, 2, 2},
    {"whole", {3}, 0, 3, 1},
    {"windows of nothing", {2}, 0, 0, 1},
    {"nothing beside", {0, 3}, 1, 2, 1},
};

Shape window_sizes(const UnfoldCase& c) {
  Shape want = c.sizes;
  want[c.dim] = (c.sizes[c.dim] - c.size) / c.step + 1;
  want.push_back(c.size);
  return want;
}

Shape source(const UnfoldCase& c, const Shape& i) {
  Shape from = i.slice(0, c.sizes.rank());
  from[c.dim] = i[c.dim] * c.step + i.back();
  return from;
}

struct ImageCase {
  const char* label;
  int64_t n, c, h, w;
  Window2d window;
  int64_t out(int d) const {
    const int64_t span = window.dilation[d] * (window.kernel[d] - 1) + 1;
    return ((d ? w : h) + 2 * window.padding[d] - span) / window.stride[d] + 1;
  }
  int64_t rows() const { return c * window.kernel[0] * window.kernel[1]; }
};
const ImageCase kImages[] = {
    {"3x3 by 2", 1, 1, 3, 3, {.kernel = {2, 2}}},
    {"padding and stride", 2, 2, 3, 4, {.kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 1}}},
    {"dilation", 1, 2, 4, 5, {.kernel = {2, 2}, .padding = {0, 1}, .dilation = {2, 3}}},
    {"gaps", 1, 1, 5, 5, {.kernel = {1, 2}, .stride = {3, 2}}},
    {"no images", 0, 1, 2, 2, {.kernel = {2, 1}}},
};

// Calls f(flat position in columns, flat position in images) for all that lie inside.
template <class F>
void for_each_tap(const ImageCase& c, F&& f) {
  const Window2d& w = c.window;
  const int64_t kh = w.kernel[0], kw = w.kernel[1], oh = c.out(0), ow = c.out(1);
  for_each_index({c.n, c.c, kh * kw, oh * ow}, [&](const Shape& i) {
    const int64_t y = i[3] / ow * w.stride[0] + i[2] / kw * w.dilation[0] - w.padding[0];
    const int64_t x = i[3] % ow * w.stride[1] + i[2] % kw * w.dilation[1] - w.padding[1];
    if (y < 0 || y >= c.h || x < 0 || x >= c.w) return;
    const int64_t column = ((i[0] * c.c + i[1]) * kh * kw + i[2]) * oh * ow + i[3];
    f(size_t(column), size_t(((i[0] * c.c + i[1]) * c.h + y) * c.w + x));
  });
}

}  // namespace

void unfold_samples(SampleList& list) {
  for (const UnfoldCase& c : kCases) {
    list.add(
        c.label, {list.randn(c.sizes)},
        [c](const Tensors& in) { return Tensors{unfold(in[0], c.dim, c.size, c.step)}; },
        [c](const Tensors& in) {
          return moved(in[0], window_sizes(c), [&](const Shape& i) { return source(c, i); });
        });
  }
  list.error(
      "size", [] { unfold(zeros({3}), 0, 4, 1); },
      "[unfold] needs step >= 1 and 0 <= size <= 3; got size 4 and step 1 for dimension 0");
  list.error(
      "0-d", [] { unfold(zeros({}), 0, 1, 1); }, "[unfold] needs 1 to 7 dimensions; got []");
}

void unfold_adjoint_samples(SampleList& list) {
  for (const UnfoldCase& c : kCases) {
    list.add(
        c.label, {list.randn(window_sizes(c))},
        [c](const Tensors& in) {
          return Tensors{unfold_adjoint(in[0], c.sizes, c.dim, c.size, c.step)};
        },
        [c](const Tensors& in) {
          const Ref g(in[0]);
          Ref out(c.sizes);
          size_t k = 0;
          for_each_index(g.sizes, [&](const Shape& i) {
            out.v[size_t(flat_index(c.sizes, source(c, i)))] += g.v[k++];
          });
          return Tensors{out.tensor()};
        });
  }
  list.error(
      "sizes",
      [] {
        unfold_adjoint(zeros({2, 2}), {5}, 0, 2, 1);
      },
      "[unfold_adjoint] needs the sizes of the windows; got [2,2], need [4,2]");
}

void unfold2d_samples(SampleList& list) {
  for (const ImageCase& c : kImages) {
    list.add(
        c.label, {list.randn({c.n, c.c, c.h, c.w})},
        [c](const Tensors& in) { return Tensors{unfold2d(in[0], c.window)}; },
        [c](const Tensors& in) {
          const Ref x(in[0]);
          Ref out({c.n, c.rows(), c.out(0) * c.out(1)});
          for_each_tap(c, [&](size_t column, size_t pixel) { out.v[column] = x.v[pixel]; });
          return Tensors{out.tensor()};
        });
  }
  list.error(
      "rank",
      [] {
        unfold2d(zeros({3, 3}), {.kernel = {2, 2}});
      },
      "[unfold2d] needs images; got x [3,3], need [N,C,H,W]");
  list.error(
      "window",
      [] {
        unfold2d(zeros({1, 1, 2, 2}), {.kernel = {3, 1}});
      },
      "[unfold2d] the window is larger than the padded image; got image 2x2");
  list.error(
      "stride",
      [] {
        unfold2d(zeros({1, 1, 2, 2}), {.stride = {0, 1}});
      },
      "[unfold2d] needs kernel, stride, dilation >= 1 and padding >= 0");
}

void fold2d_samples(SampleList& list) {
  for (const ImageCase& c : kImages) {
    list.add(
        c.label, {list.randn({c.n, c.rows(), c.out(0) * c.out(1)})},
        [c](const Tensors& in) {
          return Tensors{fold2d(in[0], {c.h, c.w}, c.window)};
        },
        [c](const Tensors& in) {
          const Ref x(in[0]);
          Ref out({c.n, c.c, c.h, c.w});
          for_each_tap(c, [&](size_t column, size_t pixel) { out.v[pixel] += x.v[column]; });
          return Tensors{out.tensor()};
        });
  }
  list.error(
      "columns",
      [] {
        fold2d(zeros({1, 4, 3}), {3, 3}, {.kernel = {2, 2}});
      },
      "[fold2d] columns and windows must agree; got x [1,4,3], need [N, C·4, 4]");
}

}  // namespace cutaway
