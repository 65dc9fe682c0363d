// cutaway xmc train, eval and predict as a shell starts them: the commands of docs/haste.md at
// small scale, a run that is stopped and goes on, and what bad input is told.
#include <fmt/format.h>

#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

class XmcCommand : public ShellCommand {
 protected:
  int run(const std::string& arguments, const std::string& input = "/dev/null") {
    return ShellCommand::run(fmt::format("xmc {} --threads 1", arguments), input);
  }
  void refuses(const std::string& arguments, const std::string& piece) {
    ShellCommand::refuses(fmt::format("xmc {} --threads 1", arguments), piece);
  }
};

const std::string kSmall =
    "train --data synth --labels 128 --samples 300 --vocabulary 300 --hidden 64 --fan-in 16 "
    "--batch 32 --epochs 2 --rewire-interval 5 --quiet ";

TEST_F(XmcCommand, train_eval_predict) {
  ASSERT_EQ(run("train --data debian-sample --hidden 64 --fan-in 16 --epochs 2 --lr-enc 3e-3 "
                "--out run"),
            0)
      << text_;
  for (const char* piece : {"epoch   2", "P@1,3,5", "head (", "tail.index", "together", "report"}) {
    shows(piece);
  }
  for (const char* name :
       {"config.json", "metrics.csv", "report.html", "labels.txt", "vectorizer.tsv",
        "checkpoint/best.safetensors", "checkpoint/last.safetensors", "plots/precision.svg",
        "plots/loss.svg", "plots/deciles.svg", "plots/memory.svg", "plots/rewired.svg"}) {
    EXPECT_TRUE(fs::exists(folder_ / "run" / name)) << name;
  }
  const std::string metrics = read("run/metrics.csv");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3) << metrics;
  ASSERT_EQ(run("eval --run run"), 0) << text_;
  shows("PSP");
  write("descriptions", "python library to read yaml files\n\nqqqq\n");
  ASSERT_EQ(run("predict --run run --topk 3", "descriptions"), 0) << text_;
  shows("python3");
  shows("words read: ");
  shows("no word of this is known");
  ASSERT_EQ(run("predict --run run --topk 2 --text 'perl module'"), 0) << text_;
  EXPECT_EQ(std::count(text_.begin(), text_.end(), '%'), 2) << text_;
  refuses("train --data debian-sample --out run", "--resume");
}

TEST_F(XmcCommand, a_stopped_run_goes_on_to_the_same_bytes) {
  ASSERT_EQ(run(kSmall + "--out whole"), 0) << text_;
  ASSERT_EQ(run(kSmall + "--out parts --stop-after 7"), 0) << text_;
  shows("xmc train --resume parts");
  ASSERT_EQ(run("train --resume parts --quiet --stop-after 6"), 0) << text_;
  ASSERT_EQ(run("train --resume parts --quiet"), 0) << text_;
  for (const char* name : {"/checkpoint/last.safetensors", "/checkpoint/best.safetensors"}) {
    EXPECT_EQ(read(std::string("whole") + name), read(std::string("parts") + name)) << name;
  }
  // Everything but seconds is the same in metrics.csv.
  const auto without_seconds = [](std::string text) {
    std::string kept;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) kept += line.substr(0, line.rfind(',')) + "\n";
    return kept;
  };
  EXPECT_EQ(without_seconds(read("whole/metrics.csv")), without_seconds(read("parts/metrics.csv")));
  // Another order of labels: the groups of another method.
  std::string config = read("parts/config.json");
  const size_t at = config.find("\"semantic\"");
  ASSERT_NE(at, std::string::npos);
  write("parts/config.json", config.replace(at, 10, "\"random\""));
  refuses("train --resume parts --quiet", "another order of labels");
}

TEST_F(XmcCommand, compare_trains_every_layer_with_every_seed) {
  const std::string small =
      "compare --data synth --labels 128 --samples 300 --vocabulary 300 "
      "--hidden 64 --fan-in 16 --batch 32 --epochs 1 ";
  ASSERT_EQ(run(small + "--layers haste,dense --seeds 4,5 --out all"), 0) << text_;
  shows("4 of 4 runs");
  shows("| dense |");
  const std::string rows = read("all/compare.csv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 5) << rows;
  EXPECT_NE(rows.find("\nhaste,5,"), std::string::npos) << rows;
  for (const char* name : {"compare.md", "config.json", "plots/p5.svg", "plots/tail-p5.svg"}) {
    EXPECT_TRUE(fs::exists(folder_ / "all" / name)) << name;
  }
  refuses(small + "--layers haste,sparse", "no layer \"sparse\"");
}

TEST_F(XmcCommand, propensities_are_those_of_the_options) {
  ASSERT_EQ(run(kSmall + "--out usual"), 0) << text_;
  ASSERT_EQ(run(kSmall + "--psp-a 0.6 --psp-b 2.6 --out amazon"), 0) << text_;
  const auto column = [&](const char* name, int index) {
    std::istringstream in(read(std::string(name) + "/metrics.csv"));
    std::string line, cell;
    std::getline(in, line), std::getline(in, line);
    std::istringstream cells(line);
    for (int i = 0; i <= index; ++i) std::getline(cells, cell, ',');
    return cell;
  };
  EXPECT_EQ(column("usual", 3), column("amazon", 3));  // P@1
  EXPECT_NE(column("usual", 8), column("amazon", 8));  // PSP@1
}

TEST_F(XmcCommand, bad_options) {
  refuses(kSmall + "--rewire-fraction 1.5", "--rewire-fraction");
  refuses("train --fan-in 24", "take 32");
  refuses("train --fan-in 160 --hidden 256", "128 features that the tail reads");
  refuses("train --group 0", "--group");
  refuses("train --head-ratio 1", "[0, 1)");
  refuses("train --layer thick", "--layer must be one of");
  refuses("train --grouping alphabetical", "alphabetical");
  refuses("train --rewire-score grad --momentum 0", "--momentum 0.9");
  refuses("train --data nowhere.txt", "nowhere.txt");
  refuses("predict --run nowhere", "holds no trained run");
  refuses("eval --run nowhere", "nowhere");
}

TEST_F(XmcCommand, bad_data) {
  write("good.txt", "2 3 2\n0 0:1 1:0.5\n1 2:1\n");
  const std::string tail = " --hidden 64 --fan-in 16 --epochs 1 --quiet";
  write("nan.txt", "1 3 2\n0 0:nan\n");
  refuses("train --data nan.txt --test good.txt" + tail, "nan.txt:2");
  write("label.txt", "1 3 2\n7 0:1\n");
  refuses("train --data label.txt --test good.txt" + tail, "label.txt:2");
  write("feature.txt", "1 3 2\n0 9:1\n");
  refuses("train --data feature.txt --test good.txt" + tail, "feature.txt:2");
  write("count.txt", "5 3 2\n0 0:1\n");
  refuses("train --data count.txt --test good.txt" + tail, "count.txt");
  write("empty.txt", "0 3 2\n");
  refuses("train --data good.txt --test empty.txt" + tail, "empty");
}

}  // namespace
}  // namespace cutaway
