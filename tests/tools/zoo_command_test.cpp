// Models that do not classify single examples, on the command line: train, eval, predict, resume,
// export.
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
  shows("miles 20 + 108");
  shows("test accuracy 7");
  EXPECT_NE(read("graph/config.json").find("\"data\": \"miles\""), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "graph" / "report.html"));
  ASSERT_EQ(run("eval --run graph --best"), 0) << text_;
  shows("108 examples");
  ASSERT_EQ(run("predict --run graph --index 0"), 0) << text_;
  shows("West Palm Beach, FL");
  ASSERT_EQ(run("onnx export --run graph --file g.onnx"), 0) << text_;
  ASSERT_EQ(run("onnx inspect --file g.onnx"), 0) << text_;
  shows("int64 [batch]");
  fails("train --model gat --augment flip --out other", "--augment does not apply to gat");
  fails("train --model gat --data digits --out other", "gat reads graphs; got the data");
  ASSERT_EQ(run("train --model gat --epochs 1 --out gat --quiet"), 0) << text_;
  fails("onnx export --run gat --file other", "segment_max has no equivalent in ONNX");
}

TEST_F(ZooCommand, pictures_are_learned) {
  ASSERT_EQ(run("train --model vae --data digits --epochs 2 --stop-after 15 --out pictures"), 130)
      << text_;
  ASSERT_EQ(run("train --resume pictures"), 0) << text_;
  shows("test loss ");
  EXPECT_TRUE(read("pictures/plots/pictures.svg").starts_with("<svg"));
  ASSERT_EQ(run("eval --run pictures"), 0) << text_;
  shows("digits test   loss ");
  ASSERT_EQ(run("onnx export --run pictures --file p.onnx --best"), 0) << text_;
  ASSERT_EQ(run("onnx inspect --file p.onnx"), 0) << text_;
  shows("result   output                   float [batch,1,8,8]");
  fails("predict --run pictures", "vae learns from pictures alone");
  fails("train --model unet --data digits --batch 0 --out other", "batch must be");
  fails("train --model vae --label-smoothing 0.1 --out other", "does not apply to vae");
  fails("train --model mlp --context 5 --out other", "--context does not apply to mlp");
}

TEST_F(ZooCommand, classes_of_texts_are_learned) {
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    const char* text = i % 2 ? "the sea was grey and cold" : "roses are red in the garden";
    lines += "{\"text\": \"" + std::string(text) + " " + std::to_string(i % 7) +
             "\", \"label\": \"" + (i % 2 ? "sea" : "land") + "\"}\n";
  }
  write("t.jsonl", lines);
  ASSERT_EQ(run("train --model bert-tiny --data t.jsonl --epochs 3 --batch 16 --out t"), 0)
      << text_;
  shows("t.jsonl 160 + 40");
  shows("test accuracy 100.00 %");
  ASSERT_EQ(run("eval --run t --split train"), 0) << text_;
  shows("160 examples");
  ASSERT_EQ(run("predict --run t --index 0"), 0) << text_;
  shows("roses are red in the garden 4\n     0  land");
  ASSERT_EQ(run("onnx export --run t --file t.onnx"), 0) << text_;
  ASSERT_EQ(run("train --model bert-tiny --data t.jsonl --epochs 0 --out u --init "
                "t/best.safetensors --tokenizer t/tokenizer.json"),
            0)
      << text_;
  shows("init   41 tensors of ");
  shows("test accuracy 100.00 %");
  fails("train --model bert-tiny --data t.jsonl --out other --init t.jsonl", "t.jsonl");
  fails("train --model bert-tiny --data digits --out other", "there are no texts with classes");
}

TEST_F(ZooCommand, every_kind_of_data_is_listed) {
  ASSERT_EQ(run("list"), 0) << text_;
  for (const char* name : {"fashion-mnist", "austen", "glosses", "FILE.jsonl", "miles"}) {
    shows(std::string("\n  ") + name + " ");
  }
  ASSERT_EQ(run("list --json all.json"), 0) << text_;
  EXPECT_NE(read("all.json").find("\"name\": \"miles\""), std::string::npos);
}

}  // namespace
}  // namespace cutaway
