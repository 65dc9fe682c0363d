// Tests generated from the op records: one test for each record runs every check of its samples.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <cutaway/autograd/check.h>
#include <cutaway/cuda/emu/memory.h>
#include <cutaway/cuda/emu/options.h>

#include <tests/paths.h>

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
}

std::string test_name(const testing::TestParamInfo<const OpRecord*>& info) {
  return info.param->name;
}
INSTANTIATE_TEST_SUITE_P(Ops, Record, testing::ValuesIn(op_records()), test_name);

// The same records on the emulated GPU, where every CUDA kernel is checked as it runs. Set to true
// when all records pass: from then on a missing kernel is a failure.
constexpr bool kEmuIsComplete = true;

class EmuRecord : public testing::TestWithParam<const OpRecord*> {
 protected:
  // Op code that reads device memory as if it were the host's ends the program.
  static void SetUpTestSuite() { cuda::emu::set_guard(true); }
};

TEST_P(EmuRecord, agrees_with_the_cpu) {
  const OpRecord& op = *GetParam();
  // A sanitized build looks for faults of the host's code; races and reads of what nobody wrote are
  // those of the kernels, which the other build looks for.
  cuda::emu::Options options = cuda::emu::options();
  if (kSanitized) options.check = false;
  const cuda::emu::OptionsScope scope(options);
  std::string missing;
  for (const CheckResult& r : check_op(op, {DeviceKind::emu, 0})) {
    const bool no_kernel = r.message.find("there is no kernel") != std::string::npos;
    if (no_kernel && !kEmuIsComplete) {
      missing = r.message;
      continue;
    }
    EXPECT_TRUE(r.ok) << op.name << " on emu: " << r.check << " of sample \"" << r.sample
                      << "\": " << r.message << "\n  again: cutaway ops " << op.name
                      << " --check --device emu";
  }
  if (!missing.empty()) GTEST_SKIP() << missing;
}
INSTANTIATE_TEST_SUITE_P(Ops, EmuRecord, testing::ValuesIn(op_records()), test_name);

TEST(Records, names_are_unique) {
  std::set<std::string> names;
  for (const OpRecord* op : op_records()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
  }
}

// Run by the build of this program as well (cmake/Tests.cmake): a failure stops it.
TEST(Records, all_have_samples) {
  for (const std::string& name : records_without_samples(op_records())) {
    ADD_FAILURE() << "the op record \"" << name << "\" has no samples: nothing would test it";
  }
}

TEST(Records, without_samples_are_found) {
  const auto record = [](const char* name, void (*samples)(SampleList&)) {
    OpRecord op{.name = name};
    op.samples = samples;
    return op;
  };
  const OpRecord none = record("none", nullptr);
  const OpRecord empty = record("empty", [](SampleList&) {});
  const OpRecord unreferenced = record("unreferenced", [](SampleList& s) {
    s.add(
        "x", {s.randn({2})}, [](const Tensors& in) { return in; }, nullptr);
  });
  const OpRecord raising = record("raising", [](SampleList& s) {
    s.error(
        "x", [] {}, "text");
  });
  const OpRecord whole = record("whole", [](SampleList& s) {
    const OpFn same = [](const Tensors& in) { return in; };
    s.add("x", {s.randn({2})}, same, same);
  });
  EXPECT_EQ(records_without_samples({&none, &whole, &empty, &raising, &unreferenced}),
            (std::vector<std::string>{"none", "empty", "unreferenced"}));
  EXPECT_EQ(records_without_samples({}), std::vector<std::string>{});
}

}  // namespace
}  // namespace cutaway
