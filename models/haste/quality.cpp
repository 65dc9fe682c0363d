// Layers and ablations beside each other on synth-xmc (section 8, statement 5; section 6).
#include <fmt/format.h>
#include <cmath>
#include <map>
#include <mutex>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/pictures.h>
#include <cutaway/models/haste/statements.h>
#include <cutaway/models/haste/train.h>

namespace cutaway::haste {
namespace {

using reproduce::at_least;
using reproduce::at_most;

// Rates of the encoder: the one at which all layers do best, and one at which it moves a thousand
// times more slowly than the output layers, as a pretrained encoder does (2e-5 beside 0.05).
constexpr double kFast = 3e-3, kSlow = 1e-4;

// The setting of the method's prototype: 4 096 labels, H = 256 in halves, G = 16, r = 0.05, 12
// epochs, ρ = 0.25.
RunOptions base() {
  RunOptions o;
  o.labels = 4096, o.samples = 20000, o.vocabulary = 8192;
  o.hidden = 256, o.group = 16, o.fan_in = 16, o.head_ratio = 0.05, o.epochs = 12;
  o.rewire_interval = 100;
  o.lr_out = 0.1, o.lr_encoder = kFast;  // chosen on seed 201
  return o;
}

// Bounds in points of P@5.
constexpr double kOverRandom = 0.8, kOverBlock = 0.5, kBelowFfi = -1.0, kToDense = 4.0;

struct Setting {
  const char* name;
  void (*change)(RunOptions&);
};
const Setting kSettings[] = {
    {"dense", [](RunOptions& o) { o.layer = "dense"; }},
    {"HASTE 16", [](RunOptions&) {}},
    {"HASTE 32", [](RunOptions& o) { o.fan_in = 32; }},
    {"HASTE 64", [](RunOptions& o) { o.fan_in = 64; }},
    {"random groups", [](RunOptions& o) { o.grouping = "random"; }},
    {"block", [](RunOptions& o) { o.layer = "block"; }},
    {"FFI", [](RunOptions& o) { o.layer = "ffi"; }},
    {"frequency groups", [](RunOptions& o) { o.grouping = "freq"; }},
    {"static", [](RunOptions& o) { o.rewire_mode = "none"; }},
    {"no head", [](RunOptions& o) { o.head_ratio = 0; }},
    {"bottleneck", [](RunOptions& o) { o.layer = "bottleneck"; }},
    {"Spartex", [](RunOptions& o) { o.layer = "ffi", o.head_ratio = 0, o.aux_weight = 0.3; }},
    {"threshold", [](RunOptions& o) { o.rewire_mode = "threshold"; }},
    {"bf16", [](RunOptions& o) { o.dtype = "bf16"; }},
};

constexpr int kLayers = 9;  // the first of them: what the slow encoder is tried with, too

// P@k of every seed in percent, by setting.
struct Measured {
  std::vector<double> p1, p3, p5, tail5, psp5, seconds;
  std::vector<int64_t> bytes;
};
using Table = std::map<std::string, Measured>;

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x / double(v.size());
  return sum;
}

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> d;
  for (size_t i = 0; i < a.size(); ++i) d.push_back(a[i] - b[i]);
  return d;
}

Table train_settings(reproduce::Run& run, const std::vector<Setting>& settings,
                     const std::vector<uint64_t>& seeds, double lr_encoder) {
  const auto jobs = int64_t(settings.size() * seeds.size());
  std::vector<RunResult> results(size_t(jobs), RunResult{});
  std::mutex lock;
  int64_t done = 0;
  parallel_chunks(jobs, [&](int64_t i) {
    RunOptions o = base();
    o.seed = seeds[size_t(i) % seeds.size()];
    o.lr_encoder = lr_encoder;
    settings[size_t(i) / seeds.size()].change(o);
    std::string failure;
    try {
      results[size_t(i)] = train(o, prepare(o, open_set(set_of(o))));
    } catch (const Error& e) {  // a run that diverges is a result: NaN in the table
      failure = e.what();
      results[size_t(i)].best.precision = results[size_t(i)].best.psp = {NAN, NAN, NAN, NAN, NAN};
      results[size_t(i)].best.bands = {{.precision = {NAN, NAN, NAN, NAN, NAN}}};
    }
    const std::lock_guard<std::mutex> hold(lock);
    run.progress(fmt::format("{} of {} runs: {}, seed {}, P@5 {:.2f}", ++done, jobs,
                             settings[size_t(i) / seeds.size()].name, o.seed,
                             100 * results[size_t(i)].best.precision[4]) +
                 failure);
  });
  Table table;
  for (int64_t i = 0; i < jobs; ++i) {
    const RunResult& r = results[size_t(i)];
    Measured& m = table[settings[size_t(i) / seeds.size()].name];
    m.p1.push_back(100 * r.best.precision[0]);
    m.p3.push_back(100 * r.best.precision[2]);
    m.p5.push_back(100 * r.best.precision[4]);
    m.psp5.push_back(100 * r.best.psp[4]);
    m.tail5.push_back(100 * r.best.bands.back().precision[4]);
    m.seconds.push_back(r.step_seconds);
    m.bytes.push_back(r.tail_bytes);
  }
  for (const Setting& s : settings) {
    const Measured& m = table[s.name];
    run.remark(fmt::format(
        "{}, encoder at {:g}: P@1 {}, P@3 {}, P@5 {}, PSP@5 {}, tail P@5 {}, {:.0f} s of training "
        "steps on one thread, tail {:.2f} MiB",
        s.name, lr_encoder, reproduce::mean_spread(m.p1), reproduce::mean_spread(m.p3),
        reproduce::mean_spread(m.p5), reproduce::mean_spread(m.psp5),
        reproduce::mean_spread(m.tail5), mean(m.seconds), double(m.bytes[0]) / 1048576));
  }
  return table;
}

