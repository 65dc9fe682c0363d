#include <tools/kernel_view.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <cutaway/models/report/svg.h>

namespace cutaway::tools {
namespace {

using cuda::emu::AccessKind;
using cuda::emu::Collected;
using cuda::emu::LaunchCounters;
using cuda::emu::LineCounters;
using cuda::emu::Request;
using cuda::emu::Space;

constexpr size_t kMaxColumns = 48;  // requests in a picture

std::string place(const std::source_location& at) {
  return fmt::format("{}:{}", std::filesystem::path(at.file_name()).filename().string(), at.line());
}

// Line `at` of its file without leading blanks, or nothing when the file is not there.
std::string source_line(const std::source_location& at) {
  const std::string name = at.file_name();
  const size_t root = name.rfind("cutaway/cuda/");
  std::vector<std::string> candidates{name};
  if (root != std::string::npos) candidates.push_back(name.substr(root + 8));
  for (const std::string& path : candidates) {
    std::ifstream file(path);
    std::string text;
    for (uint32_t i = 0; i < at.line() && std::getline(file, text); ++i) {
    }
    if (!file) continue;
    text.erase(0, text.find_first_not_of(' '));
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }
  return {};
}

const char* what(const LineCounters& l) {
  const bool shared = l.space == Space::shared;
  switch (l.kind) {
    case AccessKind::read:
      return shared ? "shared read" : "global read";
    case AccessKind::write:
      return shared ? "shared write" : "global write";
    case AccessKind::atomic:
      return shared ? "shared atomic" : "global atomic";
  }
  return "";
}

std::string bytes(int64_t n) {
  if (n < 10000) return fmt::format("{} B", n);
  if (n < 10000 * 1024) return fmt::format("{:.1f} KiB", double(n) / 1024);
  return fmt::format("{:.1f} MiB", double(n) / 1048576);
}

// Darker for each further group, so that neighbours differ in print.
const char* shade(size_t group) {
  constexpr const char* kShades[] = {"#ddd", "#aaa", "#888", "#666", "#444", "#222"};
  return kShades[std::min(group, std::size(kShades) - 1)];
}

// For each lane the group it belongs to: cache line, or pass over the banks.
std::vector<size_t> groups_of(const Request& r) {
  std::vector<size_t> group(32, 0);
  std::map<uint64_t, size_t> lines;
  std::map<uint64_t, std::map<uint64_t, size_t>> words;
  for (size_t l = 0; l < 32; ++l) {
    if (((r.mask >> l) & 1u) == 0) continue;
    if (r.space == Space::global) {
      group[l] = lines.try_emplace(r.address[l] / 128, lines.size()).first->second;
    } else {
      const uint64_t word = r.address[l] / 4;
      auto& bank = words[word % 32];
      group[l] = bank.try_emplace(word, bank.size()).first->second;
    }
  }
  return group;
}

std::string label(double x, double y, const std::string& s, const char* extra = "") {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" {}>{}</text>\n", x, y, extra,
                     report::escape(s));
}

}  // namespace

std::string launch_table(const LaunchCounters& c) {
  std::string text = fmt::format(
      "{}   {} blocks of {} threads   {} barriers, {} warp operations\n"
      "  global memory: {} read, {} written   bank conflicts {}   lanes in use {:.0f} %\n",
      c.kernel, c.blocks, c.threads, c.barriers, c.warp_operations, bytes(c.bytes_read()),
      bytes(c.bytes_written()), c.bank_conflicts(), 100 * c.lane_use());
  text += fmt::format("  {:<24} {:<13} {:>8} {:>6} {:>9} {:>9}  {}\n", "line", "access", "requests",
                      "lanes", "per req.", "conflicts", "source");
  for (const LineCounters& l : c.lines) {
    const double n = double(l.requests);
    const std::string unit = l.space == Space::global
                                 ? fmt::format("{:.1f} sect.", double(l.sectors) / n)
                                 : fmt::format("{:.1f} pass", double(l.wavefronts) / n);
    const int64_t trouble = l.kind == AccessKind::atomic ? l.contention : l.conflicts;
    text += fmt::format("  {:<24} {:<13} {:>8} {:>6.1f} {:>9} {:>9}  {}\n", place(l.at), what(l),
                        l.requests, double(l.lanes) / n, unit, trouble, source_line(l.at));
  }
  return text;
}

std::string warp_picture(const Collected& launch) {
  constexpr double kCell = 14, kLeft = 60, kTop = 96;
  const size_t n = std::min(launch.first_warp.size(), kMaxColumns);
  const double width = std::max(kLeft + kCell * double(n) + 190, 640.0);
  const double height = kTop + 32 * kCell + 120;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  svg += label(kLeft, 22, launch.counters.kernel + ": memory requests of the first warp",
               "font-size=\"15\"");
  svg += label(kLeft, 40,
               fmt::format("{} of {} requests; each column is one line of the kernel, met by all "
                           "lanes at once",
                           n, launch.first_warp.size()));
  for (int lane = 0; lane < 32; lane += 4) {
    svg += label(kLeft - 8, kTop + kCell * (lane + 0.8), fmt::format("lane {}", lane),
                 "text-anchor=\"end\"");
  }
  for (size_t i = 0; i < n; ++i) {
    const Request& r = launch.first_warp[i];
    const double x = kLeft + kCell * double(i);
    const bool shared = r.space == Space::shared;
    svg += label(0, 0, fmt::format("{}{}", r.kind == AccessKind::write ? "w" : "r", r.at.line()),
                 fmt::format("transform=\"translate({:.0f},{:.0f}) rotate(-60)\"", x + 10, kTop - 6)
                     .c_str());
    if (i > 0 && r.after_barriers != launch.first_warp[i - 1].after_barriers) {
      svg += fmt::format(
          "<line x1=\"{0:.0f}\" x2=\"{0:.0f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\" stroke=\"#000\" "
          "stroke-dasharray=\"4 3\"/>\n",
          x, kTop - 4, kTop + 32 * kCell + 4);
    }
    const std::vector<size_t> group = groups_of(r);
    for (size_t l = 0; l < 32; ++l) {
      const bool on = ((r.mask >> l) & 1u) != 0;
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\" "
          "stroke=\"{}\"{}/>\n",
          x + 1, kTop + kCell * double(l) + 1, kCell - 2, kCell - 2, on ? shade(group[l]) : "#fff",
          on ? "#000" : "#ddd", shared && on ? " rx=\"6\"" : "");
    }
    const int cost = shared ? r.wavefronts() : r.sectors();
    svg += label(x + kCell / 2, kTop + 32 * kCell + 14, std::to_string(cost),
                 "text-anchor=\"middle\" font-size=\"10\"");
  }
  const double below = kTop + 32 * kCell + 40;
  svg += label(kLeft - 8, kTop + 32 * kCell + 14, "cost", "text-anchor=\"end\"");
  svg += label(kLeft, below,
               "squares: global memory, a grey for each cache line of 128 bytes; cost: sectors of "
               "32 bytes");
  svg += label(kLeft, below + 16,
               "circles: shared memory, a grey for each pass over the banks; cost: passes (1 is "
               "free of conflicts)");
  svg += label(kLeft, below + 32,
               "white: the lane is idle; dashed: a barrier; r, w and the number: read or write in "
               "that line");
  return svg + "</svg>\n";
}

}  // namespace cutaway::tools
