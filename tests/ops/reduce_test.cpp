#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/functional.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/parallel.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
const Opts kF64{.dtype = DType::f64};

// Gradient of y(x) for the given upstream (ones when undefined).
Tensor gradient(const Tensor& value, const std::function<Tensor(const Tensor&)>& f,
                Tensor upstream = {}) {
  const Tensor x = value.detach().set_requires_grad();
  const Tensor y = f(x);
  return grad(Tensors{y}, Tensors{x}, {}, {upstream.defined() ? upstream : ones_like(y)})[0];
}

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

class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

TEST(Reduce, FC_a208_ReductionsOfNothing) {
  const Tensor none = empty({0});
  EXPECT_EQ(sum(none).item(), 0);
  EXPECT_EQ(prod(none).item(), 1);
  EXPECT_TRUE(std::isnan(mean(none).item()));
  EXPECT_EQ(norm(none).item(), 0);
  EXPECT_FALSE(any(none).item<bool>());
  EXPECT_TRUE(all(none).item<bool>());
  EXPECT_THROW(max(none), ShapeError);
  EXPECT_THROW(max(empty({0, 3}), 0), ShapeError);
  const ValuesIndices r = max(empty({0, 3}), 1);
  EXPECT_EQ(r.values.sizes(), Shape{0});
  EXPECT_EQ(r.indices.sizes(), Shape{0});
  EXPECT_EQ(sum(empty({2, 0}), 1).to_vector(), (Values{0, 0}));
  expect_near(mean(empty({2, 0}), 1), {kNan, kNan}, 0);
  const Tensor places = argmax(empty({0, 3}), 1);
  EXPECT_EQ(places.sizes(), Shape{0});
  EXPECT_EQ(places.dtype(), DType::i64);
}

TEST(Reduce, FC_15c9_IntegersWidenAndWrap) {
  const Tensor x = tensor({2147483647, 1}, {.dtype = DType::i32});
  EXPECT_EQ(sum(x).dtype(), DType::i64);
  EXPECT_EQ(sum(x).item<int64_t>(), 2147483648);
  const int64_t big[] = {int64_t(1) << 62, 2};
  EXPECT_EQ(prod(index_tensor(big)).item<int64_t>(), std::numeric_limits<int64_t>::min());
}

TEST(Reduce, FC_6f7a_SmallIntegersAndBoolsSumToI64) {
  const Tensor bytes = sum(tensor({200, 100}, {.dtype = DType::u8}));
  EXPECT_EQ(bytes.dtype(), DType::i64);
  EXPECT_EQ(bytes.item<int64_t>(), 300);
  EXPECT_EQ(sum(ones({2}, {.dtype = DType::boolean})).item<int64_t>(), 2);
}

TEST(Reduce, FC_845e_LongF32Sums) {
  for (const int threads : {1, 2}) {
    const Threads guard(threads);
    EXPECT_EQ(sum(ones({20000000})).item(), 20000000);
    Tensor x = ones({1001});
    x.data<float>()[0] = 1e8f;
    EXPECT_NEAR(sum(x).item(), 100001000, 8);
    const Tensor running = cumsum(ones({20000000}), 0);
    EXPECT_EQ(running.data<float>()[19999999], 20000000);
  }
}

TEST(Reduce, FC_845e_SameBitsForAnyThreadCount) {
  Tensor x = arange(0, 300007, 1, {.dtype = DType::f32});
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = std::sin(float(i) * 1.7f) * 1e3f;
  const Tensor columns = x.slice(0, 0, 300000).view({3000, 100});
  const auto results = [&] {
    Values all;
    for (const Tensor& t : {sum(x), mean(x), norm(x), var(x), logsumexp(x), sum(columns, 0),
                            var(columns, 0), sum(columns, 1), prod(columns * 1e-3, 0)}) {
      for (const double v : t.to_vector()) all.push_back(v);
    }
    return all;
  };
  const Threads one(1);
  const Values want = results();
  for (const int threads : {2, 3, 7}) {
    const Threads guard(threads);
    EXPECT_EQ(results(), want) << threads << " threads";
  }
}

TEST(Reduce, FC_b080_VarianceWithALargeMean) {
  EXPECT_NEAR(var(tensor({4097, 4098, 4099})).item(), 1, 1e-5);
  EXPECT_NEAR(var(tensor({1e8, 1e8 + 8, 1e8 + 16})).item(), 64, 64e-5);
}

