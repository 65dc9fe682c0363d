#include <cutaway/autograd/record.h>

#include <gtest/gtest.h>

#include <cstring>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/checkpoint.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/nn/nn.h>
#include <cutaway/nn/optim/adaptive.h>
#include <cutaway/nn/optim/muon.h>
#include <cutaway/nn/optim/optimizer.h>
#include <cutaway/nn/sched/schedule.h>

namespace cutaway {
namespace {

void expect_same_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const Tensor x = a.contiguous(), y = b.contiguous();
  EXPECT_EQ(std::memcmp(x.raw(), y.raw(), size_t(x.numel() * size_of(x.dtype()))), 0) << what;
}

void expect_same_state(const nn::NamedTensors& a, const nn::NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_same_bits(a[i].value, b[i].value, a[i].name);
}

struct Mlp : nn::Module {
  nn::Linear fc1{{.in = 20, .out = 300}}, fc2{{.in = 300, .out = 5}};
  Mlp() {
    add("fc1", fc1);
    add("fc2", fc2);
  }
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x)) * 1.5 + 0.25); }
};

struct ConvNet : nn::Module {
  nn::Conv2d conv{{.in = 1, .out = 4, .kernel = 3, .padding = 1}};
  nn::BatchNorm2d norm{{.num_features = 4}};
  nn::Dropout drop{{.p = 0.3}};
  nn::Linear fc{{.in = 4 * 16, .out = 5}};
  ConvNet() {
    add("conv", conv);
    add("norm", norm);
    add("drop", drop);
    add("fc", fc);
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = max_pool2d(relu(norm(conv(x))), {2});
    return fc(drop(h.flatten(1)));
  }
};

struct Sequence : nn::Module {
  nn::Embedding tokens{{.num_embeddings = 11, .embedding_dim = 6}};
  nn::LSTM lstm{{.input_size = 6, .hidden_size = 8, .num_layers = 2, .dropout = 0.2}};
  nn::Linear fc{{.in = 8, .out = 5}};
  Sequence() {
    add("tokens", tokens);
    add("lstm", lstm);
    add("fc", fc);
  }
  Tensor forward(const Tensor& ids) override { return fc(lstm(tokens(ids)).output.select(0, 4)); }
};

// How a training goes; two of them that start alike must stay alike.
template <class Model>
struct Training {
  Model model;
  std::unique_ptr<optim::Optimizer> optimizer;
  double clip = 0;
  Tensors operator()(const Tensors& in) {
    const Tensor logits = model(in[0]);
    const Tensor loss = cross_entropy(logits, in[1]);
    loss.backward();
    if (clip > 0) optim::clip_grad_norm(model.parameters(), clip);
    optimizer->step_and_zero();
    return {loss, logits};
  }
};

enum class Method { sgd, momentum, adamw, rmsprop, adagrad, lion, muon };
std::unique_ptr<optim::Optimizer> make_optimizer(Method method, nn::NamedTensors parameters) {
  if (method == Method::adamw) {
    return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions{.lr = 0.01});
  }
  if (method == Method::rmsprop) {
    return std::make_unique<optim::Rmsprop>(
        std::move(parameters), optim::RmspropOptions{.momentum = 0.5, .centered = true});
  }
  if (method == Method::adagrad) {
    return std::make_unique<optim::Adagrad>(std::move(parameters),
                                            optim::AdagradOptions{.lr_decay = 0.1});
  }
  if (method == Method::muon) {
    return std::make_unique<optim::Muon>(std::move(parameters), optim::MuonOptions{});
  }
  if (method == Method::lion) {
    auto lion = std::make_unique<optim::Lion>(std::move(parameters), optim::LionOptions{});
    lion->set_groups({{.names = {"*"}, .lr_factor = 0.5, .weight_decay = 0.1}});
    return lion;
  }
  return std::make_unique<optim::Sgd>(
      std::move(parameters),
      optim::SgdOptions{.lr = 0.05, .momentum = method == Method::sgd ? 0 : 0.9});
}

struct Compared {
  Method method = Method::adamw;
  double clip = 0;
  int threads = 1;
  bool fuse = true;
};

