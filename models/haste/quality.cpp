// Layers and ablations beside each other on synth-xmc (section 8, statement 5; section 6).
#include <fmt/format.h>
#include <cmath>
#include <map>

#include <cutaway/models/haste/compare.h>
#include <cutaway/models/haste/pictures.h>
#include <cutaway/models/haste/statements.h>

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

// Bounds in points of P@5, calibrated once on seeds 101 to 105 (README): the mean of the five, less
// two deviations, to a tenth; but never beyond 0 where the paper names a winner.
struct Bounds {
  double over_random, over_block, over_ffi, step, to_dense, tail;
};
constexpr Bounds kFastBounds{0, 0, -1.3, 0, 0.6, 0}, kSlowBounds{1.7, 0, 0.9, 1.2, 4.2, 1.2};

// Settings by the names of the pictures and the report.
std::vector<Setting> settings() {
  const auto as = [](const char* shown, const char* known) {
    return Setting{shown, setting_of(known).change};
  };
  const auto fan_in = [](int64_t f) {
    return Setting{fmt::format("HASTE {}", f), [f](RunOptions& o) { o.fan_in = f; }};
  };
  return {as("dense", "dense"),
          fan_in(16),
          fan_in(32),
          fan_in(64),
          as("random groups", "random"),
          as("block", "block"),
          as("FFI", "ffi"),
          as("frequency groups", "freq"),
          as("static", "static"),
          as("no head", "no-head"),
          as("bottleneck", "bottleneck"),
          as("Spartex", "spartex"),
          as("threshold", "threshold"),
          as("bf16", "bf16")};
}
constexpr int kLayers = 9;  // the first of them: what the slow encoder is tried with, too

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

Table train_settings(reproduce::Run& run, const std::vector<Setting>& list,
                     const std::vector<uint64_t>& seeds, double lr_encoder) {
  RunOptions o = base();
  o.lr_encoder = lr_encoder;
  const auto rows =
      compare_settings(o, list, seeds, [&](int64_t done, int64_t all, const std::string& about) {
        run.progress(fmt::format("{} of {} runs: {}", done, all, about));
      });
  Table table;
  for (const Measured& m : rows) {
    run.remark(fmt::format(
        "{}, encoder at {:g}: P@1 {}, P@3 {}, P@5 {}, PSP@5 {}, tail P@5 {}, {:.0f} samples/s on "
        "one thread, tail {:.2f} MiB",
        m.name, lr_encoder, reproduce::mean_spread(m.p1), reproduce::mean_spread(m.p3),
        reproduce::mean_spread(m.p5), reproduce::mean_spread(m.psp5),
        reproduce::mean_spread(m.tail5), mean(m.samples_per_second),
        double(m.tail_bytes) / 1048576));
    table[m.name] = m;
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
  const Bounds& bound = slow ? kSlowBounds : kFastBounds;
  const auto add = [&](size_t i, const std::vector<double>& d, double least) {
    const auto [id, text] = named(kOrder[i], slow);
    run.add(at_least({id, text, mean(d), least, spread(d), seeds}));
  };
  const auto random_gap = gap("HASTE 16", "random groups");
  add(0, random_gap, bound.over_random);
  add(1, gap("HASTE 16", "block"), bound.over_block);
  add(2, gap("HASTE 16", "FFI"), bound.over_ffi);
  const auto step1 = gap("HASTE 32", "HASTE 16"), step2 = gap("HASTE 64", "HASTE 32");
  add(3, mean(step1) < mean(step2) ? step1 : step2, bound.step);
  const auto dense = gap("dense", "HASTE 64");
  const auto [id, text] = named(kOrder[4], slow);
  run.add(at_most({id, text, mean(dense), bound.to_dense, spread(dense), seeds}));
  add(5, differences(differences(t["HASTE 16"].tail5, t["random groups"].tail5), random_gap),
      bound.tail);
}

void pictures(reproduce::Run& run, Table& t, const std::vector<Setting>& list, bool slow) {
  std::vector<Compared> p5, tail;
  for (const Setting& s : list) {
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
  const std::vector<Setting> all = settings();
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
