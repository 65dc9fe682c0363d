// The statements of `cutaway reproduce depth-law`.
#include <cutaway/models/depth_law/statements.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/parallel.h>
#include <cutaway/models/depth_law/search.h>

namespace cutaway::depth {
namespace {

using reproduce::at_least;
using reproduce::at_most;
using reproduce::Run;

void within(Run& run, const char* id, const std::string& text, double value, double low,
            double high, const std::string& measured, const std::vector<uint64_t>& seeds,
            const std::string& note = {}) {
  const bool in = value >= low && value <= high;
  run.add({.id = id,
           .text = text,
           .status = in ? reproduce::Status::pass : reproduce::Status::fail,
           .measured = measured.empty() ? fmt::format("{:.3f}", value) : measured,
           .value = value,
           .bound = fmt::format("[{:g}, {:g}]", low, high),
           .seeds = seeds,
           .note = in ? "" : note});
}

void exact_law(Run& run) {
  for (const bool is_relu : {true, false}) {
    double low = 10, high = 0, unit = 0, error = 0;
    for (int64_t depth : {2, 4, 8, 16}) {
      run.progress(fmt::format("exact law, depth {}", depth));
      const Spec spec{.depth = depth,
                      .width = 384,
                      .activation = is_relu ? Activation::relu : Activation::linear};
      const Budget b = measure_budget(spec, {.draws = 200, .seed = run.seed()});
      const double ratio = b.a / exact_budget(depth, is_relu);
      error = b.error / exact_budget(depth, is_relu);
      low = std::min(low, ratio);
      high = std::max(high, ratio);
      for (int64_t l = 1; l <= depth; ++l) {
        unit = std::max(unit, std::fabs(b.profile[size_t(l - 1)] / exact_unit(l, is_relu) - 1));
      }
    }
    const std::string name = is_relu ? "ReLU" : "linear";
    const double worst = std::fabs(low - 1) > std::fabs(high - 1) ? low : high;
    within(run, is_relu ? "1a" : "1c", "A(L) / exact law, " + name + " MLP, L = 2 … 16, 200 draws",
           worst, 0.94, 1.06,
           fmt::format("{:.3f} … {:.3f} (± {:.3f} at L = 16)", low, high, 1.96 * error),
           run.seeds(1),
           "the law is that of leading order in the width n: what is left grows with L/n, and the "
           "draws are heavy-tailed (measured by width in models/depth_law/README.md)");
    run.add(at_most({is_relu ? "1b" : "1d",
                     "profile S_ℓ / exact law, " + name + ", worst unit",
                     unit,
                     0.1,
                     {},
                     run.seeds(1)}));
  }
  const Budget narrow =
                   measure_budget({.depth = 8, .width = 192}, {.draws = 200, .seed = run.seed()}),
               wide =
                   measure_budget({.depth = 8, .width = 384}, {.draws = 200, .seed = run.seed()});
  run.add(at_most({"1e",
                   "doubling the width changes η* by",
                   std::fabs(wide.rate() / narrow.rate() - 1),
                   0.1,
                   {},
                   run.seeds(1)}));
}

struct Sweep {
  SlopeFit fit;
  std::vector<RatePoint> points;
};
Sweep sweep(Run& run, Spec spec, const std::vector<int64_t>& depths, int64_t draws) {
  Sweep s;
  std::vector<double> d, r;
  for (int64_t depth : depths) {
    spec.depth = depth;
    const Budget b = measure_budget(spec, {.draws = draws, .seed = run.seed()});
    d.push_back(double(depth));
    r.push_back(b.rate());
    const double half =
        b.rate() * b.error / b.a;  // two standard errors of A move η* by one half each
    s.points.push_back({double(depth), b.rate(), b.rate() - half, b.rate() + half});
  }
  s.fit = fit_slope(d, r);
  return s;
}

// A slope with the 95 % interval of its fit over depths.
std::string spread(const SlopeFit& fit) {
  return fmt::format("{:.3f} ± {:.2f}", fit.slope, 1.96 * fit.error);
}

void budget_slopes(Run& run) {
  run.progress("slopes of the budget");
  const std::vector<int64_t> depths{4, 8, 16, 32};
  const Sweep mlp = sweep(run, {.width = 512}, depths, run.full() ? 400 : 120);
  std::vector<double> d, exact;
  for (const int64_t depth : depths) {
    d.push_back(double(depth));
    exact.push_back(1 / std::sqrt(exact_budget(depth, true)));
  }
  within(run, "2a", "slope of η* from the budget, MLP, L = 4 … 32", mlp.fit.slope, -1.46, -1.34,
         fmt::format("{} (exact law {:.3f})", spread(mlp.fit), fit_slope(d, exact).slope),
         run.seeds(1));
  run.picture("budget_slope",
              "η* from the measured budget of MLPs, with the fit, the −3/2 line and "
              "the exact law at finite depth.",
              slope_plot(mlp.points, mlp.fit, true, "Learning rate from the budget, ReLU MLP"));
  if (run.full()) {
    const Sweep deep = sweep(run, {.width = 1024}, {16, 32, 64}, 200);
    within(run, "2b", "the same, L = 16 … 64, width 1024", deep.fit.slope, -1.53, -1.41,
           spread(deep.fit), run.seeds(1));
  } else {
    run.skip("2b", "the same, L = 16 … 64, width 1024", "needs --full (2 min)");
  }
  for (int spatial : {1, 2}) {
    const Sweep cnn = sweep(
        run, {.arch = Arch::cnn, .width = 128, .spatial = spatial, .side = spatial == 1 ? 16 : 8},
        {2, 4, 8, 16}, 25);
    within(run, spatial == 1 ? "2c" : "2d",
           fmt::format("circular {}-D CNN, 128 channels, L = 2 … 16", spatial), cnn.fit.slope,
           -1.75, -1.3, spread(cnn.fit), run.seeds(1));
  }
}

void jvp(Run& run) {
  double difference = 0, quadratic = 0;
  const Spec specs[] = {{.depth = 6, .width = 128},
                        {.arch = Arch::cnn, .depth = 4, .width = 16, .side = 6},
                        {.arch = Arch::resnet, .depth = 4, .width = 64, .dense = true},
                        {.arch = Arch::vit, .depth = 4, .width = 16, .side = 8}};
  for (const Spec& spec : specs) {
    const JvpCheck c = check_jvp(spec, run.seed());
    difference = std::max(difference, c.difference);
    for (double q : c.quadratic) quadratic = std::max(quadratic, std::fabs(q - 1));
  }
  run.add(at_most({"3a",
                   "JVP = finite difference at 1e-4 η*, f64, four architectures",
                   difference,
                   1e-3,
                   {},
                   run.seeds(1)}));
  run.add(at_most({"3b",
                   "S̄ ∝ η² over three decades (1e-6 … 1e-3 η*), relative",
                   quadratic,
                   0.01,
                   {},
                   run.seeds(1)}));
}

void residual_table(Run& run) {
  const struct {
    const char *id, *text;
    Block block;
    Branch branch;
    double low, high;
  } rows[] = {{"4a", "x + φ(Wx), weights/√K: slope of η*, K = 4 … 16", Block::post, Branch::sqrt_k,
               -1.9, -1.2},
              {"4b", "x + φ(Wx), weights/K", Block::post, Branch::k, -1.3, -0.7},
              {"4c", "x + Wφ(x), weights/√K", Block::pre, Branch::sqrt_k, -1.3, -0.7},
              {"4d", "two-layer branch, both scaled", Block::both, Branch::sqrt_k, -0.2, 10}};
  for (const auto& r : rows) {
    const Sweep s = sweep(
        run,
        {.arch = Arch::resnet, .width = 256, .block = r.block, .branch = r.branch, .dense = true},
        {4, 8, 16}, 60);
    within(run, r.id, r.text, s.fit.slope, r.low, r.high, spread(s.fit), run.seeds(1));
  }
}

SearchOptions search_options(Arch arch, uint64_t seed) {
  SearchOptions o{.low = 1e-3, .high = 10, .points = 13, .refine = 5, .seed = seed};
  if (arch == Arch::cnn)
    o = {.low = 0.01, .high = 10, .points = 9, .refine = 5, .batch = 64, .seed = seed};
  return o;
}

// The readout of section 3.4, N(0, 1/n): a mean-field one must grow before anything else can learn.
Spec trained_spec(Arch arch, int64_t depth, const TrainData& data) {
  Spec spec{
      .arch = arch, .depth = depth, .width = arch == Arch::mlp ? 128 : 8, .mean_field = false};
  fit_to_data(spec, data);
  return spec;
}

void trained_optimum(Run& run, Arch arch) {
  const bool mlp = arch == Arch::mlp;
  const TrainData data = load_data("fashion", arch, run.seed());
  std::vector<Optimum> optima;
  std::vector<double> d, r, v;
  std::vector<RatePoint> points;
  for (int64_t depth : {3, 4, 6, 8, 12, 16}) {
    run.progress(fmt::format("best rate at depth {}", depth));
    const Optimum o =
        find_optimum(trained_spec(arch, depth, data), data, search_options(arch, run.seed()));
    d.push_back(double(depth));
    r.push_back(o.rate);
    v.push_back(o.log_variance);
    points.push_back({double(depth), o.rate, o.low, o.high});
    optima.push_back(o);
  }
  const SlopeFit fit = fit_slope(d, r), weighted = fit_slope(d, r, v);
  const std::string name = mlp ? "MLP" : "CNN";
  within(run, mlp ? "5a" : "5b",
         "slope of the trained optimum, " + name + ", Fashion-MNIST, L = 3 … 16", fit.slope, -1.8,
         -1.0,
         fmt::format("{:.2f} ± {:.2f} (weighted {:.2f} ± {:.2f})", fit.slope, 1.96 * fit.error,
                     weighted.slope, 1.96 * weighted.error),
         run.seeds(1),
         "100 steps are a short proxy: deep networks have not left the start where the law holds, "
         "shallow ones have, and prefer the largest stable rate");
  const std::string low = mlp ? "mlp" : "cnn";
  run.picture(low + "_losses",
              name +
                  " on Fashion-MNIST: mean training loss against the rate, the "
                  "best of each depth marked.",
              loss_plot(optima, name + ", 100 batches of Fashion-MNIST"));
  run.picture(low + "_slope", name + ": best rates with bootstrap intervals (90 %), fit and −3/2.",
              slope_plot(points, fit, false, "Trained optimum, " + name));
}

void transfer(Run& run, Arch arch) {
  const bool mlp = arch == Arch::mlp;
  double paper = 0, none = INFINITY;
  std::vector<double> at_paper, at_exact, at_none, exponent;
  for (uint64_t seed : run.seeds(3)) {
    run.progress(fmt::format("transfer from 4 to 16, seed {}", seed));
    const TrainData data = load_data("fashion", arch, seed);
    const SearchOptions o = search_options(arch, seed);
    const Spec shallow = trained_spec(arch, 4, data), deep = trained_spec(arch, 16, data);
    const double rate = find_optimum(shallow, data, o).rate;
    const Optimum optimum = find_optimum(deep, data, o);
    const double best = optimum.loss;
    exponent.push_back(std::log(optimum.rate / rate) / std::log(4));
    const auto loss_at = [&](double lr) {
      double total = 0;
      for (int64_t t = 0; t < o.trials; ++t) {
        total += training_loss(deep, data, lr, uint64_t(t), o) / double(o.trials);
      }
      return total / best;
    };
    at_paper.push_back(loss_at(rate * paper_factor(4, 16)));
    at_exact.push_back(loss_at(rate * exact_factor(4, 16)));
    at_none.push_back(loss_at(rate));
    paper = std::max(paper, at_paper.back());
    none = std::min(none, at_none.back());
  }
  const std::string name = mlp ? "MLP" : "CNN";
  const std::string note = fmt::format("exponent of the best rate from 4 to 16, by seeds: {:.2f}",
                                       fmt::join(exponent, " "));
  run.add(at_most({mlp ? "6a" : "6c", name + ", 4 → 16: loss at the −3/2 rate / best of the grid",
                   paper, 1.03, fmt::format("{:.3f} ({:.3f})", paper, fmt::join(at_paper, " ")),
                   run.seeds(3), note}));
  run.add(at_least(
      {mlp ? "6b" : "6d", name + ", 4 → 16: loss at the old rate / best of the grid", none, 1.10,
       std::isfinite(none) ? fmt::format("{:.3f} ({:.3f})", none, fmt::join(at_none, " "))
                           : "diverged",
       run.seeds(3), note}));
  run.add(at_most(
      {mlp ? "6f" : "6g", name + ", 4 → 16: loss at the ratio of the exact law / best of the grid",
       *std::max_element(at_exact.begin(), at_exact.end()), 1.03,
       fmt::format("{:.3f} ({:.3f})", *std::max_element(at_exact.begin(), at_exact.end()),
                   fmt::join(at_exact, " ")),
       run.seeds(3), note}));
}

void residual_transfer(Run& run) {
  const TrainData data = load_data("synth-vec", Arch::mlp, run.seed());
  Spec spec{.arch = Arch::resnet, .depth = 4, .width = 128, .block = Block::pre, .dense = true};
  fit_to_data(spec, data);
  Spec one = spec;
  one.in = one.width;
  one.outputs = 1;
  const double slope = sweep(run, one, {4, 8, 16}, 40).fit.slope;
  double measured = 0, paper = 0;
  std::vector<double> ratios;
  for (uint64_t seed : run.seeds(3)) {
    double own = 0, law = 0;
    const SearchOptions o{
        .low = 1e-2, .high = 100, .points = 13, .refine = 0, .batch = 64, .seed = seed};
    const double rate = find_optimum(spec, data, o).rate;
    Spec deep = spec;
    deep.depth = 16;
    for (int64_t t = 0; t < o.trials; ++t) {
      own += training_loss(deep, data, rate * std::pow(4, slope), uint64_t(t), o);
      law += training_loss(deep, data, rate * paper_factor(4, 16), uint64_t(t), o);
    }
    ratios.push_back(own / law);
    measured += own;
    paper += law;
  }
  run.add(at_most({"6e", "x + Wφ(x)/√K, 4 → 16: loss at the measured exponent / at −3/2",
                   measured / paper, 1,
                   fmt::format("{:.3f} ({:.3f}; exponent {:.2f})", measured / paper,
                               fmt::join(ratios, " "), slope),
                   run.seeds(3)}));
}

// With a trained stem, as networks with damped branches have: its step reaches every unit undamped.
// Branches alone still add up, and leave η* ∝ 1/L.
void damped_branches(Run& run) {
  Spec damped{.arch = Arch::resnet,
              .width = 256,
              .block = Block::pre,
              .branch = Branch::plain,
              .dense = true,
              .layer_scale = 0.01};
  const double alone = sweep(run, damped, {4, 8, 16}, 20).fit.slope;
  damped.in = 128;
  const SlopeFit with_stem = sweep(run, damped, {4, 8, 16}, 20).fit;
  run.add(at_least({"7a", "LayerScale 0.01, trained stem: slope of η*", with_stem.slope, -0.5,
                    fmt::format("{} (branches alone {:.2f})", spread(with_stem), alone),
                    run.seeds(1)}));
  // The residual-aware start of section 3.4 for the matrices of a branch, the last one zeroed.
  Spec zero{.arch = Arch::resnet,
            .width = 256,
            .block = Block::both,
            .branch = Branch::sqrt_k,
            .dense = true,
            .zero_init = true,
            .in = 128};
  const SlopeFit scaled = sweep(run, zero, {4, 8, 16}, 20).fit;
  zero.block = Block::last;
  const double unscaled = sweep(run, zero, {4, 8, 16}, 20).fit.slope;
  run.add(at_least(
      {"7b", "zero-init branches, trained stem: slope of η*", scaled.slope, -0.5,
       fmt::format("{} (first matrix not scaled by 1/√K: {:.2f})", spread(scaled), unscaled),
       run.seeds(1),
       "zero branches do not damp their own first step: W₂ moves by φ(W₁h) in every "
       "block, and these moves add up unless W₁ is scaled down"}));
  const bool names =
      damped.outside_of_law() == "LayerScale" && zero.outside_of_law() == "zero-init branches";
  run.add(at_least({"7c", "the tool names what the law does not cover", double(names), 1,
                    "names LayerScale, zero-init branches"}));
}

void repeatable(Run& run) {
  const TrainData data = load_data("synth-vec", Arch::mlp, run.seed());
  const auto table = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    std::vector<Optimum> optima;
    for (int64_t depth : {2, 3}) {
      Spec spec{.depth = depth, .width = 32};
      fit_to_data(spec, data);
      optima.push_back(find_optimum(spec, data,
                                    {.low = 1e-3,
                                     .high = 30,
                                     .points = 7,
                                     .refine = 3,
                                     .trials = 2,
                                     .batches = 20,
                                     .seed = run.seed()}));
    }
    set_num_threads(before);
    return csv_of(optima);
  };
  const std::string one = table(1);
  run.add(at_least({"8", "same seed, same table: again, and with 2 threads",
                    double(one == table(1) && one == table(2)), 1, "equal bytes", run.seeds(1)}));
}

void run_all(Run& run) {
  exact_law(run);
  budget_slopes(run);
  jvp(run);
  residual_table(run);
  trained_optimum(run, Arch::mlp);
  transfer(run, Arch::mlp);
  if (run.full()) {
    trained_optimum(run, Arch::cnn);
    transfer(run, Arch::cnn);
  } else {
    run.skip("5b 6c 6d 6g", "CNN on Fashion-MNIST: trained slope and transfer",
             "needs --full (10 min)");
  }
  residual_transfer(run);
  damped_branches(run);
  repeatable(run);
}

}  // namespace

const reproduce::Study kStudy{"depth-law", "How the learning rate must shrink with depth", "20 min",
                              run_all};

}  // namespace cutaway::depth
