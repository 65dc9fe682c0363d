// bayes-attn: softmax attention as Bayes' rule – exact heads, metric defect, atlas, in-context
// estimation, converse, diagnosis.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/models/bayes_attention/diagnose.h>
#include <cutaway/models/bayes_attention/ice.h>
#include <cutaway/models/bayes_attention/pictures.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

using namespace bayes;

struct BayesArgs {
  Common common;
  std::string family = "gauss", codebook, data, svg, report, cells = "arc", fit, model = "shared";
  std::string keys_file, queries_file, bias_file, stats_file, weights_file;
  std::string out_csv = "post.csv";
  std::vector<int64_t> heads{9}, lengths{16, 64, 256};
  std::vector<double> sigma;
  int64_t keys = 12, dim = 2, m = 16, seeds = 3, rank = 2, draws = 1000, converse_dim = 6,
          converse_keys = 8, prompts = 4000, steps = 0;
};

void write(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  io::write_file_atomic(path, text);
  fmt::print("written {}\n", path);
}

Codebook open_codebook(const BayesArgs& a) {
  const auto family = [&](int64_t d) {
    if (a.sigma.empty()) return Family::named(a.family, d);
    if (a.family != "gauss") throw ValueError("bayes-attn", "--sigma is for --family gauss");
    if (int64_t(a.sigma.size()) != d * d) {
      throw ValueError("bayes-attn", fmt::format("--sigma needs {} numbers, row by row; got {}",
                                                 d * d, a.sigma.size()));
    }
    return Family::gaussian(tensor(a.sigma, {.dtype = DType::f64}).reshape({d, d}));
  };
  if (!a.codebook.empty()) {
    const Codebook c = read_codebook(a.codebook, a.family);
    return a.sigma.empty() ? c : make_codebook(family(c.dim()), c.mu, c.prior);
  }
  return draw_codebook(family(a.dim), {.keys = a.keys, .dim = a.dim, .seed = a.common.seed});
}

void check_positive(const char* name, int64_t value) {
  if (value < 1)
    throw ValueError("bayes-attn", fmt::format("{} must be at least 1; got {}", name, value));
}

int run_exact(const BayesArgs& a) {
  check_positive("--m", a.m);
  check_positive("--d", a.dim);
  if (a.data == "digits") {
    const DigitsResult r = digits_head(a.family);
    fmt::print(
        "digits, {} head with 10 keys: {:.2f} % by attention, {:.2f} % by Bayes' rule, {} "
        "images\n",
        a.family, 100 * r.attention, 100 * r.direct, r.examples);
    return 0;
  }
  if (!a.data.empty()) throw ValueError("exact", "--data knows digits; got " + a.data);
  const Codebook c = open_codebook(a);
  const Statistics s = draw_statistics(c, a.draws, a.m, a.common.seed);
  const Device device = device_from_name(a.common.device);
  const Tensor direct = direct_bayes(c, s.t, a.m);
  for (const DType type : {DType::f64, DType::f32}) {
    Head head = exact_head(c, a.m, type);
    head.keys = head.keys.to(device);
    if (head.bias.defined()) head.bias = head.bias.to(device);
    const Tensor p = posterior(head, s.t).to(Device{}).to(DType::f64);
    fmt::print("{}  {} keys, d = {}, m = {}   largest |attention − Bayes| {:.2e}   {}\n",
               name_of(type), c.keys(), c.dim(), a.m, max(abs(p - direct)).item(), a.common.device);
  }
  std::string csv;
  for (int64_t i = 0; i < c.dim(); ++i) csv += fmt::format("T{},", i + 1);
  for (int64_t k = 0; k < c.keys(); ++k)
    csv += fmt::format("p{}{}", k + 1, k + 1 < c.keys() ? "," : "\n");
  const std::vector<double> t = s.t.to_vector(), p = posterior(exact_head(c, a.m), s.t).to_vector();
  for (int64_t i = 0; i < a.draws; ++i) {
    for (int64_t j = 0; j < c.dim(); ++j) csv += fmt::format("{:.9g},", t[size_t(i * c.dim() + j)]);
    for (int64_t k = 0; k < c.keys(); ++k) {
      csv += fmt::format("{:.9g}{}", p[size_t(i * c.keys() + k)], k + 1 < c.keys() ? "," : "\n");
    }
  }
  write(a.out_csv, csv);
  return 0;
}

