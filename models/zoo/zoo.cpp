#include <cutaway/models/zoo/zoo.h>

#include <fmt/format.h>
#include <algorithm>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/bert.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/models/zoo/graph.h>
#include <cutaway/models/zoo/lstm_lm.h>
#include <cutaway/models/zoo/pictures.h>
#include <cutaway/models/zoo/resnet.h>
#include <cutaway/models/zoo/vit.h>
#include <cutaway/nn/nn.h>

namespace cutaway::zoo {
namespace {

// Two convolutions and two linear layers: 91.9 % on Fashion-MNIST after four epochs, about 80 s on
// two cores.
struct ConvNet : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2;
  nn::Dropout dropout{{.p = 0.25}};

  ConvNet(const Task& t)
      : conv1({.in = t.input[0], .out = 32, .kernel = 3, .padding = 1}),
        conv2({.in = 32, .out = 64, .kernel = 3, .padding = 1}),
        fc1({.in = 64 * (t.input[1] / 4) * (t.input[2] / 4), .out = 128}),
        fc2({.in = 128, .out = t.classes}) {
    add("conv1", conv1);
    add("conv2", conv2);
    add("fc1", fc1);
    add("fc2", fc2);
    add("dropout", dropout);
  }

  // x [N,C,H,W] → logits [N,classes]
  Tensor forward(const Tensor& x) override {
    Tensor h = max_pool2d(relu(conv1(x)), 2);
    h = max_pool2d(relu(conv2(h)), 2);
    return fc2(dropout(relu(fc1(h.flatten(1)))));
  }
};

// LeNet-5 (LeCun et al. 1998) with ReLU and max pooling.
struct LeNet : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2, fc3;

  LeNet(const Task& t)
      : conv1({.in = t.input[0], .out = 6, .kernel = 5, .padding = 2}),
        conv2({.in = 6, .out = 16, .kernel = 5}),
        fc1({.in = 16 * ((t.input[1] / 2 - 4) / 2) * ((t.input[2] / 2 - 4) / 2), .out = 120}),
        fc2({.in = 120, .out = 84}),
        fc3({.in = 84, .out = t.classes}) {
    add("conv1", conv1);
    add("conv2", conv2);
    add("fc1", fc1);
    add("fc2", fc2);
    add("fc3", fc3);
  }

  // x [N,C,H,W] → logits [N,classes]
  Tensor forward(const Tensor& x) override {
    Tensor h = max_pool2d(relu(conv1(x)), 2);
    h = max_pool2d(relu(conv2(h)), 2);
    return fc3(relu(fc2(relu(fc1(h.flatten(1))))));
  }
};

// Two hidden layers of 256 units.
struct Mlp : nn::Module {
  nn::Linear fc1, fc2, fc3;

  Mlp(const Task& t)
      : fc1({.in = t.input.numel(), .out = 256}),
        fc2({.in = 256, .out = 256}),
        fc3({.in = 256, .out = t.classes}) {
    add("fc1", fc1);
    add("fc2", fc2);
    add("fc3", fc3);
  }

  // x [N,…] → logits [N,classes]
  Tensor forward(const Tensor& x) override { return fc3(relu(fc2(relu(fc1(x.flatten(1)))))); }
};

// One linear layer: logistic regression.
struct Linear : nn::Module {
  nn::Linear fc;
  Linear(const Task& t) : fc({.in = t.input.numel(), .out = t.classes}) { add("fc", fc); }
  Tensor forward(const Tensor& x) override { return fc(x.flatten(1)); }
};

void require_images(const std::string& model, const Task& t, int64_t least) {
  if (t.input.rank() == 3 && t.input[1] >= least && t.input[2] >= least) return;
  throw ValueError("model",
                   fmt::format("{} needs images [C,H,W] of at least {}×{}; got inputs {}", model,
                               least, least, to_string(t.input)),
                   "mlp and linear take any input");
}

using Maker = std::unique_ptr<nn::Module> (*)(const std::string& name, const Task& task);

struct Entry {
  const char* name;
  const char* about;
  Maker make;
  Kind kind = Kind::classifier;
};

