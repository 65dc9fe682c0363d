// depthlaw: how the learning rate must shrink with depth – budget at the start, search, transfer.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/depth_law/search.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

using namespace depth;
using nlohmann::json;

struct DepthArgs {
  Common common;
  std::string arch = "mlp", init, activation = "relu", padding = "circular", block = "post";
  std::string data = "fashion", grid = "1e-4:1:25", rule = "paper", param = "mf", folder;
  std::string optimizer = "sgd";
  std::vector<int64_t> depths{4, 8, 16, 32};
  int64_t width = 0, draws = 50, batch = 0, trials = 4, batches = 100, refine = 9, from = 4,
          to = 16, to_width = 0;
  int spatial = 2;
  double rate = 0.05, layer_scale = 0;
  bool dense = false, post_norm = false, zero_init = false, batch_norm = false, verify = false;
};

template <class T>
T choice(const char* option, const std::string& name,
         std::initializer_list<std::pair<const char*, T>> list) {
  std::string known;
  for (const auto& [text, value] : list) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw ValueError("depthlaw", fmt::format("{} is one of {}; got {}", option, known, name));
}

// `init` when none was given: mean field for the budget, whose exact law assumes it; He with a
// readout of variance 1/n for training.
Spec make_spec(const DepthArgs& a, const char* init) {
  Spec s{.arch = arch_named(a.arch)};
  s.width = a.width > 0 ? a.width : s.arch == Arch::mlp ? 128 : s.arch == Arch::vit ? 64 : 16;
  set_init(s, init);
  if (!a.init.empty()) set_init(s, a.init);
  if (a.param != "mf" && a.param != "sp") {
    throw ValueError("depthlaw", "--param is mf or sp; got " + a.param);
  }
  if (a.param == "sp") s.mean_field = false;
  s.activation = choice<Activation>(
      "--activation", a.activation,
      {{"relu", Activation::relu}, {"gelu", Activation::gelu}, {"linear", Activation::linear}});
  s.padding = choice<Padding>(
      "--padding", a.padding,
      {{"circular", Padding::circular}, {"zero", Padding::zero}, {"reflect", Padding::reflect}});
  s.block = choice<Block>(
      "--block", a.block,
      {{"post", Block::post}, {"pre", Block::pre}, {"last", Block::last}, {"both", Block::both}});
  s.dense = a.dense;
  s.layer_scale = a.layer_scale;
  s.zero_init = a.zero_init;
  s.post_norm = a.post_norm;
  s.batch_norm = a.batch_norm;
  if (s.batch_norm && (s.dense || s.arch == Arch::mlp || s.arch == Arch::vit)) {
    throw ValueError("depthlaw", "--batch-norm is for convolutions: --arch cnn or resnet");
  }
  if (a.spatial != 1 && a.spatial != 2) {
    throw ValueError("depthlaw", fmt::format("--spatial is 1 or 2; got {}", a.spatial));
  }
  s.spatial = a.spatial;
  return s;
}

void warn(const std::string& text) { fmt::print(stderr, "cutaway: warning: {}\n", text); }

void warn_law(const Spec& s, const std::string& rule, bool adam) {
  const std::string outside = s.outside_of_law();
  if (rule == "paper" && !outside.empty()) {
    warn(outside + " is outside of what the −3/2 law covers: use the measured exponent");
  }
  if (rule == "paper" && s.arch == Arch::resnet) {
    warn("stabilised residual branches tend to an exponent of −1 in one step");
  }
  if (rule == "paper" && adam) {
    warn(
        "Adam is outside of what the −3/2 law covers: published exponents are −1.21 (CNN) and "
        "−1.27 (ResNet)");
  }
}

// Depths in order, once each; a fit needs three.
std::vector<int64_t> checked_depths(const DepthArgs& a, const Spec& s) {
  std::vector<int64_t> d = a.depths;
  std::sort(d.begin(), d.end());
  d.erase(std::unique(d.begin(), d.end()), d.end());
  for (int64_t depth : d) {
    if (depth < 1) {
      throw ValueError("depthlaw", fmt::format("depths must be at least 1; got {}", depth));
    }
    if (s.arch == Arch::vit && depth % 2) {
      throw ValueError("depthlaw",
                       fmt::format("a transformer has two units a block: depths must be "
                                   "even; got {}",
                                   depth));
    }
  }
  if (d.size() < 3) {
    throw ValueError("depthlaw",
                     fmt::format("a slope needs three different depths; got {}", d.size()));
  }
  return d;
}