// Steps of two equal models, one of them recorded; everything must agree bit by bit.
template <class Model>
void compare(const std::function<Tensors(int)>& batch, const Compared& o) {
  const int before = num_threads();
  set_num_threads(o.threads);
  manual_seed(7);
  Training<Model> a;
  a.clip = o.clip;
  Training<Model> b{nn::clone(a.model), nullptr, o.clip};
  a.optimizer = make_optimizer(o.method, a.model.parameters());
  b.optimizer = make_optimizer(o.method, b.model.parameters());
  RecordedStep step = record([&](const Tensors& in) { return b(in); }, {.fuse = o.fuse});
  for (int i = 0; i < 7; ++i) {
    const Tensors in = batch(i);
    for (auto* optimizer : {a.optimizer.get(), b.optimizer.get()}) {
      optimizer->set_lr(0.01 / (1 + i));
      if (i > 3) optimizer->set_grad_scale(0.5);
    }
    const Generator start = default_generator();
    const Tensors want = a(in);
    const Generator end = default_generator();
    default_generator() = start;
    const Tensors got = step(in);
    EXPECT_EQ(step.replayed(), i >= 2) << step.why_eager();
    EXPECT_EQ(default_generator(), end);
    for (size_t k = 0; k < want.size(); ++k) expect_same_bits(want[k], got[k], "result");
    expect_same_state(a.model.state_dict(), b.model.state_dict());
    expect_same_state(a.optimizer->state_dict(), b.optimizer->state_dict());
  }
  EXPECT_GT(step.stats().arena_bytes, 0);
  EXPECT_LE(step.stats().arena_bytes, 2 * step.stats().eager_bytes);
  set_num_threads(before);
}

Tensors rows(int i) {
  Generator g{.seed = uint64_t(100 + i)};
  return {randn({64, 20}, {}, &g), randint(0, 5, {64}, {.dtype = DType::i64}, &g)};
}
Tensors images(int i) {
  Generator g{.seed = uint64_t(200 + i)};
  return {randn({6, 1, 8, 8}, {}, &g), randint(0, 5, {6}, {.dtype = DType::i64}, &g)};
}
Tensors tokens(int i) {
  Generator g{.seed = uint64_t(300 + i)};
  return {randint(0, 11, {5, 3}, {.dtype = DType::i64}, &g),
          randint(0, 5, {3}, {.dtype = DType::i64}, &g)};
}

TEST(RecordTraining, MlpHasTheBitsOfEager) {
  for (const Method m : {Method::sgd, Method::momentum, Method::adamw, Method::rmsprop,
                         Method::adagrad, Method::lion, Method::muon}) {
    for (const double clip : {0.0, 0.05, 1e6}) {
      compare<Mlp>(rows, {.method = m, .clip = clip});
    }
  }
  compare<Mlp>(rows, {.fuse = false});
  compare<Mlp>(rows, {.threads = 2});
}
TEST(RecordTraining, ConvNetWithBatchNormAndDropoutHasTheBitsOfEager) {
  compare<ConvNet>(images, {});
  compare<ConvNet>(images, {.method = Method::momentum, .clip = 0.1, .threads = 2});
}
TEST(RecordTraining, LstmHasTheBitsOfEager) {
  compare<Sequence>(tokens, {});
  compare<Sequence>(tokens, {.method = Method::sgd, .clip = 0.1, .threads = 2});
}

struct TinyGpt : nn::Module {
  zoo::Gpt gpt{{.vocabulary = 11, .context = 8, .layers = 2, .heads = 2, .width = 16}};
  TinyGpt() { add("gpt", gpt); }
};
TEST(RecordTraining, TransformerHasTheBitsOfEager) {
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    manual_seed(3);
    TinyGpt a, b = nn::clone(a);
    optim::AdamW of_a(a.parameters(), {.lr = 0.01}), of_b(b.parameters(), {.lr = 0.01});
    const auto run = [](TinyGpt& m, optim::AdamW& o, const Tensors& in) {
      const Tensor loss = m.gpt.loss(in[0], in[1]);
      loss.backward();
      optim::clip_grad_norm(o.parameters(), 0.5);
      o.step_and_zero();
      return loss;
    };
    auto step = record([&](const Tensors& in) { return run(b, of_b, in); });
    for (int i = 0; i < 5; ++i) {
      Generator g{.seed = uint64_t(i)};
      const Tensors in = {randint(0, 11, {2, 8}, {.dtype = DType::i64}, &g),
                          randint(0, 11, {2, 8}, {.dtype = DType::i64}, &g)};
      expect_same_bits(run(a, of_a, in), step(in)[0], "loss");
      EXPECT_EQ(step.replayed(), i >= 2) << step.why_eager();
      expect_same_state(a.state_dict(), b.state_dict());
      expect_same_state(of_a.state_dict(), of_b.state_dict());
    }
  }
  set_num_threads(1);
}

