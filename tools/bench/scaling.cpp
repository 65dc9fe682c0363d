#include <tools/bench/scaling.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/report/svg.h>

#include <tools/bench/compare.h>
#include <tools/bench/workloads.h>

namespace cutaway::tools {
namespace {

struct Axis {
  const char* model;
  const char* name;
  std::vector<int64_t> sizes;
  std::function<Workload(int64_t)> make;
};

const std::vector<Axis>& axes() {
  static const std::vector<Axis> all = {
      {"mlp",
       "batch",
       {16, 32, 64, 128, 256, 512, 1024},
       [](int64_t n) { return mlp_workload({.batch = n}); }},
      {"mlp",
       "width",
       {64, 128, 256, 512, 1024, 2048},
       [](int64_t n) { return mlp_workload({.width = n}); }},
      {"mlp", "depth", {1, 2, 4, 8, 16, 32}, [](int64_t n) { return mlp_workload({.depth = n}); }},
      {"gpt", "batch", {1, 2, 4, 8, 16}, [](int64_t n) { return gpt_workload({.batch = n}); }},
      {"gpt", "width", {64, 128, 256, 512}, [](int64_t n) { return gpt_workload({.width = n}); }},
      {"gpt", "depth", {1, 2, 4, 8}, [](int64_t n) { return gpt_workload({.depth = n}); }},
      {"gpt",
       "length",
       {32, 64, 128, 256, 512},
       [](int64_t n) { return gpt_workload({.length = n}); }},
      {"resnet",
       "batch",
       {2, 4, 8, 16, 32},
       [](int64_t n) { return resnet_workload({.batch = n}); }},
      {"resnet", "width", {8, 16, 32, 64}, [](int64_t n) { return resnet_workload({.width = n}); }},
      {"resnet", "depth", {1, 2, 3, 4, 6}, [](int64_t n) { return resnet_workload({.depth = n}); }},
  };
  return all;
}

// The shortest of some steps: the price of the work, not of what else the machine does.
double shortest_step(const Workload& w) {
  double best = INFINITY, spent = 0;
  for (int i = 0; i < 50 && (i < 3 || spent < 300); ++i) {
    const double ms = time_steps(w, 1);
    best = std::min(best, ms);
    spent += ms;
  }
  return best;
}

ScalingSeries measure(const Axis& axis, bool quick) {
  ScalingSeries s{.model = axis.model, .axis = axis.name};
  const size_t count = quick ? 3 : axis.sizes.size();
  for (size_t i = 0; i < count; ++i) {
    const int64_t before = memory_stats().live;
    const Workload w = axis.make(axis.sizes[i]);
    w.step();
    reset_peak_memory();
    s.sizes.push_back(double(axis.sizes[i]));
    s.ms.push_back(shortest_step(w));
    s.bytes.push_back(double(memory_stats().peak - before));
  }
  s.time_exponent = fitted_exponent(s.sizes, s.ms);
  s.memory_exponent = fitted_exponent(s.sizes, s.bytes);
  return s;
}

}  // namespace

std::vector<ScalingSeries> measure_scaling(const ScalingOptions& o) {
  for (const std::string& model : o.models) {
    const bool known =
        std::any_of(axes().begin(), axes().end(), [&](const Axis& a) { return a.model == model; });
    if (!known) {
      throw ValueError("bench", fmt::format("no sizes of \"{}\" can be chosen; those of mlp, gpt "
                                            "and resnet can",
                                            model));
    }
  }
  set_num_threads(o.threads);
  std::vector<ScalingSeries> all;
  for (const Axis& axis : axes()) {
    if (std::find(o.models.begin(), o.models.end(), axis.model) == o.models.end()) continue;
    all.push_back(measure(axis, o.quick));
  }
  return all;
}

double fitted_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0)) continue;
    const double lx = std::log(x[i]), ly = std::log(y[i]);
    n += 1;
    sx += lx;
    sy += ly;
    sxx += lx * lx;
    sxy += lx * ly;
  }
  const double spread = n * sxx - sx * sx;
  return spread > 0 ? (n * sxy - sx * sy) / spread : std::nan("");
}

std::string scaling_text(const std::vector<ScalingSeries>& series) {
  std::string out;
  for (const ScalingSeries& s : series) {
    out += fmt::format("{} by {}: time ~ {}^{:.2f}, memory ~ {}^{:.2f}\n", s.model, s.axis, s.axis,
                       s.time_exponent, s.axis, s.memory_exponent);
    for (size_t i = 0; i < s.sizes.size(); ++i) {
      out += fmt::format("  {:>6} {:>12.4f} ms {:>10.2f} MiB\n", s.sizes[i], s.ms[i],
                         s.bytes[i] / (1 << 20));
    }
  }
  return out;
}

std::string scaling_json(const std::vector<ScalingSeries>& series) {
  nlohmann::json out{{"machine", machine_name()}, {"series", nlohmann::json::array()}};
  for (const ScalingSeries& s : series) {
    out["series"].push_back({{"model", s.model},
                             {"axis", s.axis},
                             {"sizes", s.sizes},
                             {"ms", s.ms},
                             {"peak_bytes", s.bytes},
                             {"time_exponent", s.time_exponent},
                             {"memory_exponent", s.memory_exponent}});
  }
  return out.dump(2) + "\n";
}

std::string scaling_svg(const std::vector<ScalingSeries>& series, bool memory) {
  std::vector<report::Line> lines;
  for (size_t k = 0; k < series.size(); ++k) {
    const ScalingSeries& s = series[k];
    const std::vector<double>& cost = memory ? s.bytes : s.ms;
    report::Line line{.label = fmt::format("{} {} {:.2f}", s.model, s.axis,
                                           memory ? s.memory_exponent : s.time_exponent),
                      .x = {},
                      .y = {},
                      .dashed = k % 2 == 1};
    for (size_t i = 0; i < s.sizes.size(); ++i) {
      line.x.push_back(s.sizes[i] / s.sizes[0]);
      line.y.push_back(cost[i] / cost[0]);
    }
    lines.push_back(line);
  }
  return report::line_plot(lines, {.title = memory ? "Peak memory of a step, with fitted exponents"
                                                   : "Time of a step, with fitted exponents",
                                   .x_label = "size / smallest size",
                                   .y_label = memory ? "memory / smallest" : "time / shortest",
                                   .log_x = true,
                                   .log_y = true,
                                   .width = 760,
                                   .height = 480});
}

}  // namespace cutaway::tools