// When all else has been checked: a command that is refused says why in one line.
void warn_narrow(const Spec& s, int64_t deepest) {
  if (s.width < 16 * deepest && s.arch != Arch::vit) {
    warn(fmt::format("width {} is below 16 × depth {}: draws are heavy-tailed", s.width, deepest));
  }
}

void write(const DepthArgs& a, const std::string& name, const std::string& text) {
  if (a.common.out.empty()) return;
  std::filesystem::create_directories(a.common.out);
  io::write_file_atomic(a.common.out + "/" + name, text);
  fmt::print("written {}/{}\n", a.common.out, name);
}

int run_budget(const DepthArgs& a) {
  Spec s = make_spec(a, "mf");
  if (a.draws < 2) throw ValueError("depthlaw", "--draws must be at least 2");
  const int64_t batch = a.batch > 0 ? a.batch : 1;
  const bool exact =
      s.arch == Arch::mlp && s.activation != Activation::gelu && s.mean_field && batch == 1;
  const std::vector<int64_t> depths = checked_depths(a, s);
  warn_narrow(s, depths.back());
  std::vector<double> d, r;
  std::vector<RatePoint> points;
  std::string csv = "depth,unit,s\n";
  fmt::print("depth   A(L)         median       η*          local slope{}\n",
             exact ? "   exact η*" : "");
  for (int64_t depth : depths) {
    s.depth = depth;
    const Budget b = measure_budget(s, {.draws = a.draws, .batch = batch, .seed = a.common.seed});
    const double half = b.rate() * b.error / b.a;
    fmt::print("{:>5}   {:<10.4g}   {:<10.4g}   {:<9.4g}", depth, b.a, b.median, b.rate());
    fmt::print("   {:>11}", d.empty()
                                ? ""
                                : fmt::format("{:.2f}", std::log(b.rate() / r.back()) /
                                                            std::log(double(depth) / d.back())));
    if (exact) {
      fmt::print("   {:.4g}", 1 / std::sqrt(exact_budget(depth, s.activation == Activation::relu)));
    }
    fmt::print("\n");
    for (size_t l = 0; l < b.profile.size(); ++l) {
      csv += fmt::format("{},{},{:.9g}\n", depth, l + 1, b.profile[l]);
    }
    d.push_back(double(depth));
    r.push_back(b.rate());
    points.push_back({double(depth), b.rate(), b.rate() - half, b.rate() + half});
  }
  const SlopeFit fit = fit_slope(d, r);
  fmt::print("η* ∝ L^{:.3f} ± {:.3f}\n", fit.slope, 1.96 * fit.error);
  write(a, "units.csv", csv);
  if (!a.common.out.empty()) {
    write(a, "slope.svg",
          slope_plot(points, fit, exact && s.activation == Activation::relu,
                     "Learning rate from the budget, " + a.arch));
  }
  return 0;
}

SearchOptions search_options(const DepthArgs& a) {
  SearchOptions o{
      .refine = a.refine,
      .trials = a.trials,
      .batches = a.batches,
      .batch = a.batch > 0 ? a.batch : 128,
      .seed = a.common.seed,
      .optimizer = choice<Optimizer>("--optim", a.optimizer,
                                     {{"sgd", Optimizer::sgd}, {"adam", Optimizer::adam}})};
  double values[3];
  const char *at = a.grid.data(), *end = at + a.grid.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, values[i]);
    const bool good = error == std::errc() && (i < 2 ? next != end && *next == ':' : next == end);
    if (!good)
      throw ValueError("depthlaw", "--grid is low:high:points, as 1e-4:1:25; got " + a.grid);
    at = next + (i < 2);
  }
  if (a.trials < 1 || a.batches < 1) {
    throw ValueError("depthlaw", "--trials and --batches must be at least 1");
  }
  if (!(values[2] >= 3 && values[2] <= 1000)) {
    throw ValueError("depthlaw", "--grid needs 3 to 1000 points; got " + a.grid);
  }
  o.low = values[0];
  o.high = values[1];
  o.points = int64_t(values[2]);
  return o;
}

