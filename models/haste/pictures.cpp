#include <cutaway/models/haste/pictures.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/text.h>
#include <cutaway/models/report/svg.h>
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::haste {
namespace {

report::Line by_epoch(const std::vector<EpochRow>& rows, const std::string& label,
                      double (*value)(const EpochRow&)) {
  report::Line line{.label = label};
  for (const EpochRow& r : rows) {
    line.x.push_back(double(r.epoch));
    line.y.push_back(value(r));
  }
  return line;
}

// Names that fit beside a bar.
std::string short_name(std::string name) {
  for (const auto& [from, to] : {std::pair{".exp_avg_sq", " v"},
                                 {".exp_avg", " m"},
                                 {".weight", ""},
                                 {"encoder.", ""},
                                 {"adam.", ""},
                                 {".momentum", " momentum"}}) {
    const size_t at = name.find(from);
    if (at != std::string::npos) name.replace(at, std::string(from).size(), to);
  }
  return name;
}

}  // namespace

std::string precision_plot(const std::vector<EpochRow>& rows) {
  return report::line_plot(
      {by_epoch(rows, "P@1", [](const EpochRow& r) { return 100 * r.p[0]; }),
       by_epoch(rows, "P@3", [](const EpochRow& r) { return 100 * r.p[2]; }),
       by_epoch(rows, "P@5", [](const EpochRow& r) { return 100 * r.p[4]; })},
      {.title = "Precision on the test set", .x_label = "epoch", .y_label = "percent"});
}

std::string loss_plot(const std::vector<EpochRow>& rows) {
  return report::line_plot(
      {by_epoch(rows, "training loss", [](const EpochRow& r) { return r.loss; })},
      {.title = "Loss of a sample, summed over labels", .x_label = "epoch", .y_label = "nats"});
}

std::string rewired_plot(const std::vector<EpochRow>& rows) {
  report::Line line = by_epoch(rows, "slots", [](const EpochRow& r) { return double(r.rewired); });
  line.points = true;
  return report::line_plot(
      {line}, {.title = "Slots that got another feature", .x_label = "epoch", .y_label = "slots"});
}

std::string decile_plot(const Metrics& m) {
  report::Line one{.label = "P@1"}, five{.label = "P@5", .dashed = true};
  for (size_t i = 0; i < m.deciles.size(); ++i) {
    one.x.push_back(double(i + 1));
    five.x.push_back(double(i + 1));
    one.y.push_back(100 * m.deciles[i].precision.front());
    five.y.push_back(100 * m.deciles[i].precision.back());
  }
  return report::line_plot({one, five}, {.title = "Precision among the labels of a decile",
                                         .x_label = "decile of label frequency (1: most frequent)",
                                         .y_label = "percent"});
}

std::string memory_plot(const std::vector<std::pair<std::string, int64_t>>& memory) {
  int64_t most = 0;
  for (const auto& [name, bytes] : memory) most = std::max(most, bytes);
  std::vector<report::Bar> bars;
  for (const auto& [name, bytes] : memory) {
    if (bytes * 500 < most) continue;
    bars.push_back(
        {.label = short_name(name), .detail = bytes_text(bytes), .value = double(bytes) / 1048576});
  }
  return report::bar_chart(
      bars,
      {.title = "Memory by tensor", .subtitle = "m and v: moments of Adam", .x_label = "MiB"});
}

std::string compare_plot(const std::vector<Compared>& layers, const std::string& title,
                         const std::string& axis) {
  std::vector<report::Bar> bars;
  size_t seeds = 0;
  for (const Compared& c : layers) {
    double mean = 0;
    for (double v : c.values) mean += v / double(c.values.size());
    seeds = std::max(seeds, c.values.size());
    bars.push_back({.label = c.name, .detail = reproduce::mean_spread(c.values), .value = mean});
  }
  return report::bar_chart(bars, {.title = title,
                                  .subtitle = fmt::format("mean ± deviation of {} seeds", seeds),
                                  .x_label = axis});
}

}  // namespace cutaway::haste
