// The program as a shell starts it.
#include <cutaway/models/train/trainer.h>
#include <fmt/format.h>

#include <cutaway/core/text.h>
#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

// In a folder with a table of two numbers and a class.
class Command : public ShellCommand {
 protected:
  void SetUp() override {
    ShellCommand::SetUp();
    write_table(folder_ / "t.csv");
  }

  static void write_table(const fs::path& path) {
    std::ofstream out(path);
    out << "a,b,class\n";
    for (int i = 0; i < 60; ++i) out << i * 7 % 13 << ',' << i * 5 % 11 << ',' << i % 3 << '\n';
  }

  int run(const std::string& arguments, const fs::path& where = {}) {
    return ShellCommand::run(arguments, "/dev/null", where);
  }
  int train(const std::string& arguments) {
    return run("train --quiet --data t.csv --model linear " + arguments);
  }
};

TEST_F(Command, FC_2803_numbers_on_the_command_line) {
  EXPECT_EQ(train("--epochs 0 --out zero"), 0) << text_;
  EXPECT_TRUE(says("0 steps"));
  EXPECT_TRUE(fs::is_regular_file(folder_ / "zero/report.html"));
  const std::string endless =
      "train --data t.csv --model linear --epochs 1000000000000 --out many ";
  EXPECT_EQ(run(endless + "--stop-after 3"), 130) << text_;
  EXPECT_TRUE(says("epoch 3/1000000000000")) << text_;
  EXPECT_TRUE(says("saved at step 3"));
  EXPECT_FALSE(says("/s   -")) << "no negative time left: " << text_;

  EXPECT_EQ(train("--lr -1 --out x"), 1);
  EXPECT_TRUE(says("lr must be a finite number ≥ 0; got -1")) << text_;
  for (const char* wrong :
       {"--lr 1,5", "--lr nan", "--lr 1e400", "--batch 1e3", "--batch 0", "--batch -4",
        "--batch 9223372036854775807", "--epochs 9223372036854775807", "--weight-decay inf",
        "--seed abc", "--seed -1", "--seed 18446744073709551616", "--threads -1",
        "--threads two"}) {
    EXPECT_GT(train(std::string(wrong) + " --out x"), 0) << wrong;
    EXPECT_TRUE(says("cutaway: ")) << wrong << ": " << text_;
    EXPECT_FALSE(fs::exists(folder_ / "x")) << wrong;
  }
  EXPECT_EQ(train("--seed 18446744073709551615 --epochs 1 --out seed"), 0) << text_;
  EXPECT_EQ(train::read_config((folder_ / "seed").string()).seed, UINT64_MAX);
  EXPECT_EQ(train("--threads 0 --epochs 1 --out all"), 0) << text_;
  EXPECT_EQ(train("--threads 1000 --epochs 1 --out thousand"), 0) << text_;
  EXPECT_TRUE(says("--threads 1000 is capped at 256")) << text_;
  EXPECT_EQ(train("--epoch 3"), 2);
  EXPECT_TRUE(says("did you mean --epochs?")) << text_;
}

TEST_F(Command, FC_3d17_paths_with_blanks_umlauts_quotes_and_a_dash) {
  fs::create_directories(folder_ / "My Data");
  const std::string data = "My Data/Übung \"1\".csv";
  write_table(folder_ / data);
  ASSERT_EQ(run("train --model linear --epochs 2 --stop-after 1 --out './-run 1' --data " +
                shell_quoted(data)),
            130)
      << text_;
  EXPECT_TRUE(says("cutaway train --resume './-run 1'")) << text_;
  // From another folder: the data set is found all the same.
  EXPECT_EQ(run("train --resume " + shell_quoted((folder_ / "-run 1").string()), "/"), 0) << text_;
  EXPECT_TRUE(says("predict --run '" + (folder_ / "-run 1").string() + "'")) << text_;
  const std::string report = read(folder_ / "-run 1/report.html");
  EXPECT_NE(report.find("linear on " + folder_.string() + "/My Data/Übung &quot;1&quot;.csv"),
            std::string::npos);
  EXPECT_NE(report.find("&quot;1&quot;.csv'"), std::string::npos) << "the command is quoted";
  EXPECT_EQ(run("eval --quiet --run './-run 1'"), 0) << text_;
  EXPECT_TRUE(says("12 examples")) << text_;

  const std::string name(4096, 'x');
  EXPECT_EQ(train("--epochs 1 --out " + name), 1);
  EXPECT_TRUE(says("File name too long")) << text_.substr(text_.size() - 100);
  EXPECT_EQ(run("train --data " + name), 1);
  EXPECT_TRUE(says("there is no data set")) << text_.substr(0, 100);
  EXPECT_TRUE(says("fashion-mnist")) << "the known ones are listed";
  EXPECT_EQ(run("eval --run " + name), 1);
  EXPECT_TRUE(says("File name too long")) << text_.substr(text_.size() - 100);
}

