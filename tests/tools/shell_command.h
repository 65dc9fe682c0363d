#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <tests/paths.h>

namespace cutaway {

// The program as a shell starts it, in a folder of its own with the samples of the source tree.
class ShellCommand : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Exit status; the output of both streams is in text_.
  int run(const std::string& arguments, const std::string& input = "/dev/null",
          const std::filesystem::path& where = {});
  // A file of the folder, or one named from the root.
  std::string read(const std::filesystem::path& name) const;
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name) << content;
  }
  bool says(const std::string& piece) const { return text_.find(piece) != std::string::npos; }
  void shows(const std::string& piece) const {
    EXPECT_TRUE(says(piece)) << piece << " is not in\n" << text_;
  }
  // Bad input: status 2, and one line that holds `piece`.
  void refuses(const std::string& arguments, const std::string& piece) {
    EXPECT_EQ(run(arguments), 2) << arguments << "\n" << text_;
    shows(piece);
    EXPECT_EQ(std::count(text_.begin(), text_.end(), '\n'), 1) << text_;
  }

  std::filesystem::path folder_;
  std::string text_;
};

}  // namespace cutaway
