#include <tools/op_pages.h>

#include <gtest/gtest.h>

#include <tests/tools/shell_command.h>

namespace cutaway {
namespace {

class OpPages : public ShellCommand {};

TEST_F(OpPages, every_record_has_a_page_that_says_what_it_says) {
  ASSERT_EQ(run("ops --pages pages"), 0) << text_;
  const std::string index = read("pages/README.md");
  for (const OpRecord* op : op_records()) {
    const std::string name = op->name, page = read("pages/" + name + ".md");
    EXPECT_TRUE(page.starts_with("# " + name + "\n")) << name;
    for (const char* part : {op->signature, op->meaning, op->formula}) {
      EXPECT_NE(page.find(part), std::string::npos) << name << ": " << part;
    }
    EXPECT_NE(page.find("| Derivative | "), std::string::npos) << name;
    EXPECT_NE(page.find("## Tested with"), std::string::npos) << name;
    EXPECT_NE(page.find("autograd/ops/"), std::string::npos) << name;
    EXPECT_NE(index.find("(" + name + ".md)"), std::string::npos) << name;
  }
}

TEST_F(OpPages, small_cases_and_errors_are_shown_with_their_values) {
  const std::string page = tools::op_page(*find_op("softmax"));
  EXPECT_NE(page.find("## Small cases\n"), std::string::npos) << page;
  EXPECT_NE(page.find("→\n"), std::string::npos) << page;
  EXPECT_NE(page.find("`[softmax] "), std::string::npos) << page;
  EXPECT_EQ(tools::op_family(*find_op("cross_entropy")), "cross entropy");
}

TEST_F(OpPages, a_folder_that_cannot_be_is_an_error) {
  write("file", "");
  EXPECT_EQ(run("ops --pages file/pages"), 1);
  shows("cannot create file/pages");
}

}  // namespace
}  // namespace cutaway
