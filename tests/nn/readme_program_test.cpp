// The program of README.md, on part of an epoch: it compiles, learns and saves.
#include <gtest/gtest.h>

#include <filesystem>

#include <cutaway/cutaway.h>
using namespace cutaway;

namespace {

struct Net : nn::Module {
  nn::Conv2d conv{{.in = 1, .out = 16, .kernel = 3, .padding = 1}};
  nn::Linear head{{.in = 16 * 14 * 14, .out = 10}};

  Net() {
    add("conv", conv);
    add("head", head);
  }
  // x [N,1,28,28] → logits [N,10]
  Tensor forward(const Tensor& x) override { return head(max_pool2d(relu(conv(x)), 2).flatten(1)); }
};

TEST(Readme, the_program_learns_and_saves) {
  manual_seed(1);
  Net net;
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  data::Loader batches(data::fashion_mnist("train"), {.batch = 128, .shuffle = true});
  double first = 0, last = 0;
  int step = 0;
  for (const auto& [x, y] : batches) {
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    adam.step_and_zero();
    last = loss.item();
    if (step == 0) first = last;
    if (++step == 30) break;
  }
  EXPECT_LT(last, 0.6 * first);
  const std::string path =
      (std::filesystem::temp_directory_path() / "cutaway_readme.safetensors").string();
  nn::save(net, path);
  Net other;
  nn::load(other, path);
  EXPECT_EQ(other.conv.weight.to_vector(), net.conv.weight.to_vector());
  std::filesystem::remove(path);
}

}  // namespace