// ---- the rules

TEST(RecordedStep, MixesWithEagerStepsAndOtherSizes) {
  manual_seed(1);
  Training<Mlp> a, b{nn::clone(a.model), nullptr};
  a.optimizer = make_optimizer(Method::adamw, a.model.parameters());
  b.optimizer = make_optimizer(Method::adamw, b.model.parameters());
  auto step = record([&](const Tensors& in) { return b(in); });
  for (int i = 0; i < 12; ++i) {
    Tensors in = rows(i);
    if (i % 4 == 3) {
      for (Tensor& t : in) t = t.slice(0, 0, 17);
    }
    a(in);
    i % 5 == 4 ? b(in) : step(in);
    expect_same_state(a.model.state_dict(), b.model.state_dict());
  }
  EXPECT_GT(step.stats().replayed, 4);
}

TEST(RecordedStep, KeptResultsAndGradientsKeepTheirValues) {
  Tensor w = tensor({1, 2, 3}).set_requires_grad();
  auto step = record([&](const Tensors& in) {
    w.zero_grad();
    const Tensor y = (w * in[0]).sum();
    y.backward();
    return y;
  });
  Tensors results, gradients;
  for (int i = 0; i < 6; ++i) {
    results.push_back(step({tensor({1.0 * i, 1, 1})})[0]);
    gradients.push_back(w.grad());
  }
  EXPECT_TRUE(step.replayed());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(results[size_t(i)].item(), i + 5);
    EXPECT_EQ(gradients[size_t(i)].to_vector(), (std::vector<double>{1.0 * i, 1, 1}));
  }
}

TEST(RecordedStep, AddsToGradientsThatAreThere) {
  Tensor w = tensor({1, 2}).set_requires_grad();
  auto step = record([&](const Tensors& in) {
    (w * in[0]).sum().backward();
    return Tensors{};
  });
  for (int i = 0; i < 5; ++i) step({tensor({1, 2})});
  EXPECT_EQ(w.grad().to_vector(), (std::vector<double>{5, 10}));
  EXPECT_TRUE(step.replayed());
  w.zero_grad();
  step({tensor({1, 2})});
  EXPECT_FALSE(step.replayed());
  EXPECT_EQ(w.grad().to_vector(), (std::vector<double>{1, 2}));
}

TEST(RecordedStep, ChangesOfModesAndMemoryRecordAgain) {
  manual_seed(2);
  nn::Dropout drop({.p = 0.5});
  auto step = record([&](const Tensors& in) { return drop(in[0]); });
  const Tensor x = ones({1000});
  for (int i = 0; i < 3; ++i) step({x});
  EXPECT_TRUE(step.replayed());
  drop.eval();
  EXPECT_EQ(step({x * 1.0})[0].sum().item(), 1000);
  Tensor p = ones({4});
  auto twice = record([&](const Tensors& in) { return p * in[0]; });
  for (int i = 0; i < 3; ++i) twice({ones({4})});
  p.set_data(full({4}, 3));
  EXPECT_EQ(twice({ones({4})})[0].sum().item(), 12);
}

