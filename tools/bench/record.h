#pragma once
#include <functional>
#include <string>
#include <vector>

#include <tools/bench/workloads.h>

namespace cutaway::tools {

// A workload run eagerly and as a recorded step.
struct RecordRow {
  std::string name;
  DType dtype = DType::f32;
  int threads = 1;
  double eager_ms = 0, recorded_ms = 0;  // medians of a step
  bool same_bits = false;                // both give the same values after every one of ten steps
  int64_t calls = 0;                     // of the recording
  double arena = 0, eager_memory = 0;    // bytes: static plan, and most alive at once without it
  std::string why;                       // why it is not replayed, or empty
  std::string listing;                   // the recorded calls, RecordedStep::describe()
};

struct RecordBenchOptions {
  int rounds = 7;
  double milliseconds = 100;  // that a side works in a round
};
// Both sides in turn, round by round.
RecordRow bench_record(const std::string& workload, DType dtype, int threads,
                       const RecordBenchOptions& options);
std::string record_head();
std::string record_line(const RecordRow& row);
std::string record_json(const std::vector<RecordRow>& rows);

// Milliseconds from the start of a process of this command to the end of its first training step,
// one for each of `runs` processes.
std::vector<double> start_times(int runs);

}  // namespace cutaway::tools
