// The statements of README.md, one function each. Seeds, limits and bounds stand here and nowhere
// else; the seeds of calibration (101 …) are not among them.
#include <cutaway/models/grokking/reproduce.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/models/grokking/exactness.h>
#include <cutaway/models/grokking/implied.h>
#include <cutaway/models/grokking/plots.h>
#include <cutaway/models/grokking/run_files.h>
#include <cutaway/models/report/statistics.h>

namespace cutaway::grokking {
namespace {

using namespace cutaway::reproduce;

// Runs of one kind over seeds.
struct Group {
  std::vector<RunOptions> options;
  std::vector<RunResult> runs;
  std::vector<uint64_t> seeds() const {
    std::vector<uint64_t> list;
    for (const RunOptions& o : options) list.push_back(o.seed);
    return list;
  }
  std::vector<double> solved_at() const {
    std::vector<double> list;
    for (const RunResult& r : runs) list.push_back(r.solved_at());
    return list;
  }
  std::string spread() const {
    std::string text;
    for (const RunResult& r : runs) {
      text +=
          (text.empty() ? "" : " ") + (r.stages.t_gen < 0 ? ">" + std::to_string(r.options.epochs)
                                                          : std::to_string(r.stages.t_gen));
    }
    return text;
  }
};

std::string joined(const std::vector<double>& values, const char* format) {
  std::string text;
  for (double v : values) {
    text += (text.empty() ? "" : " ") + fmt::format(fmt::runtime(format), v);
  }
  return text;
}

// What keeps a run from 100 %: its wrong test inputs at the end, and the token that most of them
// share. Empty for a solved run.
std::string stuck_text(const RunResult& r) {
  if (r.stages.t_gen >= 0) return "";
  NoGradGuard off;
  std::vector<int64_t> ids, answers, count(size_t(r.task.entities));
  for (int64_t row : r.split.test) {
    const int64_t* input = &r.task.inputs[size_t(row * r.task.length)];
    ids.insert(ids.end(), input, input + r.task.length);
  }
  const auto n = int64_t(r.split.test.size());
  const auto guess =
      argmax((*r.network)(index_tensor(ids).reshape({n, r.task.length})), 1).to_vector();
  int64_t wrong = 0;
  for (size_t i = 0; i < size_t(n); ++i) {
    if (int64_t(guess[i]) == r.task.answers[size_t(r.split.test[i])]) continue;
    ++wrong;
    const int64_t* input = &ids[i * size_t(r.task.length)];
    for (int64_t t = 0; t < r.task.entities; ++t) {
      count[size_t(t)] += std::count(input, input + r.task.length, t) > 0;
    }
  }
  const auto most = std::max_element(count.begin(), count.end());
  return fmt::format("seed {}: {} of {} test inputs wrong at the end, {} of them with token {}; ",
                     r.options.seed, wrong, n, *most, r.task.tokens[size_t(most - count.begin())]);
}

class Statements {
 public:
  explicit Statements(Run& run) : run_(run) {}

  // All trainings side by side; each group by its name.
  void train_groups() {
    const int five = 5, three = run_.full() ? 3 : 2;
    RunOptions add = preset("ci", "add");
    add.epochs = 5000;
    plan("plain", add, run_.full() ? 10 : five, {.after = run_.full() ? 2000 : 300});
    groups_["plain"].options[0].after = 2000;
    plan("both", add, five, {.prompt = "both"});
    for (const char* prior : {"nuclear", "entropy", "lipschitz"}) {
      if (run_.full() || prior == std::string("nuclear")) {
        plan(prior, add, run_.full() ? five : three, {.prompt = prior});
      }
    }
    RunOptions lattice = preset("ci", "graph:lattice"), compare = preset("ci", "compare:2d");
    lattice.epochs = run_.full() ? 10000 : 3000, compare.epochs = 10000;
    const int64_t after = run_.full() ? 2000 : 500;
    plan("lattice", lattice, three, {.after = after});
    plan("lattice+", lattice, three, {.prompt = "triangle", .after = after});
    if (run_.full()) {
      plan("compare", compare, three, {});
      plan("compare+", compare, three, {.prompt = "trans"});
    }
    plan_controls(add);
    std::vector<RunOptions> all;
    for (auto& [name, g] : groups_) all.insert(all.end(), g.options.begin(), g.options.end());
    run_.progress(fmt::format("{} trainings", all.size()));
    auto results = train_all(all);
    size_t at = 0;
    for (auto& [name, g] : groups_) {
      for (size_t i = 0; i < g.options.size(); ++i) g.runs.push_back(std::move(results[at++]));
    }
  }