json as_json(const Optimum& o) {
  return {{"depth", o.depth}, {"rates", o.rates}, {"losses", o.losses},
          {"mean", o.mean},   {"rate", o.rate},   {"low", o.low},
          {"high", o.high},   {"loss", o.loss},   {"log_variance", o.log_variance}};
}

void report(const DepthArgs& a, const std::vector<Optimum>& optima, const std::string& arch) {
  std::vector<double> d, r, v;
  std::vector<RatePoint> points;
  for (const Optimum& o : optima) {
    d.push_back(double(o.depth));
    r.push_back(o.rate);
    v.push_back(o.log_variance);
    points.push_back({double(o.depth), o.rate, o.low, o.high});
  }
  const SlopeFit fit = fit_slope(d, r), weighted = fit_slope(d, r, v);
  fmt::print("η* ∝ L^{:.2f} ± {:.2f}   weighted by variance {:.2f} ± {:.2f}\n", fit.slope,
             1.96 * fit.error, weighted.slope, 1.96 * weighted.error);
  const std::vector<double> errors = zero_shot_errors(optima);
  for (size_t i = 0; i < errors.size(); ++i) {
    fmt::print("zero-shot from L = {}, {}: at {} off by {:+.0f} %\n", optima[0].depth,
               optima[1].depth, optima[i + 2].depth, 100 * errors[i]);
  }
  write(a, "losses.svg", loss_plot(optima, arch + ": loss against rate"));
  write(a, "slope.svg", slope_plot(points, fit, false, arch + ": best rate against depth"));
}

int run_search(const DepthArgs& a) {
  Spec s = make_spec(a, "he");
  const std::vector<int64_t> depths = checked_depths(a, s);
  const SearchOptions options = search_options(a);
  const TrainData data = load_data(a.data, s.arch, a.common.seed);
  fit_to_data(s, data);
  warn_narrow(s, depths.back());
  std::vector<Optimum> optima;
  json all = {{"arch", a.arch}, {"data", a.data}};
  for (int64_t depth : depths) {
    s.depth = depth;
    optima.push_back(find_optimum(s, data, options));
    const Optimum& o = optima.back();
    fmt::print("L = {:<3} η* {:.4g}  [{:.4g}, {:.4g}]  loss {:.4f}\n", depth, o.rate, o.low, o.high,
               o.loss);
    std::fflush(stdout);
    all["optima"].push_back(as_json(o));
  }
  write(a, "losses.csv", csv_of(optima));
  // Diverged rates have an infinite loss, which JSON writes as null.
  write(a, "search.json", all.dump(2) + "\n");
  report(a, optima, a.arch);
  return 0;
}

int run_report(DepthArgs a) {
  const io::Bytes bytes = io::read_file(a.folder + "/search.json");
  const json all = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  std::vector<Optimum> optima;
  const auto number = [](const json& j) {
    return j.is_number() ? j.get<double>() : double(INFINITY);
  };
  try {
    for (const json& j : all.at("optima")) {
      Optimum o;
      o.depth = j.at("depth").get<int64_t>();
      o.rate = j.at("rate").get<double>();
      o.low = j.at("low").get<double>();
      o.high = j.at("high").get<double>();
      o.loss = j.at("loss").get<double>();
      o.log_variance = j.at("log_variance").get<double>();
      o.rates = j.at("rates").get<std::vector<double>>();
      for (const json& m : j.at("mean")) o.mean.push_back(number(m));
      optima.push_back(o);
    }
  } catch (const json::exception&) {
    throw IoError("depthlaw", a.folder + "/search.json is not what depthlaw search --out writes");
  }
  a.common.out = a.folder;
  report(a, optima, all.value("arch", ""));
  return 0;
}

