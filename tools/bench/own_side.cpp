#include <malloc.h>
#include <cstdio>
#include <fstream>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/parallel.h>

#include <tools/bench/sides.h>
#include <tools/bench/workloads.h>

namespace cutaway::tools {
namespace {

// A field of /proc/self/status in bytes, −1 where there is none.
double process_status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(field + ":")) return 1024 * std::stod(line.substr(field.size() + 1));
  }
  return -1;
}

// Makes the kernel forget the peak so far; false where it cannot.
bool reset_process_peak() {
  std::FILE* f = std::fopen("/proc/self/clear_refs", "w");
  if (!f) return false;
  const bool written = std::fputs("5", f) >= 0;
  return std::fclose(f) == 0 && written;
}

class OwnSide : public Side {
 public:
  std::vector<double> values(const BenchCase& c, int n) override {
    set_num_threads(c.threads);
    current_ = {};  // two at once would count in the peak
    return step_values(make_workload(c.workload, c.dtype), n);
  }

  RunResult run(const BenchCase& c, int64_t n) override {
    set_num_threads(c.threads);
    if (current_.name != c.workload || current_.dtype != c.dtype || threads_ != c.threads) {
      prepare(c);
      threads_ = c.threads;
    }
    const double ms = time_steps(current_, n);
    return {ms, idle_ < 0 ? -1 : std::max(0.0, process_status("VmHWM") - idle_)};
  }

 private:
  // One step first: tables and threads made at first use belong to the idle footprint.
  void prepare(const BenchCase& c) {
    current_ = {};
    make_workload(c.workload, c.dtype).step();
    trim_memory();
    malloc_trim(0);
    const double idle = process_status("VmRSS");
    current_ = make_workload(c.workload, c.dtype);
    trim_memory();
    idle_ = reset_process_peak() ? idle : -1;
    current_.step();
  }

  Workload current_;
  int threads_ = 0;
  double idle_ = -1;
};

}  // namespace

std::unique_ptr<Side> make_own_side() { return std::make_unique<OwnSide>(); }

}  // namespace cutaway::tools
