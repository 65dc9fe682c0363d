// Training steps: forward, loss, backward, optimiser, on one fixed batch.
#include <tools/bench/workloads.h>

#include <cutaway/autograd/autocast.h>
#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/models/zoo/resnet.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::tools {
namespace {

constexpr double kFloat = 4;

// A model on one batch. `loss` gives the loss of the batch.
template <class Model>
struct Training {
  std::unique_ptr<Model> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::function<Tensor(Model&)> loss;
  Tensor last;
};

// The step of a training. Adam reads parameter, gradient and two moments and writes three of them;
// backward writes the gradient: eight passes; plain SGD needs four.
template <class Model>
Workload training(std::shared_ptr<Training<Model>> t, DType dtype, double flops, bool adam) {
  const auto body = [t, dtype](const Tensors&) {
    Tensor loss;
    {
      AutocastGuard autocast(dtype);
      loss = t->loss(*t->model);
    }
    loss.backward();
    t->optimizer->step_and_zero();
    return loss;
  };
  const auto recording = std::make_shared<RecordedStep>(record(body));
  const double parameters = double(t->model->num_parameters());
  return {.dtype = dtype,
          .flops = flops,
          .bytes = parameters * kFloat * (adam ? 8 : 4),
          .step = [t, body] { t->last = body({}); },
          .recorded =
              [t, recording] {
                t->last = Tensor();
                t->last = (*recording)({})[0];
              },
          .recording = recording,
          .value = [t] { return t->last.template item<double>(); }};
}

template <class Model>
std::shared_ptr<Training<Model>> start(std::unique_ptr<Model> model) {
  auto t = std::make_shared<Training<Model>>();
  t->model = std::move(model);
  fix_parameters(*t->model);
  return t;
}

// ---- perceptrons

struct Perceptron : nn::Module {
  nn::ModuleList layers;

  explicit Perceptron(const std::vector<int64_t>& widths) {
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      layers.append(nn::Linear({.in = widths[i], .out = widths[i + 1]}));
    }
    add("layers", layers);
  }
  // x [N,in] → logits [N,classes]
  Tensor forward(const Tensor& x) override {
    Tensor h = x;
    for (int64_t i = 0; i < layers.size(); ++i) h = i ? layers[i](relu(h)) : layers[i](h);
    return h;
  }
};

// Three products a layer; the first has no gradient of its input.
double perceptron_flops(const std::vector<int64_t>& widths, int64_t batch) {
  double products = -double(widths[0] * widths[1]);
  for (size_t i = 0; i + 1 < widths.size(); ++i) products += 3 * double(widths[i] * widths[i + 1]);
  return 2 * double(batch) * products;
}

Workload perceptron(const std::vector<int64_t>& widths, int64_t batch, bool adam, DType dtype) {
  auto t = start(std::make_unique<Perceptron>(widths));
  const auto parameters = t->model->named_parameters();
  if (adam) {
    t->optimizer = std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-3});
  } else {
    t->optimizer = std::make_unique<optim::Sgd>(parameters, optim::SgdOptions{.lr = 0.01});
  }
  const Tensor x = fixed_values("x", {batch, widths[0]});
  const Tensor y = fixed_integers("y", {batch}, widths.back());
  t->loss = [x, y](Perceptron& m) { return cross_entropy(m(x), y); };
  return training(t, dtype, perceptron_flops(widths, batch), adam);
}

// ---- the transformer of grokking: a, b, "=" → (a + b) mod p at the last place

struct Grok : nn::Module {
  static constexpr int64_t kPrime = 113, kWidth = 128, kHeads = 4, kHidden = 512, kLength = 3;
  nn::Embedding tokens{{.num_embeddings = kPrime + 1, .embedding_dim = kWidth}};
  nn::Embedding places{{.num_embeddings = kLength, .embedding_dim = kWidth}};
  nn::Linear qkv{{.in = kWidth, .out = 3 * kWidth, .bias = false}};
  nn::Linear project{{.in = kWidth, .out = kWidth, .bias = false}};
  nn::Linear fc1{{.in = kWidth, .out = kHidden}}, fc2{{.in = kHidden, .out = kWidth}};
  nn::Linear head{{.in = kWidth, .out = kPrime, .bias = false}};

