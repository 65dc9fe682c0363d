#include <cutaway/nn/module.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/nn.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::nn {
namespace {

struct Net : Module {
  Conv2d conv{{.in = 1, .out = 2, .kernel = 3, .padding = 1}};
  BatchNorm2d norm{{.num_features = 2}};
  Sequential head{Flatten{}, Linear{{.in = 2 * 16, .out = 3}},
                  [](const Tensor& x) { return x * 2; }};

  Net() { add("conv", conv), add("norm", norm), add("head", head); }
  Tensor forward(const Tensor& x) override { return head(relu(norm(conv(x)))); }
};

std::vector<std::string> names(const NamedTensors& list) {
  std::vector<std::string> out;
  for (const Named& n : list) out.push_back(n.name);
  return out;
}
const std::vector<std::string> kParameters{"conv.weight", "conv.bias",     "norm.weight",
                                           "norm.bias",   "head.1.weight", "head.1.bias"};

TEST(Module, NamesAreTheStateDictsKeys) {
  Net net;
  EXPECT_EQ(names(net.named_parameters()), kParameters);
  EXPECT_EQ(names(net.named_buffers()),
            (std::vector<std::string>{"norm.running_mean", "norm.running_var",
                                      "norm.num_batches_tracked"}));
  EXPECT_EQ(net.state_dict().size(), 9u);
  EXPECT_EQ(net.num_parameters(), 18 + 2 + 2 + 2 + 96 + 3);
  std::vector<std::string> paths;
  for (const auto& [path, module] : net.named_modules()) paths.push_back(path);
  EXPECT_EQ(paths,
            (std::vector<std::string>{"", "conv", "norm", "head", "head.0", "head.1", "head.2"}));
  EXPECT_STREQ(net.conv.type(), "Conv2d");
}

TEST(Module, RejectsNamesThatCannotBe) {
  struct Twice : Module {
    Linear a{{.in = 1, .out = 1}};
    Twice() { add("a", a), add("a", a); }
  };
  struct Dotted : Module {
    Linear a{{.in = 1, .out = 1}};
    Dotted() { add("a.b", a); }
  };
  EXPECT_THROW(Twice{}, ValueError);
  EXPECT_THROW(Dotted{}, ValueError);
  EXPECT_THROW(Sequential{}.append("x", ReLU{}).append("x", ReLU{}), ValueError);
}

TEST(Module, CopiesShareAndClonesDoNot) {
  Net net;
  Net copy = net, own = clone(net);
  const Tensor x = randn({2, 1, 4, 4});
  for (size_t i = 0; i < kParameters.size(); ++i) {
    EXPECT_TRUE(net.parameters()[i].value.is_same(copy.parameters()[i].value));
    EXPECT_FALSE(net.parameters()[i].value.is_same(own.parameters()[i].value));
    EXPECT_TRUE(own.parameters()[i].value.requires_grad());
  }
  net.eval();
  own.eval();
  EXPECT_EQ(net(x).to_vector(), own(x).to_vector());
  sum(own(x)).backward();
  optim::Sgd(own.parameters(), {.lr = 1}).step();
  EXPECT_NE(net(x).to_vector(), own(x).to_vector());
  EXPECT_FALSE(net.conv.weight.grad().defined());
  // The layers on the heap of a copy are its own objects.
  EXPECT_NE(&net.head[1], &copy.head[1]);
  Net assigned;
  assigned = net;
  EXPECT_NE(&net.head[1], &assigned.head[1]);
  EXPECT_TRUE(assigned.head.get<Linear>(1).weight.is_same(net.head.get<Linear>(1).weight));
}

TEST(Module, CloneKeepsTiedWeightsTied) {
  struct Tied : Module {
    Linear a{{.in = 2, .out = 2, .bias = false}}, b{{.in = 2, .out = 2, .bias = false}};
    Tied() {
      b.weight = a.weight;
      add("a", a), add("b", b);
    }
    Tensor forward(const Tensor& x) override { return b(a(x)); }
  };
  Tied tied;
  EXPECT_EQ(tied.named_parameters().size(), 1u);
  Tied own = clone(tied);
  EXPECT_TRUE(own.a.weight.is_same(own.b.weight));
  EXPECT_FALSE(own.a.weight.is_same(tied.a.weight));
  EXPECT_EQ(summary_rows(tied, {1, 2}).size(), 3u);
}

TEST(Module, LoadChecksBeforeItWrites) {
  Net net;
  NamedTensors state = clone(net).state_dict();
  const std::vector<double> before = net.conv.weight.to_vector();
  NamedTensors fewer(state.begin() + 1, state.end());
  try {
    net.load_state_dict(fewer);
    FAIL() << "no exception";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("missing: conv.weight"), std::string::npos) << e.what();
  }
  EXPECT_NO_THROW(net.load_state_dict(fewer, false));
  state[0].value = zeros({2, 1, 3, 3});
  state[8].value = zeros({4});
  EXPECT_THROW(net.load_state_dict(state), ShapeError);
  EXPECT_EQ(net.conv.weight.to_vector(), before);
}

