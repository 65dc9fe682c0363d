#include <cutaway/core/trace.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include <cutaway/core/dispatch.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

using nlohmann::json;

class Trace : public testing::Test {
 protected:
  Trace() {
    trace::stop();
    trace::clear();
  }
  ~Trace() override {
    trace::stop();
    trace::clear();
    std::filesystem::remove(path_);
  }
  // All events as the JSON file tells them.
  json saved() const {
    trace::save_chrome(path_);
    std::ifstream file(path_);
    return json::parse(file).at("traceEvents");
  }
  const std::string path_ =
      (std::filesystem::temp_directory_path() / "cutaway_trace_test.json").string();
};

void run_fake_op(const char* name, const Tensor& result) {
  CallScope scope(std::source_location::current());
  trace::OpEvent event(name);
  event.finish(&result, 1);
}

TEST_F(Trace, IsOffUntilStarted) {
  EXPECT_FALSE(trace::enabled());
  { trace::Range range("unseen"); }
  trace::start();
  EXPECT_TRUE(trace::enabled());
  EXPECT_TRUE(saved().empty());
  trace::stop();
  EXPECT_FALSE(trace::enabled());
}

TEST_F(Trace, AnOpTellsResultAndPlace) {
  const Tensor result = empty({2, 3}, {.dtype = DType::f64});
  context().module = intern_scope(nullptr, "a \"b\"\n", "Net");
  trace::start();
  run_fake_op("matmul", result);
  context().module = nullptr;
  const json events = saved();
  ASSERT_EQ(events.size(), 1u);
  const json& e = events[0];
  EXPECT_EQ(e.at("name"), "matmul");
  EXPECT_EQ(e.at("ph"), "X");
  EXPECT_GE(e.at("dur").get<double>(), 0);
  EXPECT_EQ(e.at("args").at("sizes"), "[2,3]");
  EXPECT_EQ(e.at("args").at("dtype"), "f64");
  EXPECT_EQ(e.at("args").at("device"), "cpu");
  EXPECT_EQ(e.at("args").at("bytes"), 48);
  EXPECT_EQ(e.at("args").at("module"), "a \"b\"  (Net)");
  EXPECT_NE(e.at("args").at("at").get<std::string>().find("trace_test.cpp:"), std::string::npos);
}

TEST_F(Trace, ABackwardPassTellsGradients) {
  const Tensor upstream = empty({2, 3}), gradient = empty({4});
  trace::start();
  {
    CallScope scope(std::source_location::current());
    trace::OpEvent event("matmul");
    event.finish_backward(&upstream, 1, &gradient, 1);
  }
  std::vector<trace::Span> spans;
  trace::for_each_span([&](const trace::Span& s) { spans.push_back(s); });
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_TRUE(spans[0].op && spans[0].backward);
  EXPECT_EQ(spans[0].result, (Shape{2, 3}));
  EXPECT_EQ(spans[0].operands[0], (Shape{4}));
}

TEST_F(Trace, RangesAndMemoryOfAllThreads) {
  trace::start();
  std::thread([] { trace::Range range("elsewhere"); }).join();
  {
    trace::Range range("here");
    const Tensor big = empty({1 << 20}, {.dtype = DType::u8});
  }
  int taken = 0, here = 0, elsewhere = 0;
  for (const json& e : saved()) {
    if (e.at("ph") == "C") {
      taken += e.at("args").at("live").get<int64_t>() >= 1 << 20;
    } else {
      (e.at("name") == "here" ? here : elsewhere) = 1 + e.at("tid").get<int>();
    }
  }
  EXPECT_EQ(taken, 1);
  EXPECT_GT(here, 0);
  EXPECT_GT(elsewhere, 0);
  EXPECT_NE(here, elsewhere);
}

