#include <tools/bench/compare.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>

#include <tools/bench/floors.h>
#include <tools/bench/workloads.h>

namespace cutaway::tools {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// Steps that take about `milliseconds`; found by doubling, so that short ones are timed well.
int64_t steps_for(Side& side, const BenchCase& c, double milliseconds) {
  int64_t n = 1;
  for (;;) {
    const double each = std::max(side.run(c, n).ms, 1e-7);
    const int64_t wanted = std::max<int64_t>(1, int64_t(milliseconds / each));
    if (wanted <= 2 * n || n >= (int64_t(1) << 24)) return std::min<int64_t>(wanted, 1 << 24);
    n = std::min(wanted, 16 * n);
  }
}

struct Medians {
  double ms = kNone, peak = kNone;
};

void run_rounds(const CompareOptions& o, Side& ours, Side* peer, CompareRow& r) {
  const int64_t our_steps = steps_for(ours, r.what, o.milliseconds);
  const int64_t peer_steps = peer ? steps_for(*peer, r.what, o.milliseconds) : 0;
  std::vector<double> our_times, peer_times;
  RunResult last;
  for (int round = 0; round < o.rounds; ++round) {
    last = ours.run(r.what, our_steps);
    our_times.push_back(last.ms);
    r.ours_peak = last.peak < 0 ? kNone : last.peak;
    if (!peer) continue;
    last = peer->run(r.what, peer_steps);
    peer_times.push_back(last.ms);
    r.torch_peak = last.peak < 0 ? kNone : last.peak;
  }
  r.ours_ms = median(our_times);
  if (peer) r.torch_ms = median(peer_times);
}

CompareRow measure(const CompareOptions& o, const BenchCase& c, Side& ours, Side* peer) {
  const Workload w = make_workload(c.workload, c.dtype);
  CompareRow r{.what = c,
               .ours_ms = kNone,
               .torch_ms = kNone,
               .ours_value = ours.values(c, o.equal_steps).back(),
               .torch_value = kNone,
               .ours_peak = kNone,
               .torch_peak = kNone,
               .flops = w.flops,
               .bytes = w.bytes,
               .floor_ms = floor_ms(c.dtype, w.flops, w.bytes, c.threads),
               .failure = {}};
  // A peer that cannot run this one leaves a row of ours.
  if (peer) {
    try {
      r.torch_value = peer->values(c, o.equal_steps).back();
      r.valid = values_agree(r.ours_value, r.torch_value, c.dtype);
      run_rounds(o, ours, peer, r);
      return r;
    } catch (const IoError& e) {
      r.failure = e.what();
    }
  }
  run_rounds(o, ours, nullptr, r);
  return r;
}

}  // namespace

bool values_agree(double ours, double theirs, DType dtype) {
  const double tolerance = dtype == DType::bf16 ? 2e-2 : 1e-4;
  return std::abs(ours - theirs) <= tolerance * std::max(1.0, std::abs(theirs));
}

std::vector<CompareRow> compare(const CompareOptions& o, Side& ours, Side* peer,
                                const std::function<void(const CompareRow&)>& row) {
  if (o.rounds < 1 || o.equal_steps < 1) throw ValueError("bench", "needs at least one round");
  std::vector<std::string> names = o.workloads;
  if (names.empty()) {
    for (const WorkloadInfo& w : known_workloads()) names.push_back(w.name);
  }
  const int threads_before = num_threads();
  std::vector<CompareRow> rows;
  for (const std::string& name : names) {
    const auto& known = known_workloads();
    const auto info = std::find_if(known.begin(), known.end(),
                                   [&](const WorkloadInfo& w) { return w.name == name; });
    for (const DType dtype : o.dtypes) {
      // Asked for all types, ops run in those that they have.
      if (info != known.end() && !info->model && dtype != DType::f32) continue;
      for (const int threads : o.threads) {
        rows.push_back(measure(o, {name, dtype, threads}, ours, peer));
        row(rows.back());
      }
    }
  }
  set_num_threads(threads_before);
  return rows;
}

}  // namespace cutaway::tools
