#include <tools/bench/record.h>

#include <gtest/gtest.h>

namespace cutaway::tools {
namespace {

TEST(BenchRecord, ReplaysHaveTheBitsOfEagerSteps) {
  for (const char* name : {"add16", "tiny", "mlp1"}) {
    const RecordRow row = bench_record(name, DType::f32, 1, {.rounds = 1, .milliseconds = 1});
    EXPECT_TRUE(row.same_bits) << name;
    EXPECT_EQ(row.why, "") << name;
    EXPECT_GT(row.calls, 0) << name;
    EXPECT_GT(row.eager_ms, 0) << name;
    EXPECT_GT(row.recorded_ms, 0) << name;
    EXPECT_NE(record_line(row).find("same"), std::string::npos);
    EXPECT_NE(record_json({row}).find("\"same_bits\": true"), std::string::npos);
  }
}

}  // namespace
}  // namespace cutaway::tools
