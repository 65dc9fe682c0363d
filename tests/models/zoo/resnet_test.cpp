#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/resnet.h>
#include <cutaway/models/zoo/zoo.h>
#include <cutaway/nn/optim/optimizer.h>
#include <tests/models/zoo/one_thread.h>

namespace cutaway::zoo {
namespace {

std::map<std::string, Shape> keys(const nn::Module& m) {
  std::map<std::string, Shape> all;
  for (const nn::Named& t : m.state_dict()) all[t.name] = t.value.sizes();
  return all;
}

// Numbers of the models with these names elsewhere: 3 channels; 10 classes and option A for the
// small ones, 1000 classes as in torchvision for the others.
TEST(ResNetModel, parameter_counts) {
  const OneThread guard;
  const std::pair<const char*, int64_t> small[] = {{"resnet20", 269722},
                                                   {"resnet32", 464154},
                                                   {"resnet44", 658586},
                                                   {"resnet56", 853018},
                                                   {"resnet110", 1727962}};
  for (const auto& [name, parameters] : small) {
    EXPECT_EQ(make_model(name, {.input = {3, 32, 32}, .classes = 10})->num_parameters(),
              parameters);
  }
  const std::pair<const char*, int64_t> large[] = {
      {"resnet18", 11689512}, {"resnet34", 21797672}, {"resnet50", 25557032}};
  for (const auto& [name, parameters] : large) {
    EXPECT_EQ(ResNet(resnet_options(name)).num_parameters(), parameters) << name;
  }
  ResNetOptions projections = resnet_options("resnet20");
  projections.shortcut = Shortcut::projection;
  projections.classes = 10;
  EXPECT_EQ(ResNet(projections).num_parameters(), 269722 + 16 * 32 + 64 + 32 * 64 + 128);
}

TEST(ResNetModel, keys_are_those_of_torchvision) {
  const ResNet net({.blocks = {1, 2}, .width = 4, .bottleneck = true, .classes = 5});
  std::vector<std::string> names;
  for (const nn::Named& t : net.state_dict()) names.push_back(t.name);
  std::vector<std::string> expected;
  const auto norm = [&](const std::string& prefix) {
    for (const char* end :
         {"weight", "bias", "running_mean", "running_var", "num_batches_tracked"}) {
      expected.push_back(prefix + end);
    }
  };
  const auto conv_norm = [&](const std::string& conv, const std::string& after) {
    expected.push_back(conv + ".weight");
    norm(after + ".");
  };
  conv_norm("conv1", "bn1");
  for (const std::string block : {"layer1.0.", "layer2.0.", "layer2.1."}) {
    for (const std::string i : {"1", "2", "3"}) conv_norm(block + "conv" + i, block + "bn" + i);
    if (block != "layer2.1.") conv_norm(block + "downsample.0", block + "downsample.1");
  }
  expected.insert(expected.end(), {"fc.weight", "fc.bias"});
  EXPECT_EQ(names, expected);
}

TEST(ResNetModel, sizes_of_published_files) {
  const OneThread guard;
  const auto large = keys(ResNet(resnet_options("resnet18")));
  EXPECT_EQ(large.size(), 122u);
  EXPECT_EQ(large.at("conv1.weight"), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(large.at("layer3.0.downsample.0.weight"), (Shape{256, 128, 1, 1}));
  EXPECT_EQ(large.at("layer4.1.conv2.weight"), (Shape{512, 512, 3, 3}));
  EXPECT_EQ(large.at("fc.weight"), (Shape{1000, 512}));
  EXPECT_FALSE(large.contains("layer1.0.downsample.0.weight"));
  const auto small = keys(ResNet(resnet_options("resnet20")));
  EXPECT_EQ(small.at("layer3.2.conv2.weight"), (Shape{64, 64, 3, 3}));
  for (const auto& [name, sizes] : small) {
    EXPECT_EQ(name.find("downsample"), std::string::npos) << name;
  }
}

TEST(ResNetModel, shapes) {
  const OneThread guard;
  manual_seed(1);
  const auto grey = make_model("resnet20", {.input = {1, 28, 28}, .classes = 10});
  EXPECT_EQ((*grey)(randn({2, 1, 28, 28})).sizes(), (Shape{2, 10}));
  std::map<std::string, Shape> outputs;
  const ResNet wide({.blocks = {1, 1, 1, 1}, .width = 8, .bottleneck = true});
  for (const nn::SummaryRow& r : nn::summary_rows(wide, {2, 3, 224, 224})) {
    outputs[r.path] = r.output;
  }
  EXPECT_EQ(outputs.at("model.conv1"), (Shape{2, 8, 112, 112}));
  EXPECT_EQ(outputs.at("model.layer1"), (Shape{2, 32, 56, 56}));
  EXPECT_EQ(outputs.at("model.layer4"), (Shape{2, 256, 7, 7}));
  EXPECT_EQ(outputs.at("model"), (Shape{2, 1000}));
}

TEST(ResNetModel, starts_as_said) {
  const OneThread guard;
  manual_seed(2);
  const ResNet net({.blocks = {1, 1}, .width = 32, .zero_init_last = true});
  for (const nn::Named& p : net.named_parameters()) {
    if (p.value.dim() == 4) {
      const double fan_out = double(p.value.numel() / p.value.size(1));
      EXPECT_NEAR(std(p.value).item() / std::sqrt(2 / fan_out), 1, 0.06) << p.name;
    }
    if (p.name.find("bn2.weight") != std::string::npos) {
      EXPECT_EQ(amax(abs(p.value)).item(), 0);
    }
  }
  EXPECT_EQ(ResNet({.blocks = {1}, .width = 2}).layers[0].get<BasicBlock>(0).bn2.weight.to_vector(),
            (std::vector<double>{1, 1}));
}

TEST(ResNetModel, option_a_subsamples_and_pads_channels) {
  manual_seed(3);
  BasicBlock block({.in = 2, .width = 4, .stride = 2, .shortcut = Shortcut::pad});
  nn::init::zeros_(block.bn2.weight);
  const Tensor x = randn({3, 2, 5, 6}), y = block(x);
  ASSERT_EQ(y.sizes(), (Shape{3, 4, 3, 3}));
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t i = 0; i < 9; ++i) {
        const double passed = c == 0 || c == 3 ? 0 : x[n][c - 1][i / 3 * 2][i % 3 * 2].item();
        EXPECT_EQ(y[n][c][i / 3][i % 3].item(), std::max(passed, 0.0));
      }
    }
  }
}