TEST(RecordedStep, NamesTheReasonForRunningEagerly) {
  const Tensor x = ones({4});
  const auto reason = [&](auto fn) {
    auto step = record(fn);
    for (int i = 0; i < 6; ++i) step({x});
    EXPECT_FALSE(step.replayed());
    return step.why_eager();
  };
  EXPECT_EQ(reason([](const Tensors& in) { return in[0] * in[0].sum().item(); }),
            "item: reads values on the host");
  EXPECT_EQ(reason([](const Tensors& in) { return in[0]; }), "record: returns an input");
  Tensor kept;
  EXPECT_NE(reason([&](const Tensors& in) {
              kept = in[0] + 1.0;
              return kept * 2.0;
            }).find("kept after it"),
            std::string::npos);
  Generator own{.seed = 1};
  EXPECT_NE(reason([&](const Tensors& in) {
              return in[0] + rand({4}, {}, &own);
            }).find("a generator of its own"),
            std::string::npos);
  EXPECT_NE(reason([&](const Tensors&) { return randperm(4); }).find("random numbers"),
            std::string::npos);
  EXPECT_NE(reason([&](const Tensors& in) {
              Tensor t = empty({4});
              for (int i = 0; i < 4; ++i) t.data<float>()[i] = float(i);
              return t + in[0];
            }).find("that host code wrote"),
            std::string::npos);
}

TEST(RecordedStep, ChecksIndicesInEveryReplay) {
  Tensor table = rand({5, 2});
  Tensor log = zeros({1});
  auto step = record([&](const Tensors& in) {
    log.add_(1.0);
    return embedding(table, in[0]);
  });
  const auto ids = [](std::initializer_list<int64_t> v) {
    return index_tensor(std::vector<int64_t>(v));
  };
  for (int i = 0; i < 4; ++i) step({ids({0, 4})});
  EXPECT_TRUE(step.replayed());
  EXPECT_THROW(step({ids({0, 5})}), IndexError);
  EXPECT_EQ(log.item(), 5);
  expect_same_bits(step({ids({1, 2})})[0], embedding(table, ids({1, 2})), "rows");
}

TEST(RecordedStep, RunsCheckpointedRegionsAgain) {
  manual_seed(5);
  Tensor w = rand({50}).set_requires_grad();
  const auto fn = [&](const Tensors& in) {
    w.zero_grad();
    checkpoint([&](const Tensor& x) { return tanh(dropout(x * w, 0.5)); }, in[0]).sum().backward();
    return w.grad() * 1.0;
  };
  auto step = record(fn);
  const Tensor x = ones({50});
  for (int i = 0; i < 5; ++i) {
    const Generator start = default_generator();
    const Tensor want = fn({x});
    default_generator() = start;
    expect_same_bits(want, step({x})[0], "gradient");
  }
  EXPECT_TRUE(step.replayed()) << step.why_eager();
}

TEST(RecordedStep, FusedChainsWriteNoIntermediates) {
  const Tensor x = rand({100000}), y = rand({100000});
  const auto fn = [](const Tensors& in) {
    const Tensor a = in[0] * in[1], b = a + in[0];
    return tanh(b) * a - 0.5;
  };
  auto fused = record(fn), plain = record(fn, {.fuse = false});
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    for (int i = 0; i < 3; ++i) {
      fused({x, y});
      plain({x, y});
    }
    expect_same_bits(fused({x, y})[0], fn({x, y}), "fused");
    expect_same_bits(plain({x, y})[0], fn({x, y}), "plain");
  }
  set_num_threads(1);
  EXPECT_LT(fused.stats().arena_bytes, plain.stats().arena_bytes);
  EXPECT_NE(fused.describe().find("fused, 5 kernels"), std::string::npos) << fused.describe();
}

TEST(RecordedStep, FusedChainsMayWriteOverWhatTheyRead) {
  const Tensor x = rand({300, 300});
  const auto fn = [](const Tensors& in) {
    Tensor a = matmul(in[0], in[0]);
    const Tensor b = tanh(a);
    a.mul_(b);
    return matmul(a + b, in[0]);
  };
  auto step = record(fn);
  for (int i = 0; i < 4; ++i) expect_same_bits(step({x})[0], fn({x}), "chain");
  EXPECT_TRUE(step.replayed()) << step.why_eager();
}

TEST(RecordedStep, DescribesItsCalls) {
  manual_seed(1);
  Training<Mlp> t;
  t.optimizer = make_optimizer(Method::sgd, t.model.parameters());
  auto step = record([&](const Tensors& in) { return t(in); });
  EXPECT_EQ(step.describe(), "");
  for (int i = 0; i < 3; ++i) step(rows(i));
  const std::string text = step.describe();
  for (const char* part : {"matmul", "m 64  n 300  k 20", "cross_entropy", "sgd_step", "input0",
                           "arguments renewed", "result checked", "+0"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace cutaway
