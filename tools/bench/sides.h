#pragma once
#include <memory>
#include <string>
#include <vector>

#include <cutaway/core/dtype.h>

namespace cutaway::tools {

// One case of a comparison.
struct BenchCase {
  std::string workload;
  DType dtype = DType::f32;
  int threads = 1;
};
struct RunResult {
  double ms = 0;     // of a step
  double peak = -1;  // bytes above what the process holds without the workload; −1: unknown
};

// One side of a comparison: runs workloads by name.
class Side {
 public:
  virtual ~Side() = default;
  // The value after each of n steps from the start.
  virtual std::vector<double> values(const BenchCase& c, int n) = 0;
  // n steps of the workload, which goes on from call to call.
  virtual RunResult run(const BenchCase& c, int64_t n) = 0;
};

// This process.
std::unique_ptr<Side> make_own_side();

// Note: peer protocol. The peer is a program that says `NAME VERSION` when it is ready and then
// answers one line to each line: `losses WORKLOAD DTYPE THREADS N` → `losses V V …`;
// `run WORKLOAD DTYPE THREADS N` → milliseconds of a step and peak bytes; `quit` ends it. What goes
// wrong is answered `error MESSAGE`.
struct PeerOptions {
  std::string python;      // the interpreter; empty: the first of python3 and /usr/bin/python3
                           // that can run the script
  std::string script;      // Python text
  int start_seconds = 60;  // how long the peer may take to be ready
  int step_seconds = 600;  // and to answer
};
class Peer : public Side {
 public:
  // Starts the program and waits until it is ready. Raises IoError, with the place to look, when no
  // interpreter can run the script.
  explicit Peer(const PeerOptions& options);
  ~Peer() override;
  Peer(const Peer&) = delete;

  // Raise IoError with the peer's message when it fails, or when it died or is silent too long.
  std::vector<double> values(const BenchCase& c, int n) override;
  RunResult run(const BenchCase& c, int64_t n) override;

  const std::string& version() const { return version_; }

 private:
  bool start(const std::string& python);
  void stop();
  std::string ask(const std::string& command, const BenchCase& c, int64_t n);
  std::string read_line(int seconds);

  PeerOptions options_;
  int socket_ = -1, process_ = -1;
  std::string buffer_, version_;
};

// The script of PyTorch's side.
std::string torch_script();

}  // namespace cutaway::tools