template <class Model, int64_t least>
std::unique_ptr<nn::Module> make_image_model(const std::string& name, const Task& task) {
  require_images(name, task, least);
  return std::make_unique<Model>(task);
}
template <class Model>
std::unique_ptr<nn::Module> make_any(const std::string&, const Task& task) {
  return std::make_unique<Model>(task);
}
std::unique_ptr<nn::Module> make_resnet(const std::string& name, const Task& task) {
  require_images(name, task, 4);
  ResNetOptions o = resnet_options(name);
  o.in_channels = task.input[0];
  o.classes = task.classes;
  return std::make_unique<ResNet>(o);
}
std::unique_ptr<nn::Module> make_gpt(const std::string& name, const Task& task) {
  GptOptions o;
  if (name == "gpt") o = {.layers = 4, .heads = 4, .width = 128};
  o.vocabulary = task.vocabulary;
  o.context = task.input[0];
  const ModelSize& s = task.size;
  if (s.layers > 0) o.layers = s.layers;
  if (s.heads > 0) o.heads = s.heads;
  if (s.width > 0) o.width = s.width;
  o.dropout = s.dropout;
  return std::make_unique<Gpt>(o);
}
std::unique_ptr<nn::Module> make_lstm(const std::string&, const Task& task) {
  LstmLmOptions o{.vocabulary = task.vocabulary, .dropout = task.size.dropout};
  if (task.size.layers > 0) o.layers = task.size.layers;
  if (task.size.width > 0) o.width = task.size.width;
  return std::make_unique<LstmLm>(o);
}

// Patches of 16 pixels for large images, of 4 for small ones, or of less where that does not fit.
std::unique_ptr<nn::Module> make_vit(const std::string& name, const Task& task) {
  require_images(name, task, 4);
  VitOptions o = vit_options(name);
  o.channels = task.input[0];
  o.height = task.input[1];
  o.width = task.input[2];
  o.classes = task.classes;
  o.patch = o.height >= 64 && o.width >= 64 ? 16 : 4;
  while (o.height % o.patch != 0 || o.width % o.patch != 0) --o.patch;
  return std::make_unique<Vit>(o);
}
std::unique_ptr<nn::Module> make_bert(const std::string& name, const Task& task) {
  BertOptions o = bert_options(name);
  o.vocabulary = task.vocabulary;
  o.context = std::max(o.context, task.input[0]);
  return std::make_unique<BertClassifier>(o, task.classes);
}
std::unique_ptr<nn::Module> make_pictures(const std::string& name, const Task& task) {
  require_images(name, task, 4);
  const AutoencoderOptions o{
      .channels = task.input[0], .height = task.input[1], .width = task.input[2]};
  if (name == "autoencoder") return std::make_unique<Autoencoder>(o);
  if (name == "vae") return std::make_unique<Vae>(o);
  return std::make_unique<Denoiser>(UNetOptions{.in = o.channels, .out = o.channels});
}
std::unique_ptr<nn::Module> make_graph(const std::string& name, const Task& task) {
  const GraphModelOptions o{.in = task.input[0], .classes = task.classes};
  std::unique_ptr<GraphModel> model;
  if (name == "gcn") model = std::make_unique<Gcn>(o);
  if (name == "gat") model = std::make_unique<Gat>(o);
  if (task.graph) model->keep(*task.graph);
  return model;
}

