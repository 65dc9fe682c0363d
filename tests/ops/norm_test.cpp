#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/functional.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/rows.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
const Opts kF64{.dtype = DType::f64};

void expect_near(const Tensor& got, const Values& want, double tolerance) {
  const Values g = got.to_vector();
  ASSERT_EQ(g.size(), want.size());
  for (size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(g[i])) << "element " << i;
    else
      EXPECT_NEAR(g[i], want[i], tolerance) << "element " << i;
  }
}

TEST(Softmax, FC_969b_RowOfOnlyMinusInfinity) {
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    expect_near(softmax(full({2}, -kInf, {.dtype = t}), 0), {kNan, kNan}, 0);
    expect_near(log_softmax(full({2}, -kInf, {.dtype = t}), 0), {kNan, kNan}, 0);
    const Tensor rows = tensor({0, 0, -kInf, -kInf, 5, 5}, {3, 2}, {.dtype = t});
    expect_near(softmax(rows, 1), {0.5, 0.5, kNan, kNan, 0.5, 0.5}, 0);
    expect_near(softmax(rows.t(), 0), {0.5, kNan, 0.5, 0.5, kNan, 0.5}, 0);
  }
  Tensor wide = zeros({3, 100});
  for (int k = 0; k < 100; ++k) wide.data<float>()[100 + k] = -kInf;
  const Values y = softmax(wide, 1).to_vector();
  for (int k = 0; k < 100; ++k) {
    EXPECT_NEAR(y[size_t(k)], 0.01, 1e-9);
    EXPECT_TRUE(std::isnan(y[size_t(100 + k)]));
    EXPECT_NEAR(y[size_t(200 + k)], 0.01, 1e-9);
  }
}

TEST(Softmax, FC_a23b_LogSoftmaxIsNotLogOfSoftmax) {
  expect_near(log_softmax(tensor({0, -1000, -200}), 0), {0, -1000, -200}, 0);
  expect_near(log_softmax(tensor({10000, 9999, 0}), 0), {-0.3132617, -1.3132616, -10000.3135},
              1e-3);
  const Values y = log_softmax(tensor({10000, 9999, 0}), 0).to_vector();
  EXPECT_NEAR(y[0], -0.3132617, 1e-6);
  EXPECT_NEAR(y[1], -1.3132616, 1e-6);
}

TEST(Softmax, FC_a2d9_RowWithSomeMinusInfinity) {
  for (const bool create_graph : {false, true}) {
    const Tensor x = tensor({0, -kInf, std::log(3.0)}, kF64).set_requires_grad();
    const Tensor y = softmax(x, 0);
    expect_near(y, {0.25, 0, 0.75}, 1e-12);
    const Tensor up = tensor({1, 2, 3}, kF64);
    expect_near(grad(Tensors{y}, Tensors{x}, {.create_graph = create_graph}, {up})[0],
                {-0.375, 0, 0.375}, 1e-12);
  }
}

// The gradient of softmax written into a buffer of its own, over g, over y.
TEST(Softmax, FC_f6dc_BackwardOverOneOfItsInputs) {
  const auto backward = [](const Tensor& y, const Tensor& g, Tensor& out, int64_t inner) {
    const SoftmaxArgs args{.in = y.raw(),
                           .grad = g.raw(),
                           .out = out.raw(),
                           .outer = 1,
                           .n = y.numel() / inner,
                           .inner = inner};
    kernels::softmax_backward(y.device(), y.dtype(), args);
    return out.to_vector();
  };
  for (const DType t : {DType::f64, DType::f32, DType::bf16}) {
    for (const int64_t inner : {1, 3}) {
      // The list along the middle dimension is [0.25, 0.75]; over 40 elements vector code runs.
      for (const int64_t zeros_after : {0, 40}) {
        Values y_values, g_values, want;
        const auto add = [&](double y, double g, double dx) {
          for (int64_t k = 0; k < inner; ++k) {
            y_values.push_back(y);
            g_values.push_back(g);
            want.push_back(dx);
          }
        };
        add(0.25, 1, -0.375);
        add(0.75, 3, 0.375);
        for (int64_t k = 0; k < zeros_after; ++k) add(0, 7, 0);
        for (const int reuse : {0, 1, 2}) {
          Tensor y = tensor(y_values, {.dtype = t}), g = tensor(g_values, {.dtype = t});
          Tensor fresh = empty_like(y);
          EXPECT_EQ(backward(y, g,
                             reuse == 0   ? fresh
                             : reuse == 1 ? g
                                          : y,
                             inner),
                    want)
              << name_of(t) << " inner " << inner << " reuse " << reuse;
        }
      }
    }
  }
}