TEST(Module, ModesTypesAndGradients) {
  Net net;
  EXPECT_TRUE(net.norm.training());
  net.eval();
  EXPECT_FALSE(net.norm.training());
  EXPECT_FALSE(net.head[1].training());
  const Tensor weight = net.conv.weight;
  net.to(DType::f64);
  EXPECT_EQ(weight.dtype(), DType::f64);
  EXPECT_EQ(net.norm.num_batches_tracked.dtype(), DType::i64);
  EXPECT_EQ(net(randn({1, 1, 4, 4}, {.dtype = DType::f64})).dtype(), DType::f64);
  EXPECT_THROW(net.to(DType::i64), DTypeError);
  net.requires_grad(false);
  EXPECT_FALSE(net(randn({1, 1, 4, 4}, {.dtype = DType::f64})).requires_grad());
}

TEST(Module, ErrorsNameThePath) {
  Net net;
  try {
    net(zeros({1, 1, 5, 5}));
    FAIL() << "no exception";
  } catch (const ShapeError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("[linear]"), std::string::npos) << text;
    EXPECT_NE(text.find("model.head.1 (Linear)"), std::string::npos) << text;
  }
  EXPECT_EQ(context().module, nullptr);
}

TEST(Module, SummaryNeedsNoMemory) {
  Net net;
  const auto rows = summary_rows(net, {5, 1, 4, 4});
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[0].type, "Conv2d");
  EXPECT_EQ(rows[0].output, (Shape{5, 2, 4, 4}));
  EXPECT_EQ(rows[0].parameters, 20);
  EXPECT_EQ(rows[6].output, (Shape{5, 3}));
  EXPECT_EQ(rows[6].parameters, 0);
  EXPECT_EQ(net.norm.num_batches_tracked.item<int64_t>(), 0);
  EXPECT_NE(summary(net, {1, 1, 4, 4}).find("123"), std::string::npos);
  EXPECT_EQ(summary_text(rows), summary(net, {5, 1, 4, 4}));
}

TEST(Module, ChildrenAreTheNextLevelAlone) {
  Sequential inner(ReLU{}, Linear{{.in = 2, .out = 2}});
  const Sequential outer(inner, Tanh{});
  const auto children = outer.named_children();
  ASSERT_EQ(children.size(), 2u);
  EXPECT_EQ(children[0].first, "0");
  EXPECT_STREQ(children[0].second->type(), "Sequential");
  EXPECT_EQ(children[1].first, "1");
  EXPECT_EQ(outer.named_modules().size(), 5u);
}

// One step of gradient descent inside the loss: the derivative goes through the step.
TEST(Module, FunctionalCallDifferentiatesAnInnerLoop) {
  const Opts f64{.dtype = DType::f64};
  Linear net({.in = 1, .out = 1, .bias = false});
  net.to(DType::f64);
  net.load_state_dict({{"weight", full({1, 1}, 3, f64)}});
  const Tensor x = full({1, 1}, 2, f64), target = full({1, 1}, 1, f64);
  Tensor rate = scalar_tensor(0.1, f64).set_requires_grad();
  const Tensor w = net.weight;
  const Tensor inner = sum(square(net(x) - target));
  const Tensor g = grad(inner, {w}, {.create_graph = true})[0];
  const Tensor stepped = w - rate * g;
  const Tensor outer = sum(square(functional_call(net, {{"weight", stepped}}, x) - target));
  // g = 2·2·(2·3 − 1) = 20, w' = 3 − 0.1·20 = 1, outer = (2·1 − 1)²; d outer/d rate =
  // 2·1·2·(−20); d outer/d w = 2·1·2·(1 − 0.1·8).
  EXPECT_NEAR(outer.item(), 1, 1e-12);
  const Tensors d = grad({outer}, {rate, w});
  EXPECT_NEAR(d[0].item(), -80, 1e-10);
  EXPECT_NEAR(d[1].item(), 0.8, 1e-10);
  EXPECT_TRUE(net.weight.is_same(w));
  EXPECT_THROW(functional_call(net, {{"nothing", w}}, x), ValueError);
  EXPECT_THROW(functional_call(net, {{"weight", zeros({2, 1})}}, x), ShapeError);
  EXPECT_TRUE(net.weight.is_same(w));
}