TEST_F(Command, FC_41c0_output_folders_that_cannot_be_used) {
  ASSERT_EQ(train("--epochs 1 --out run"), 0) << text_;
  const std::string before = read(folder_ / "run/metrics.csv");
  EXPECT_EQ(train("--epochs 1 --out run"), 1);
  EXPECT_TRUE(says("already holds a run") && says("--resume run")) << text_;
  EXPECT_EQ(train("--epochs 1 --out t.csv"), 1);
  EXPECT_TRUE(says("is a file, not a folder")) << text_;
  EXPECT_EQ(train("--epochs 1 --out /proc/run"), 1);
  EXPECT_TRUE(says("cannot create /proc/run")) << text_;
  EXPECT_EQ(read(folder_ / "run/metrics.csv"), before);
  // Wrong options leave no folder behind that the corrected command would stumble over.
  for (const char* wrong : {"--optimizer best", "--schedule never", "--clip -1"}) {
    EXPECT_EQ(train(std::string(wrong) + " --out fresh"), 1) << text_;
    EXPECT_FALSE(fs::exists(folder_ / "fresh")) << wrong;
  }
  EXPECT_EQ(run("train --data t.csv --model convnet --out fresh"), 1) << text_;
  EXPECT_FALSE(fs::exists(folder_ / "fresh"));
}

TEST_F(Command, options_of_the_run_are_refused_on_resume) {
  ASSERT_EQ(train("--epochs 2 --stop-after 1 --out run"), 130) << text_;
  for (const char* option : {"--batch 7", "--seed 2", "--data t.csv", "--epochs 9", "--out b"}) {
    EXPECT_EQ(run("train --quiet --resume run " + std::string(option)), 1) << text_;
    EXPECT_TRUE(says("cannot be changed on --resume")) << text_;
  }
  EXPECT_EQ(run("train --resume run --quiet --threads 1"), 0) << text_;
}

// The text of a metrics.csv without the columns that depend on the clock.
std::string timeless(const std::string& metrics) {
  std::istringstream in(metrics);
  std::string all;
  for (std::string line; std::getline(in, line);) {
    size_t end = 0;
    for (int column = 0; column < 6; ++column) end = line.find(',', end) + 1;
    all += line.substr(0, end) + "\n";
  }
  return all;
}

TEST_F(Command, FC_6849_the_same_command_twice) {
  const std::string options =
      "train --quiet --model linear --epochs 3 --batch 16 --log-every 1 --seed 5 --out run "
      "--data " +
      (folder_ / "t.csv").string();
  std::vector<std::string> metrics, weights;
  for (const char* threads : {"1", "1", "2", "2"}) {
    const fs::path where = folder_ / fmt::format("place{}", metrics.size());
    fs::create_directories(where);
    ASSERT_EQ(run(options + " --threads " + threads, where), 0) << text_;
    metrics.push_back(timeless(read(where / "run" / "metrics.csv")));
    weights.push_back(read(where / "run/checkpoint/step-000000009/model.safetensors"));
  }
  EXPECT_EQ(std::count(metrics[0].begin(), metrics[0].end(), '\n'), 1 + 9 + 3);
  EXPECT_GT(weights[0].size(), 100u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(metrics[i], metrics[0]) << i;
    EXPECT_EQ(weights[i], weights[0]) << i;
  }
}

}  // namespace
}  // namespace cutaway
