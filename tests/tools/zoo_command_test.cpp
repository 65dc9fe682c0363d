// cutaway train with models that do not classify single examples.
#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

class ZooCommand : public ShellCommand {
 protected:
  void fails(const std::string& arguments, const std::string& piece) {
    EXPECT_EQ(run(arguments), 1) << arguments << "\n" << text_;
    shows(piece);
    EXPECT_FALSE(fs::exists(folder_ / "other"));
  }
};

TEST_F(ZooCommand, a_graph_is_learned) {
  ASSERT_EQ(run("train --model gcn --epochs 60 --out graph"), 0) << text_;
  shows("128 nodes, 20 told, 108 asked");
  shows("told 100.0 %");
  EXPECT_TRUE(read("graph/metrics.csv").starts_with("step,loss,told_accuracy,asked_accuracy\n1,"));
  EXPECT_NE(read("graph/config.json").find("\"data\": \"miles\""), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "graph" / "model.safetensors"));
  fails("train --model gat --clip 1 --out other", "--clip does not apply to gat");
  fails("train --model gat --data digits --out other", "gat reads graphs; got the data");
}

TEST_F(ZooCommand, pictures_are_learned) {
  ASSERT_EQ(run("train --model vae --data digits --epochs 2 --out pictures"), 0) << text_;
  shows("epoch 2/2   loss ");
  EXPECT_TRUE(read("pictures/plots/pictures.svg").starts_with("<svg"));
  EXPECT_TRUE(read("pictures/metrics.csv").starts_with("step,epoch,train_loss,test_loss\n12,0,"));
  fails("train --model unet --data digits --batch 0 --out other", "batch ≥ 1");
}

}  // namespace
}  // namespace cutaway
