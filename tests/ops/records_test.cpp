// Tests generated from the op records: one test for each record runs every check of its samples.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <cutaway/autograd/check.h>

namespace cutaway {
namespace {

class Record : public testing::TestWithParam<const OpRecord*> {};

TEST_P(Record, passes_all_checks) {
  const OpRecord& op = *GetParam();
  for (const CheckResult& r : check_op(op)) {
    EXPECT_TRUE(r.ok) << op.name << ": " << r.check << " of sample \"" << r.sample
                      << "\": " << r.message << "\n  again: cutaway ops " << op.name << " --check";
  }
}

TEST_P(Record, says_what_it_is) {
  const OpRecord& op = *GetParam();
  EXPECT_NE(std::string(op.signature), "");
  EXPECT_NE(std::string(op.meaning), "");
  EXPECT_NE(std::string(op.formula), "");
  EXPECT_NE(std::string(op.shapes), "");
  EXPECT_TRUE(op.backward || op.no_gradient)
      << op.name << " has neither a derivative nor a reason for none";
  if (op.backward) {
    EXPECT_NE(std::string(op.backward_text), "") << op.name;
  }
  EXPECT_NE(op.samples, nullptr) << op.name;
}

std::string test_name(const testing::TestParamInfo<const OpRecord*>& info) {
  return info.param->name;
}
INSTANTIATE_TEST_SUITE_P(Ops, Record, testing::ValuesIn(op_records()), test_name);

TEST(Records, names_are_unique) {
  std::set<std::string> names;
  for (const OpRecord* op : op_records()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
  }
}

}  // namespace
}  // namespace cutaway
