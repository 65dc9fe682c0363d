#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>

namespace cutaway {
namespace {

using Values = std::vector<double>;

Tensor f64(std::initializer_list<double> v) { return tensor(v, {.dtype = DType::f64}); }

template <class E, class F>
void expect_error(F&& call, const std::string& text) {
  try {
    call();
    FAIL() << "no exception";
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(InPlace, WritesThroughViewsAndBumpsTheVersion) {
  Tensor x = f64({1, 2, 3, 4}).reshape({2, 2});
  Tensor row = x.select(0, 1);
  const uint32_t before = x.storage()->version;
  row.mul_(10);
  EXPECT_EQ(x.to_vector(), (Values{1, 2, 30, 40}));
  EXPECT_GT(x.storage()->version, before);
  x.t().add_(f64({1, 2}));
  EXPECT_EQ(x.to_vector(), (Values{2, 3, 32, 42}));
}

TEST(InPlace, LeafNeedsNoGradMode) {
  Tensor w = f64({1, 2}).set_requires_grad();
  const auto refused = [&](auto&& write) { expect_error<AutogradError>(write, "NoGradGuard"); };
  refused([&] { w.add_(1); });
  refused([&] { w.mul_(f64({1, 1})); });
  refused([&] { w.fill_(0); });
  refused([&] { w.copy_(f64({1, 1})); });
  refused([&] { w.div_(f64({1, 1})); });
  EXPECT_EQ(w.to_vector(), (Values{1, 2}));
  const NoGradGuard guard;
  w.add_(f64({1, 1}), -0.5);
  EXPECT_EQ(w.to_vector(), (Values{0.5, 1.5}));
  EXPECT_TRUE(w.requires_grad() && w.is_leaf());
}

TEST(InPlace, RecordedResultAdoptsTheNewHistory) {
  Tensor w = f64({1, 2}).set_requires_grad();
  Tensor y = w * 3;
  Tensor other = y;  // the same tensor
  y.add_(1);
  y.mul_(f64({2, 5}));
  EXPECT_EQ(other.to_vector(), (Values{8, 35}));
  EXPECT_EQ(grad({other}, {w}, {}, {f64({1, 1})})[0].to_vector(), (Values{6, 15}));
}

TEST(InPlace, ProductOfTwoRecordedTensors) {
  Tensor a = f64({2, 3}).set_requires_grad(), b = f64({5, 7}).set_requires_grad();
  Tensor y = a * 1;
  y.mul_(b);  // needs the value of y before the write
  const Tensors g = grad({y}, {a, b}, {}, {f64({1, 1})});
  EXPECT_EQ(g[0].to_vector(), (Values{5, 7}));
  EXPECT_EQ(g[1].to_vector(), (Values{2, 3}));
  Tensor z = a * 1;
  z.mul_(z);
  EXPECT_EQ(grad({z}, {a}, {}, {f64({1, 1})})[0].to_vector(), (Values{4, 6}));
}

TEST(InPlace, ConstantTargetTakesHistoryOfTheOperand) {
  Tensor w = f64({1, 2}).set_requires_grad();
  Tensor sum = f64({0, 0});
  sum.add_(w * w);
  EXPECT_EQ(grad({sum}, {w}, {}, {f64({1, 1})})[0].to_vector(), (Values{2, 4}));
  Tensor copy = f64({0, 0});
  copy.copy_(w);
  EXPECT_EQ(grad({copy}, {w}, {}, {f64({1, 1})})[0].to_vector(), (Values{1, 1}));
}

TEST(InPlace, OverwritingWithAConstantForgetsTheHistory) {
  Tensor w = f64({1, 2}).set_requires_grad();
  Tensor y = w * 3;
  y.fill_(7);
  EXPECT_FALSE(y.requires_grad());
  Tensor z = w * 3;
  z.copy_(f64({1, 1}));
  EXPECT_FALSE(z.requires_grad());
  EXPECT_EQ(z.to_vector(), (Values{1, 1}));
}

TEST(InPlace, ViewInAGraphNamesTheOtherForm) {
  Tensor w = f64({1, 2}).set_requires_grad();
  Tensor y = w * 3;
  Tensor v = y.reshape({2, 1});
  expect_error<AutogradError>([&] { v.add_(1); }, "out-of-place form add()");
  // The view would keep its old history beside new values.
  expect_error<AutogradError>([&] { y.add_(1); }, "out-of-place form add()");
  v = Tensor();
  y.add_(1);
  EXPECT_EQ(y.to_vector(), (Values{4, 7}));
  Tensor constant = f64({1, 2, 3, 4}).reshape({2, 2});
  expect_error<AutogradError>([&] { constant.select(0, 0).mul_(w); }, "out-of-place form mul()");
}

TEST(InPlace, StaleSavedValueIsNamed) {
  Tensor w = f64({1, 2}).set_requires_grad();
  Tensor y = exp(w);
  y.add_(1);
  expect_error<AutogradError>([&] { backward({y}, {f64({1, 1})}); }, "add_");
}

TEST(InPlace, ChecksComeBeforeTheFirstWrite) {
  Tensor x = f64({1, 2});
  Tensor n = tensor({1, 2}, {.dtype = DType::i32});
  expect_error<ShapeError>([&] { x.add_(zeros({3, 2}, {.dtype = DType::f64})); }, "[add_]");
  expect_error<ShapeError>([&] { x.copy_(zeros({3})); }, "[copy_]");
  expect_error<DTypeError>([&] { n.add_(x); }, "[add_]");
  expect_error<DTypeError>([&] { n.add_(0.5); }, "[add_]");
  expect_error<DTypeError>([&] { n.div_(n); }, "[div_]");
  expect_error<DTypeError>([&] { n.fill_(0.5); }, "[fill_]");
  expect_error<ValueError>([&] { x.reshape({2, 1}).expand({2, 3}).add_(1); }, "share memory");
  EXPECT_EQ(x.to_vector(), (Values{1, 2}));
  EXPECT_EQ(n.to_vector(), (Values{1, 2}));
}

TEST(InPlace, OverlappingOperandIsReadFirst) {
  Tensor x = f64({1, 2, 3, 4, 5});
  x.slice(0, 1, 5).add_(x.slice(0, 0, 4));
  EXPECT_EQ(x.to_vector(), (Values{1, 3, 5, 7, 9}));
  Tensor m = f64({1, 2, 3, 4}).reshape({2, 2});
  m.copy_(m.t());
  EXPECT_EQ(m.to_vector(), (Values{1, 3, 2, 4}));
  m.add_(m);
  EXPECT_EQ(m.to_vector(), (Values{2, 6, 4, 8}));
}

TEST(InPlace, ConvertsTheOperand) {
  Tensor h = tensor({1, 2}, {.dtype = DType::bf16});
  h.add_(f64({0.5, 0.5}));
  EXPECT_EQ(h.dtype(), DType::bf16);
  EXPECT_EQ(h.to_vector(), (Values{1.5, 2.5}));
  Tensor n = tensor({1, 2}, {.dtype = DType::i64});
  n.add_(tensor({1, 0}, {.dtype = DType::boolean}));
  EXPECT_EQ(n.to_vector(), (Values{2, 2}));
}

// ---- donation

using Unary = Tensor (*)(TensorArg);
struct Named {
  const char* name;
  Unary fn;
};
const Named kUnary[] = {{"exp", [](TensorArg x) { return exp(x); }},
                        {"relu", [](TensorArg x) { return relu(x); }},
                        {"tanh", [](TensorArg x) { return tanh(x); }},
                        {"neg", [](TensorArg x) { return neg(x); }},
                        {"square", [](TensorArg x) { return square(x); }},
                        {"mul 2", [](TensorArg x) { return mul(x, 2); }},
                        {"gelu", [](TensorArg x) { return gelu(x); }},
                        {"clamp", [](TensorArg x) { return clamp(x, -0.5, 0.5); }},
                        {"dropout", [](TensorArg x) {
                           Generator g{.seed = 3};
                           return dropout(x, 0.4, &g);
                         }}};

Tensor sample(bool requires_grad = false) {
  Generator g{.seed = 9};
  Tensor t = randn({40}, {.dtype = DType::f64}, &g);
  return requires_grad ? t.set_requires_grad() : t;
}

TEST(Donation, FC_e0cc_ReuseIsInvisible) {
  for (const Named& op : kUnary) {
    const Values want = op.fn(sample()).to_vector();
    {
      const Tensor kept = sample();
      EXPECT_EQ(op.fn(kept).to_vector(), want) << op.name;
      EXPECT_EQ(kept.to_vector(), sample().to_vector()) << op.name;
    }
    {  // a view of the operand lives on
      Tensor x = sample();
      const Tensor view = x.reshape({8, 5});
      EXPECT_EQ(op.fn(std::move(x)).to_vector(), want) << op.name;
      EXPECT_EQ(view.to_vector(), sample().to_vector()) << op.name;
    }
    {  // another handle lives on
      Tensor x = sample();
      const Tensor second = x;
      EXPECT_EQ(op.fn(std::move(x)).to_vector(), want) << op.name;
      EXPECT_EQ(second.to_vector(), sample().to_vector()) << op.name;
    }
    {  // the operand is saved for backward by the op that made it, or by this one
      const Tensor w = sample(true);
      const Tensor plain = exp(w);
      const Tensor expected = op.fn(plain);
      const Tensor donated = op.fn(exp(w));
      EXPECT_EQ(donated.to_vector(), expected.to_vector()) << op.name;
      EXPECT_EQ(grad({donated}, {w}, {}, {sample()})[0].to_vector(),
                grad({expected}, {w}, {}, {sample()})[0].to_vector())
          << op.name;
    }
  }
}

TEST(Donation, FC_e0cc_TwoOperands) {
  const Values want = add(sample(), mul(sample(), 3)).to_vector();
  Tensor a = sample();
  EXPECT_EQ(add(std::move(a), mul(sample(), 3)).to_vector(), want);
  Tensor same = sample();
  EXPECT_EQ(mul(std::move(same), same).to_vector(), square(sample()).to_vector());
  EXPECT_EQ(same.to_vector(), sample().to_vector());  // given twice: seen, so not reused
  Tensor small = f64({2});
  EXPECT_EQ(mul(std::move(small), sample()).to_vector(), mul(sample(), 2).to_vector());
  Tensor turned = sample().reshape({8, 5}).t();
  EXPECT_EQ(add(std::move(turned), 0).to_vector(), sample().reshape({8, 5}).t().to_vector());
}

TEST(Donation, ReusesABufferThatNobodySees) {
  Tensor x = sample();
  const void* buffer = x.raw();
  const Tensor y = relu(std::move(x));
  EXPECT_EQ(y.raw(), buffer);
}

}  // namespace
}  // namespace cutaway