  void exactness() {
    run_.add(at_most({.id = "1a",
                      .text = "gradients of the losses agree with finite differences",
                      .value = worst_gradient_error(),
                      .bound = 1e-6}));
    run_.add(at_most({.id = "1b",
                      .text = "a closed helix violates no law (p = 23, all instances)",
                      .value = helix_violation(23),
                      .bound = 1e-10}));
    run_.add(at_most({.id = "1c",
                      .text = "pairs of the laws have equal true answers (T1–T6, p = 47)",
                      .value = double(unequal_answers(47)),
                      .bound = 0}));
  }

  void grokking_exists() {
    const Group& g = groups_["plain"];
    double latest_mem = 0, smallest = INFINITY, latest = 0, seconds = 0;
    std::vector<double> times;
    std::string stuck;
    for (const RunResult& r : g.runs) {
      times.push_back(double(r.stages.t_mem));
      stuck += stuck_text(r);
      const double mem = r.stages.t_mem < 0 ? INFINITY : double(r.stages.t_mem);
      latest_mem = std::max(latest_mem, mem);
      smallest = std::min(smallest, r.solved_at() / mem);
      latest = std::max(latest, r.stages.t_gen < 0 ? INFINITY : double(r.stages.t_gen));
      seconds = std::max(seconds, r.seconds);
    }
    run_.add(at_most({"2a", "memorised early: largest t_mem", latest_mem, 400,
                      fmt::format("{:.0f} (t_mem {})", latest_mem, joined(times, "{:.0f}")),
                      g.seeds()}));
    run_.add(at_least({"2b", "generalises much later: smallest t_gen / t_mem", smallest, 3,
                       fmt::format("{:.3g} (t_gen {})", smallest, g.spread()), g.seeds()}));
    run_.add(at_most({"2c", "generalises at all: largest t_gen", latest, 5000,
                      fmt::format("{:.0f} (t_gen {})", latest, g.spread()), g.seeds(),
                      stuck + "a token off its place on the few circles that are left: training "
                              "loss and weight decay are balanced there (README)"}));
    run_.add(at_most({"2d", "longest run, seconds", seconds, 120, "", g.seeds()}));
  }

  void acceleration() {
    faster("3a", "both symmetry losses: median t_gen of plain / of prompted", "plain", "both", 3);
    std::string best = "nuclear";
    for (const char* prior : {"entropy", "lipschitz"}) {
      if (run_.full() && median(groups_[prior].solved_at()) < median(groups_[best].solved_at())) {
        best = prior;
      }
    }
    faster("3b", "best geometry prior (" + best + ") / both symmetry losses", best, "both", 2);
    faster("3c", "lattice, triangle: plain / prompted", "lattice", "lattice+", 1.5);
    if (!run_.full()) {
      run_.skip("3d 5c", "2-D comparison, transitivity: speed-up and criterion",
                "needs --full (60 000 epochs)");
      return;
    }
    faster("3d", "2-D comparison, transitivity: plain / prompted", "compare", "compare+", 1.5,
           comparison_text());
  }

  void order_of_stages() {
    const Group& g = groups_["plain"];
    double between = INFINITY, before = 0, geometry = INFINITY, correlation = -1;
    std::vector<double> gaps, ratios, geo, all;
    std::string times;
    for (const RunResult& r : g.runs) {
      const Stages& s = r.stages;
      if (s.t_gen < 0) continue;
      const double gen = double(s.t_gen);
      between = std::min(between, s.t_sym < 0 ? -INFINITY : double(s.t_sym - s.t_mem));
      before = std::max(before, s.t_sym < 0 ? INFINITY : double(s.t_sym) / gen);
      // A run whose dimension has not halved yet does so later than t_gen.
      geometry = std::min(geometry, s.t_geo < 0 ? INFINITY : double(s.t_geo) / gen);
      gaps.push_back(s.t_sym < 0 ? NAN : double(s.t_sym - s.t_mem));
      ratios.push_back(s.t_sym < 0 ? NAN : double(s.t_sym) / gen);
      geo.push_back(s.t_geo < 0 ? NAN : double(s.t_geo) / gen);
      times += dimension_text(r);
      std::vector<double> log_mean, accuracy;
      for (const LogRow& row : r.rows) {
        if (row.epoch < s.t_mem) continue;
        log_mean.push_back(std::log(row.mean_violation()));
        accuracy.push_back(row.test_accuracy);
      }
      all.push_back(report::spearman(log_mean, accuracy));
      correlation = std::max(correlation, all.back());
    }
    const auto spread = [](double value, const std::vector<double>& each) {
      return fmt::format("{:.3g} ({})", value, joined(each, "{:.2f}"));
    };
    run_.add(at_least({"4a", "symmetry after memorisation: smallest t_sym − t_mem", between, 1,
                       fmt::format("{:.0f} ({})", between, joined(gaps, "{:.0f}")), g.seeds()}));
    run_.add(at_most({"4b", "symmetry by generalisation: largest t_sym / t_gen", before, 1.2,
                      spread(before, ratios), g.seeds()}));
    run_.add(at_least({"4c", "geometry last: smallest t_geo / t_gen", geometry, 0.8,
                       spread(geometry, geo), g.seeds(),
                       times + "the maximum is that of the random start, and most of the "
                               "contraction comes while test accuracy rises: the last test inputs "
                               "are learnt after it"}));
    run_.add(at_most({"4d", "violation falls as accuracy rises: largest Spearman correlation",
                      correlation, -0.8, spread(correlation, all), g.seeds()}));
  }

