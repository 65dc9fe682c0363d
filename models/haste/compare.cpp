#include <cutaway/models/haste/compare.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <mutex>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/train.h>
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::haste {
namespace {

struct Column {
  const char* name;
  std::vector<double> Measured::*values;
};
const Column kColumns[] = {{"P@1", &Measured::p1},         {"P@3", &Measured::p3},
                           {"P@5", &Measured::p5},         {"PSP@1", &Measured::psp1},
                           {"PSP@3", &Measured::psp3},     {"PSP@5", &Measured::psp5},
                           {"tail P@1", &Measured::tail1}, {"tail P@5", &Measured::tail5}};

void add_result(Measured& to, const Metrics& m, double rate) {
  const auto at = [](const std::vector<double>& v, size_t i) { return 100 * v[i]; };
  to.p1.push_back(at(m.precision, 0));
  to.p3.push_back(at(m.precision, 2));
  to.p5.push_back(at(m.precision, 4));
  to.psp1.push_back(at(m.psp, 0));
  to.psp3.push_back(at(m.psp, 2));
  to.psp5.push_back(at(m.psp, 4));
  to.tail1.push_back(at(m.bands.back().precision, 0));
  to.tail5.push_back(at(m.bands.back().precision, 4));
  to.samples_per_second.push_back(rate);
}

Metrics no_metrics() {
  const std::vector<double> nan(5, NAN);
  Metrics m;
  m.precision = m.psp = nan;
  m.bands.push_back({.precision = nan});
  return m;
}

}  // namespace

const std::vector<Setting>& known_settings() {
  static const std::vector<Setting> all = {
      {"dense", [](RunOptions& o) { o.layer = "dense"; }},
      {"haste", [](RunOptions&) {}},
      {"random", [](RunOptions& o) { o.grouping = "random"; }},
      {"freq", [](RunOptions& o) { o.grouping = "freq"; }},
      {"static", [](RunOptions& o) { o.rewire_mode = "none"; }},
      {"threshold", [](RunOptions& o) { o.rewire_mode = "threshold"; }},
      {"no-head", [](RunOptions& o) { o.head_ratio = 0; }},
      {"bf16", [](RunOptions& o) { o.dtype = "bf16"; }},
      {"ffi", [](RunOptions& o) { o.layer = "ffi"; }},
      {"spartex", [](RunOptions& o) { o.layer = "ffi", o.head_ratio = 0, o.aux_weight = 0.3; }},
      {"block", [](RunOptions& o) { o.layer = "block"; }},
      {"bottleneck", [](RunOptions& o) { o.layer = "bottleneck"; }},
  };
  return all;
}

const Setting& setting_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Setting& s : known_settings()) {
    if (s.name == name) return s;
    names.push_back(s.name);
  }
  throw ValueError("xmc compare",
                   fmt::format("no layer \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

std::vector<Measured> compare_settings(
    const RunOptions& base, const std::vector<Setting>& settings,
    const std::vector<uint64_t>& seeds,
    const std::function<void(int64_t done, int64_t all, const std::string& about)>& progress,
    const std::function<bool()>& stop) {
  const auto jobs = int64_t(settings.size() * seeds.size());
  std::vector<RunResult> results(static_cast<size_t>(jobs));
  std::mutex lock;
  int64_t done = 0;
  parallel_chunks(jobs, [&](int64_t i) {
    const Setting& setting = settings[size_t(i) / seeds.size()];
    RunOptions o = base;
    o.seed = seeds[size_t(i) % seeds.size()];
    setting.change(o);
    check_options(o);
    const Prepared prepared = prepare(o, open_set(set_of(o)));
    RunResult& result = results[size_t(i)];
    std::string failure;
    try {
      result = train(o, prepared, {.stop = stop});
    } catch (const ValueError& e) {  // a run that diverges is a result: NaN in the table
      failure = std::string(" – ") + e.what();
      result.finished = true;
      result.best = no_metrics();
    }
    if (!result.finished) throw ValueError("xmc compare", "stopped");
    const std::lock_guard<std::mutex> hold(lock);
    if (!progress) return;
    progress(++done, jobs,
             fmt::format("{}, seed {}: P@5 {:.2f}{}", setting.name, o.seed,
                         100 * result.best.precision[4], failure));
  });
  std::vector<Measured> rows;
  for (int64_t i = 0; i < jobs; ++i) {
    if (size_t(i) % seeds.size() == 0) {
      rows.push_back({.name = settings[size_t(i) / seeds.size()].name});
    }
    const RunResult& r = results[size_t(i)];
    add_result(rows.back(), r.best, r.samples_per_second);
    rows.back().tail_bytes = std::max(rows.back().tail_bytes, r.tail_bytes);
  }
  return rows;
}

std::string compare_table(const std::vector<Measured>& rows) {
  std::string text = "| Layer |", rule = "\n|---|";
  for (const Column& c : kColumns) {
    text += fmt::format(" {} |", c.name);
    rule += "---|";
  }
  text += " tail, MiB | samples/s |" + rule + "---|---|\n";
  for (const Measured& m : rows) {
    text += fmt::format("| {} |", m.name);
    for (const Column& c : kColumns) {
      text += fmt::format(" {} |", reproduce::mean_spread(m.*c.values));
    }
    // Other work on the machine only ever slows a run down.
    text +=
        fmt::format(" {:.2f} | {:.0f} |\n", double(m.tail_bytes) / 1048576,
                    *std::max_element(m.samples_per_second.begin(), m.samples_per_second.end()));
  }
  return text;
}

std::string compare_csv(const std::vector<Measured>& rows, const std::vector<uint64_t>& seeds) {
  std::string text = "layer,seed";
  for (const Column& c : kColumns) text += fmt::format(",{}", c.name);
  text += ",tail bytes,samples/s\n";
  for (const Measured& m : rows) {
    for (size_t i = 0; i < seeds.size(); ++i) {
      text += fmt::format("{},{}", m.name, seeds[i]);
      for (const Column& c : kColumns) text += fmt::format(",{:.4f}", (m.*c.values)[i]);
      text += fmt::format(",{},{:.1f}\n", m.tail_bytes, m.samples_per_second[i]);
    }
  }
  return text;
}

}  // namespace cutaway::haste
