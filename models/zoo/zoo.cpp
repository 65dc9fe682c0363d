#include <cutaway/models/zoo/zoo.h>

#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
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
      : fc1({.in = t.input.numel(), .out = 256}), fc2({.in = 256, .out = 256}),
        fc3({.in = 256, .out = t.classes}) {
    add("fc1", fc1);
    add("fc2", fc2);
    add("fc3", fc3);
  }

  // x [N,…] → logits [N,classes]
  Tensor forward(const Tensor& x) override {
    return fc3(relu(fc2(relu(fc1(x.flatten(1))))));
  }
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

}  // namespace

std::unique_ptr<nn::Module> make_model(const std::string& name, const Task& task) {
  if (task.classes < 1 || task.input.numel() < 1) {
    throw ValueError("model", fmt::format("needs inputs and at least one class; got {} and {}",
                                          to_string(task.input), task.classes));
  }
  if (name == "convnet") {
    require_images(name, task, 4);
    return std::make_unique<ConvNet>(task);
  }
  if (name == "lenet") {
    require_images(name, task, 12);
    return std::make_unique<LeNet>(task);
  }
  if (name == "mlp") return std::make_unique<Mlp>(task);
  if (name == "linear") return std::make_unique<Linear>(task);
  std::string known;
  for (const auto& [model, about] : known_models()) known += " " + model;
  throw ValueError("model", fmt::format("there is no model \"{}\"; known are:{}", name, known));
}

std::vector<std::pair<std::string, std::string>> known_models() {
  return {{"convnet", "two convolutions, two linear layers, dropout; for images"},
          {"lenet", "LeNet-5 (LeCun et al. 1998) with ReLU and max pooling; for images"},
          {"mlp", "two hidden layers of 256 units; for any input"},
          {"linear", "one linear layer; for any input"}};
}

}  // namespace cutaway::zoo
