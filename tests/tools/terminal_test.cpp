#include <gtest/gtest.h>

#include <tools/terminal.h>

namespace cutaway::tools {
namespace {

TEST(Terminal, LinesHoldWholeWords) {
  EXPECT_EQ(wrapped("", 2, 10), "");
  EXPECT_EQ(wrapped("one two three", 2, 9), "  one two\n  three");
  EXPECT_EQ(wrapped("one two three", 2, 8), "  one\n  two\n  three");
  EXPECT_EQ(wrapped("a wordlongerthanaline b", 1, 6), " a\n wordlongerthanaline\n b");
  EXPECT_EQ(wrapped("a  b\n c", 0, 80), "a b c");
}
TEST(Terminal, CharactersCountOnce) { EXPECT_EQ(wrapped("Σ ĝ ∘ x̂", 0, 5), "Σ ĝ ∘\nx̂"); }
TEST(Terminal, WidthIsUsable) { EXPECT_GE(terminal_width(), 40); }

}  // namespace
}  // namespace cutaway::tools
