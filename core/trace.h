#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include <cutaway/core/context.h>
#include <cutaway/core/tensor.h>

namespace cutaway::trace {

// Note: CUTAWAY_TRACE. The environment variable traces a program from its start: "log" prints ops
// as start_log() does, "table" prints op_table() to standard error at the end, anything else is the
// name of a Chrome/Perfetto JSON file written at the end.

namespace detail {
extern std::atomic<bool> on;
}

// Off costs one relaxed load per op.
inline bool enabled() { return detail::on.load(std::memory_order_relaxed); }

// Begins to record events of all threads in memory (the newest 2^16 of each thread).
void start();
// Also prints a line for each op to standard error as it ends: name, result sizes, type, device,
// time, place.
void start_log();
void stop();
// Chrome/Perfetto JSON of what was recorded; raises IoError when the file cannot be written.
void save_chrome(const std::string& path);
// A table of ops: calls, total and mean time, bytes, by falling total time. A composite op's time
// contains that of the ops it calls.
std::string op_table();
// The same by module path, outermost ops only; "(outside modules)" gathers the rest.
std::string module_table();
// Forgets what was recorded.
void clear();

// What is known about an op, the backward pass of one, or a range that ended.
struct Span {
  const char* name = "";
  bool op = false;        // else a range, of which only name and times are known
  bool backward = false;  // result: the upstream gradient; operands: the gradients it gave
  bool view = false;      // moves nothing: all results share memory with an operand
  int thread = 0;
  int64_t begin = 0, end = 0;  // ns
  int64_t bytes_in = 0, bytes_out = 0;
  DType dtype = DType::f32;   // of the result
  Shape result, operands[3];  // sizes of the first result and of the first operands
};
// Calls f for everything that was recorded, in order of ends for each thread.
void for_each_span(const std::function<void(const Span&)>& f);

// A large block was taken (bytes > 0) or given back (< 0); live and cached are those afterwards.
void memory(int64_t bytes, int64_t live, int64_t cached) noexcept;

// One op: from construction to finish(), which names its results. Without finish() nothing is
// recorded.
class OpEvent {
 public:
  explicit OpEvent(const char* name);
  // The operands, before they may be given away.
  void inputs(const Tensor* const* operands, int count);
  void finish(const Tensor* outputs, int count);
  // For the backward pass of the op: upstream gradients and what it made of them.
  void finish_backward(const Tensor* upstreams, int count, const Tensor* grads, int num_grads);

 private:
  void record(const Tensor* outputs, int count, bool backward, bool view);

  const char* name_;
  int64_t begin_;
  int64_t bytes_in_ = 0;
  Shape operands_[3] = {};
};

// A range named by the user, from construction to destruction.
class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;

 private:
  const char* name_;
  int64_t begin_;
};

}  // namespace cutaway::trace