int run_defect(const BayesArgs& a) {
  check_positive("--d", a.dim);
  const Codebook c = open_codebook(a);
  const Defect d = metric_defect(c.mu, c.family.link(c.mu));
  const std::vector<double> own = linalg::eigvalsh(c.family.hessian(c.mu)).to_vector();
  fmt::print("{} keys, d = {}, {}\n", c.keys(), c.dim(), c.family.name());
  fmt::print("metric defect {:.3e}   {}\n", d.value,
             d.value < 1e-12 ? "one shared metric is exact" : "no shared metric is exact");
  fmt::print("eigenvalues of the shared metric: {:.4g}\n",
             fmt::join(linalg::eigvalsh(d.metric).to_vector(), ", "));
  fmt::print("eigenvalues of ∇²φ along the keys: {:.4g} to {:.4g}\n",
             *std::min_element(own.begin(), own.end()), *std::max_element(own.begin(), own.end()));
  if (!a.svg.empty()) {
    if (c.dim() != 2) throw ValueError("defect", "--svg draws codebooks of two dimensions");
    write(a.svg, atlas_plot(c, make_grid(c, Cells::arc, 16)));
  }
  return 0;
}

int run_atlas(const BayesArgs& a) {
  check_positive("--m", a.m);
  check_positive("--d", a.dim);
  if (!a.fit.empty() && a.fit != "learned") {
    throw ValueError("atlas", "--fit is learned; got " + a.fit);
  }
  const Codebook c = open_codebook(a);
  const Tensor t = draw_statistics(c, a.draws, a.m, a.common.seed).t;
  AtlasCurve curve{c.family.name(), cells_named(a.cells), {}};
  for (int64_t heads : a.heads)
    make_grid(c, curve.cells, heads);  // all are checked before any runs
  fmt::print("heads   largest |Δ|   of its bound   E KL        mean L1{}\n",
             a.fit.empty() ? "" : "     E KL fitted");
  std::vector<double> h, e;
  for (int64_t heads : a.heads) {
    const Grid grid = make_grid(c, curve.cells, heads);
    if (heads > c.keys()) {
      fmt::print(stderr, "cutaway: warning: {} heads for {} keys: some have none\n", heads,
                 c.keys());
    }
    AtlasError error = atlas_score_error(c, grid, a.m, t);
    add_posterior_error(error, c, grid, a.m, t);
    fmt::print("{:>5}   {:<11.4g}   {:<12.3f}   {:<9.3e}   {:<9.3e}", heads, error.sup,
               error.worst_ratio, error.kl, error.l1);
    if (!a.fit.empty()) {
      fmt::print("   {:.3e}", learned_atlas_kl(c, heads, {.m = a.m, .seed = a.common.seed}));
    }
    fmt::print("\n");
    curve.errors.push_back(error);
    if (error.sup > 0) h.push_back(double(heads)), e.push_back(error.sup);
  }
  if (h.size() > 1) fmt::print("slope of |Δ| against heads {:.2f}\n", log_slope(h, e));
  if (!a.svg.empty()) write(a.svg, atlas_error_plot({curve}));
  return 0;
}

// Mean results of all seeds for one prompt length.
struct IceMean {
  std::vector<std::pair<std::string, double>> losses;
  double cosine = 0, norm_ratio = 0;
  int64_t missing = 0;
};
IceMean mean_of_seeds(const BayesArgs& a, IceTask task, int64_t n) {
  IceMean mean;
  std::map<std::string, double> sums;
  for (int64_t s = 0; s < a.seeds; ++s) {
    const IceOptions o{.model = a.model,
                       .heads = a.heads.front(),
                       .n = n,
                       .prompts = a.prompts,
                       .steps = a.steps,
                       .seed = a.common.seed + uint64_t(s)};
    IceResult r;
    if (a.data.empty()) {
      r = run_ice(task, o);
    } else {
      const Prompts all = read_prompts(a.data, task);
      const int64_t half = all.query.size(0) / 2;
      if (half < 1) throw ValueError("ice", a.data + ": needs two prompts at least");
      r = run_ice(task, o, slice_prompts(all, 0, half), slice_prompts(all, half, 2 * half));
      r.missing = all.missing;
    }
    sums[a.model] += r.excess / double(a.seeds);
    sums["plug-in"] += r.plug_in / double(a.seeds);
    for (const auto& [name, value] : r.baselines) sums[name] += value / double(a.seeds);
    mean.cosine += r.cosine / double(a.seeds);
    mean.norm_ratio += r.norm_ratio / double(a.seeds);
    mean.missing += r.missing;
  }
  for (const char* first : {a.model.c_str(), "plug-in"})
    mean.losses.push_back({first, sums[first]});
  for (const auto& [name, value] : sums) {
    if (name != a.model && name != "plug-in") mean.losses.push_back({name, value});
  }
  return mean;
}