// η* at another width by the measured budgets: about 1 for a mean-field readout, √(n/n') otherwise.
void print_width(const DepthArgs& a, Spec s) {
  const auto rate = [&](int64_t width) {
    s.width = width;
    return measure_budget(s, {.draws = a.draws, .seed = a.common.seed}).rate();
  };
  const int64_t from = s.width;
  const double factor = rate(a.to_width) / rate(from);
  fmt::print("width {} → {} at L = {}: rates times {:.3g}, η = {:.4g}\n", from, a.to_width, s.depth,
             factor, a.rate * factor);
}

int run_transfer(const DepthArgs& a) {
  Spec s = make_spec(a, "he");
  s.depth = a.from;
  if (a.from < 1 || a.to < 1) throw ValueError("depthlaw", "depths must be at least 1");
  if (!(a.rate > 0))
    throw ValueError("depthlaw", fmt::format("--lr must be above 0; got {:g}", a.rate));
  const char* known[] = {"paper",   "measured", "exact",     "pathsum",
                         "inverse", "root",     "layerwise", "none"};
  if (std::find(std::begin(known), std::end(known), a.rule) == std::end(known)) {
    throw ValueError("depthlaw",
                     fmt::format("--rule is one of {}; got {}", fmt::join(known, ", "), a.rule));
  }
  const Optimizer optimizer = search_options(a).optimizer;
  warn_law(s, a.rule, optimizer == Optimizer::adam);
  const int64_t step = s.arch == Arch::vit ? 2 : 1;
  std::vector<double> d, r;
  const int64_t middle = std::max(a.from + step, (a.from + a.to) / 2 / step * step);
  for (int64_t depth : {a.from, middle, std::max(a.to, middle + step)}) {
    Spec one = s;
    one.depth = depth;
    d.push_back(double(depth));
    r.push_back(measure_budget(one, {.draws = a.draws, .seed = a.common.seed}).rate());
  }
  const SlopeFit fit = fit_slope(d, r);
  fmt::print("measured exponent {:.3f} (budget at L = {}, {}, {})\n", fit.slope, d[0], d[1], d[2]);
  const std::vector<Rule> rules = transfer_rules(s, a.to, a.rate, fit.slope, a.common.seed);
  for (const Rule& rule : rules) {
    fmt::print("{} {:<10} η({}) = {:.4g}\n", rule.name == a.rule ? "→" : " ", rule.name, a.to,
               rule.rate);
  }
  if (a.to_width > 0) print_width(a, s);
  if (!a.verify) return 0;
  const TrainData data = load_data(a.data, s.arch, a.common.seed);
  Spec deep = s;
  deep.depth = a.to;
  fit_to_data(deep, data);
  const SearchOptions o = search_options(a);
  const Optimum best = find_optimum(deep, data, o);
  fmt::print("best of the grid at L = {}: η {:.4g}, loss {:.4f}\n", a.to, best.rate, best.loss);
  for (const Rule& rule : rules) {
    double loss = 0;
    for (int64_t t = 0; t < o.trials; ++t) {
      loss +=
          training_loss(deep, data, rule.rate, uint64_t(t), o, rule.layer_rates) / double(o.trials);
    }
    fmt::print("  {:<10} loss {}\n", rule.name,
               std::isfinite(loss)
                   ? fmt::format("{:.4f}  {:+.1f} %", loss, 100 * (loss / best.loss - 1))
                   : "diverged");
  }
  return 0;
}

