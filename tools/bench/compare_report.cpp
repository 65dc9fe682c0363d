#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include <cutaway/core/dispatch.h>
#include <cutaway/models/report/svg.h>

#include <tools/bench/compare.h>

namespace cutaway::tools {
namespace {

// Four digits with a unit that fits: "1.234 ms".
std::string time_text(double ms) {
  if (!std::isfinite(ms)) return "-";
  if (ms < 1e-3) return fmt::format("{:.4g} ns", ms * 1e6);
  if (ms < 1) return fmt::format("{:.4g} us", ms * 1e3);
  return fmt::format("{:.4g} ms", ms);
}
std::string memory_text(double bytes) {
  return std::isfinite(bytes) ? fmt::format("{:.1f}", bytes / (1 << 20)) : "-";
}
std::string number_text(double v, const char* unit) {
  return std::isfinite(v) ? fmt::format("{:.2f}{}", v, unit) : "-";
}

// What counts for the row: GFLOP/s where it computes, GB/s where it only moves.
std::string rate_text(const CompareRow& r) {
  if (r.flops > r.bytes) return fmt::format("{:.1f} GFLOP/s", r.flops / r.ours_ms / 1e6);
  return r.bytes > 0 ? fmt::format("{:.1f} GB/s", r.bytes / r.ours_ms / 1e6) : "-";
}

std::string verdict(const CompareRow& r) {
  if (!r.failure.empty()) return "no peer";
  if (std::isnan(r.torch_ms)) return "";
  return r.valid ? "" : fmt::format("INVALID {:.6g} / {:.6g}", r.ours_value, r.torch_value);
}

nlohmann::json number(double v) { return std::isfinite(v) ? nlohmann::json(v) : nullptr; }

}  // namespace

std::string table_head() {
  return fmt::format("{:<20} {:<5} {:>2} {:>11} {:>11} {:>8} {:>14} {:>7} {:>9} {:>9}", "workload",
                     "type", "n", "ours", "torch", "ratio", "rate", "floor", "MiB", "torch MiB");
}

std::string table_line(const CompareRow& r) {
  return fmt::format("{:<20} {:<5} {:>2} {:>11} {:>11} {:>8} {:>14} {:>6.0f}% {:>9} {:>9} {}",
                     r.what.workload, name_of(r.what.dtype), r.what.threads, time_text(r.ours_ms),
                     time_text(r.torch_ms), number_text(r.ratio(), " x"), rate_text(r),
                     100 * r.floor_share(), memory_text(r.ours_peak), memory_text(r.torch_peak),
                     verdict(r));
}

std::string best_table(const std::vector<CompareRow>& rows) {
  struct Best {
    double ours = INFINITY, torch = INFINITY;
    bool valid = true;
  };
  std::vector<std::pair<std::string, Best>> list;
  for (const CompareRow& r : rows) {
    if (std::isnan(r.torch_ms)) continue;
    const std::string key = fmt::format("{:<20} {:<5}", r.what.workload, name_of(r.what.dtype));
    if (list.empty() || list.back().first != key) list.push_back({key, {}});
    Best& b = list.back().second;
    b.ours = std::min(b.ours, r.ours_ms);
    b.torch = std::min(b.torch, r.torch_ms);
    b.valid = b.valid && r.valid;
  }
  if (list.empty()) return "";
  std::string out = "Each side at its better number of threads:\n";
  for (const auto& [key, b] : list) {
    out += fmt::format("{} {:>11} {:>11} {:>8}{}\n", key, time_text(b.ours), time_text(b.torch),
                       number_text(b.torch / b.ours, " x"), b.valid ? "" : "  INVALID");
  }
  return out;
}

std::string compare_json(const std::vector<CompareRow>& rows, const std::string& torch_version) {
  nlohmann::json out;
  out["machine"] = machine_name();
  out["torch_version"] =
      torch_version.empty() ? nlohmann::json(nullptr) : nlohmann::json(torch_version);
  out["rows"] = nlohmann::json::array();
  for (const CompareRow& r : rows) {
    out["rows"].push_back({{"name", r.what.workload},
                           {"dtype", name_of(r.what.dtype)},
                           {"threads", r.what.threads},
                           {"ours_ms", number(r.ours_ms)},
                           {"torch_ms", number(r.torch_ms)},
                           {"ratio", number(r.ratio())},
                           {"valid", r.valid},
                           {"floor_share", number(r.floor_share())},
                           {"floor_ms", number(r.floor_ms)},
                           {"flops", r.flops},
                           {"bytes", r.bytes},
                           {"ours_peak_bytes", number(r.ours_peak)},
                           {"torch_peak_bytes", number(r.torch_peak)},
                           {"ours_value", number(r.ours_value)},
                           {"torch_value", number(r.torch_value)}});
  }
  return out.dump(2) + "\n";
}

std::string compare_svg(const std::vector<CompareRow>& rows, const std::string& torch_version) {
  const bool peer = std::any_of(rows.begin(), rows.end(),
                                [](const CompareRow& r) { return !std::isnan(r.torch_ms); });
  std::vector<report::Bar> bars;
  for (const CompareRow& r : rows) {
    report::Bar bar;
    bar.label = fmt::format("{} {} {}t", r.what.workload, name_of(r.what.dtype), r.what.threads);
    bar.value = peer ? r.ratio() : r.ours_ms;
    bar.detail = peer ? fmt::format("{:.2f} x  {}", r.ratio(), verdict(r)) : time_text(r.ours_ms);
    bar.pale = peer && !r.valid;
    if (std::isfinite(bar.value)) bars.push_back(bar);
  }
  const std::string title = peer ? "Times as fast as PyTorch " + torch_version : "Time of a step";
  return report::bar_chart(bars, {.title = title,
                                  .subtitle = machine_name(),
                                  .x_label = peer ? "PyTorch's time / ours" : "milliseconds",
                                  .log = true,
                                  .mark = peer ? 1.0 : 0.0});
}

std::string machine_name() {
  std::string model = "unknown CPU";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    model = line.substr(std::min(line.size(), line.find(':') + 2));
    break;
  }
  return fmt::format("{}, {} cores, {}", model, std::thread::hardware_concurrency(), cpu_variant());
}

}  // namespace cutaway::tools