int run_ice_command(const BayesArgs& a) {
  check_positive("--seeds", a.seeds);
  check_positive("--prompts", a.prompts);
  if (a.heads.empty()) throw ValueError("ice", "--heads needs a number");
  const IceTask task = ice_task(a.family);
  std::vector<GapCurve> curves;
  nlohmann::json json = {{"family", a.family}, {"model", a.model}, {"seeds", a.seeds}};
  std::vector<int64_t> lengths = a.lengths;
  if (!a.data.empty()) lengths = {0};  // what the file holds
  for (int64_t n : lengths) {
    if (a.data.empty()) check_positive("--n", n);
    const IceMean r = mean_of_seeds(a, task, n);
    if (r.missing > 0) {
      fmt::print(stderr, "cutaway: {} prompts lack an example of some class; smoothing applies\n",
                 r.missing);
    }
    nlohmann::json row = {{"n", n}, {"missing", r.missing}};
    fmt::print("n = {:<5} {}", n, a.data.empty() ? "excess over the oracle, nats:" : "loss, nats:");
    for (size_t i = 0; i < r.losses.size(); ++i) {
      const auto& [name, value] = r.losses[i];
      fmt::print("  {} {:.4f}", name, value);
      row[name] = value;
      if (curves.size() <= i) curves.push_back({name, {}, {}});
      curves[i].n.push_back(double(n));
      curves[i].excess.push_back(value);
    }
    if (std::isfinite(r.cosine)) {
      fmt::print("  cos(M, Σ⁻¹) {:.4f}  norm ratio {:.3f}", r.cosine, r.norm_ratio);
      row["cosine"] = r.cosine;
      row["norm_ratio"] = r.norm_ratio;
    }
    fmt::print("\n");
    json["rows"].push_back(row);
  }
  write(a.report, json.dump(2) + "\n");
  if (!a.svg.empty()) write(a.svg, gap_plot(a.family, curves));
  return 0;
}

int run_converse(const BayesArgs& a) {
  std::vector<ConverseCurve> curves;
  for (const char* way : {"perturb", "adam", "sgd"}) {
    ConverseOptions o{
        .dim = a.converse_dim, .rank = a.rank, .keys = a.converse_keys, .seed = a.common.seed};
    if (a.steps > 0) o.steps = a.steps;
    const auto points = converse(way, o);
    const Converse c = summarise(points, 1e-5, 1e-1);
    fmt::print(
        "{:<8} slope of sinΘ against ε {:.3f} over {:.1f} decades   max sinΘ/√ε {:.2f}   of "
        "its bound at most {:.3f}\n",
        way, c.slope, c.decades, c.constant, c.max_ratio);
    curves.push_back({way, points});
  }
  if (!a.svg.empty()) write(a.svg, converse_plot(curves));
  return 0;
}

Tensor array_or_nothing(const std::string& path) {
  return path.empty() ? Tensor() : io::load_npy(path);
}

int run_diagnose(const BayesArgs& a) {
  const Diagnosis d = diagnose({io::load_npy(a.keys_file), io::load_npy(a.queries_file),
                                array_or_nothing(a.bias_file), array_or_nothing(a.stats_file),
                                array_or_nothing(a.weights_file)});
  if (!d.metric.defined()) {
    fmt::print("scores are finite; --stats tells what the queries were made from\n");
    return 0;
  }
  fmt::print("weights log-linear in the statistics (T2): residual {:.2e}\n", d.log_linear);
  fmt::print("queries affine in the statistics: residual {:.2e}\n", d.query_fit);
  fmt::print("one shared metric (T4): defect {:.2e}, eigenvalues {:.4g}, asymmetry {:.2e}\n",
             d.defect, fmt::join(d.eigenvalues, ", "), d.asymmetry);
  const bool precision = d.defect < 1e-2 && d.eigenvalues.front() > 0 && d.asymmetry < 0.1;
  fmt::print("{}\n", precision ? "the metric reads as a noise precision"
                               : "the metric is no noise precision: keys bend, or it is not "
                                 "symmetric and positive");
  if (d.cells > 1) fmt::print("an atlas of about {} cells would bring keys within 10 %\n", d.cells);
  return 0;
}

using Action = int (*)(const BayesArgs&);

CLI::App* part(CLI::App& c, const char* name, const char* what, const char* example, Action action,
               const std::shared_ptr<BayesArgs>& a, int& status) {
  CLI::App* s = c.add_subcommand(name, what);
  s->footer(std::string("Example:\n  cutaway bayes-attn ") + example);
  // --out is the table of `exact`; other parts have no folder.
  Common& k = a->common;
  s->add_option("--seed", k.seed, "Seed of every random number")->capture_default_str();
  s->add_option("--threads", k.threads, "Threads of kernels; 0 takes all cores")
      ->check(CLI::Range(0, 1 << 20));
  s->add_option("--device", k.device, "cpu, cuda or emu")->capture_default_str();
  s->callback([=, &status] {
    status = guarded([&] {
      apply_common(a->common);
      return action(*a);
    });
  });
  return s;
}

