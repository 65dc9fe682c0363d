#include <tools/bench/record.h>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/text.h>

extern char** environ;

namespace cutaway::tools {
namespace {

constexpr int kEqualSteps = 10;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// Steps that take about `milliseconds`.
int64_t steps_for(const Workload& w, double milliseconds) {
  int64_t n = 1;
  for (;;) {
    const double each = std::max(time_steps(w, n), 1e-7);
    const auto wanted = std::max<int64_t>(1, int64_t(milliseconds / each));
    if (wanted <= 2 * n || n >= 1 << 24) return std::min<int64_t>(wanted, 1 << 24);
    n = std::min(wanted, 16 * n);
  }
}

// The workload with its step recorded.
Workload recorded_form(Workload w) {
  w.step = w.recorded;
  return w;
}

}  // namespace

RecordRow bench_record(const std::string& name, DType dtype, int threads,
                       const RecordBenchOptions& o) {
  const int before = num_threads();
  set_num_threads(threads);
  RecordRow row{.name = name, .dtype = dtype, .threads = threads};
  const Workload eager = make_workload(name, dtype);
  const Workload recorded = recorded_form(make_workload(name, dtype));
  row.same_bits = step_values(eager, kEqualSteps) == step_values(recorded, kEqualSteps);
  const RecordedStep& step = *recorded.recording;
  if (!step.replayed()) row.why = step.why_eager();
  row.listing = step.describe();
  row.calls = step.stats().calls;
  row.arena = double(step.stats().arena_bytes + step.stats().result_bytes);
  row.eager_memory = double(step.stats().eager_bytes);
  const int64_t n = steps_for(eager, o.milliseconds), m = steps_for(recorded, o.milliseconds);
  std::vector<double> eager_ms, recorded_ms;
  for (int round = 0; round < o.rounds; ++round) {
    eager_ms.push_back(time_steps(eager, n));
    recorded_ms.push_back(time_steps(recorded, m));
  }
  row.eager_ms = median(eager_ms);
  row.recorded_ms = median(recorded_ms);
  set_num_threads(before);
  return row;
}

std::string record_head() {
  return fmt::format("{:<20} {:<5} {:>2} {:>12} {:>12} {:>7} {:>6} {:>10} {:>10}  {}", "workload",
                     "type", "n", "eager us", "recorded us", "ratio", "calls", "plan", "eager",
                     "bits");
}

std::string record_line(const RecordRow& r) {
  return fmt::format("{:<20} {:<5} {:>2} {:>12.3f} {:>12.3f} {:>7.3f} {:>6} {:>10} {:>10}  {}",
                     r.name, name_of(r.dtype), r.threads, 1e3 * r.eager_ms, 1e3 * r.recorded_ms,
                     r.recorded_ms / r.eager_ms, r.calls, bytes_text(int64_t(r.arena)),
                     bytes_text(int64_t(r.eager_memory)),
                     !r.same_bits    ? "DIFFERENT"
                     : r.why.empty() ? "same"
                                     : "eager: " + r.why);
}

std::string record_json(const std::vector<RecordRow>& rows) {
  auto list = nlohmann::json::array();
  for (const RecordRow& r : rows) {
    list.push_back({{"name", r.name},
                    {"dtype", name_of(r.dtype)},
                    {"threads", r.threads},
                    {"eager_ms", r.eager_ms},
                    {"recorded_ms", r.recorded_ms},
                    {"same_bits", r.same_bits},
                    {"calls", r.calls},
                    {"plan_bytes", r.arena},
                    {"eager_bytes", r.eager_memory},
                    {"why_eager", r.why}});
  }
  return list.dump(2) + "\n";
}

std::vector<double> start_times(int runs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    std::string arguments[] = {"cutaway", "bench", "--first-step"};
    char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
    const auto begin = Clock::now();
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
      throw IoError("bench", "could not run a first step in a process of its own");
    }
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return times;
}

}  // namespace cutaway::tools
