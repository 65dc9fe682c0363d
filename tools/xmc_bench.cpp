#include <fmt/format.h>
#include <chrono>
#include <filesystem>
#include <memory>

#include <cutaway/core/io/file.h>
#include <cutaway/models/haste/bench.h>
#include <cutaway/models/train/progress.h>

#include <tools/commands.h>
#include <tools/xmc_commands.h>

namespace cutaway::tools {
namespace {

struct Args {
  haste::BenchOptions bench;
  bool sweep = false;
  std::string out = "xmc-bench";
};

int run(const Args& a) {
  if (!a.sweep) {
    fmt::print("{}", haste::bench_table(haste::bench_output_kernels(a.bench)));
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto rows = haste::sweep_output_kernels(a.bench, [&](int done, int all) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const std::string left =
        done ? ", about " + train::clock_text(passed.count() / done * (all - done)) + " left" : "";
    fmt::print(stderr, "setting {} of {}{}\n", done + 1, all, left);
  });
  std::filesystem::create_directories(a.out);
  const auto write = [&](const std::string& name, const std::string& text) {
    io::write_file_atomic(a.out + "/" + name, text);
  };
  write("sweep.csv", haste::sweep_csv(rows));
  write("sweep.json", haste::sweep_json(rows));
  write("forward.svg", haste::sweep_svg(rows, "forward"));
  write("backward.svg", haste::sweep_svg(rows, "backward"));
  fmt::print("{}\n{} rows in {}\n", haste::sweep_csv(rows), rows.size(), a.out);
  return 0;
}

}  // namespace

void add_xmc_bench(CLI::App& xmc, int& status) {
  const auto a = std::make_shared<Args>();
  haste::BenchOptions& o = a->bench;
  CLI::App* c = xmc.add_subcommand("bench", "Time the kernels of output layers");
  c->add_option("--labels", o.labels, "Labels")->capture_default_str();
  c->add_option("--features", o.features, "Features of the layer")->capture_default_str();
  c->add_option("--fan-in", o.fan_in, "Features a label reads")->capture_default_str();
  c->add_option("--group", o.group, "Labels that share them")->capture_default_str();
  c->add_option("--batch", o.batch, "Batch size")->capture_default_str();
  c->add_option("--chunk", o.chunk, "Labels whose logits exist at a time, in a whole step")
      ->capture_default_str();
  c->add_option("--threads", o.threads, "Numbers of threads")->delimiter(',');
  c->add_option("--repeats", o.repeats, "Rounds; medians are shown")->capture_default_str();
  c->add_flag("--sweep", a->sweep, "All G of 16, 32, 64 and F of 16 to 256, to files");
  c->add_option("--out", a->out, "Folder of the sweep")->capture_default_str();
  c->callback([a, &status] { status = guarded([&] { return run(*a); }); });
}

}  // namespace cutaway::tools