  Grok() {
    add("tokens", tokens);
    add("places", places);
    add("qkv", qkv);
    add("project", project);
    add("fc1", fc1);
    add("fc2", fc2);
    add("head", head);
  }
  Tensor attend(const Tensor& x) {
    const int64_t n = x.size(0);
    const auto heads = chunk(qkv(x).reshape({n, kLength, 3 * kHeads, kWidth / kHeads}), 3, 2);
    const Tensor y =
        scaled_dot_product_attention(heads[0].transpose(1, 2), heads[1].transpose(1, 2),
                                     heads[2].transpose(1, 2), {.causal = true});
    return project(y.transpose(1, 2).reshape({n, kLength, kWidth}));
  }
  // ids [N,3] → logits [N,113]
  Tensor forward(const Tensor& ids) override {
    Tensor x = tokens(ids) + places.weight;
    x = x + attend(x);
    x = x + fc2(relu(fc1(x)));
    return head(x.select(1, kLength - 1));
  }
};

Workload grok(int64_t batch, DType dtype) {
  auto t = start(std::make_unique<Grok>());
  t->optimizer = std::make_unique<optim::AdamW>(
      t->model->named_parameters(),
      optim::AdamWOptions{.lr = 1e-3, .beta2 = 0.98, .weight_decay = 1});
  const Tensor ids = fixed_integers("ids", {batch, Grok::kLength}, Grok::kPrime);
  const Tensor y = fixed_integers("y", {batch}, Grok::kPrime);
  t->loss = [ids, y](Grok& m) { return cross_entropy(m(ids), y); };
  const double d = Grok::kWidth, layer = 4 * d * d + 2 * d * Grok::kHidden;
  const double flops = 6 * double(batch) * (Grok::kLength * layer + d * Grok::kPrime);
  return training(t, dtype, flops, true);
}

// ---- GPT

struct GptCase {
  zoo::GptOptions model;
  int64_t batch;
};

Workload gpt(const GptCase& g, DType dtype) {
  const zoo::GptOptions& o = g.model;
  auto t = start(std::make_unique<zoo::Gpt>(o));
  t->optimizer =
      std::make_unique<optim::AdamW>(t->model->named_parameters(), optim::AdamWOptions{.lr = 1e-3});
  const Tensor ids = fixed_integers("ids", {g.batch, o.context}, o.vocabulary);
  const Tensor y = fixed_integers("y", {g.batch, o.context}, o.vocabulary);
  t->loss = [ids, y](zoo::Gpt& m) { return m.loss(ids, y); };
  const double d = double(o.width), tokens = double(g.batch * o.context);
  const double products = double(o.layers) * 12 * d * d + d * double(o.vocabulary);
  // Two products over half of the T·T scores forward, five backward.
  const double attention = double(o.layers) * 7 * d * double(o.context + 1) / 2;
  return training(t, dtype, tokens * (6 * products + 2 * attention), true);
}

// ---- ResNet

double conv_flops(const zoo::ResNetOptions& o, int64_t batch, int64_t image) {
  double products = 9.0 * double(o.in_channels * o.width * image * image);
  int64_t in = o.width, side = image;
  for (int s = 0; s < o.blocks.rank(); ++s) {
    const int64_t out = o.width << s;
    if (s) side /= 2;
    for (int64_t b = 0; b < o.blocks[s]; ++b) {
      products += 9.0 * double((in + out) * out * side * side);
      in = out;
    }
  }
  return 6 * double(batch) * products;
}

