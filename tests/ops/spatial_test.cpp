// Convolution, pooling and resizing: the inputs that users of other frameworks stumbled over.
#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr Opts kF64{.dtype = DType::f64};

// x [1,1,n].
Tensor line(std::initializer_list<double> v) { return tensor(v, {1, 1, int64_t(v.size())}, kF64); }

void expect_near(const Tensor& got, const Values& want) {
  const Values v = got.to_vector();
  ASSERT_EQ(v.size(), want.size());
  for (size_t i = 0; i < v.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(v[i])) << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(v[i], want[i]) << i;
    } else {
      EXPECT_NEAR(v[i], want[i], 1e-6) << i;
    }
  }
}

TEST(Convolution, FC_01bc_transposed_with_dilation_and_groups) {
  const Tensor big = conv_transpose2d(ones({1, 1, 50, 50}), ones({1, 1, 3, 5}), {},
                                      {.stride = {2, 1}, .padding = {4, 2}, .dilation = {3, 1}});
  EXPECT_EQ(big.sizes(), (Shape{1, 1, 97, 50}));
  const Tensor y = conv_transpose1d(tensor({1, 2}, {1, 2, 1}, kF64),
                                    tensor({1, 10, 100, 1000}, {2, 2, 1}, kF64), {}, {.groups = 2});
  EXPECT_EQ(y.to_vector(), (Values{1, 10, 200, 2000}));
}

TEST(Convolution, FC_8f2c_transposed_stride_padding_output_padding) {
  const Tensor x = line({1, 2}), w = line({1, 10, 100});
  EXPECT_EQ(conv_transpose1d(x, w, {}, {.stride = 2}).to_vector(), (Values{1, 10, 102, 20, 200}));
  EXPECT_EQ(conv_transpose1d(x, w, {}, {.stride = 2, .padding = 1}).to_vector(),
            (Values{10, 102, 20}));
  EXPECT_EQ(
      conv_transpose1d(x, w, {}, {.stride = 2, .padding = 1, .output_padding = 1}).to_vector(),
      (Values{10, 102, 20, 200}));
  EXPECT_EQ(conv_transpose1d(x, w, {}, {.stride = 2, .output_padding = 1}).to_vector(),
            (Values{1, 10, 102, 20, 200, 0}));
  EXPECT_THROW(conv_transpose1d(x, w, {}, {.stride = 2, .output_padding = 2}), ValueError);
}

TEST(Convolution, FC_23ae_groups_and_depthwise_order) {
  const Tensor y = conv1d(tensor({1, 2, 3, 4}, {1, 4, 1}, kF64),
                          tensor({1, 1, 10, 1, 1, 1, 1, 100}, {4, 2, 1}, kF64), {}, {.groups = 2});
  EXPECT_EQ(y.to_vector(), (Values{3, 12, 7, 403}));
  const Tensor depth = conv1d(tensor({1, 2}, {1, 2, 1}, kF64),
                              tensor({1, 10, 100, 1000}, {4, 1, 1}, kF64), {}, {.groups = 2});
  EXPECT_EQ(depth.to_vector(), (Values{1, 10, 200, 2000}));
  EXPECT_THROW(conv1d(ones({1, 3, 1}), ones({4, 2, 1}), {}, {.groups = 2}), ShapeError);
}

TEST(Convolution, FC_2b3b_an_empty_batch) {
  Tensor w = ones({4, 3, 3, 3}, {.requires_grad = true});
  Tensor y = conv2d(ones({0, 3, 8, 8}), w);
  EXPECT_EQ(y.sizes(), (Shape{0, 4, 6, 6}));
  y.sum().backward();
  EXPECT_EQ(w.grad().sizes(), w.sizes());
  EXPECT_EQ(w.grad().sum().item(), 0);
  EXPECT_EQ(max_pool2d(ones({0, 1, 4, 4}), 2).sizes(), (Shape{0, 1, 2, 2}));
  EXPECT_THROW(conv2d(ones({1, 3, 2, 2}), w), ShapeError);
}

TEST(MaxPool, FC_104c_nan_infinity_and_ties) {
  const Tensors a = max_pool_with_indices(line({NAN, 1, 2, NAN, 3, 4}), {.kernel = 2}, 1);
  expect_near(a[0], {NAN, NAN, 4});
  EXPECT_EQ(a[1].to_vector(), (Values{0, 3, 5}));
  const Tensors b =
      max_pool_with_indices(line({-INFINITY, -INFINITY, -INFINITY, -INFINITY}), {.kernel = 2}, 1);
  EXPECT_EQ(b[1].to_vector(), (Values{0, 2}));
  Tensor tied = line({7, 7, 7, 7}).set_requires_grad();
  max_pool1d(tied, {.kernel = 3, .stride = Dims(1)}).sum().backward();
  EXPECT_EQ(tied.grad().to_vector(), (Values{1, 1, 0, 0}));
  Tensor peak = line({1, 9, 2}).set_requires_grad();
  max_pool1d(peak, {.kernel = 2, .stride = Dims(1)}).sum().backward();
  EXPECT_EQ(peak.grad().to_vector(), (Values{0, 2, 0}));
}

