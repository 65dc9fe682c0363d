#include <cutaway/core/io/npz.h>
#include <cutaway/core/tensor.h>
#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {

class OnnxCommand : public ShellCommand {};

TEST_F(OnnxCommand, the_model_of_a_run_is_written_shown_and_run) {
  ASSERT_EQ(run("train --model linear --data digits --epochs 1 --quiet --out r"), 0) << text_;
  ASSERT_EQ(run("onnx export --run r --file m.onnx"), 0) << text_;
  shows("m.onnx   3 nodes   3 weights and constants   opset 17");
  ASSERT_EQ(run("onnx inspect --file m.onnx --dot m.dot"), 0) << text_;
  shows("result   output                   float [batch,10]");
  shows("fc/linear ← flatten, fc.weight, fc.bias");
  EXPECT_NE(read("m.dot").find("[label=\"Gemm\"]"), std::string::npos);
  const Shape sizes{3, 1, 8, 8};
  io::save_npz((folder_ / "in.npz").string(), {{"input", ones(sizes)}});
  ASSERT_EQ(run("onnx run --file m.onnx --inputs in.npz --results out.npz"), 0) << text_;
  shows("output [3,10]");
  const io::NamedArrays results = io::load_npz((folder_ / "out.npz").string());
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].first, "output");
  EXPECT_EQ(to_string(results[0].second.sizes()), "[3,10]");
}

TEST_F(OnnxCommand, language_models_are_written_too) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the cat sat on the mat.\n";
  write("t.txt", text);
  ASSERT_EQ(run("train --model gpt --data t.txt --out g --quiet --layers 1 --heads 2 --width 16 "
                "--context 16 --epochs 1 --threads 1"),
            0)
      << text_;
  ASSERT_EQ(run("onnx export --run g --file g.onnx"), 0) << text_;
  ASSERT_EQ(run("onnx inspect --file g.onnx"), 0) << text_;
  shows("int64 [batch,16]");
}

TEST_F(OnnxCommand, broken_files_are_refused_with_their_name) {
  write("bad.onnx", "not a model");
  EXPECT_NE(run("onnx inspect --file bad.onnx"), 0);
  shows("bad.onnx");
  EXPECT_NE(run("onnx run --file none.onnx --inputs in.npz"), 0);
  shows("none.onnx");
}

}  // namespace
}  // namespace cutaway