const Entry kModels[] = {
    {"convnet", "two convolutions, two linear layers, dropout; for images",
     make_image_model<ConvNet, 4>},
    {"lenet", "LeNet-5 (LeCun et al. 1998) with ReLU and max pooling; for images",
     make_image_model<LeNet, 12>},
    {"mlp", "two hidden layers of 256 units; for any input", make_any<Mlp>},
    {"linear", "one linear layer; for any input", make_any<Linear>},
    {"resnet20", "residual network (He et al. 2015) of 20 layers, 0.27 M; for small images",
     make_resnet},
    {"resnet32", "the same with 32 layers, 0.46 M", make_resnet},
    {"resnet44", "the same with 44 layers, 0.66 M", make_resnet},
    {"resnet56", "the same with 56 layers, 0.85 M", make_resnet},
    {"resnet110", "the same with 110 layers, 1.7 M", make_resnet},
    {"resnet18", "residual network of 18 layers for large images, 11 M", make_resnet},
    {"resnet34", "the same with 34 layers, 21 M", make_resnet},
    {"resnet50", "the same with 50 layers in bottlenecks, 24 M", make_resnet},
    {"gpt", "GPT-2 (Radford et al. 2019) with 4 layers of width 128; for tokens", make_gpt,
     Kind::language},
    {"gpt2", "GPT-2 small: 12 layers of width 768; for tokens", make_gpt, Kind::language},
    {"lstm", "LSTM language model (Zaremba et al. 2014), 2 layers of 256; for tokens", make_lstm,
     Kind::language},
    {"vit", "vision transformer (Dosovitskiy et al. 2020), 6 layers of width 128; for images",
     make_vit},
    {"vit-tiny", "the same with 12 layers of 192, 5.7 M", make_vit},
    {"vit-small", "the same with 12 layers of 384, 22 M", make_vit},
    {"vit-base", "the same with 12 layers of 768, 86 M", make_vit},
    {"bert-tiny", "BERT (Devlin et al. 2018) with 2 layers of 128, 4.4 M; classes of texts",
     make_bert, Kind::text},
    {"minilm-l6", "MiniLM (Wang et al. 2020), 6 layers of 384, 23 M; classes of texts", make_bert,
     Kind::text},
    {"minilm-l12", "the same with 12 layers, 33 M", make_bert, Kind::text},
    {"bert-base", "BERT base, 12 layers of 768, 109 M; classes of texts", make_bert, Kind::text},
    {"autoencoder", "convolutions to a code of 16 numbers and back; learns from pictures alone",
     make_pictures, Kind::pictures},
    {"vae", "variational autoencoder (Kingma & Welling 2013); learns from pictures alone",
     make_pictures, Kind::pictures},
    {"unet", "U-Net (Ronneberger et al. 2015) that takes noise out of pictures", make_pictures,
     Kind::pictures},
    {"gcn", "graph convolution (Kipf & Welling 2016); classes of nodes", make_graph, Kind::graph},
    {"gat", "graph attention (Veličković et al. 2017); classes of nodes", make_graph, Kind::graph},
};

void require_task(const Entry& model, const Task& t) {
  const bool tokens = t.vocabulary > 0;
  if (reads_text(model.kind) && (!tokens || t.input.rank() != 1)) {
    throw ValueError("model",
                     fmt::format("{} reads sequences of tokens [T]; got inputs {} in {} classes",
                                 model.name, to_string(t.input), t.classes),
                     "models for such data: cutaway list");
  }
  if (!reads_text(model.kind) && tokens) {
    throw ValueError("model",
                     fmt::format("{} classifies; got sequences of {} different tokens", model.name,
                                 t.vocabulary),
                     "gpt and lstm read tokens");
  }
  const bool needs_classes = model.kind != Kind::language && model.kind != Kind::pictures;
  if (needs_classes && t.classes < 1) {
    throw ValueError("model", fmt::format("{} tells classes apart; the data has none", model.name));
  }
}

}  // namespace

std::unique_ptr<nn::Module> make_model(const std::string& name, const Task& task) {
  if (task.input.numel() < 1 || task.input.empty()) {
    throw ValueError("model", fmt::format("needs inputs; got {}", to_string(task.input)));
  }
  for (const Entry& model : kModels) {
    if (name != model.name) continue;
    require_task(model, task);
    return model.make(name, task);
  }
  std::string known;
  for (const Entry& model : kModels) known += std::string(" ") + model.name;
  throw ValueError("model", fmt::format("there is no model \"{}\"; known are:{}", name, known));
}

bool is_language_model(const std::string& name) { return kind_of(name) == Kind::language; }
Kind kind_of(const std::string& name) {
  for (const Entry& model : kModels) {
    if (name == model.name) return model.kind;
  }
  return Kind::classifier;
}

std::vector<std::pair<std::string, std::string>> known_models() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Entry& model : kModels) list.emplace_back(model.name, model.about);
  return list;
}

}  // namespace cutaway::zoo