// The same for rms_norm: x, g and dx in three buffers, dx over g, dx over x.
TEST(RmsNorm, FC_f6dc_BackwardOverOneOfItsInputs) {
  Values want;
  for (const int reuse : {0, 1, 2}) {
    Tensor x = tensor({3, 4, 0, 0, 1, 2, -2, 4}), g = tensor({1, 2, 3, 4, 4, 3, 2, 1});
    Tensor fresh = empty_like(x);
    Tensor rstd = tensor({0.4, 0.4}, kF64);
    Tensor& out = reuse == 0 ? fresh : reuse == 1 ? g : x;
    const RowNormArgs args{.in = x.raw(),
                           .out = out.raw(),
                           .rstd = rstd.data<double>(),
                           .grad = g.raw(),
                           .rows = 2,
                           .width = 4};
    kernels::row_norm_backward(x.device(), x.dtype(), args);
    if (reuse == 0) {
      want = out.to_vector();
      // Row 0: mean(g x̂) = 11 · 0.4 / 4, dx = 0.4 (g − x̂ · 1.1).
      EXPECT_NEAR(want[0], 0.4 * (1 - 1.2 * 1.1), 1e-6);
      EXPECT_NEAR(want[3], 1.6, 1e-6);
    }
    EXPECT_EQ(out.to_vector(), want) << reuse;
  }
}

TEST(Softmax, SoftminIsSoftmaxOfTheNegative) {
  expect_near(softmin(tensor({0, std::log(3.0)}, kF64), 0), {0.75, 0.25}, 1e-12);
}

TEST(LayerNorm, FC_3604_ValuesNear1e30) {
  expect_near(layer_norm(tensor({1e30, -1e30}), {2}), {1, -1}, 1e-6);
}

TEST(LayerNorm, FC_fc7e_LargeCommonOffset) {
  expect_near(layer_norm(tensor({1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3}), {4}),
              {-1.3416354, -0.4472118, 0.4472118, 1.3416354}, 1e-6);
  Values v;
  for (int i = 0; i < 16; ++i) v.push_back(100 + i * 1e-3);
  const Tensor row = tensor(std::span<const double>(v));
  // var = 21.25e-6, so eps counts: -7.5e-3 / sqrt(21.25e-6 + 1e-5).
  EXPECT_NEAR(layer_norm(row, {16}).to_vector()[0], -1.3415, 2e-3);
}