TEST_F(Trace, TablesSumByOpAndModule) {
  const Tensor four = empty({4});
  trace::start();
  for (int i = 0; i < 3; ++i) run_fake_op("relu", four);
  context().module = intern_scope(nullptr, "net", "Net");
  run_fake_op("add", four);
  {
    CallScope composite(std::source_location::current());
    run_fake_op("add", four);  // inside another op: its time counts there
  }
  context().module = nullptr;
  const std::string ops = trace::op_table();
  EXPECT_NE(ops.find("relu                             3"), std::string::npos) << ops;
  EXPECT_NE(ops.find("add                              2"), std::string::npos) << ops;
  EXPECT_NE(ops.find(" 48\n"), std::string::npos) << ops;
  const std::string modules = trace::module_table();
  EXPECT_NE(modules.find("net (Net)                        1"), std::string::npos) << modules;
  EXPECT_NE(modules.find("(outside modules)                3"), std::string::npos) << modules;
}

TEST_F(Trace, KeepsTheNewestEvents) {
  trace::start();
  constexpr int kRing = 1 << 16;  // of each thread
  for (int i = 0; i < 10; ++i) {
    trace::Range range("old");
  }
  for (int i = 0; i < kRing - 3; ++i) {
    trace::Range range("new");
  }
  int old_ones = 0, new_ones = 0;
  for (const json& e : saved()) ++(e.at("name") == "old" ? old_ones : new_ones);
  EXPECT_EQ(old_ones, 3);
  EXPECT_EQ(new_ones, kRing - 3);
}

TEST_F(Trace, TheLogHasOneLineForEachOp) {
  const Tensor result = empty({2, 3});
  trace::start_log();
  testing::internal::CaptureStderr();
  run_fake_op("softmax", result);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find("softmax [2,3] f32 cpu "), 0u) << line;
  EXPECT_NE(line.find("trace_test.cpp:"), std::string::npos) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(Trace, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(trace::save_chrome("/nonexistent/folder/trace.json"), IoError);
}

// Runs one suite of this program in a process of its own, under an environment; its output.
std::string run_child(const std::string& environment, const std::string& filter) {
  const std::string command =
      environment + " '" + std::filesystem::read_symlink("/proc/self/exe").string() +
      "' --gtest_also_run_disabled_tests --gtest_filter=" + filter + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  for (int c = pipe ? std::fgetc(pipe) : EOF; c != EOF; c = std::fgetc(pipe)) out += char(c);
  if (pipe) pclose(pipe);
  return out;
}

// Run by the tests below only.
TEST(TraceChild, DISABLED_OneOp) { run_fake_op("softmax", empty({2, 3})); }
TEST(TraceChild, DISABLED_Fill) { full({2}, 1); }

TEST_F(Trace, TheEnvironmentTracesFromTheStart) {
  const std::string log = run_child("CUTAWAY_TRACE=log", "TraceChild.DISABLED_OneOp");
  EXPECT_NE(log.find("\nsoftmax [2,3] f32 cpu "), std::string::npos) << log;
  const std::string table = run_child("CUTAWAY_TRACE=table", "TraceChild.DISABLED_OneOp");
  EXPECT_NE(table.find("\nsoftmax                          1"), std::string::npos) << table;
  run_child("CUTAWAY_TRACE=" + path_, "TraceChild.DISABLED_OneOp");
  std::ifstream file(path_);
  EXPECT_EQ(json::parse(file).at("traceEvents").at(0).at("name"), "softmax");
  const std::string bad =
      run_child("CUTAWAY_TRACE=/nonexistent/t.json", "TraceChild.DISABLED_OneOp");
  EXPECT_NE(bad.find("[trace] cannot write /nonexistent/t.json"), std::string::npos) << bad;
}

TEST_F(Trace, TheEnvironmentForcesACpuVariant) {
  for (const std::string& name : available_cpu_variants()) {
    const std::string out =
        run_child("CUTAWAY_CPU_VARIANT=" + name + " CUTAWAY_TRACE=log", "TraceChild.DISABLED_*");
    EXPECT_NE(out.find(" cpu " + name + " "), std::string::npos) << out;
    EXPECT_NE(out.find("PASSED"), std::string::npos) << out;
  }
  const std::string bad = run_child("CUTAWAY_CPU_VARIANT=mmx", "TraceChild.DISABLED_Fill");
  EXPECT_NE(bad.find("CUTAWAY_CPU_VARIANT=mmx is not available here; need one of"),
            std::string::npos)
      << bad;
}

}  // namespace
}  // namespace cutaway