  void criterion() {
    criterion_of("5a", "plain", "modular: AUC of the largest violation, seeds left out", 0.95);
    criterion_of("5b", "lattice", "lattice: AUC of the largest violation, seeds left out", 0.9);
    if (!run_.full()) return;  // skipped with 3d
    criterion_of("5c", "compare", "comparison: AUC of the largest violation, seeds left out", 0.9);
  }

  void geometry() {
    const RunResult& r = groups_["plain"].runs[0];
    const std::vector<uint64_t> seed = {r.options.seed};
    const Tensor E = r.network->entities();
    const Circle circle = circle_fit(principal_components(E), r.task.order);
    run_.add(at_least(
        {"6a", "x + y: components 1 and 2 are one circle: share of one frequency", circle.share,
         0.8, fmt::format("{:.3f} (frequency {})", circle.share, circle.frequency), seed}));
    run_.add(at_least({"6b", "x + y: share of variance in the 10 strongest frequencies",
                       strongest(fourier_shares(E, r.task.order)), 0.85, "", seed}));
    shrinks(r);
    lattice_places();
    double smallest = INFINITY;
    std::vector<double> gaps;
    for (const RunResult& m : groups_["mul"].runs) {
      std::vector<int64_t> natural;
      for (int64_t x = 1; x < m.task.modulus; ++x) natural.push_back(x);
      const Tensor e = m.network->entities();
      gaps.push_back(strongest(fourier_shares(e, m.task.order)) -
                     strongest(fourier_shares(e, natural)));
      smallest = std::min(smallest, gaps.back());
    }
    run_.add(at_least({"6f", "x y: a circle in the order of discrete logarithms alone", smallest,
                       0.3, fmt::format("{:.3f} ({})", smallest, joined(gaps, "{:.2f}")),
                       groups_["mul"].seeds()}));
  }

  void controls() {
    const Group& g = groups_["random"];
    double most = 0;
    for (const RunResult& r : g.runs) {
      for (const LogRow& row : r.rows) most = std::max(most, row.test_accuracy);
    }
    run_.add(at_most({"7a", "a random table is never generalised: best test accuracy", most,
                      1.0 / 47 + 0.05, "", g.seeds()}));
    not_faster("7b", "(x,y) vs (y,x) on x − y does not accelerate: plain / prompted", "sub",
               "sub-");
    if (run_.full()) {
      not_faster("7c", "commutativity on S_5 does not accelerate: plain / prompted", "s5", "s5-");
    } else {
      run_.skip("7c", "commutativity on S_5 does not accelerate", "needs --full");
    }
  }

  void no_weight_decay() {
    faster("8", "no weight decay, two-layer MLP: plain / both symmetry losses", "mlp", "mlp+", 3);
  }

