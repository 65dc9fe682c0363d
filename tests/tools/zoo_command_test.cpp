// cutaway train with models that do not classify single examples.
#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

using ZooCommand = ShellCommand;

TEST_F(ZooCommand, a_graph_is_learned) {
  ASSERT_EQ(run("train --model gcn --epochs 60 --out graph"), 0) << text_;
  shows("128 nodes, 20 told, 108 asked");
  shows("told 100.0 %");
  EXPECT_TRUE(read("graph/metrics.csv").starts_with("step,loss,told_accuracy,asked_accuracy\n1,"));
  EXPECT_NE(read("graph/config.json").find("\"data\": \"miles\""), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "graph" / "model.safetensors"));
  refuses("train --model gat --clip 1 --out other", "--clip does not apply to gat");
  refuses("train --model gat --data digits --out other", "gat reads graphs; got the data");
}

TEST_F(ZooCommand, pictures_are_learned) {
  ASSERT_EQ(run("train --model vae --data digits --epochs 2 --out pictures"), 0) << text_;
  shows("epoch 2/2   loss ");
  EXPECT_TRUE(read("pictures/plots/pictures.svg").starts_with("<svg"));
  EXPECT_TRUE(read("pictures/metrics.csv").starts_with("step,epoch,train_loss,test_loss\n12,0,"));
  refuses("train --model unet --data digits --batch 0 --out other", "batch ≥ 1");
}

}  // namespace
}  // namespace cutaway
