// cutaway tokenizer, and language models on the command line.
#include <fmt/format.h>

#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {

class LanguageCommand : public ShellCommand {
 protected:
  void SetUp() override {
    ShellCommand::SetUp();
    std::ofstream out(folder_ / "t.txt");
    for (int i = 0; i < 120; ++i) out << "the cat no. " << i % 10 << " sat on a mat.\n";
  }
  int run(const std::string& arguments, const std::string& input = "/dev/null") {
    return ShellCommand::run(arguments, input, {});
  }
};

TEST_F(LanguageCommand, a_tokenizer_is_trained_applied_and_shown) {
  ASSERT_EQ(run("tokenizer train t.txt --vocabulary 270 --special '<|end|>' --out t.json"), 0)
      << text_;
  EXPECT_TRUE(says("BPE   270 tokens, 13 merges")) << text_;
  ASSERT_EQ(run("tokenizer encode t.json 'the mat<|end|>'"), 0) << text_;
  const std::string ids = text_.substr(0, text_.find('\n'));
  ASSERT_EQ(run("tokenizer decode t.json --special " + ids), 0) << text_;
  EXPECT_EQ(text_, "the mat<|end|>\n");
  ASSERT_EQ(run("tokenizer decode t.json " + ids), 0) << text_;
  EXPECT_EQ(text_, "the mat\n");
  ASSERT_EQ(run("tokenizer encode t.json --tokens", "t.txt"), 0) << text_;
  EXPECT_TRUE(says("0..")) << text_;
  ASSERT_EQ(run("tokenizer inspect t.json"), 0) << text_;
  EXPECT_TRUE(says("\"<|end|>\"")) << text_;
  EXPECT_EQ(run("tokenizer train t.txt --kind wordpiece --vocabulary 60 --out w.json"), 0);
  EXPECT_EQ(run("tokenizer encode w.json --file t.txt"), 0) << text_;
  EXPECT_EQ(run("tokenizer train t.txt --kind char --out c.json"), 0) << text_;
  EXPECT_EQ(run("tokenizer encode c.json 'Q'"), 1);
  EXPECT_TRUE(says("no token for \"Q\"")) << text_;
  EXPECT_EQ(run("tokenizer decode t.json 1x"), 1);
  EXPECT_EQ(run("tokenizer encode missing.json x"), 1);
  EXPECT_GT(run("tokenizer train t.txt --kind unigram"), 0);
}

TEST_F(LanguageCommand, a_language_model_is_trained_evaluated_and_writes) {
  const std::string size = " --layers 1 --heads 2 --width 16 --context 16 --epochs 1 --threads 1";
  ASSERT_EQ(run("train --model gpt --data t.txt --out g" + size), 0) << text_;
  EXPECT_TRUE(says("nats/char")) << text_;
  EXPECT_TRUE(says("--- goes on ---")) << text_;
  EXPECT_TRUE(says("cutaway generate --run g")) << text_;
  ASSERT_EQ(run("eval --run g"), 0) << text_;
  EXPECT_TRUE(says("t.txt validation")) << text_;
  ASSERT_EQ(run("generate --run g --prompt 'the cat' --length 20 --seed 4"), 0) << text_;
  const std::string first = text_;
  EXPECT_TRUE(first.starts_with("the cat")) << text_;
  ASSERT_EQ(run("generate --run g --prompt 'the cat' --length 20 --seed 4"), 0) << text_;
  EXPECT_EQ(text_, first);
  EXPECT_EQ(run("generate --run g --prompt Zebra"), 1);
  EXPECT_TRUE(says("no token for \"Z\"")) << text_;
  EXPECT_EQ(run("predict --run g"), 1);
  EXPECT_TRUE(says("cutaway generate --run g")) << text_;
  ASSERT_EQ(run("tokenizer train t.txt --vocabulary 270 --out t.json"), 0) << text_;
  ASSERT_EQ(run("train --model lstm --data t.txt --tokenizer t.json --out l --quiet" + size), 0)
      << text_;
  EXPECT_TRUE(says("validation")) << text_;
  EXPECT_EQ(run("train --model gpt --data digits --out x"), 1);
  EXPECT_TRUE(says("need austen, a file ending in .txt")) << text_;
}

}  // namespace
}  // namespace cutaway