TEST(ResNetModel, gradients_agree_with_differences) {
  const OneThread guard;
  for (const bool bottleneck : {false, true}) {
    manual_seed(4);
    ResNet net({.blocks = {1, 1},
                .width = 2,
                .bottleneck = bottleneck,
                .small_images = true,
                .shortcut = bottleneck ? Shortcut::projection : Shortcut::pad,
                .in_channels = 1,
                .classes = 2});
    net.to(DType::f64);
    const nn::NamedTensors parameters = net.named_parameters();
    Tensors inputs{randn({2, 1, 4, 4}, {.dtype = DType::f64, .requires_grad = true})};
    for (const nn::Named& p : parameters) inputs.push_back(p.value.detach().clone());
    for (Tensor& t : inputs) t.set_requires_grad();
    const auto report = gradcheck(
        [&](const Tensors& in) {
          nn::NamedTensors values;
          for (size_t i = 0; i < parameters.size(); ++i) {
            values.push_back({parameters[i].name, in[i + 1]});
          }
          return Tensors{nn::functional_call(net, values, in[0])};
        },
        inputs, {.step = 1e-5});
    EXPECT_TRUE(report.ok) << report.message;
  }
}

TEST(ResNetModel, learns_a_small_batch) {
  const OneThread guard;
  manual_seed(5);
  ResNetOptions o = resnet_options("resnet20");
  o.in_channels = 1;
  o.classes = 4;
  ResNet net(o);
  optim::Sgd sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  const Tensor x = randn({8, 1, 8, 8});
  const Tensor target = tensor({0, 1, 2, 3, 0, 1, 2, 3}, {.dtype = DType::i64});
  double first = 0, last = 0;
  for (int step = 0; step < 12; ++step) {
    const Tensor loss = cross_entropy(net(x), target);
    loss.backward();
    sgd.step_and_zero();
    last = loss.item();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.3 * first);
}

TEST(ResNetModel, runs_in_bf16) {
  const OneThread guard;
  manual_seed(6);
  ResNet net(resnet_options("resnet20"));
  net.eval();
  const Tensor x = randn({2, 3, 16, 16});
  const Tensor full = net(x);
  net.to(DType::bf16);
  const Tensor low = net(x.to(DType::bf16));
  EXPECT_EQ(low.dtype(), DType::bf16);
  EXPECT_LT(norm(low.to(DType::f32) - full).item(), 0.05 * norm(full).item());
}

TEST(ResNetModel, errors_say_what_is_wrong) {
  EXPECT_THROW(ResNet({.blocks = {}}), ValueError);
  EXPECT_THROW(ResNet({.blocks = {1, 0}}), ValueError);
  EXPECT_THROW(ResNet({.blocks = {1}, .width = 0}), ValueError);
  EXPECT_THROW(resnet_options("resnet21"), ValueError);
  EXPECT_THROW(make_model("resnet20", {.input = {784}, .classes = 10}), ValueError);
}

}  // namespace
}  // namespace cutaway::zoo
