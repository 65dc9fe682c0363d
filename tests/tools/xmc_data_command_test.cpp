// cutaway xmc convert and xmc groups as a shell starts them.
#include <fmt/format.h>

#include <cutaway/core/text.h>
#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {
namespace fs = std::filesystem;

class XmcDataCommand : public ShellCommand {
 protected:
  int run(const std::string& arguments) { return ShellCommand::run("xmc " + arguments); }
  // Bad input: status 2 and one line of complaint that holds `piece`, behind what was read before.
  void refuses(const std::string& arguments, const std::string& piece) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    const size_t at = text_.find("cutaway: [");
    ASSERT_NE(at, std::string::npos) << text_;
    EXPECT_EQ(text_.find("cutaway: [", at + 1), std::string::npos) << text_;
    EXPECT_NE(text_.substr(at, text_.find('\n', at) - at).find(piece), std::string::npos) << text_;
  }
};

TEST_F(XmcDataCommand, converted_sets_are_read_again) {
  for (const char* to : {"sparse", "raw", "json"}) {
    ASSERT_EQ(run(fmt::format("convert --data debian-sample --limit 500 --to {} --gz {}", to, to)),
              0)
        << text_;
    const std::string first = text_.substr(text_.find(':'), text_.find('\n') - text_.find(':'));
    ASSERT_EQ(run(fmt::format("groups --data {}", to)), 0) << text_;
    shows(first);
  }
  // An extract of the shipped records, and a set from it.
  const std::string sample = std::string(kSourceDir) + "/datasets/samples/xmc/debian_packages.gz";
  ASSERT_EQ(run(fmt::format("convert --data debian-deps:{} --limit 900 --to packages some.gz",
                            shell_quoted(sample))),
            0)
      << text_;
  ASSERT_EQ(run("groups --data debian-deps:some.gz"), 0) << text_;
}

TEST_F(XmcDataCommand, groups_show_words_and_labels_that_belong_together) {
  ASSERT_EQ(run("groups --data debian-sample --inspect --show 400"), 0) << text_;
  shows("semantic 0.");
  // The groups that hold most R packages are named by the words of R packages.
  bool found = false;
  for (size_t at = text_.find("\n  words "); at != std::string::npos;
       at = text_.find("\n  words ", at + 1)) {
    const std::string words = text_.substr(at, text_.find('\n', at + 1) - at);
    const size_t labels_at = text_.find("  labels ", at);
    const std::string labels = text_.substr(labels_at, text_.find('\n', labels_at) - labels_at);
    int of_r = 0;
    for (size_t i = labels.find("r-cran-"); i != std::string::npos;
         i = labels.find("r-cran-", i + 1)) {
      ++of_r;
    }
    if (of_r < 10) continue;
    found = true;
    EXPECT_NE(words.find("cran ("), std::string::npos) << words << labels;
  }
  EXPECT_TRUE(found) << text_;
}

TEST_F(XmcDataCommand, groups_of_a_run_show_the_features_they_share) {
  const std::string train = "train --data debian-sample --limit 600 --epochs 1 --hidden 64 --quiet";
  ASSERT_EQ(run(train + " --out shared"), 0) << text_;
  ASSERT_EQ(run("groups --run shared --inspect --show 3"), 0) << text_;
  shows("semantic, as trained, 0.");
  shows("\n  shared  ");
  ASSERT_EQ(run(train + " --layer dense --out dense"), 0) << text_;
  refuses("groups --run dense --inspect", "shares no features within groups");
  refuses("groups --run nowhere", "nowhere/config.json");
}

TEST_F(XmcDataCommand, bad_input_is_refused_with_one_complaint) {
  refuses("groups --data nothing", "there is no set \"nothing\"");
  refuses("groups --data debian-sample --grouping best", "there is no grouping \"best\"");
  refuses("groups --data debian-sample --head-ratio 1", "need a head ratio in [0, 1)");
  refuses("groups --data debian-sample --label libc6", "is in the head");
  refuses("groups --data debian-sample --label nothing", "there is no label");
  refuses("convert --data synth --samples 100 --labels 64 --vocabulary 100 --to raw out",
          "has no texts");
  std::ofstream(folder_ / "train.txt") << "1 2 3\n0 0:nan\n";
  std::ofstream(folder_ / "test.txt") << "1 2 3\n0 0:1\n";
  refuses("groups --data train.txt --test test.txt", "train.txt:2: feature 0 needs a finite value");
}

}  // namespace
}  // namespace cutaway
