#include <cutaway/datasets/text/labelled.h>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <set>

#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {
namespace fs = std::filesystem;

class Labelled : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("cutaway_labelled_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  fs::path folder_;
};

TEST_F(Labelled, glosses_have_topics) {
  const LabelledTexts train = open_labelled("glosses", "train"),
                      test = open_labelled("glosses", "test");
  EXPECT_EQ(train.texts.size(), 16266u);
  EXPECT_EQ(test.texts.size(), 4066u);
  EXPECT_EQ(train.classes.size(), 35u);
  EXPECT_EQ(train.classes, test.classes);
  EXPECT_EQ(train.classes[0], "noun.act");
  EXPECT_EQ(train.texts[0], "damage that results in a reduction of strength or quality");
  EXPECT_EQ(train.labels[0], 0);
  const std::set<int64_t> told(test.labels.begin(), test.labels.end());
  EXPECT_EQ(told.size(), 35u);
}

TEST_F(Labelled, passages_know_their_novel) {
  const LabelledTexts train = open_labelled("austen", "train"),
                      test = open_labelled("austen", "test");
  EXPECT_EQ(train.classes,
            (std::vector<std::string>{"austen_northangerabbey", "austen_persuasion"}));
  EXPECT_GT(train.texts.size(), 3000u);
  EXPECT_NEAR(double(test.texts.size()) / double(train.texts.size()), 1.0 / 9, 0.01);
  EXPECT_EQ(std::count(train.texts[7].begin(), train.texts[7].end(), ' '), 39);
}

TEST_F(Labelled, json_lines_have_a_label_of_text_or_number) {
  std::string names, numbers;
  for (int i = 0; i < 12; ++i) {
    names += fmt::format("{{\"text\": \"t{}\", \"label\": \"{}\"}}\n", i, i % 2 ? "b" : "a");
    numbers += fmt::format("{{\"text\": \"t{}\", \"label\": {}}}\n", i, i);
  }
  const LabelledTexts train = open_labelled(write("names.jsonl", names), "train"),
                      test = open_labelled(write("names.jsonl", names), "test");
  EXPECT_EQ(train.texts.size(), 10u);
  EXPECT_EQ(test.texts, (std::vector<std::string>{"t4", "t9"}));
  EXPECT_EQ(test.labels, (std::vector<int64_t>{0, 1}));
  // In the order of numbers, not of their digits.
  const LabelledTexts ten = open_labelled(write("numbers.jsonl", numbers), "test");
  EXPECT_EQ(ten.classes[10], "10");
  EXPECT_EQ(ten.labels, (std::vector<int64_t>{4, 9}));
}

TEST_F(Labelled, what_has_no_classes_is_refused) {
  const auto refusal = [](const std::string& name, const std::string& split = "train") {
    try {
      open_labelled(name, split);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const std::string& piece) {
    EXPECT_NE(text.find(piece), std::string::npos) << text;
  };
  has(refusal("digits"), "known are:\n    glosses");
  has(refusal("glosses", "all"), "need train or test");
  has(refusal(write("one.txt", "a b c")), "at least two classes");
  has(refusal(write("x.jsonl", "{\"text\": \"a\"}\n")), "label");
  has(refusal(write("y.jsonl", "{\"text\": 1, \"label\": 1}\n")), "\"text\" must be text");
  has(refusal(write("z.jsonl", "{\"text\": \"a\", \"label\": 0.5}\n")), "object 1: the label 0.5");
}

}  // namespace
}  // namespace cutaway::data
