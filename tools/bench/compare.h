#pragma once
#include <functional>
#include <string>
#include <vector>

#include <tools/bench/sides.h>

namespace cutaway::tools {

struct CompareOptions {
  std::vector<std::string> workloads;  // empty: all
  std::vector<DType> dtypes = {DType::f32};
  std::vector<int> threads = {1, 2};
  int rounds = 7;             // of which the median counts
  double milliseconds = 100;  // that a side works in a round, one step at least
  int equal_steps = 10;       // after which both values must agree
};

// What was found for a workload, a type and a number of threads. NaN: not measured.
struct CompareRow {
  BenchCase what;
  double ours_ms, torch_ms;        // medians of a step
  double ours_value, torch_value;  // after the equal steps
  double ours_peak, torch_peak;    // bytes
  double flops, bytes, floor_ms;
  bool valid = false;   // both values agree
  std::string failure;  // of the peer

  double ratio() const { return torch_ms / ours_ms; }        // > 1: we are faster
  double floor_share() const { return floor_ms / ours_ms; }  // 1: nothing faster is possible
};

// Runs every workload in every type that it has, on every number of threads: both sides in turn,
// round by round. Without a peer only ours. `row` sees each result as it comes. Raises ValueError
// for an unknown workload or no rounds.
std::vector<CompareRow> compare(const CompareOptions& options, Side& ours, Side* peer,
                                const std::function<void(const CompareRow&)>& row);
// Whether values after equal steps may be called equal: within 1e-4 of the larger of 1 and the
// value; bf16 rounds to 8 bits at each product, so within 2e-2.
bool values_agree(double ours, double theirs, DType dtype);

// ---- results
std::string table_head();
std::string table_line(const CompareRow& row);
// For each workload and type: both at their better number of threads. Only where there is a peer.
std::string best_table(const std::vector<CompareRow>& rows);
// {"machine", "torch_version", "rows": [{"name", "dtype", "threads", "ours_ms", "torch_ms",
// "ratio", "valid", "floor_share", …}]}; null: not measured.
std::string compare_json(const std::vector<CompareRow>& rows, const std::string& torch_version);
// Ratios as bars, or milliseconds without a peer.
std::string compare_svg(const std::vector<CompareRow>& rows, const std::string& torch_version);
// "AMD EPYC, 2 cores, avx512".
std::string machine_name();

}  // namespace cutaway::tools