  void pictures() {
    const RunResult& r = groups_["plain"].runs[0];
    run_.picture("accuracy",
                 "The three stages of a plain run: memorisation, symmetry acquisition, "
                 "geometric organisation.",
                 accuracy_plot(r));
    run_.picture("violation", "The symmetry violations, measured without test answers.",
                 violation_plot(r));
    run_.picture("dimension", "The embedding contracts after generalisation.", dimension_plot(r));
    run_.picture("circle",
                 "Each pair of components is a circle: neighbours in steps of its "
                 "frequency are joined.",
                 component_plot(r.task, r.network->entities(), 0));
    run_.picture("spectrum", "Few frequencies hold the embedding.",
                 spectrum_plot(r.task, r.network->entities()));
    std::vector<Checkpoint> all;
    for (const RunResult& p : groups_["plain"].runs) {
      const auto some = checkpoints_of(p.rows, p.options.seed);
      all.insert(all.end(), some.begin(), some.end());
    }
    run_.picture("criterion",
                 "Largest violation against test accuracy at every checkpoint after "
                 "memorisation.",
                 criterion_plot(all, fit_criterion(all).tau));
    std::vector<SweepRow> rows;
    for (const char* name : {"plain", "both", "nuclear", "entropy", "lipschitz", "grokfast"}) {
      if (groups_[name].runs.empty()) continue;
      SweepRow row{.name = name};
      for (const RunResult& p : groups_[name].runs) row.add(p);
      rows.push_back(row);
    }
    run_.picture("sweep", "Epochs to complete test accuracy, plain and prompted.",
                 sweep_plot(rows, "x + y mod 47"));
    const bool grew = groups_["lattice"].runs[0].stages.t_gen >= 0;
    const auto& lattice = groups_[grew ? "lattice" : "lattice+"].runs[0];
    run_.picture("lattice",
                 fmt::format("The lattice's nodes on the first two components, by row and column "
                             "({} run).",
                             grew ? "plain" : "prompted"),
                 component_plot(lattice.task, lattice.network->entities(), 0));
    double rate = 0;
    for (const RunResult& p : groups_["plain"].runs) {
      rate += p.steps_per_second / double(groups_["plain"].runs.size());
    }
    run_.remark(
        fmt::format("Plain runs took {:.0f} steps per second each (all inputs of the "
                    "training side in every step, one thread, runs side by side). Symmetry "
                    "instances come from all inputs: unlabelled test inputs take part, "
                    "their answers do not.",
                    rate));
  }

 private:
  struct Change {
    std::string prompt = "none";
    int64_t after = 0;
  };
  void plan(const std::string& name, RunOptions o, int count, const Change& change) {
    o.prompt = change.prompt;
    o.after = change.after;
    for (uint64_t seed : run_.seeds(count)) {
      o.seed = seed;
      groups_[name].options.push_back(o);
    }
  }
  void plan_controls(const RunOptions& add) {
    RunOptions random = add, sub = add, mlp = add, mul = add, s5 = preset("ci", "s5");
    random.task = "random", random.epochs = run_.full() ? 5000 : 600;
    plan("random", random, run_.full() ? 3 : 1, {});
    sub.task = "sub", sub.unchecked = true, sub.epochs = run_.full() ? 5000 : 2500;
    plan("sub", sub, run_.full() ? 3 : 1, {});
    plan("sub-", sub, run_.full() ? 3 : 1, {.prompt = "comm"});
    mlp.model = "mlp", mlp.train_fraction = 0.8, mlp.weight_decay = 0;
    mlp.epochs = run_.full() ? 20000 : 1500;
    plan("mlp", mlp, run_.full() ? 3 : 1, {});
    plan("mlp+", mlp, run_.full() ? 3 : 1, {.prompt = "both"});
    mul.task = "mul";
    plan("mul", mul, run_.full() ? 3 : 1, {.after = run_.full() ? 2000 : 500});
    if (!run_.full()) return;
    s5.epochs = 1000, s5.unchecked = true;
    plan("s5", s5, 1, {});
    plan("s5-", s5, 1, {.prompt = "comm"});
    RunOptions fast = add, none = add;
    fast.optimizer = "grokfast", none.weight_decay = 0, none.epochs = 3000;
    plan("grokfast", fast, 5, {});
    plan("none", none, 1, {});
  }

  // Largest and last effective dimension, and when test accuracy reached 99 % and 100 %.
  static std::string dimension_text(const RunResult& r) {
    int most = 0, at_gen = 0;
    for (const LogRow& row : r.rows) {
      most = std::max(most, row.effective_dimension);
      if (row.epoch == r.stages.t_gen) at_gen = row.effective_dimension;
    }
    return fmt::format("seed {}: t_geo {}, t_99 {}, t_gen {}, dimension {} → {} at t_gen; ",
                       r.options.seed, r.stages.t_geo, r.stages.t_99, r.stages.t_gen, most, at_gen);
  }
  // What plain and prompted comparisons reached, and how many test inputs their training inputs
  // leave open.
  std::string comparison_text() {
    std::string text;
    const Group &a = groups_["compare"], &b = groups_["compare+"];
    const auto best = [](const RunResult& r) {
      double most = 0;
      for (const LogRow& row : r.rows) most = std::max(most, row.test_accuracy);
      return 100 * most;
    };
    for (size_t i = 0; i < a.runs.size(); ++i) {
      const RunResult &plain = a.runs[i], &prompted = b.runs[i];
      text += fmt::format(
          "seed {}: no chain of <, = and > among training inputs settles {} of {} test inputs; "
          "best "
          "accuracy {:.1f} % plain, {:.1f} % prompted, violation at the end {:.1g} and {:.1g}; ",
          plain.options.seed, open_comparisons(plain.task, plain.split), plain.split.test.size(),
          best(plain), best(prompted), plain.rows.back().mean_violation(),
          prompted.rows.back().mean_violation());
    }
    return text;
  }