TEST(MaxPool, FC_3077_and_FC_7dbf_padding_never_wins) {
  EXPECT_EQ(max_pool1d(line({1, 2, 3, 4, 5}),
                       {.kernel = 2, .stride = Dims(2), .padding = 1, .ceil_mode = true})
                .to_vector(),
            (Values{1, 3, 5}));
  EXPECT_EQ(max_pool1d(line({-5, -3}), {.kernel = 2, .stride = Dims(1), .padding = 1}).to_vector(),
            (Values{-5, -3, -3}));
}

TEST(AvgPool, FC_489b_and_FC_eeec_the_divisor) {
  const auto pool = [](const Tensor& x, int64_t k, int64_t s, int64_t p, bool ceil, bool include) {
    return avg_pool1d(x, {.kernel = k,
                          .stride = Dims(s),
                          .padding = p,
                          .ceil_mode = ceil,
                          .count_include_pad = include})
        .to_vector();
  };
  EXPECT_EQ(pool(line({6, 6, 6}), 2, 2, 1, false, true), (Values{3, 6}));
  EXPECT_EQ(pool(line({6, 6, 6}), 2, 2, 1, false, false), (Values{6, 6}));
  EXPECT_THROW(pool(line({6, 6, 6}), 3, 2, 3, false, true), ValueError);
  EXPECT_EQ(pool(line({1, 2, 3, 4, 5}), 2, 2, 0, true, true), (Values{1.5, 3.5, 5}));
  EXPECT_EQ(pool(line({1, 2, 3, 4, 5, 6}), 3, 2, 1, true, true), (Values{1, 3, 5, 3}));
  EXPECT_EQ(pool(line({1, 2, 3, 4, 5, 6}), 3, 2, 1, true, false), (Values{1.5, 3, 5, 6}));
  const Tensor y =
      avg_pool2d(ones({1, 1, 2, 2}, kF64), PoolOptions{.kernel = 2, .divisor_override = 3});
  EXPECT_NEAR(y.item(), 4.0 / 3, 1e-12);
}

TEST(AdaptivePool, FC_edf1_uneven_and_overlapping_bins) {
  Tensor x = line({0, 1, 2, 3, 4}).set_requires_grad();
  Tensor y = adaptive_avg_pool1d(x, 3);
  expect_near(y, {0.5, 2, 3.5});
  y.sum().backward();
  expect_near(x.grad(), {0.5, 5.0 / 6, 1.0 / 3, 5.0 / 6, 0.5});
  expect_near(adaptive_avg_pool1d(line({0, 1, 2}), 5), {0, 0.5, 1, 1.5, 2});
  expect_near(adaptive_avg_pool1d(line({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 4), {1, 3, 6, 8});
  expect_near(adaptive_max_pool1d(line({0, 1, 2, 3, 4}), 3), {1, 3, 4});
}

TEST(Interpolate, FC_f1b6_two_conventions_of_nearest) {
  const Tensor x = line({0, 1, 2, 3, 4});
  const auto resize = [](const Tensor& t, int64_t n, Resize mode) {
    return interpolate(t, {.size = Dims(n), .scale = {}, .mode = mode}).to_vector();
  };
  EXPECT_EQ(resize(x, 3, Resize::nearest), (Values{0, 1, 3}));
  EXPECT_EQ(resize(x, 2, Resize::nearest), (Values{0, 2}));
  EXPECT_EQ(resize(x, 3, Resize::nearest_exact), (Values{0, 2, 4}));
  EXPECT_EQ(resize(x, 2, Resize::nearest_exact), (Values{1, 3}));
  EXPECT_EQ(resize(line({0, 1, 2}), 7, Resize::nearest), (Values{0, 0, 0, 1, 1, 2, 2}));
  Tensor two = line({0, 1}).set_requires_grad();
  interpolate(two, {.size = Dims(5)}).sum().backward();
  EXPECT_EQ(two.grad().to_vector(), (Values{3, 2}));
}

TEST(Interpolate, FC_97d9_result_size_and_the_factor_used_inside) {
  const auto scaled = [](const Tensor& x, double s, bool recompute) {
    return interpolate(
        x, {.scale = std::vector<double>{s}, .mode = Resize::linear, .recompute_scale = recompute});
  };
  EXPECT_EQ(scaled(ones({1, 1, 88}, kF64), 120.0 / 88, false).size(2), 119);
  EXPECT_EQ(scaled(ones({1, 1, 10}, kF64), 0.3, false).size(2), 3);
  expect_near(scaled(line({0, 1, 2}), 1.5, false), {0, 0.5, 7.0 / 6, 11.0 / 6});
  expect_near(scaled(line({0, 1, 2}), 1.5, true), {0, 0.625, 1.375, 2});
}

}  // namespace
}  // namespace cutaway
