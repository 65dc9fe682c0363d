// JSON lines as data sets; hostile files are in tests/fuzz/json_set.
#include <gtest/gtest.h>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/json_set.h>
#include <tests/datasets/scratch.h>

namespace cutaway::data {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

TEST(JsonSet, fields_are_inputs_and_target) {
  const Dataset d =
      json_lines_dataset("set", parse_json_lines("set",
                                                 "{\"a\":1,\"label\":\"dog\",\"b\":true}\n"
                                                 "{\"b\":0.5,\"a\":-2,\"label\":\"cat\"}\n"));
  EXPECT_EQ(d.inputs.to_vector(), (Values{1, 1, -2, 0.5}));
  EXPECT_EQ(d.classes, (Names{"dog", "cat"}));
  EXPECT_EQ(d.targets.to_vector(), (Values{0, 1}));
  const Dataset last =
      json_lines_dataset("set", parse_json_lines("set", "{\"a\":1,\"b\":5}\n{\"a\":2,\"b\":3}\n"));
  EXPECT_EQ(last.targets.to_vector(), (Values{1, 0}));
  EXPECT_EQ(last.classes, (Names{"3", "5"}));
}

TEST(JsonSet, files_are_opened_by_their_ending) {
  const Scratch s;
  std::string lines;
  for (int i = 0; i < 5; ++i) {
    lines += "{\"x\":" + std::to_string(i) + ",\"y\":" + std::to_string(i % 2) + "}\n";
  }
  s.put("set.jsonl", lines);
  EXPECT_EQ(open(s.path("set.jsonl"), "train").inputs.to_vector(), (Values{0, 1, 2, 3}));
  EXPECT_EQ(open(s.path("set.jsonl"), "test").targets.to_vector(), (Values{0}));
  s.put("set.jsonl", "{\"x\":\"text\",\"y\":1}\n");
  EXPECT_NE(refusal([&] { open(s.path("set.jsonl"), "test"); }).find("'x' is text"),
            std::string::npos);
}

}  // namespace
}  // namespace cutaway::data
