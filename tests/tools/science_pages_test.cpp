// The commands of docs/bayes-attention.md and docs/depth-law.md, at small scale, and what the tools
// say to bad input.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/text.h>
#include <tests/paths.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

class SciencePages : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("cutaway_science_{}", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  int run(const std::string& arguments) {
    const std::string all =
        fmt::format("cd {} && {} {} --threads 1 >log 2>&1", shell_quoted(folder_.string()),
                    shell_quoted(kCommand), arguments);
    const int status = std::system(all.c_str());
    std::ifstream in(folder_ / "log");
    std::ostringstream text;
    text << in.rdbuf();
    text_ = text.str();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void expect_picture(const std::string& name) {
    std::ifstream in(folder_ / name);
    std::string start(4, ' ');
    in.read(start.data(), 4);
    EXPECT_EQ(start, "<svg") << name << "\n" << text_;
  }
  // Status 2, and one line that holds `piece`.
  void expect_refusal(const std::string& arguments, const std::string& piece) {
    EXPECT_EQ(run(arguments), 2) << arguments << "\n" << text_;
    EXPECT_NE(text_.find(piece), std::string::npos) << text_;
    EXPECT_EQ(std::count(text_.begin(), text_.end(), '\n'), 1) << text_;
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
  }
  fs::path folder_;
  std::string text_;
};

TEST_F(SciencePages, bayes_attention) {
  EXPECT_EQ(run("bayes-attn exact --family pois --K 12 --d 2 --m 16 --out post.csv"), 0) << text_;
  EXPECT_TRUE(fs::exists(folder_ / "post.csv"));
  EXPECT_EQ(run("bayes-attn defect --family pois --svg keys.svg"), 0) << text_;
  expect_picture("keys.svg");
  EXPECT_EQ(run("bayes-attn atlas --family bern --d 1 --heads 1,2,4 --svg err.svg"), 0) << text_;
  expect_picture("err.svg");
  EXPECT_EQ(run("bayes-attn ice --family pois --n 16,64 --seeds 1 --prompts 100 --steps 5 "
                "--svg gap.svg --report ice.json"),
            0)
      << text_;
  expect_picture("gap.svg");
  EXPECT_EQ(run("bayes-attn converse --steps 30 --svg converse.svg"), 0) << text_;
  expect_picture("converse.svg");
}

TEST_F(SciencePages, bayes_attention_refuses) {
  write("bad.csv", "mu1,mu2\n0.5,1.2\n0.1,0.2\n");
  write("prior.csv", "prior,mu1\n0.5,0.2\n0.4,0.3\n");
  write("uneven.csv", "prompt,label,T1\n0,0,1\n0,1,2\n1,0,1\n");
  expect_refusal("bayes-attn defect --family bern --codebook bad.csv", "between 0 and 1");
  expect_refusal("bayes-attn defect --family pois --codebook prior.csv", "must sum to 1");
  expect_refusal("bayes-attn exact --K 1", "two keys");
  write("counts.csv", "mu1,mu2\n0,1\n2,3\n");
  expect_refusal("bayes-attn defect --family pois --codebook counts.csv", "must be above 0");
  write("negative.csv", "prior,mu1\n-0.5,0.2\n1.5,0.3\n");
  expect_refusal("bayes-attn defect --family bern --codebook negative.csv", "must be positive");
  expect_refusal("bayes-attn exact --sigma 1,2,2,1", "positive definite");
  expect_refusal("bayes-attn exact --sigma 1,2,3", "needs 4 numbers");
  expect_refusal("bayes-attn atlas --family bern --heads 4,5", "5 heads are no grid");
  expect_refusal("bayes-attn ice --family pois --data uneven.csv", "same number of rows");
  expect_refusal("bayes-attn diagnose --keys no.npy --queries no.npy", "no.npy");
  const std::string keys = (folder_ / "k.npy").string(), queries = (folder_ / "q.npy").string();
  io::save_npy(keys, ones({4, 3}));
  io::save_npy(queries, ones({5, 2}));
  expect_refusal("bayes-attn diagnose --keys k.npy --queries q.npy", "queries must be [N,3]");
  io::save_npy(queries, full({5, 3}, NAN));
  expect_refusal("bayes-attn diagnose --keys k.npy --queries q.npy", "must be finite");
}

TEST_F(SciencePages, bayes_attention_goes_on_with_a_warning) {
  EXPECT_EQ(run("bayes-attn atlas --family bern --heads 1,16 --draws 20"), 0) << text_;
  EXPECT_NE(text_.find("16 heads for 12 keys"), std::string::npos) << text_;
  write("ice.csv",
        "prompt,label,T1\n0,0,1\n0,1,2\n0,0,1\n1,0,1\n1,0,2\n1,0,1\n");  // 1 lacks a class
  EXPECT_EQ(run("bayes-attn ice --family pois --data ice.csv --steps 1 --seeds 1"), 0) << text_;
  EXPECT_NE(text_.find("1 prompts lack an example"), std::string::npos) << text_;
}

TEST_F(SciencePages, depth_law) {
  EXPECT_EQ(run("depthlaw budget --depths 2,4,6 --width 96 --draws 10 --out budget"), 0) << text_;
  expect_picture("budget/slope.svg");
  EXPECT_EQ(run("depthlaw search --data synth-vec --depths 1,2,3 --width 48 --grid 0.001:30:8 "
                "--refine 3 --trials 2 --batches 10 --out search"),
            0)
      << text_;
  expect_picture("search/losses.svg");
  expect_picture("search/slope.svg");
  EXPECT_EQ(run("depthlaw report search"), 0) << text_;
  EXPECT_EQ(run("depthlaw transfer --from 2 --lr 0.5 --to 4 --rule measured --width 64 "
                "--to-width 128 --draws 5"),
            0)
      << text_;
  EXPECT_NE(text_.find("width 64 → 128"), std::string::npos) << text_;
}

TEST_F(SciencePages, depth_law_refuses) {
  expect_refusal("depthlaw budget --depths 4,8", "three different depths");
  expect_refusal("depthlaw budget --depths 0,4,8", "at least 1");
  expect_refusal("depthlaw search --data words --depths 2,3,4", "unknown data");
  expect_refusal("depthlaw search --data synth-vec --depths 1,2,3 --batch 1000000", "--batch");
  expect_refusal("depthlaw search --data synth-vec --depths 1,2,3 --grid x", "low:high:points");
  expect_refusal("depthlaw transfer --rule guess", "--rule is one of");
  const std::string short_search =
      "depthlaw search --data synth-vec --depths 1,2,3 --width 48 --refine 0 --trials 1 --batches "
      "20 ";
  expect_refusal(short_search + "--grid 1e-4:2e-4:3", "extend the grid to");
  expect_refusal(short_search + "--grid 1e8:1e9:3", "start the grid lower");
  expect_refusal("depthlaw search --data synth-seq --depths 1,2,3", "for --arch vit");
  expect_refusal("depthlaw budget --arch vit --width 16 --depths 2,3,4", "must be even");
  expect_refusal("depthlaw budget --width 0", "--width");
  expect_refusal("depthlaw search --optim lion --data synth-vec", "--optim is one of");
  EXPECT_EQ(run("depthlaw budget --depths 1,2,3 --width 32 --draws 2"), 0);
  EXPECT_NE(text_.find("width 32 is below 16"), std::string::npos) << text_;
  EXPECT_EQ(run("depthlaw transfer --arch cnn --batch-norm --width 16 --draws 2 --optim adam"), 0);
  EXPECT_NE(text_.find("BatchNorm is outside"), std::string::npos) << text_;
  EXPECT_NE(text_.find("Adam is outside"), std::string::npos) << text_;
  EXPECT_EQ(run("depthlaw transfer --arch vit --width 16 --draws 2"), 0) << text_;
  EXPECT_NE(text_.find("LayerNorm is outside"), std::string::npos) << text_;
  EXPECT_EQ(run("depthlaw transfer --arch resnet --dense --width 64 --layer-scale 0.1 --draws 3"),
            0);
  EXPECT_NE(text_.find("LayerScale is outside"), std::string::npos) << text_;
}

// Tables of equations name file and line: `file.cpp:12` `function`. The line must hold the name.
TEST(SciencePlaces, equations_stand_where_the_pages_say) {
  const std::regex place("`([a-z_]+\\.(?:cpp|h)):([0-9]+)` `([^`]+)`");
  for (const std::string name : {"grokking", "depth_law", "bayes_attention", "haste"}) {
    const std::string folder = fmt::format("{}/models/{}/", kSourceDir, name);
    std::ifstream page(folder + "README.md");
    int places = 0;
    for (std::string row; std::getline(page, row);) {
      for (std::sregex_iterator at(row.begin(), row.end(), place), end; at != end; ++at) {
        ++places;
        std::ifstream source(folder + (*at)[1].str());
        std::string line, text;
        int number = 0, found = 0;
        const int wanted = std::stoi((*at)[2].str());
        while (std::getline(source, line)) {
          ++number;
          if (number == wanted) text = line;
          const bool starts = !line.empty() && line[0] != ' ' && line[0] != '/';
          if (!found && starts && line.find((*at)[3].str()) != std::string::npos) found = number;
        }
        EXPECT_NE(text.find((*at)[3].str()), std::string::npos)
            << folder << "README.md: " << (*at)[0].str() << " is at line " << found << " now";
      }
    }
    EXPECT_GE(places, 10) << name;
  }
}

}  // namespace
}  // namespace cutaway
