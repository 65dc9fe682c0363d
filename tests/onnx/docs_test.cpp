// The tables of docs/onnx.md are those of the code.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include <cutaway/autograd/op.h>
#include <cutaway/nn/onnx/model.h>
#include <tests/paths.h>

namespace cutaway::onnx {
namespace {

// First columns of the table under a heading.
std::set<std::string> listed(const std::string& heading) {
  std::ifstream in(std::string(kSourceDir) + "/docs/onnx.md");
  std::set<std::string> names;
  bool here = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) here = line == "## " + heading;
    if (here && line.starts_with("| `")) names.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return names;
}

TEST(OnnxDocs, every_record_with_a_rule_is_listed) {
  std::set<std::string> want;
  for (const OpRecord* op : op_records()) {
    if (op->onnx) want.insert(op->name);
  }
  EXPECT_EQ(listed("What an op record becomes"), want);
}

TEST(OnnxDocs, every_operator_is_listed) {
  const auto names = known_operators();
  EXPECT_EQ(listed("What an operator runs on"), std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace cutaway::onnx