TEST(Reduce, FC_2ada_SixteenBitSumsRoundOnce) {
  EXPECT_EQ(sum(ones({4096}, {.dtype = DType::f16})).item(), 4096);
  EXPECT_EQ(sum(ones({1000}, {.dtype = DType::bf16})).item(), 1000);
  EXPECT_EQ(sum(ones({70000}, {.dtype = DType::bf16})).item(), 70144);
  EXPECT_EQ(mean(ones({1000}, {.dtype = DType::bf16})).item(), 1);
  EXPECT_EQ(mean(ones({70000}, {.dtype = DType::bf16})).item(), 1);
  EXPECT_EQ(softmax(zeros({512}, {.dtype = DType::bf16}), 0).to_vector(), Values(512, 0.001953125));
  EXPECT_EQ(cumsum(ones({600}, {.dtype = DType::bf16}), 0).to_vector().back(), 600);
}

TEST(Reduce, FC_c29d_MeanThatOverflowsAsASum) {
  EXPECT_EQ(mean(full({4}, 60000, {.dtype = DType::f16})).item(), 60000);
  EXPECT_EQ(mean(ones({70000}, {.dtype = DType::f16})).item(), 1);
  EXPECT_EQ(mean(full({4}, 3e38)).item(), double(3e38f));
}

TEST(Reduce, FC_441e_ArgmaxWithNanTiesAndInfinity) {
  EXPECT_EQ(argmax(tensor({1, kNan, 5, kNan})).item<int64_t>(), 1);
  EXPECT_EQ(argmax(tensor({2, 7, 7})).item<int64_t>(), 1);
  EXPECT_EQ(argmax(tensor({-kInf, -kInf})).item<int64_t>(), 0);
  EXPECT_EQ(argmax(tensor({1, 9, 9, 2}, {2, 2})).item<int64_t>(), 1);
  EXPECT_EQ(argmin(tensor({1, kNan, 5})).item<int64_t>(), 1);
  for (const int threads : {1, 2}) {
    const Threads guard(threads);
    for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      Tensor x = zeros({100000}, kF64);
      x.data<double>()[70001] = x.data<double>()[90002] = 3;
      EXPECT_EQ(argmax(x.to(t)).item<int64_t>(), 70001);
      x.data<double>()[80003] = x.data<double>()[99999] = kNan;
      EXPECT_EQ(argmax(x.to(t)).item<int64_t>(), 80003);
      EXPECT_EQ(argmin(x.to(t)).item<int64_t>(), 80003);
      EXPECT_EQ(argmax(full({100003}, -kInf, {.dtype = t})).item<int64_t>(), 0);
    }
  }
}

TEST(Reduce, FC_32a7_NanWinsInExtremes) {
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t n : {2, 17, 300}) {
      Tensor x = full({n}, kInf, kF64);
      x.data<double>()[n / 2] = kNan;
      EXPECT_TRUE(std::isnan(max(x.to(t)).item()));
      EXPECT_TRUE(std::isnan(min(x.to(t)).item()));
      EXPECT_TRUE(std::isnan(amax(x.to(t).view({n, 1}).expand({n, 20}), 0).to_vector()[7]));
      EXPECT_TRUE(std::isnan(max(x.to(t), 0).values.item()));
    }
  }
}

TEST(Reduce, FC_49a7_VarianceOfOneElement) {
  const Tensor x = tensor({3}, kF64);
  for (const bool keepdim : {false, true}) {
    const auto f = [&](double correction, bool root) {
      return [=](const Tensor& t) {
        const VarOptions o{.correction = correction, .keepdim = keepdim};
        return root ? cutaway::std(t, o) : var(t, o);
      };
    };
    for (const bool root : {false, true}) {
      expect_near(f(1, root)(x), {kNan}, 0);
      expect_near(f(0, root)(x), {0}, 0);
      EXPECT_EQ(gradient(x, f(1, root)).sizes(), Shape{1});
      expect_near(gradient(x, f(1, root)), {kNan}, 0);
      expect_near(gradient(x, f(0, root)), {0}, 0);
    }
  }
}

TEST(Reduce, FC_a413_LogsumexpOfNothingButMinusInfinity) {
  const auto f = [](const Tensor& t) { return logsumexp(t); };
  expect_near(gradient(tensor({-kInf, -kInf}), f), {0, 0}, 0);
  expect_near(gradient(tensor({-kInf, 0, 0}), f), {0, 0.5, 0.5}, 1e-7);
  EXPECT_EQ(logsumexp(tensor({-kInf, -kInf})).item(), -kInf);
}

TEST(Reduce, FC_50cb_GradientOfProdWithZeros) {
  const auto whole = [](const Tensor& t) { return prod(t); };
  expect_near(gradient(tensor({2, 0, 4}), whole), {0, 8, 0}, 0);
  expect_near(gradient(tensor({0, 0, 4}), whole), {0, 0, 0}, 0);
  expect_near(
      gradient(tensor({0, 3, 0, 0, 2, 5}, {3, 2}), [](const Tensor& t) { return prod(t, 1); }),
      {3, 0, 0, 0, 5, 2}, 0);
  const Tensor one = gradient(tensor({0}), whole);
  EXPECT_EQ(one.sizes(), Shape{1});
  expect_near(one, {1}, 0);
  expect_near(gradient(tensor({0}), [](const Tensor& t) { return prod(t, 0); }), {1}, 0);
}