Workload resnet(const zoo::ResNetOptions& o, int64_t batch, DType dtype) {
  auto t = start(std::make_unique<zoo::ResNet>(o));
  // A small rate: at 0.01 ten steps in f32 are 6e-4 away from those in f64, on either side.
  t->optimizer = std::make_unique<optim::Sgd>(t->model->named_parameters(),
                                              optim::SgdOptions{.lr = 1e-3, .momentum = 0.9});
  const Tensor x = fixed_values("x", {batch, o.in_channels, 32, 32});
  const Tensor y = fixed_integers("y", {batch}, o.classes);
  t->loss = [x, y](zoo::ResNet& m) { return cross_entropy(m(x), y); };
  return training(t, dtype, conv_flops(o, batch, 32), false);
}

// ---- LSTM

struct CharLstm : nn::Module {
  static constexpr int64_t kVocabulary = 65, kWidth = 256;
  nn::Embedding tokens{{.num_embeddings = kVocabulary, .embedding_dim = kWidth}};
  nn::LSTM lstm{{.input_size = kWidth, .hidden_size = kWidth, .num_layers = 2}};
  nn::Linear head{{.in = kWidth, .out = kVocabulary}};

  CharLstm() {
    add("tokens", tokens);
    add("lstm", lstm);
    add("head", head);
  }
  // ids [T,N] → logits [T,N,65]
  Tensor forward(const Tensor& ids) override { return head(lstm(tokens(ids)).output); }
};

Workload char_lstm(DType dtype) {
  const int64_t length = 64, batch = 32, d = CharLstm::kWidth, v = CharLstm::kVocabulary;
  auto t = start(std::make_unique<CharLstm>());
  t->optimizer =
      std::make_unique<optim::Adam>(t->model->named_parameters(), optim::AdamOptions{.lr = 1e-3});
  const Tensor ids = fixed_integers("ids", {length, batch}, v);
  const Tensor y = fixed_integers("y", {length * batch}, v);
  t->loss = [=](CharLstm& m) { return cross_entropy(m(ids).reshape({length * batch, v}), y); };
  const double products = 2 * 8 * double(d * d) + double(d * v);
  return training(t, dtype, 6 * double(length * batch) * products, true);
}

}  // namespace

std::unique_ptr<Workload> model_workload(const std::string& name, DType dtype) {
  const auto made = [](Workload w) { return std::make_unique<Workload>(std::move(w)); };
  if (name == "mlp") return made(perceptron({784, 256, 10}, 64, true, dtype));
  if (name == "mlp1") return made(perceptron({64, 64, 64, 10}, 1, false, dtype));
  if (name == "grok-512") return made(grok(512, dtype));
  if (name == "grok-3830") return made(grok(3830, dtype));
  if (name == "nanogpt") {
    return made(
        gpt({{.vocabulary = 65, .context = 64, .layers = 4, .heads = 4, .width = 128}, 12}, dtype));
  }
  if (name == "gpt-mid") {
    return made(
        gpt({{.vocabulary = 65, .context = 256, .layers = 6, .heads = 6, .width = 384}, 4}, dtype));
  }
  if (name == "resnet20") {
    zoo::ResNetOptions o = zoo::resnet_options("resnet20");
    o.classes = 10;
    return made(resnet(o, 32, dtype));
  }
  if (name == "lstm") return made(char_lstm(dtype));
  return nullptr;
}

Workload mlp_workload(const MlpSize& s) {
  std::vector<int64_t> widths = {784};
  for (int64_t i = 0; i < s.depth; ++i) widths.push_back(s.width);
  widths.push_back(10);
  return perceptron(widths, s.batch, true, DType::f32);
}

Workload gpt_workload(const GptSize& s) {
  return gpt(
      {{.vocabulary = 65, .context = s.length, .layers = s.depth, .heads = 4, .width = s.width},
       s.batch},
      DType::f32);
}

Workload resnet_workload(const ResNetSize& s) {
  zoo::ResNetOptions o = zoo::resnet_options("resnet20");
  o.classes = 10;
  o.blocks = {s.depth, s.depth, s.depth};
  o.width = s.width;
  return resnet(o, s.batch, DType::f32);
}

}  // namespace cutaway::tools