void codebook_options(CLI::App& s, BayesArgs& a) {
  s.add_option("--family", a.family, "gauss, bern, pois or cat")->capture_default_str();
  s.add_option("--K", a.keys, "Keys of a random codebook")->capture_default_str();
  s.add_option("--d", a.dim, "Its dimension")->capture_default_str();
  s.add_option("--codebook", a.codebook, "CSV: [prior,]mu1,…,mud, one row a key");
  s.add_option("--sigma", a.sigma, "Covariance of gauss, d² numbers row by row; default: identity")
      ->delimiter(',');
}

}  // namespace

void add_bayes_attn(CLI::App& app, int& status) {
  auto a = std::make_shared<BayesArgs>();
  CLI::App* c = app.add_subcommand("bayes-attn", "Softmax attention as Bayes' rule");
  c->footer("Example:\n  cutaway bayes-attn exact --family pois --K 12 --d 2 --m 16");
  c->require_subcommand(1);
  CLI::App* s = part(*c, "exact", "A head that is the posterior", "exact --family bern --m 16",
                     run_exact, a, status);
  codebook_options(*s, *a);
  s->add_option("--m", a->m, "Observations in a statistic")->capture_default_str();
  s->add_option("--draws", a->draws, "Statistics to compare on")->check(CLI::PositiveNumber);
  s->add_option("--data", a->data, "digits: naive Bayes on 8×8 digits as attention");
  s->add_option("--out", a->out_csv, "Table of statistics and posteriors")->capture_default_str();
  s = part(*c, "defect", "Is one query–key metric enough?", "defect --family pois", run_defect, a,
           status);
  codebook_options(*s, *a);
  s->add_option("--svg", a->svg, "Picture of keys, metrics and cells");
  s = part(*c, "atlas", "Heads with local metrics", "atlas --family bern --heads 1,4,16,64",
           run_atlas, a, status);
  codebook_options(*s, *a);
  s->add_option("--m", a->m, "Observations in a statistic")->capture_default_str();
  s->add_option("--draws", a->draws, "Statistics to compare on")->check(CLI::PositiveNumber);
  s->add_option("--heads", a->heads, "Numbers of heads, g^d each")->delimiter(',');
  s->add_option("--cells", a->cells, "arc or uniform")->capture_default_str();
  s->add_option("--fit", a->fit, "learned: heads fitted to the posterior as well");
  s->add_option("--svg", a->svg, "Picture of errors against heads");
  s = part(*c, "ice", "In-context estimation", "ice --family pois --model atlas --heads 9",
           run_ice_command, a, status);
  s->add_option("--family", a->family, "gauss, bern, pois or qpsk")->capture_default_str();
  s->add_option("--model", a->model, "shared, affine, atlas, link, token, transformer or mlp");
  s->add_option("--heads", a->heads, "Heads of the atlas")->delimiter(',');
  s->add_option("--n", a->lengths, "Prompt lengths")->delimiter(',');
  s->add_option("--seeds", a->seeds, "Seeds to average")->capture_default_str();
  s->add_option("--prompts", a->prompts, "Training prompts")->capture_default_str();
  s->add_option("--steps", a->steps, "Training steps; 0: as the model needs");
  s->add_option("--data", a->data, "CSV prompt,label,T1,…,Td; a prompt's last row is its query");
  s->add_option("--report", a->report, "JSON of all numbers");
  s->add_option("--svg", a->svg, "Picture of excess loss against n");
  s = part(*c, "converse", "Key subspace of near-optimal heads", "converse --d 6 --rank 2 --K 8",
           run_converse, a, status);
  s->add_option("--d", a->converse_dim, "Dimension")->capture_default_str();
  s->add_option("--rank", a->rank, "Rank of the true key differences")->capture_default_str();
  s->add_option("--K", a->converse_keys, "Keys")->capture_default_str();
  s->add_option("--steps", a->steps, "Training steps");
  s->add_option("--svg", a->svg, "Picture");
  s = part(*c, "diagnose", "What does a trained head's metric say?",
           "diagnose --keys k.npy --queries q.npy --stats t.npy", run_diagnose, a, status);
  s->add_option("--keys", a->keys_file, "[K,e]")->required();
  s->add_option("--queries", a->queries_file, "[N,e]")->required();
  s->add_option("--bias", a->bias_file, "[K]");
  s->add_option("--stats", a->stats_file, "[N,d]: what the queries were made from");
  s->add_option("--weights", a->weights_file, "[N,K] in place of softmax(q·k + b)");
}

}  // namespace cutaway::tools
