// Depthwise convolution, which has kernels of its own, against a dense one for each channel: sizes
// around the vector width, strides, dilation, several results a channel.
#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

struct Case {
  Shape x, kernel;  // kernel: spatial sizes
  int64_t multiplier = 1;
  ConvOptions options;
};

Tensor wave(const Shape& sizes, double frequency, DType dtype) {
  const Tensor i = arange(0, sizes.numel(), 1, {.dtype = DType::f64});
  return reshape(sin(i * frequency), sizes).to(dtype);
}

struct Results {
  Tensor y, dx, dw, db;
};

Results gradients(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& up,
                  const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>& f) {
  const Tensor xs = x.detach().set_requires_grad(true), ws = w.detach().set_requires_grad(true),
               bs = b.detach().set_requires_grad(true);
  const Tensor y = f(xs, ws, bs);
  y.backward(up.defined() ? up : wave(y.sizes(), 0.37, y.dtype()));
  return {y.detach(), xs.grad(), ws.grad(), bs.grad()};
}

void expect_close(const Tensor& got, const Tensor& want, double tolerance, const char* what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const auto a = got.to(DType::f64).to_vector(), b = want.to(DType::f64).to_vector();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << what << " " << i;
}

void check(const Case& c, DType dtype) {
  const int64_t channels = c.x[1];
  Shape weight = {channels * c.multiplier, 1};
  for (int d = 0; d < c.kernel.rank(); ++d) weight.push_back(c.kernel[d]);
  const Tensor x = wave(c.x, 0.71, dtype), w = wave(weight, 1.3, dtype);
  const Tensor b = wave({channels * c.multiplier}, 0.9, dtype);
  const auto conv = [&](const Tensor& xi, const Tensor& wi, const Tensor& bi, ConvOptions o) {
    return c.kernel.rank() == 2 ? conv2d(xi, wi, bi, o) : conv3d(xi, wi, bi, o);
  };
  ConvOptions grouped = c.options;
  grouped.groups = channels;
  const Results got = gradients(x, w, b, {}, [&](const auto& xi, const auto& wi, const auto& bi) {
    return conv(xi, wi, bi, grouped);
  });
  const Results want =
      gradients(x.to(DType::f64), w.to(DType::f64), b.to(DType::f64), {},
                [&](const auto& xi, const auto& wi, const auto& bi) {
                  Tensors parts;
                  for (int64_t i = 0; i < channels; ++i) {
                    const int64_t from = i * c.multiplier;
                    parts.push_back(conv(narrow(xi, 1, i, 1), narrow(wi, 0, from, c.multiplier),
                                         narrow(bi, 0, from, c.multiplier), c.options));
                  }
                  return cat(parts, 1);
                });
  const double tolerance = dtype == DType::f64 ? 1e-11 : 2e-4;
  expect_close(got.y, want.y, tolerance, "y");
  expect_close(got.dx, want.dx, tolerance, "dx");
  expect_close(got.dw, want.dw, tolerance * 10, "dw");
  expect_close(got.db, want.db, tolerance * 10, "db");
  set_num_threads(2);
  const Results two = gradients(x, w, b, {}, [&](const auto& xi, const auto& wi, const auto& bi) {
    return conv(xi, wi, bi, grouped);
  });
  set_num_threads(1);
  EXPECT_EQ(two.y.to_vector(), got.y.to_vector());
  EXPECT_EQ(two.dx.to_vector(), got.dx.to_vector());
  EXPECT_EQ(two.dw.to_vector(), got.dw.to_vector());
}

void check(const Case& c) {
  const int before = num_threads();
  set_num_threads(1);
  check(c, DType::f32);
  check(c, DType::f64);
  set_num_threads(before);
}

TEST(Depthwise, sizes_around_the_vector_width) {
  for (const int64_t width : {1, 2, 7, 8, 9, 14, 15, 16, 17, 31, 33, 40, 65}) {
    check({{2, 3, 6, width}, {3, 3}, 1, {.padding = 1}});
  }
}

TEST(Depthwise, kernels_strides_and_dilation) {
  check({{2, 4, 11, 23}, {5, 5}, 1, {.stride = 2, .padding = 2}});
  check({{2, 4, 12, 22}, {3, 3}, 1, {.stride = 2, .padding = 1}});
  check({{1, 2, 14, 37}, {3, 5}, 1, {.stride = {3, 2}, .padding = {0, 2}, .dilation = {1, 2}}});
  check({{2, 2, 9, 20}, {4, 2}, 1, {.stride = {1, 3}, .padding = {3, 1}}});
  check({{1, 3, 20, 21}, {7, 7}, 1, {.padding = 3}});
  check({{2, 3, 8, 19}, {1, 1}, 1, {.stride = 2}});
  check({{1, 2, 9, 9}, {3, 3}, 1, {.stride = 4, .padding = 0, .dilation = 3}});
}

TEST(Depthwise, several_results_a_channel) {
  check({{2, 3, 7, 18}, {3, 3}, 3, {.padding = 1}});
  check({{2, 3, 7, 18}, {3, 2}, 2, {.stride = 2, .padding = 1}});
}

TEST(Depthwise, three_dimensions) {
  check({{2, 2, 5, 6, 17}, {3, 3, 3}, 1, {.padding = 1}});
  check({{1, 2, 5, 6, 9}, {2, 3, 3}, 2, {.stride = {2, 1, 2}, .padding = 1}});
}

TEST(Depthwise, empty_batch) {
  const Tensor x = zeros({0, 3, 5, 5}), w = ones({3, 1, 3, 3});
  const Tensor ws = w.detach().set_requires_grad(true);
  const Tensor y = conv2d(x, ws, {}, {.padding = 1, .groups = 3});
  EXPECT_EQ(y.sizes(), (Shape{0, 3, 5, 5}));
  y.sum().backward();
  EXPECT_EQ(ws.grad().to_vector(), std::vector<double>(27, 0.0));
}

// What a position does not read must not reach it, infinite or not.
TEST(Depthwise, infinity_stays_where_it_is) {
  const Tensor row = tensor({0, 0, 0, 0, 0, INFINITY}, {1, 1, 1, 6});
  const Tensor x = cat({row, row}, 1);
  const Tensor w = ones({2, 1, 1, 2}).set_requires_grad(true);
  const Tensor y = conv2d(x, w, {}, {.groups = 2});
  EXPECT_EQ(y.to_vector(), (std::vector<double>{0, 0, 0, 0, INFINITY, 0, 0, 0, 0, INFINITY}));
  y.backward(ones(y.sizes()));
  EXPECT_EQ(w.grad().to_vector(), (std::vector<double>{0, INFINITY, 0, INFINITY}));
}

}  // namespace
}  // namespace cutaway
