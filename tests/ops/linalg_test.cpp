#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;
constexpr Opts kF64{.dtype = DType::f64};

void expect_near(const Values& got, const Values& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

// Gradient of det, by the fused rule and by the public one.
void expect_det_gradient(Tensor x, const Values& want) {
  x.set_requires_grad();
  for (const bool create_graph : {false, true}) {
    const Tensor g = grad({linalg::det(x)}, {x}, {.create_graph = create_graph})[0];
    expect_near(g.to_vector(), want);
  }
}

TEST(Linalg, FC_3791_GradientOfDetAtSingularMatrices) {
  expect_det_gradient(tensor({2, 3, 4, 6}, {2, 2}, kF64), {6, -4, -3, 2});
  expect_det_gradient(zeros({1, 1}, kF64), {1});
  expect_det_gradient(zeros({2, 2}, kF64), Values(4, 0));
  expect_det_gradient(zeros({3, 3}, kF64), Values(9, 0));
}

TEST(Linalg, FC_3791_SecondDerivativeOfDet) {
  const Tensor x = tensor({2, 3, 4, 6}, {2, 2}, kF64).set_requires_grad();
  const Tensor g = grad({linalg::det(x)}, {x}, {.create_graph = true})[0].flatten();
  const Values want[] = {{0, 0, 0, 1}, {0, 0, -1, 0}, {0, -1, 0, 0}, {1, 0, 0, 0}};
  for (int i = 0; i < 4; ++i) {
    const Tensor row = grad({g.select(0, i)}, {x}, {.retain_graph = true})[0];
    expect_near(row.to_vector(), want[i]);
  }
}

TEST(Linalg, FC_f5bf_DeterminantThatUnderflows) {
  for (const DType t : {DType::f32, DType::f64}) {
    const Tensor x = eye(200, {.dtype = t}) * 0.1;
    const auto [sign, log] = linalg::slogdet(x);
    EXPECT_EQ(sign.item(), 1);
    EXPECT_NEAR(log.item(), -460.5170186, t == DType::f32 ? 1e-4 : 1e-7);
    if (t == DType::f32) {
      EXPECT_EQ(linalg::det(x).item(), 0);
    }
  }
  const auto [sign, log] = linalg::slogdet(tensor({1, 2, 2, 4}, {2, 2}));
  EXPECT_EQ(sign.item(), 0);
  EXPECT_EQ(log.item(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(linalg::det(empty({0, 0})).item(), 1);
  const auto none = linalg::slogdet(empty({0, 0}));
  EXPECT_EQ(none.sign.item(), 1);
  EXPECT_EQ(none.logabsdet.item(), 0);
}

TEST(Linalg, SlogdetGradientAtASingularMatrixRaises) {
  const Tensor x = tensor({1, 2, 2, 4}, {2, 2}, kF64).set_requires_grad();
  const Tensor log = linalg::slogdet(x).logabsdet;
  EXPECT_THROW(log.backward(), ValueError);
}

TEST(Linalg, SolveTakesAVector) {
  const Tensor a = tensor({2, 0, 0, 4}, {2, 2}), b = tensor({2, 2});
  EXPECT_EQ(linalg::solve(a, b).to_vector(), (Values{1, 0.5}));
  EXPECT_THROW(linalg::solve(a, tensor({1, 2, 3})), ShapeError);
}

TEST(Linalg, CholeskySolveAndTrace) {
  const Tensor a = tensor({4, 2, 2, 3}, {2, 2}, kF64), b = tensor({1, 2}, {2, 1}, kF64);
  const Tensor x = linalg::cholesky_solve(b, linalg::cholesky(a));
  expect_near(matmul(a, x).to_vector(), {1, 2});
  EXPECT_EQ(linalg::trace(a).item(), 7);
  EXPECT_EQ(linalg::trace(ones({2, 3, 4})).to_vector(), (Values{3, 3}));
}

TEST(Decompositions, FC_c376_NuclearNormAtTheIdentity) {
  const Tensor x = eye(3, kF64).set_requires_grad();
  const Tensor g = grad({sum(linalg::svdvals(x))}, {x})[0];
  expect_near(g.to_vector(), eye(3, kF64).to_vector());
  expect_near(grad({linalg::matrix_norm(x, linalg::MatrixNorm::nuclear)}, {x})[0].to_vector(),
              eye(3, kF64).to_vector());
}

TEST(Decompositions, FC_c376_ReconstructionAtTheIdentity) {
  const Tensor x = eye(3, kF64).set_requires_grad();
  const auto [u, s, vh] = linalg::svd(x);
  const Tensor y = matmul(u * s.unsqueeze(-2), vh);
  const Tensor up = tensor({1, -2, 3, 4, 5, 6, -7, 8, 9}, {3, 3}, kF64);
  expect_near(grad({y}, {x}, {}, {up})[0].to_vector(), up.to_vector());
}

TEST(Decompositions, FC_c376_EqualEigenvalues) {
  const Tensor x = (eye(2, kF64) * 2.0).set_requires_grad();
  const Tensor y = sum(linalg::eigvalsh(x) * tensor({1, 10}, kF64));
  const Values g = grad({y}, {x})[0].to_vector();
  EXPECT_NEAR(g[0] + g[3], 11, 1e-12);
  for (const double v : g) EXPECT_TRUE(std::isfinite(v));
}

TEST(Decompositions, FC_c376_SumOfSingularValuesAtRankOne) {
  const Tensor x = tensor({1, 0, 0, 0}, {2, 2}, kF64).set_requires_grad();
  const Tensor g = grad({sum(linalg::svdvals(x))}, {x})[0];
  const Tensor s = linalg::svdvals(g);
  for (const double v : s.to_vector()) EXPECT_LE(v, 1 + 1e-12);
}

TEST(Decompositions, FC_c376_WhatCannotBeDeterminedRaises) {
  const Tensor x = eye(2, kF64).set_requires_grad();
  const auto [u, s, vh] = linalg::svd(x);
  EXPECT_THROW(u.backward(tensor({1, 2, 3, 4}, {2, 2}, kF64)), AutogradError);
}

TEST(Decompositions, PseudoInverse) {
  const Tensor x = tensor({1, 2, 2, 4, 3, 6}, {3, 2}, kF64);  // rank 1
  const Tensor y = linalg::pinv(x);
  ASSERT_EQ(y.sizes(), (Shape{2, 3}));
  expect_near(matmul(matmul(x, y), x).to_vector(), x.to_vector());
  expect_near(matmul(matmul(y, x), y).to_vector(), y.to_vector());
  EXPECT_EQ(linalg::pinv(zeros({0, 2})).sizes(), (Shape{2, 0}));
}

TEST(Decompositions, MatrixNorms) {
  const Tensor x = tensor({3, 0, 0, 0, -4, 0}, {2, 3}, kF64);
  EXPECT_NEAR(linalg::matrix_norm(x).item(), 5, 1e-12);
  EXPECT_NEAR(linalg::matrix_norm(x, linalg::MatrixNorm::nuclear).item(), 7, 1e-12);
  EXPECT_NEAR(linalg::matrix_norm(x, linalg::MatrixNorm::spectral).item(), 4, 1e-12);
}

}  // namespace
}  // namespace cutaway
