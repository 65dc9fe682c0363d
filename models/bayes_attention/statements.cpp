// The statements of `cutaway reproduce bayes-attention`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/models/bayes_attention/atlas.h>
#include <cutaway/models/bayes_attention/converse.h>
#include <cutaway/models/bayes_attention/ice.h>
#include <cutaway/models/bayes_attention/pictures.h>
#include <cutaway/models/bayes_attention/statements.h>

namespace cutaway::bayes {
namespace {

using reproduce::at_least;
using reproduce::at_most;
using reproduce::mean_spread;
using reproduce::Run;

constexpr Opts kF64{.dtype = DType::f64};
constexpr const char* kFamilies[] = {"gauss", "bern", "pois", "cat"};

double largest(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }
double smallest(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
double average(const std::vector<double>& v) {
  double total = 0;
  for (double x : v) total += x;
  return total / double(v.size());
}

// Worst |p − Bayes| of the heads that `make` builds, over families, keys and observations.
template <class Make>
double worst_head(Run& run, const Make& make) {
  double worst = 0;
  for (const char* name : kFamilies) {
    for (int64_t keys : {2, 12, 1000}) {
      for (int64_t m : {1, 16, 100}) {
        const Codebook c =
            draw_codebook(Family::named(name, 2), {.keys = keys, .seed = run.seed()});
        const Tensor t = draw_statistics(c, 200, m, run.seed()).t, p = direct_bayes(c, t, m);
        for (const Head& head : make(c, m)) {
          worst = std::max(worst, max(abs(posterior(head, t).to(DType::f64) - p)).item());
        }
      }
    }
  }
  return worst;
}

void exact_heads(Run& run) {
  const double f64 = worst_head(run, [](const Codebook& c, int64_t m) {
    return std::vector<Head>{exact_head(c, m), plain_head(c, m), plain_head(c, m, 1e4),
                             plain_head(c, m, -1e4), folded_head(plain_head(c, m))};
  });
  run.add(at_most({.id = "1a",
                   .text = "exact head = Bayes, f64, K to 1000, m to 100, scores ± 1e4",
                   .value = f64,
                   .bound = 1e-12,
                   .seeds = run.seeds(1)}));
  const double f32 = worst_head(run, [](const Codebook& c, int64_t m) {
    return std::vector<Head>{exact_head(c, m, DType::f32), exact_head(c, m, DType::f32, 1e4),
                             exact_head(c, m, DType::f32, -1e4)};
  });
  run.add(at_most({.id = "1b",
                   .text = "the same in f32, offsets ± 1e4 of the log prior",
                   .value = f32,
                   .bound = 1e-5,
                   .seeds = run.seeds(1)}));
}

void bregman(Run& run) {
  constexpr int64_t kPairs = 100000;
  double worst = 0, worst_mean = 0;
  for (const char* name : kFamilies) {
    const Family f = Family::named(name, 2);
    const Codebook means = draw_codebook(f, {.keys = kPairs, .seed = run.seed()});
    // Every third statistic is one observation, often on the boundary: 0, 1, a count of 0.
    Draws draws(run.seed(), 9);
    const Tensor t = empty({kPairs, 2}, kF64);
    for (int64_t i = 0; i < kPairs; ++i) {
      f.observe(means.mu.data<double>() + i * 2, 2, i % 3 ? 5 : 1, draws, t.data<double>() + 2 * i);
    }
    const Tensor eta = f.link(means.mu);
    const Tensor left = sum(eta * t, 1) - f.log_partition(means.mu);
    const Tensor right = f.potential(t) - f.divergence(t, means.mu);
    worst = std::max(worst, max(abs(left - right)).item());
    const Codebook c = draw_codebook(f, {.seed = run.seed()});
    const Tensor stats = draw_statistics(c, 500, 16, run.seed()).t;
    const Tensor mean = matmul(direct_bayes(c, stats, 16), c.mu);
    worst_mean =
        std::max(worst_mean, max(abs(attend(exact_head(c, 16), stats, c.mu) - mean)).item());
  }
  run.add(at_most({.id = "2a",
                   .text = "⟨η,T⟩ − A(η) = φ(T) − d_φ(T,μ), 4 × 1e5 pairs, boundary included",
                   .value = worst,
                   .bound = 1e-10,
                   .seeds = run.seeds(1)}));
  run.add(at_most({.id = "2b",
                   .text = "output with values μ_k is the posterior mean Σ p_k μ_k",
                   .value = worst_mean,
                   .bound = 1e-10,
                   .seeds = run.seeds(1)}));
}

void stability(Run& run) {
  double worst = 0, near_equal = 0;
  for (int64_t k : {2, 5, 20, 100}) {
    Generator g{.seed = run.seed(), .stream = 8 + uint64_t(k)};
    const Tensor a = randn({25000, k}, kF64, &g) * 2;
    for (double size : {1e-3, 0.1, 1.0, 10.0}) {
      const Tensor start = k == 2 && size < 0.01 ? zeros_like(a) : a;
      const Tensor step = randn(a.sizes(), kF64, &g) * size;
      const Tensor l1 = sum(abs(softmax(start + step, 1) - softmax(start, 1)), 1);
      const double ratio = max(l1 / amax(abs(step), 1)).item();
      worst = std::max(worst, ratio);
      if (k == 2 && size < 0.01) near_equal = std::max(near_equal, ratio);
    }
  }
  run.add(at_most({.id = "3a",
                   .text = "|Δp|₁ ≤ |Δscore|_∞, 4e5 random pairs: largest ratio",
                   .value = worst,
                   .bound = 1 + 1e-9,
                   .measured = fmt::format("{:.6f}", worst),
                   .seeds = run.seeds(1)}));
  run.add(at_least({.id = "3b",
                    .text = "the constant 1 is sharp: K = 2 near equal probabilities",
                    .value = near_equal,
                    .bound = 0.99,
                    .measured = fmt::format("{:.6f}", near_equal),
                    .seeds = run.seeds(1)}));
}

double defect_of(const Codebook& c) { return metric_defect(c.mu, c.family.link(c.mu)).value; }

void representable(Run& run) {
  std::vector<double> gauss, bern, pois, exact, mixture;
  const std::vector<uint64_t> seeds = run.seeds(5);
  for (uint64_t seed : seeds) {
    Generator g{.seed = seed, .stream = 10};
    const Tensor a = randn({3, 3}, kF64, &g);
    const Family any = Family::gaussian(matmul(a, a, {.transpose_b = true}) + eye(3, kF64) * 0.1);
    gauss.push_back(defect_of(draw_codebook(any, {.dim = 3, .seed = seed})));
    const Codebook b = draw_codebook(Family::named("bern", 2), {.seed = seed});
    bern.push_back(defect_of(b));
    pois.push_back(defect_of(draw_codebook(Family::named("pois", 2), {.seed = seed})));
    for (const char* name : kFamilies) {
      const Codebook c = draw_codebook(Family::named(name, 2), {.seed = seed});
      const Tensor t = draw_statistics(c, 400, 2, seed).t;
      exact.push_back(log_linear_residual(posterior(exact_head(c, 2), t), t));
    }
    const Codebook other = draw_codebook(Family::named("bern", 2), {.seed = seed + 100});
    const Tensor t = draw_statistics(b, 400, 16, seed).t;
    mixture.push_back(log_linear_residual(mixture_posterior(b, other, t, 16), t));
  }
  run.add(at_most(
      {"4a", "metric defect of Gaussian codebooks, random Σ", largest(gauss), 1e-20, {}, seeds}));
  const char* note =
      "The defect of a Bernoulli codebook depends on where its 12 keys fall: near 1/2, where the "
      "link is almost straight, it is small, so there is no positive lower bound for random keys.";
  run.add(
      at_least({"4b", "metric defect of Bernoulli codebooks, least of seeds", smallest(bern), 1e-2,
                fmt::format("{:.3g} (mean {})", smallest(bern), mean_spread(bern)), seeds, note}));
  run.add(
      at_least({"4c", "metric defect of Poisson codebooks, least of seeds", smallest(pois), 1e-2,
                fmt::format("{:.3g} (mean {})", smallest(pois), mean_spread(pois)), seeds}));
  run.add(
      at_most({"4d", "log-linearity residual of exact heads", largest(exact), 1e-18, {}, seeds}));
  run.add(at_least({"4e",
                    "log-linearity residual of a mixture likelihood",
                    smallest(mixture),
                    1e-3,
                    {},
                    seeds}));
}

void atlas(Run& run) {
  double worst_ratio = 0, worst_arc = 0;
  const std::vector<int64_t> heads{1, 2, 4, 8, 16, 32, 64, 128};
  std::vector<AtlasCurve> curves;
  for (const char* family : {"bern", "pois"}) {
    AtlasCurve arc{family, Cells::arc, {}}, uniform{family, Cells::uniform, {}};
    std::vector<double> h, e;
    for (int64_t n : heads) {
      arc.errors.push_back(line_error(family, Cells::arc, n));
      uniform.errors.push_back(line_error(family, Cells::uniform, n));
      const AtlasError &a = arc.errors.back(), &u = uniform.errors.back();
      worst_ratio = std::max({worst_ratio, a.worst_ratio, u.worst_ratio});
      if (n >= 4) worst_arc = std::max(worst_arc, a.sup / u.sup);
      if (n >= 16) h.push_back(double(n)), e.push_back(a.sup);
    }
    const double slope = log_slope(h, e);
    const std::string text = std::string("atlas error against heads, arc cells, ") + family;
    const bool in = slope >= -2.1 && slope <= -1.7;
    run.add({.id = family[0] == 'b' ? "5a" : "5b",
             .text = text,
             .status = in ? reproduce::Status::pass : reproduce::Status::fail,
             .measured = fmt::format("slope {:.3f}", slope),
             .value = slope,
             .bound = "[−2.1, −1.7]"});
    curves.push_back(arc);
    curves.push_back(uniform);
  }
  run.add(at_most({"5c", "every score error below its bound (T5): largest ratio", worst_ratio, 1}));
  run.add(
      at_most({"5d", "arc cells better than uniform ones, H ≥ 4: largest ratio", worst_arc, 1}));
  run.picture("atlas_error",
              "Largest score error of the constructed atlas against the number of "
              "heads: arc cells follow H⁻².",
              atlas_error_plot(curves));
  const Codebook c = draw_codebook(Family::named("pois", 2), {.seed = run.seed()});
  run.picture("metric_ellipses",
              "Poisson keys with the unit balls of their Fisher metrics, the one "
              "shared metric of least defect (dashed), and a 4 × 4 atlas of arc cells.",
              atlas_plot(c, make_grid(c, Cells::arc, 16)));
}

// One measured number of run_ice for each seed.
struct IceSeeds {
  std::vector<double> excess, plug_in, cosine;
  IceResult last;
};
IceSeeds ice_seeds(Run& run, const char* family, const char* model, int64_t n) {
  IceSeeds all;
  for (uint64_t seed : run.seeds(3)) {
    run.progress(
        fmt::format("in-context estimation: {} {} n = {}, seed {}", family, model, n, seed));
    all.last = run_ice(ice_task(family), {.model = model, .n = n, .seed = seed});
    all.excess.push_back(all.last.excess);
    all.plug_in.push_back(all.last.plug_in);
    all.cosine.push_back(all.last.cosine);
  }
  return all;
}

void ice_gaussian(Run& run) {
  const auto seeds = run.seeds(3);
  const IceSeeds near = ice_seeds(run, "gauss", "shared", 64),
                 far = ice_seeds(run, "gauss", "shared", 256);
  const double excess = average(far.excess), plug = average(far.plug_in);
  run.add(at_most({"6a", "Gaussian, n = 256: excess of `shared` / plug-in", excess / plug, 1.4,
                   fmt::format("{:.3f} ({} / {})", excess / plug, mean_spread(far.excess),
                               mean_spread(far.plug_in)),
                   seeds}));
  run.add(at_least({"6b", "cos(M, Σ⁻¹), least of seeds", smallest(far.cosine), 0.99,
                    fmt::format("{:.5f}", smallest(far.cosine)), seeds}));
  run.add(at_least(
      {"6c", "excess falls from n = 64 to 256 by", average(near.excess) / excess, 3, {}, seeds}));
  run.picture("metric",
              "The metric that `shared` has learned against the noise precision Σ⁻¹ "
              "(unit balls).",
              metric_plot(far.last.metric, linalg::inverse(ice_task("gauss").family.sigma)));
}

void ice_poisson(Run& run) {
  const auto seeds = run.seeds(3);
  const IceSeeds shared = ice_seeds(run, "pois", "shared", 256),
                 nine = ice_seeds(run, "pois", "atlas", 256),
                 link = ice_seeds(run, "pois", "link", 256);
  const double plug = average(shared.plug_in), one = average(shared.excess);
  run.add(at_least({"7a", "Poisson, n = 256: excess of `shared` / plug-in", one / plug, 4,
                    fmt::format("{:.2f} ({})", one / plug, mean_spread(shared.excess)), seeds}));
  run.add(at_most({"7b", "excess of 9 heads / `shared`", average(nine.excess) / one, 0.55,
                   fmt::format("{:.3f} ({})", average(nine.excess) / one, mean_spread(nine.excess)),
                   seeds}));
  run.add(at_most(
      {"7c", "excess of the learned link / plug-in", average(link.excess) / plug, 2,
       fmt::format("{:.2f} ({})", average(link.excess) / plug, mean_spread(link.excess)), seeds}));
  std::vector<double> first, sixteen;
  for (uint64_t seed : seeds) {
    const Codebook c = draw_codebook(Family::named("bern", 2), {.seed = seed});
    first.push_back(learned_atlas_kl(c, 1, {.seed = seed}));
    sixteen.push_back(learned_atlas_kl(c, 16, {.seed = seed}));
  }
  const double ratio = average(sixteen) / average(first);
  run.add(at_most({"7d", "Bernoulli codebook, E KL of 16 fitted heads / 1 head", ratio, 0.35,
                   fmt::format("{:.3f} ({} / {})", ratio, mean_spread(sixteen), mean_spread(first)),
                   seeds}));
}

void converses(Run& run) {
  std::vector<ConverseCurve> curves;
  double worst = 0;
  const char* ids[] = {"8a", "8b", "8c"};
  int i = 0;
  for (const char* way : {"perturb", "adam", "sgd"}) {
    std::vector<ConversePoint> points;
    std::vector<double> slopes;
    for (uint64_t seed : run.seeds(3)) {
      const auto more = converse(way, {.seed = seed});
      slopes.push_back(summarise(more, 1e-5, 1e-1).slope);
      points.insert(points.end(), more.begin(), more.end());
    }
    const Converse c = summarise(points, 1e-5, 1e-1);
    worst = std::max(worst, c.max_ratio);
    const bool in = c.slope >= 0.4 && c.slope <= 0.6;
    run.add({.id = ids[i++],
             .text = std::string("slope of sinΘ against ε, heads from ") + way,
             .status = in ? reproduce::Status::pass : reproduce::Status::fail,
             .measured = fmt::format("{:.3f} ({:.3f}) over {:.1f} decades", c.slope,
                                     fmt::join(slopes, " "), c.decades),
             .value = c.slope,
             .bound = "[0.4, 0.6]",
             .seeds = run.seeds(3)});
    curves.push_back({way, points});
  }
  run.add(at_most(
      {"8d", "every sinΘ below its bound (T8): largest ratio", worst, 1, {}, run.seeds(3)}));
  run.picture("converse",
              "Angle between learned and true key subspace against the excess "
              "log-loss, however the head was found: sinΘ = O(√ε).",
              converse_plot(curves));
}

void run_all(Run& run) {
  exact_heads(run);
  bregman(run);
  stability(run);
  representable(run);
  atlas(run);
  ice_gaussian(run);
  ice_poisson(run);
  converses(run);
}

}  // namespace

const reproduce::Study kStudy{"bayes-attention", "Softmax attention as Bayes' rule", "2 min",
                              run_all};

}  // namespace cutaway::bayes
