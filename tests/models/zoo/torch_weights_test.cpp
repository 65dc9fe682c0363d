// Weights that PyTorch saved give PyTorch's logits.
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/torch_file.h>
#include <cutaway/models/zoo/resnet.h>
#include <cutaway/nn/files.h>
#include <tests/paths.h>

namespace cutaway::zoo {
namespace {

TEST(TorchWeights, a_resnet20_loads_by_key_and_gives_the_same_logits) {
  const std::string folder = std::string(kSourceDir) + "/tests/golden/torch/";
  const std::string path =
      (std::filesystem::temp_directory_path() / ("cutaway_" + std::to_string(::getpid()) + ".pt"))
          .string();
  const io::Bytes plain = io::read_maybe_gzip(folder + "resnet20.pt.gz");
  io::write_file_atomic(path, std::string(plain.begin(), plain.end()));
  ResNetOptions options = resnet_options("resnet20");
  options.classes = 10;
  ResNet net(options);
  nn::load(net, path);
  std::filesystem::remove(path);
  net.eval();
  const io::NamedArrays batch = io::load_torch(folder + "logits.pt");
  ASSERT_EQ(batch.size(), 2u);
  const std::vector<double> got = net(batch[0].second).to_vector();
  const std::vector<double> need = batch[1].second.to_vector();
  ASSERT_EQ(got.size(), need.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], need[i], 1e-4) << i;
}

}  // namespace
}  // namespace cutaway::zoo