std::string spread(const std::vector<double>& values) {
  std::string text = fmt::format("{:.2f} (", mean(values));
  for (size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{:.2f}", i ? " " : "", values[i]);
  return text + ")";
}

// The order of the layers. Identifiers are those of the two rates of the encoder.
struct Order {
  const char* fast;
  const char* slow;
  const char* text;
};
const Order kOrder[] = {{"5a", "5g", "P@5: HASTE − random groups, F = 16, points"},
                        {"5b", "5h", "P@5: HASTE − block-sparse, F = 16"},
                        {"5c", "5i", "P@5: HASTE − FFI, F = 16"},
                        {"5d", "5j", "P@5 rises with F = 16 → 32 → 64: smallest step"},
                        {"5e", "5k", "P@5: dense − HASTE at F = 64"},
                        {"5f", "5l", "gap to random groups: tail P@5 (labels < 50) − all"}};
const char* const kHalf[] = {"8b", "P@1: |bf16 with stochastic rounding − fp32|"};

std::pair<std::string, std::string> named(const Order& o, bool slow) {
  return slow ? std::pair<std::string, std::string>{o.slow, fmt::format("{}, slow encoder", o.text)}
              : std::pair<std::string, std::string>{o.fast, o.text};
}

void order_statements(reproduce::Run& run, Table& t, const std::vector<uint64_t>& seeds,
                      bool slow) {
  const auto gap = [&](const char* a, const char* b) { return differences(t[a].p5, t[b].p5); };
  const auto add = [&](size_t i, const std::vector<double>& d, double bound) {
    const auto [id, text] = named(kOrder[i], slow);
    run.add(at_least({id, text, mean(d), bound, spread(d), seeds}));
  };
  const auto random_gap = gap("HASTE 16", "random groups");
  add(0, random_gap, kOverRandom);
  add(1, gap("HASTE 16", "block"), kOverBlock);
  add(2, gap("HASTE 16", "FFI"), kBelowFfi);
  const auto step1 = gap("HASTE 32", "HASTE 16"), step2 = gap("HASTE 64", "HASTE 32");
  add(3, mean(step1) < mean(step2) ? step1 : step2, 0);
  const auto dense = gap("dense", "HASTE 64");
  const auto [id, text] = named(kOrder[4], slow);
  run.add(at_most({id, text, mean(dense), kToDense, spread(dense), seeds}));
  add(5, differences(differences(t["HASTE 16"].tail5, t["random groups"].tail5), random_gap), 0);
}

void pictures(reproduce::Run& run, Table& t, const std::vector<Setting>& settings, bool slow) {
  std::vector<Compared> p5, tail;
  for (const Setting& s : settings) {
    p5.push_back({s.name, t[s.name].p5});
    tail.push_back({s.name, t[s.name].tail5});
  }
  const std::string with = slow ? ", slow encoder" : "", name = slow ? "-slow" : "";
  run.picture("layers" + name, "P@5 of layers and ablations on synth-xmc" + with + ".",
              compare_plot(p5, "P@5 on synth-xmc" + with, "percent"));
  run.picture("layers-tail" + name,
              "P@5 among labels with fewer than 50 training samples" + with + ".",
              compare_plot(tail, "Tail P@5 on synth-xmc" + with, "percent"));
}

}  // namespace

void quality_statements(reproduce::Run& run) {
  if (!run.full()) {
    const char* reason = "needs --full (about 8 min)";
    for (const bool slow : {false, true}) {
      for (const Order& o : kOrder) {
        const auto [id, text] = named(o, slow);
        run.skip(id, text, reason);
      }
    }
    return run.skip(kHalf[0], kHalf[1], reason);
  }
  const std::vector<uint64_t> seeds = run.seeds(3);
  const std::vector<Setting> all(std::begin(kSettings), std::end(kSettings));
  run.progress("training 14 settings on synth-xmc");
  Table fast = train_settings(run, all, seeds, kFast);
  order_statements(run, fast, seeds, false);
  run.progress("training with a slow encoder");
  // Layers and groupings; no ablation of the training.
  const std::vector<Setting> layers(all.begin(), all.begin() + kLayers);
  Table slow = train_settings(run, layers, seeds, kSlow);
  order_statements(run, slow, seeds, true);
  const auto half = differences(fast["bf16"].p1, fast["HASTE 16"].p1);
  run.add(at_most({kHalf[0], kHalf[1], std::fabs(mean(half)), 1, spread(half), seeds}));
  pictures(run, fast, all, false);
  pictures(run, slow, layers, true);
}

}  // namespace cutaway::haste
