#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

#include <tools/bench_gpu.h>
#include <tools/bench_kernels.h>
#include <tools/bench_traffic.h>
#include <tools/bench_workloads.h>
#include <tools/commands.h>
#include <tools/terminal.h>

namespace cutaway::tools {
namespace {

struct KernelsArgs {
  std::string ladder, device = "emu", json;
  bool small = false, traffic = false;
};

struct GpuArgs {
  std::string device = "cuda";
  bool small = false;
};

std::string times(double ratio) { return fmt::format("{:.2f} x", ratio); }

void print_counted(const LadderResult& r) {
  fmt::print("  {:<24} {:>9.1e} {:>12} {:>10} {:>8.0f}%\n", r.step, r.error,
             times(double(r.bytes) / double(r.least_bytes)), r.conflicts, 100 * r.lane_use);
}
void print_timed(const LadderResult& r, double first) {
  fmt::print("  {:<24} {:>9.1e} {:>8.3f} {:>8} {:>9.0f} {:>9.0f}\n", r.step, r.error,
             r.milliseconds, times(first / r.milliseconds),
             double(r.least_bytes) / r.milliseconds / 1e6, r.flops / r.milliseconds / 1e6);
}

void print_results(const std::vector<LadderResult>& results, bool gpu) {
  std::string ladder;
  double first = 0;
  for (const LadderResult& r : results) {
    if (r.ladder != ladder) {
      ladder = r.ladder;
      first = r.milliseconds;
      fmt::print("\n{}\n", ladder);
      if (gpu) {
        fmt::print("  {:<24} {:>9} {:>8} {:>8} {:>9} {:>9}\n", "step", "error", "ms", "faster",
                   "GB/s", "GFLOP/s");
      } else {
        fmt::print("  {:<24} {:>9} {:>12} {:>10} {:>9}\n", "step", "error", "bytes moved",
                   "conflicts", "lane use");
      }
    }
    if (gpu) {
      print_timed(r, first);
    } else {
      print_counted(r);
    }
    fmt::print("{}\n", wrapped(r.idea, 6, terminal_width()));
  }
  fmt::print("\n{}\n", gpu ? "GB/s: inputs read once and results written once, over the median of "
                             "20 runs."
                           : "bytes moved: sectors of 32 bytes, over the least that the problem "
                             "needs.");
}

// As Markdown, for the documentation.
int print_traffic() {
  fmt::print("| kernel | size | bytes moved | least | ratio | bank conflicts | launches |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const TrafficRow& r : measure_traffic()) {
    fmt::print("| {} | {} | {} | {} | {:.3f} | {} | {} |\n", r.name, r.size, r.bytes, r.least_bytes,
               double(r.bytes) / double(r.least_bytes), r.conflicts, r.launches);
  }
  return 0;
}

int run_kernels(const KernelsArgs& a) {
  if (a.traffic) return print_traffic();
  const Device device = device_from_name(a.device);
  if (device.kind != DeviceKind::emu && device.kind != DeviceKind::cuda) {
    throw DeviceError("bench", "kernels run on cuda or emu; got " + a.device);
  }
  const auto results = run_ladders(device.kind, a.ladder, a.small);
  print_results(results, device.kind == DeviceKind::cuda && !a.small);
  if (!a.json.empty()) {
    auto rows = nlohmann::json::array();
    for (const LadderResult& r : results) {
      rows.push_back({{"ladder", r.ladder},
                      {"step", r.step},
                      {"error", r.error},
                      {"ms", r.milliseconds},
                      {"bytes", r.bytes},
                      {"least_bytes", r.least_bytes},
                      {"bank_conflicts", r.conflicts},
                      {"flops", r.flops}});
    }
    io::write_file_atomic(a.json, rows.dump(2) + "\n");
  }
  for (const LadderResult& r : results) {
    if (!(r.error < 1e-4)) {
      fmt::print(stderr, "{} {} disagrees with the CPU\n", r.ladder, r.step);
      return 1;
    }
  }
  return 0;
}

void print_row(const GpuRow& r) {
  fmt::print("{:<38} {:>10.3f} ms {:>10.1f} {:<8}", r.name, r.milliseconds, r.rate, r.unit);
  if (r.share > 0) fmt::print(" {:>6.1f} % of {}", 100 * r.share, r.of);
  fmt::print("\n");
  std::fflush(stdout);
}

int run_gpu(const GpuArgs& a) {
  if (a.small) fmt::print("Small sizes, to try the code: names and rates mean nothing here.\n");
  run_gpu_bench(device_from_name(a.device), a.small, print_row);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App* c = app.add_subcommand(
      "bench", "Measure training steps and ops, beside PyTorch where it is installed");
  c->require_subcommand(0, 1);
  add_bench_workloads(*c, status);
  auto a = std::make_shared<KernelsArgs>();
  CLI::App* k = c->add_subcommand(
      "kernels", "Run and check the kernel ladders: one result, from the plain kernel to the fast");
  k->footer("Example:\n  cutaway bench kernels --ladder softmax");
  k->add_option("--ladder", a->ladder, "softmax, layer_norm, gemm, attention or scatter; all");
  k->add_option("--device", a->device, "emu counts memory traffic, cuda measures time")
      ->capture_default_str();
  k->add_option("--json", a->json, "Write the results to this file");
  k->add_flag("--small", a->small, "On cuda: the small problems of emu, checked and not timed");
  k->add_flag("--traffic", a->traffic,
              "Instead: the bytes that elementwise kernels, softmax, layer norm, AdamW and "
              "group-shared layers move");
  k->callback([a, &status] { status = run_kernels(*a); });
  auto g = std::make_shared<GpuArgs>();
  CLI::App* gpu = c->add_subcommand(
      "gpu", "Measure bandwidth, products, attention, sparse layers and training steps on a GPU");
  gpu->footer("Example:\n  cutaway bench gpu");
  gpu->add_option("--device", g->device, "cuda, or another to try the code")->capture_default_str();
  gpu->add_flag("--small", g->small, "Small sizes that only try the code");
  gpu->callback([g, &status] { status = run_gpu(*g); });
}

}  // namespace cutaway::tools