TEST(Module, FilesKeepEverything) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "cutaway_module_test.safetensors").string();
  Net net, other;
  net(randn({3, 1, 4, 4}));
  save(net, path);
  load(other, path);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(net.state_dict()[i].value.to_vector(), other.state_dict()[i].value.to_vector());
  }
  const NamedTensors state = load_state(path);
  ASSERT_EQ(state.size(), net.state_dict().size());
  EXPECT_EQ(state[0].name, net.state_dict()[0].name);
  Linear wrong({.in = 1, .out = 1});
  EXPECT_THROW(load(wrong, path), ValueError);
  std::ofstream(path) << "not a file of tensors";
  EXPECT_THROW(load(other, path), IoError);
  std::filesystem::remove(path);
}

TEST(Module, ForwardThatIsMissing) {
  struct Empty : Module {
  } empty;
  EXPECT_THROW(empty(zeros({1})), ValueError);
  ModuleList list;
  list.append(ReLU{});
  EXPECT_THROW(list[1], IndexError);
  EXPECT_THROW(list.get<Linear>(0), ValueError);
}

TEST(Init, FillsAsItSays) {
  manual_seed(5);
  const Tensor t = init::trunc_normal_(empty({20000}), {.std = 2, .lo = -1, .hi = 3});
  EXPECT_GE(amin(t).item(), -1);
  EXPECT_LE(amax(t).item(), 3);
  const Tensor far = init::trunc_normal_(empty({500}), {.lo = 4, .hi = 5});
  EXPECT_GE(amin(far).item(), 4);
  EXPECT_LT(mean(far).item(), 4.4);
  const Tensor n =
      init::kaiming_normal_(empty({200, 100}), {.nonlinearity = init::Nonlinearity::relu});
  EXPECT_NEAR(std(n).item(), std::sqrt(2.0 / 100), 2e-3);
  const Tensor x = init::xavier_uniform_(empty({200, 100}));
  EXPECT_NEAR(amax(x).item(), std::sqrt(6.0 / 300), 1e-3);
  EXPECT_NEAR(std(init::xavier_normal_(empty({200, 100}), 2)).item(), 2 * std::sqrt(2.0 / 300),
              4e-3);
  // Gain √2 of ReLU; fans 100 and 200.
  for (const auto& [mode, fan] : {std::pair{init::Fan::in, 100}, {init::Fan::out, 200}}) {
    const Tensor k = init::kaiming_uniform_(
        empty({200, 100}), {.mode = mode, .nonlinearity = init::Nonlinearity::relu});
    EXPECT_NEAR(amax(abs(k)).item(), std::sqrt(6.0 / fan), 1e-3);
    EXPECT_NEAR(mean(k).item(), 0, 5e-3);
  }
  EXPECT_EQ(init::ones_(empty({2, 2})).to_vector(), ones({2, 2}).to_vector());
  EXPECT_EQ(init::eye_(empty({2, 3})).to_vector(), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  for (const Shape& sizes : {Shape{4, 3, 2}, Shape{6, 4}}) {
    const Tensor q = init::orthogonal_(empty(sizes, {.dtype = DType::f64}), 2).flatten(1);
    const bool tall = q.size(0) > q.size(1);
    const Tensor gram = tall ? matmul(q.t(), q) : matmul(q, q.t());
    EXPECT_LE(amax(abs(gram - 4 * eye(gram.size(0), {.dtype = DType::f64}))).item(), 1e-12);
  }
  EXPECT_EQ(init::fans(empty({8, 3, 5, 5})).in, 75);
  EXPECT_THROW(init::fans(empty({8})), ShapeError);
  EXPECT_NEAR(init::calculate_gain(init::Nonlinearity::tanh), 5.0 / 3, 1e-12);
  EXPECT_NEAR(init::calculate_gain(init::Nonlinearity::leaky_relu, 0.2), std::sqrt(2 / 1.04),
              1e-12);
  manual_seed(9);
  const std::vector<double> a = init::uniform_(empty({10})).to_vector();
  manual_seed(9);
  EXPECT_EQ(init::uniform_(empty({10})).to_vector(), a);
}

}  // namespace
}  // namespace cutaway::nn
