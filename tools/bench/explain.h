#pragma once
#include <string>
#include <vector>

#include <tools/bench/workloads.h>

namespace cutaway::tools {

// Where the time of a step goes: one op, the backward pass of one, or a range such as the
// optimiser. The time of ops called inside it is theirs.
struct ExplainRow {
  std::string name;
  double calls = 0;     // a step
  double ms = 0;        // a step
  double flops = 0;     // a step; of products, convolutions and attention only
  double bytes = 0;     // of operands and results, a step
  double floor_ms = 0;  // from flops and bytes; 0: unknown
  double call_ms = 0;   // calls at the price of an op without arithmetic
};
struct Explanation {
  std::vector<ExplainRow> rows;  // longest time first
  double step_ms = 0;            // without tracing
  double traced_ms = 0;          // with it: what the rows add up to, and the rest
};
// Runs the workload with tracing on `threads` threads.
Explanation explain(const Workload& workload, int threads);
std::string explain_text(const Workload& workload, const Explanation& explanation, int threads);

}  // namespace cutaway::tools