TEST(Reduce, FC_1e15_SecondDerivativeOfProdWithTwoZeros) {
  const Tensor h = hessian([](const Tensor& t) { return prod(t); }, tensor({0, 0, 4}, kF64));
  expect_near(h, {0, 4, 0, 4, 0, 0, 0, 0, 0}, 0);
}

TEST(Reduce, FC_8058_Median) {
  const ValuesIndices r = median(tensor({3, 1, 2, 4}), 0);
  EXPECT_EQ(r.values.item(), 2);
  EXPECT_EQ(r.indices.item<int64_t>(), 2);
  expect_near(gradient(tensor({2, 2, 1, 5}), [](const Tensor& t) { return median(t); }),
              {0.5, 0.5, 0, 0}, 0);
  EXPECT_TRUE(std::isnan(median(tensor({1, kNan, 3})).item()));
  EXPECT_EQ(nanmedian(tensor({1, kNan, 3})).item(), 1);
}

TEST(Reduce, TiesShareTheGradientOfAFullExtreme) {
  expect_near(gradient(tensor({1, 3, 3, 2}), [](const Tensor& t) { return max(t); }),
              {0, 0.5, 0.5, 0}, 0);
  expect_near(gradient(tensor({1, 3, 3, 2}), [](const Tensor& t) { return max(t, 0).values; }),
              {0, 1, 0, 0}, 0);
}

TEST(Reduce, NormNeitherOverflowsNorVanishes) {
  EXPECT_NEAR(norm(tensor({3e30, 4e30})).item() / 5e30, 1, 1e-6);
  EXPECT_DOUBLE_EQ(norm(tensor({3e200, 4e200}, kF64)).item(), 5e200);
  EXPECT_DOUBLE_EQ(norm(tensor({3e-200, 4e-200}, kF64)).item(), 5e-200);
  expect_near(gradient(zeros({2}), [](const Tensor& t) { return norm(t); }), {0, 0}, 0);
}

TEST(Reduce, NormalizeDividesByAtLeastEps) {
  expect_near(normalize(tensor({3, 4, 0, 0}, {2, 2}), 1), {0.6, 0.8, 0, 0}, 1e-7);
}

TEST(Reduce, VarMeanIsBoth) {
  const Tensor x = tensor({1, 2, 6, 4, 4, 4}, {2, 3});
  const VarMean r = var_mean(x, Shape{1}, {.correction = 0, .keepdim = true});
  EXPECT_EQ(r.var.sizes(), (Shape{2, 1}));
  expect_near(r.mean, {3, 4}, 1e-6);
  expect_near(r.var, {14.0 / 3, 0}, 1e-6);
  expect_near(var_mean(x).mean, {3.5}, 1e-6);
}

TEST(Reduce, SumToUndoesBroadcasting) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_EQ(sum_to(x, {3, 1}).to_vector(), Values(3, 8));
  EXPECT_EQ(sum_to(x, {}).item(), 24);
  EXPECT_TRUE(sum_to(x, {2, 3, 4}).is_same(x));
  EXPECT_THROW(sum_to(x, {2}), ShapeError);
  EXPECT_THROW(sum_to(ones({2}), {2, 2}), ShapeError);
}

TEST(Reduce, BadCallsLeaveArgumentsAlone) {
  EXPECT_THROW(sum(ones({2, 3}), Shape{0, 0}), ValueError);
  EXPECT_THROW(sum(ones({2, 3}), 2), IndexError);
  EXPECT_THROW(argmax(ones({2, 3}), -3), IndexError);
  EXPECT_THROW(median(ones({0})), ShapeError);
}

TEST(Scan, FC_c3ef_GradientOfCumprodWithZeros) {
  const auto f = [](const Tensor& t) { return cumprod(t, 0); };
  expect_near(gradient(tensor({2, 0, 4}), f), {1, 10, 0}, 0);
  expect_near(gradient(tensor({3, 0, 5, 0, 2}), f), {1, 18, 0, 0, 0}, 0);
}

TEST(Scan, FC_a812_CummaxAtTies) {
  const ValuesIndices r = cummax(tensor({1, 3, 3, 2}), 0);
  EXPECT_EQ(r.values.to_vector(), (Values{1, 3, 3, 3}));
  EXPECT_EQ(r.indices.to_vector(), (Values{0, 1, 2, 2}));
  expect_near(gradient(tensor({1, 3, 3, 2}), [](const Tensor& t) { return cummax(t, 0).values; }),
              {1, 1, 2, 0}, 0);
}

}  // namespace
}  // namespace cutaway