  void faster(const std::string& id, const std::string& text, const std::string& slow,
              const std::string& fast, double bound, const std::string& note = "") {
    const Group &a = groups_[slow], &b = groups_[fast];
    const double ratio = median(a.solved_at()) / median(b.solved_at());
    run_.add(at_least({id, text, ratio, bound,
                       fmt::format("{:.2f} ({} | {})", ratio, a.spread(), b.spread()), b.seeds(),
                       note + "in brackets t_gen of every run; > marks the limit of epochs"}));
  }
  // "Does not accelerate" leaves 25 % for the spread of single seeds.
  void not_faster(const std::string& id, const std::string& text, const std::string& plain,
                  const std::string& prompted) {
    const Group &a = groups_[plain], &b = groups_[prompted];
    const double ratio = median(a.solved_at()) / median(b.solved_at());
    run_.add(at_most({id, text, ratio, 1.25,
                      fmt::format("{:.2f} ({} | {})", ratio, a.spread(), b.spread()), b.seeds()}));
  }

  void criterion_of(const std::string& id, const std::string& group, const std::string& text,
                    double bound) {
    std::vector<Checkpoint> all;
    for (const char* suffix : {"", "+"}) {
      const auto found = groups_.find(group + suffix);
      if (found == groups_.end()) continue;
      for (const RunResult& r : found->second.runs) {
        const auto some = checkpoints_of(r.rows, r.options.seed);
        all.insert(all.end(), some.begin(), some.end());
      }
    }
    const Criterion c = fit_criterion(all);
    run_.add(at_least({id, text, c.left_out_auc, bound,
                       fmt::format("{:.3f} (balanced {:.3f}, τ {:.2f})", c.left_out_auc,
                                   c.left_out_accuracy, c.tau),
                       groups_[group].seeds()}));
  }

  static double fall(const RunResult& r) {
    double at_gen = NAN;
    for (const LogRow& row : r.rows) {
      if (row.epoch == r.stages.t_gen) at_gen = row.effective_dimension;
    }
    return 1 - r.rows.back().effective_dimension / at_gen;
  }
  void shrinks(const RunResult& r) {
    run_.add(at_least({"6c",
                       "x + y: effective dimension falls after t_gen (w > 0)",
                       fall(r),
                       0.3,
                       "",
                       {r.options.seed}}));
    if (!run_.full()) return;
    const RunResult& none = groups_["none"].runs[0];
    int most = 0;
    for (const LogRow& row : none.rows) most = std::max(most, row.effective_dimension);
    run_.add(at_most({"6d",
                      "without weight decay it falls less, from its maximum",
                      1 - none.rows.back().effective_dimension / double(most),
                      fall(r),
                      "",
                      {none.options.seed}}));
  }
  void lattice_places() {
    const Group& g = groups_["lattice"];
    std::vector<double> fits, prompted;
    for (const auto& [runs, list] :
         {std::pair{&g.runs, &fits}, {&groups_["lattice+"].runs, &prompted}}) {
      for (const RunResult& r : *runs) {
        list->push_back(place_fit(principal_components(r.network->entities()), r.task.places));
      }
    }
    const double smallest = *std::min_element(fits.begin(), fits.end());
    run_.add(at_least({"6e", "lattice: R² of (row, column) from 4 components", smallest, 0.9,
                       fmt::format("{:.3f} ({}; prompted {})", smallest, joined(fits, "{:.3f}"),
                                   joined(prompted, "{:.3f}")),
                       g.seeds(), "t_gen of the plain runs: " + g.spread()}));
  }

  Run& run_;
  std::map<std::string, Group> groups_;
};

void run_all(Run& run) {
  Statements s(run);
  s.exactness();
  s.train_groups();
  s.grokking_exists();
  s.acceleration();
  s.order_of_stages();
  s.criterion();
  s.geometry();
  s.controls();
  s.no_weight_decay();
  s.pictures();
}

}  // namespace

const Study kStudy = {"grokking", "Intrinsic task symmetry drives generalisation",
                      "about 15 min on 2 cores", run_all};

}  // namespace cutaway::grokking
