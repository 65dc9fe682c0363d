// The label-free criterion: is a run solved, judged from its largest symmetry violation?
#include <cutaway/models/grokking/criterion.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <cutaway/models/report/statistics.h>

namespace cutaway::grokking {
namespace {

struct Kinds {
  std::vector<double> solved, open;
};

template <class Keep>
Kinds kinds(const std::vector<Checkpoint>& checkpoints, Keep keep) {
  Kinds k;
  for (const Checkpoint& c : checkpoints) {
    if (keep(c)) (c.solved ? k.solved : k.open).push_back(c.log_max);
  }
  return k;
}

// Probability that a solved checkpoint has the smaller violation.
double auc_of(const Kinds& k) { return report::auc(k.open, k.solved); }

double balanced(const Kinds& k, double tau) {
  const auto below = [tau](double v) { return v < tau; };
  const auto rate = [&](const std::vector<double>& v) {
    return double(std::count_if(v.begin(), v.end(), below)) / double(v.size());
  };
  return (rate(k.solved) + 1 - rate(k.open)) / 2;
}

}  // namespace

std::vector<Checkpoint> checkpoints_of(const std::vector<LogRow>& rows, uint64_t seed) {
  std::vector<Checkpoint> list;
  bool memorised = false;
  for (const LogRow& r : rows) {
    memorised |= r.train_accuracy == 1;
    if (!memorised || r.max.empty()) continue;
    list.push_back({seed, std::log10(std::max(r.max_violation(), 1e-300)), r.test_accuracy,
                    r.test_accuracy == 1});
  }
  return list;
}

Criterion fit_criterion(const std::vector<Checkpoint>& checkpoints) {
  const Kinds all = kinds(checkpoints, [](const Checkpoint&) { return true; });
  const report::Threshold t = report::best_threshold(all.solved, all.open);
  Criterion c{.tau = t.value, .accuracy = t.accuracy, .auc = auc_of(all)};
  std::set<uint64_t> seeds;
  for (const Checkpoint& p : checkpoints) seeds.insert(p.seed);
  for (uint64_t seed : seeds) {
    const Kinds out = kinds(checkpoints, [&](const Checkpoint& p) { return p.seed == seed; });
    const Kinds in = kinds(checkpoints, [&](const Checkpoint& p) { return p.seed != seed; });
    if (out.solved.empty() || out.open.empty() || in.solved.empty() || in.open.empty()) continue;
    c.left_out_auc += auc_of(out);
    c.left_out_accuracy += balanced(out, report::best_threshold(in.solved, in.open).value);
    ++c.seeds;
  }
  c.left_out_auc = c.seeds ? c.left_out_auc / c.seeds : NAN;
  c.left_out_accuracy = c.seeds ? c.left_out_accuracy / c.seeds : NAN;
  return c;
}

}  // namespace cutaway::grokking