// Rows whose squares f32 does not reach, in a batch with others; their gradients too.
TEST(LayerNorm, F32RowsOfAnyRange) {
  const int64_t n = 200, rows = 8;
  const double scale[] = {1, 1e25, 1e-25, 1, 0, 1e-3, 1, 1},
               offset[] = {0, 0, 0, 1e6, 7, 1e3, -40, 1e30};
  Tensor x = empty({rows, n}), up = empty({rows, n}), w = empty({n}), b = empty({n});
  for (int64_t i = 0; i < rows * n; ++i) {
    x.data<float>()[i] = float(offset[i / n] + scale[i / n] * std::sin(double(i * i % 97)));
    up.data<float>()[i] = float(std::cos(double(i % 89)));
  }
  for (int64_t i = 0; i < n; ++i) {
    w.data<float>()[i] = float(1 + 0.1 * std::sin(double(i)));
    b.data<float>()[i] = 0.5f;
  }
  up.data<float>()[n + 3] = 1e36f;
  const auto run = [&](DType t) {
    Tensors in;
    for (const Tensor& v : {x, w, b}) in.push_back(v.to(t).detach().set_requires_grad());
    const Tensor y = layer_norm(in[0], {n}, in[1], in[2]);
    Tensors out = grad(Tensors{y}, in, {}, {up.to(t)});
    out.push_back(y.detach());
    return out;
  };
  const Tensors got = run(DType::f32), want = run(DType::f64);
  for (size_t k = 0; k < got.size(); ++k) {
    const Values g = got[k].to_vector(), v = want[k].to_vector();
    for (size_t row = 0; row < g.size(); row += size_t(n)) {
      double largest = 1e-30;
      for (size_t i = row; i < row + size_t(n); ++i) largest = std::max(largest, std::fabs(v[i]));
      for (size_t i = row; i < row + size_t(n); ++i) {
        ASSERT_NEAR(g[i], v[i], 2e-5 * largest) << "result " << k << " element " << i;
      }
    }
  }
}

TEST(LayerNorm, FC_e571_SecondDerivative) {
  const auto first = [](const Tensor& x) { return layer_norm(x, {3}).select(0, 0); };
  expect_near(hessian(first, tensor({1, 2, 3}, kF64)),
              {0.306193, -0.408239, 0.102046, -0.408239, 0.408239, 0, 0.102046, 0, -0.102046},
              2e-6);
}

TEST(Norms, SameGradientBitsForAnyThreadCount) {
  const Tensor x = sin(arange(0, 90000, 1, {.dtype = DType::f32}) * 0.37).view({900, 100});
  const Tensor up = cos(x * 3.0);
  const auto gradients = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    const Tensor a = x.detach().set_requires_grad(), w = ones({100}).set_requires_grad();
    const Tensor b = zeros({100}).set_requires_grad();
    const BatchNormOptions training{.training = true};
    Values all;
    for (const Tensor& y :
         {layer_norm(a, {100}, w, b), group_norm(a, 10, w, b), softmax(a, 1),
          batch_norm(a, w, b, Tensor(), Tensor(), training), rms_norm(a, {100}, w)}) {
      for (const Tensor& g : grad(Tensors{y}, {a, w, b}, {.allow_unused = true}, {up})) {
        if (!g.defined()) continue;
        for (const double v : g.to_vector()) all.push_back(v);
      }
    }
    set_num_threads(before);
    return all;
  };
  const Values one = gradients(1);
  EXPECT_EQ(gradients(2), one);
  EXPECT_EQ(gradients(5), one);
}

TEST(BatchNorm, FC_e3d0_WhichVarianceGoesWhere) {
  const Tensor mean = zeros({1}), var = ones({1});
  const Tensor y =
      batch_norm(tensor({1, 3}, {2, 1}), ones({1}), zeros({1}), mean, var, {.training = true});
  expect_near(y, {-0.999995, 0.999995}, 1e-6);
  expect_near(mean, {0.2}, 1e-7);
  expect_near(var, {1.1}, 1e-6);
}

TEST(BatchNorm, FC_349c_CumulativeAverage) {
  const Tensor mean = zeros({1}), var = ones({1});
  const Tensor batches[] = {tensor({0, 2}, {2, 1}), tensor({4, 8}, {2, 1}), tensor({1, 1}, {2, 1})};
  for (int n = 0; n < 3; ++n) {
    batch_norm(batches[n], Tensor(), Tensor(), mean, var,
               {.training = true, .momentum = 1.0 / (n + 1)});
  }
  expect_near(mean, {2.6666667}, 1e-6);
  expect_near(var, {3.3333333}, 1e-6);
}