void network_options(CLI::App& s, DepthArgs& a) {
  s.add_option("--arch", a.arch, "mlp, cnn, resnet or vit")->capture_default_str();
  s.add_option("--width", a.width, "Units or channels; default by architecture")
      ->check(CLI::Range(1, 1 << 20));
  s.add_option("--init", a.init, "he, mf, res-sqrtK or res-K; default mf (budget), he (training)");
  s.add_option("--param", a.param, "Readout: mf (1/n²) or sp (1/n)")->capture_default_str();
  s.add_option("--activation", a.activation, "relu, gelu or linear")->capture_default_str();
  s.add_option("--padding", a.padding, "circular, zero or reflect")->capture_default_str();
  s.add_option("--block", a.block, "Residual branch: post, pre, last or both")
      ->capture_default_str();
  s.add_option("--layer-scale", a.layer_scale, "Factor on every branch; 0: none");
  s.add_flag("--zero-init", a.zero_init, "Branches start at 0");
  s.add_flag("--post-norm", a.post_norm, "LayerNorm after the sum (vit)");
  s.add_flag("--batch-norm", a.batch_norm, "After every convolution (cnn, resnet)");
  s.add_flag("--dense", a.dense, "Residual network of matrices");
  s.add_option("--spatial", a.spatial, "Dimensions of convolutions, 1 or 2; data decide when given")
      ->capture_default_str();
  s.add_option("--draws", a.draws, "Fresh starts to average")->capture_default_str();
  s.add_option("--batch", a.batch, "Examples a step; default 1 (budget), 128 (training)");
}

void training_options(CLI::App& s, DepthArgs& a) {
  s.add_option("--data", a.data,
               "fashion, synth, synth-vec, synth-seq, synth-copy, cifar:DIR, idx:PREFIX or wav:DIR")
      ->capture_default_str();
  s.add_option("--optim", a.optimizer, "sgd or adam")->capture_default_str();
  s.add_option("--grid", a.grid, "low:high:points of the rate, logarithmic")->capture_default_str();
  s.add_option("--refine", a.refine, "Finer points around the best")->capture_default_str();
  s.add_option("--trials", a.trials, "Fresh starts a rate")->capture_default_str();
  s.add_option("--batches", a.batches, "Batches of one epoch")->capture_default_str();
}

using Action = int (*)(const DepthArgs&);

CLI::App* part(CLI::App& c, const char* name, const char* what, const char* example, Action action,
               const std::shared_ptr<DepthArgs>& a, int& status) {
  CLI::App* s = c.add_subcommand(name, what);
  s->footer(std::string("Example:\n  cutaway depthlaw ") + example);
  add_common(*s, a->common);
  s->callback([=, &status] {
    status = guarded([&] {
      apply_common(a->common);
      return action(*a);
    });
  });
  return s;
}

}  // namespace

void add_depthlaw(CLI::App& app, int& status) {
  auto a = std::make_shared<DepthArgs>();
  CLI::App* c = app.add_subcommand("depthlaw", "How the learning rate must shrink with depth");
  c->footer("Example:\n  cutaway depthlaw budget --arch mlp --depths 4,8,16,32 --width 512");
  c->require_subcommand(1);
  CLI::App* s = part(*c, "budget", "η* from one step at the start",
                     "budget --arch cnn --depths 2,4,8 --width 48", run_budget, a, status);
  network_options(*s, *a);
  s->add_option("--depths", a->depths, "Effective depths")->delimiter(',');
  s = part(*c, "search", "η* by training on a grid of rates",
           "search --arch mlp --data fashion --depths 3,4,6,8 --grid 1e-3:10:13", run_search, a,
           status);
  network_options(*s, *a);
  training_options(*s, *a);
  s->add_option("--depths", a->depths, "Effective depths")->delimiter(',');
  s = part(*c, "transfer", "Rates for another depth by each rule",
           "transfer --from 4 --lr 0.05 --to 16 --rule paper --verify", run_transfer, a, status);
  network_options(*s, *a);
  training_options(*s, *a);
  s->add_option("--from", a->from, "Depth the rate was tuned at")->capture_default_str();
  s->add_option("--lr", a->rate, "Rate tuned there")->capture_default_str();
  s->add_option("--to", a->to, "Depth wanted")->capture_default_str();
  s->add_option("--rule", a->rule,
                "paper, measured, exact, pathsum, inverse, root, layerwise, none")
      ->capture_default_str();
  s->add_option("--to-width", a->to_width, "Another width: rate by the measured budgets");
  s->add_flag("--verify", a->verify, "Train with every rule and on the grid");
  s = part(
      *c, "report", "Pictures of a search again", "report runs/search",
      [](const DepthArgs& x) { return run_report(x); }, a, status);
  s->add_option("folder", a->folder, "Folder that search --out wrote")->required();
}

}  // namespace cutaway::tools
