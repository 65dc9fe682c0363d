#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;

Tensor waves(const Shape& sizes, double seed = 1) {
  Values v(size_t(sizes.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(seed + 1.7 * double(i) * (1 + seed));
  return tensor(std::span<const double>(v), {.dtype = DType::f64}).reshape(sizes);
}

Tensor counted(const Shape& sizes) {
  return arange(0, sizes.numel()).to(DType::f64).reshape(sizes);
}

void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const Values a = got.to_vector(), b = want.to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << "element " << i;
}

TEST(Einsum, FC_f441_DiagonalsAndImplicitOutput) {
  const Tensor x = counted({3, 3});
  EXPECT_EQ(einsum("ii->i", {x}).to_vector(), (Values{0, 4, 8}));
  EXPECT_EQ(einsum("ii", {x}).item(), 12);
  EXPECT_EQ(einsum("ba", {counted({2, 3})}).to_vector(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(einsum("->", {scalar_tensor(7.0)}).item(), 7);
  EXPECT_EQ(einsum("", {scalar_tensor(7.0)}).item(), 7);
  EXPECT_EQ(einsum("...i,i->...", {x, ones({3}, {.dtype = DType::f64})}).to_vector(),
            (Values{3, 12, 21}));
  EXPECT_EQ(einsum("tiijj->ij", {zeros({2, 3, 3, 4, 4})}).sizes(), (Shape{3, 4}));
  EXPECT_EQ(einsum("ij,jk->ik", {empty({2, 0}), empty({0, 3})}).to_vector(), Values(6, 0));
  Tensor y = counted({3, 3}).set_requires_grad();
  const Tensor up = tensor({1, 10, 100}, {.dtype = DType::f64});
  EXPECT_EQ(grad({einsum("ii->i", {y})}, {y}, {}, {up})[0].to_vector(),
            (Values{1, 0, 0, 0, 10, 0, 0, 0, 100}));
}

TEST(Einsum, AgreesWithNamedOps) {
  const Tensor a = waves({2, 3}), b = waves({3, 4}, 2), c = waves({4, 2}, 3);
  const Tensor x = waves({2, 3, 4}, 4), y = waves({2, 4, 5}, 5);
  expect_near(einsum("ij,jk->ik", {a, b}), matmul(a, b));
  expect_near(einsum("ij,jk", {a, b}), matmul(a, b));
  expect_near(einsum("ij,jk->ki", {a, b}), matmul(a, b).t());
  expect_near(einsum("ij, jk, kl -> il", {a, b, c}), matmul(matmul(a, b), c));
  expect_near(einsum("ij,jk,ki->", {a, b, c}), einsum("ii", {matmul(matmul(a, b), c)}));
  expect_near(einsum("bij,bjk->bik", {x, y}), matmul(x, y));
  expect_near(einsum("...ij,...jk->...ik", {x, y}), matmul(x, y));
  expect_near(einsum("ij,...jk", {a, y.select(0, 0).unsqueeze(0).slice(1, 0, 3)}),
              matmul(a, y.select(0, 0).unsqueeze(0).slice(1, 0, 3)));
  expect_near(einsum("i,j->ij", {a.select(0, 0), c.select(1, 1)}),
              outer(a.select(0, 0), c.select(1, 1)));
  expect_near(einsum("ij,ij->ij", {a, a}), a * a);
  expect_near(einsum("ij,ij->i", {a, a}), sum(a * a, 1));
  expect_near(einsum("ijk->k", {x}), sum(x, {0, 1}));
  expect_near(einsum("ijk,k->ij", {x, ones({1}, {.dtype = DType::f64})}), sum(x, 2));
  expect_near(einsum("bij,ij->b", {x, b}), sum(x * b, {1, 2}));
}

TEST(Einsum, Gradients) {
  const char* equations[] = {"ij,jk->ik", "ij,jk->k", "ij,jk->", "ij,jk,kj->ij", "ij,ij,jk->ik"};
  const std::vector<std::vector<Shape>> sizes = {{{2, 3}, {3, 2}},
                                                 {{2, 3}, {3, 2}},
                                                 {{2, 3}, {3, 2}},
                                                 {{2, 3}, {3, 2}, {2, 3}},
                                                 {{2, 1}, {2, 3}, {3, 2}}};
  for (size_t e = 0; e < 5; ++e) {
    Tensors in;
    for (const Shape& s : sizes[e]) in.push_back(waves(s, double(in.size())).set_requires_grad());
    const auto fn = [&](const Tensors& x) { return Tensors{einsum(equations[e], x)}; };
    const GradcheckReport first = gradcheck(fn, in), second = gradgradcheck(fn, in);
    EXPECT_TRUE(first.ok) << equations[e] << ": " << first.message;
    EXPECT_TRUE(second.ok) << equations[e] << ": " << second.message;
  }
}

TEST(Einsum, IntegersKeepTheirType) {
  const Tensor x = arange(0, 6, 1, {.dtype = DType::i32}).reshape({2, 3});
  const Tensor y = einsum("ij->i", {x});
  EXPECT_EQ(y.dtype(), DType::i32);
  EXPECT_EQ(y.to_vector(), (Values{3, 12}));
  EXPECT_EQ(einsum("ij,ij->", {x, x}).item(), 55);
}

template <class E>
void expect_error(const std::string& equation, const Tensors& in, const std::string& text) {
  try {
    einsum(equation, in);
    FAIL() << "no error for " << equation;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Einsum, Errors) {
  const Tensor x = zeros({2, 3});
  expect_error<ValueError>("ij,jk->ik", {x}, "the equation names 2 operands, there are 1");
  expect_error<ValueError>("i1->i", {x}, "'1' is not an index name; got 'i1->i'");
  expect_error<ValueError>("ij->ik", {x}, "'k' of the result occurs in no operand");
  expect_error<ValueError>("ij->ii", {x}, "'i' occurs twice in the result");
  expect_error<ValueError>("i..j->ij", {x}, "a dot is only allowed as part of '...'");
  expect_error<ValueError>("...i->i", {x}, "the result must name '...'");
  expect_error<ShapeError>("ijk->i", {x}, "operand 0 needs 3 dimensions in 'ijk->i'; got [2,3]");
  expect_error<ShapeError>("ii", {x}, "dimensions of one name must have equal sizes");
  expect_error<ShapeError>("ij,jk", {x, x}, "'j' has sizes 3 and 2 in 'ij,jk'");
}

TEST(Tensordot, AgreesWithProducts) {
  const Tensor a = waves({2, 3, 4}), b = waves({3, 4, 5}, 2), c = waves({4, 3, 2}, 3);
  expect_near(tensordot(a, b, 2), matmul(a.reshape({2, 12}), b.reshape({12, 5})));
  expect_near(tensordot(a, c, {2, 1}, {0, 1}),
              matmul(a.reshape({2, 12}), c.permute({1, 0, 2}).reshape({12, 2})));
  EXPECT_EQ(tensordot(a, b, 0).sizes(), (Shape{2, 3, 4, 3, 4, 5}));
  EXPECT_THROW(tensordot(a, b, {0}, {0}), ShapeError);
  EXPECT_THROW(tensordot(a, b, {1, 1}, {0, 0}), ValueError);
  EXPECT_THROW(tensordot(a, b, 4), ValueError);
}

TEST(Kron, BlocksOfTheSecond) {
  const Tensor a = tensor({1, 2, 3, 4}, {2, 2}), b = tensor({0, 5}, {1, 2});
  EXPECT_EQ(kron(a, b).sizes(), (Shape{2, 4}));
  EXPECT_EQ(kron(a, b).to_vector(), (Values{0, 5, 0, 10, 0, 15, 0, 20}));
  EXPECT_THROW(kron(a, zeros({2})), ShapeError);
}

}  // namespace
}  // namespace cutaway