TEST(BatchNorm, FailedCallsAndEvaluationLeaveStatisticsAlone) {
  const Tensor mean = zeros({2}), var = ones({2});
  EXPECT_THROW(batch_norm(ones({1, 2}), Tensor(), Tensor(), mean, var, {.training = true}),
               ValueError);
  EXPECT_THROW(batch_norm(ones({2, 2}), ones({3}), Tensor(), mean, var, {.training = true}),
               ShapeError);
  batch_norm(ones({4, 2}), Tensor(), Tensor(), mean, var);
  batch_norm(empty({0, 2}), Tensor(), Tensor(), mean, var, {.training = true});
  EXPECT_EQ(mean.to_vector(), (Values{0, 0}));
  EXPECT_EQ(var.to_vector(), (Values{1, 1}));
}

TEST(BatchNorm, TwoForwardPassesBeforeOneBackward) {
  const Tensor mean = zeros({1}), var = ones({1});
  const Tensor x = tensor({1, 2, 4}, {3, 1}, kF64).set_requires_grad();
  const Tensor m = mean.to(DType::f64), v = var.to(DType::f64);
  const Tensor a = batch_norm(x, Tensor(), Tensor(), m, v, {.training = true});
  const Tensor b = batch_norm(x, Tensor(), Tensor(), m, v, {.training = true});
  EXPECT_NO_THROW(sum(a * b).backward());
}

TEST(GroupNorm, FC_5421_WhichElementsShareStatistics) {
  const Tensor x = tensor({1, 3, 5, 7, 0, 0, 0, 4}, {1, 4, 2});
  expect_near(
      group_norm(x, 2, Tensor(), Tensor(), {.eps = 0}),
      {-1.3416408, -0.4472136, 0.4472136, 1.3416408, -0.5773503, -0.5773503, -0.5773503, 1.7320508},
      1e-6);
}

TEST(InstanceNorm, EachChannelByItself) {
  const Tensor x = tensor({1, 3, 10, 30}, {1, 2, 2});
  expect_near(instance_norm(x, Tensor(), Tensor(), {.eps = 0}), {-1, 1, -1, 1}, 1e-6);
}

// x of 16 bits with parameters of f32, as under autocast: the values of f32, rounded once.
TEST(ChannelNorm, HalfInputsTakeF32Parameters) {
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor x = randn({4, 6, 5}).to(half), g = randn({4, 6, 5}).to(half);
    const Tensor w = randn({6}), b = randn({6});
    const std::vector<std::function<Tensor(const Tensors&)>> norms = {
        [](const Tensors& t) {
          return batch_norm(t[0], t[1], t[2], Tensor(), Tensor(), {.training = true});
        },
        [](const Tensors& t) { return group_norm(t[0], 3, t[1], t[2]); }};
    for (const auto& norm : norms) {
      const auto run = [&](DType t, bool create_graph) {
        Tensors in{x.to(t).detach(), w.clone(), b.clone()};
        for (Tensor& v : in) v.set_requires_grad();
        Tensors out = grad(Tensors{norm(in)}, in, {.create_graph = create_graph}, {g.to(t)});
        out.push_back(norm(in).detach());
        return out;
      };
      const Tensors want = run(DType::f32, false);
      for (const bool composite : {false, true}) {
        const Tensors got = run(half, composite);
        ASSERT_EQ(got[0].dtype(), half);
        ASSERT_EQ(got[1].dtype(), DType::f32);
        ASSERT_EQ(got[2].dtype(), DType::f32);
        ASSERT_EQ(got[3].dtype(), half);
        for (size_t i = 0; i < got.size(); ++i) {
          const double largest = amax(abs(want[i])).item<double>();
          const double error = amax(abs(got[i].to(DType::f32) - want[i])).item<double>();
          EXPECT_LT(error, largest * (i == 1 || i == 2 ? 1e-5 : 4e-3)) << i << name_of(half);
        }
      }
    }
  }
  const auto refused = [](DType weight, DType bias) {
    const BatchNormOptions training{.training = true};
    EXPECT_THROW(batch_norm(randn({2, 3, 4}).to(DType::bf16), randn({3}).to(weight),
                            randn({3}).to(bias), Tensor(), Tensor(), training),
                 DTypeError);
  };
  refused(DType::f64, DType::f64);
  refused(DType::f32, DType::bf16);
}

}  // namespace
}  // namespace cutaway
