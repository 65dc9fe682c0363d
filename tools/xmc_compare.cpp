#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <memory>

#include <cutaway/core/io/file.h>
#include <cutaway/models/haste/compare.h>
#include <cutaway/models/haste/pictures.h>
#include <cutaway/models/train/progress.h>
#include <cutaway/models/train/run_folder.h>

#include <tools/commands.h>
#include <tools/xmc_commands.h>

namespace cutaway::tools {
namespace {

struct Args {
  Common common;
  haste::RunOptions run;
  std::vector<std::string> layers = {"dense", "haste",   "random", "static",
                                     "ffi",   "spartex", "block",  "bottleneck"};
  std::vector<uint64_t> seeds = {1, 2, 3};
};

int run(Args a) {
  apply_common(a.common);
  std::vector<haste::Setting> settings;
  for (const std::string& name : a.layers) settings.push_back(haste::setting_of(name));
  haste::check_options(a.run);
  const train::RunFolder folder = train::RunFolder::create(
      a.common.out.empty() ? train::next_run_path("xmc-compare") : a.common.out);
  haste::save_options(a.run, folder.file("config.json"));
  const auto start = std::chrono::steady_clock::now();
  train::InterruptGuard interrupt;
  const auto rows = haste::compare_settings(
      a.run, settings, a.seeds,
      [&](int64_t done, int64_t all, const std::string& about) {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        say(a.common.quiet,
            fmt::format("{} of {} runs, about {} left   {}", done, all,
                        train::clock_text(passed.count() / double(done) * double(all - done)),
                        about));
      },
      train::InterruptGuard::requested);
  std::vector<haste::Compared> p5, tail;
  for (const haste::Measured& m : rows) {
    p5.push_back({m.name, m.p5});
    tail.push_back({m.name, m.tail5});
  }
  const std::string table = haste::compare_table(rows);
  io::write_file_atomic(folder.file("compare.csv"), haste::compare_csv(rows, a.seeds));
  io::write_file_atomic(folder.file("compare.md"), table);
  io::write_file_atomic(folder.file("plots/p5.svg"),
                        haste::compare_plot(p5, "P@5 on " + a.run.data, "percent"));
  io::write_file_atomic(
      folder.file("plots/tail-p5.svg"),
      haste::compare_plot(tail, "P@5 among rare labels on " + a.run.data, "percent"));
  fmt::print("{}\ntable, numbers and pictures  {}/compare.md  compare.csv  plots/\n", table,
             folder.path());
  return 0;
}

}  // namespace

void add_xmc_compare(CLI::App& xmc, int& status) {
  auto a = std::make_shared<Args>();
  CLI::App* c =
      xmc.add_subcommand("compare", "Train several layers with several seeds, as a table");
  add_common(*c, a->common);
  add_xmc_options(*c, a->run);
  c->add_option("--layers", a->layers,
                "Which, of: dense haste random freq static threshold no-head "
                "bf16 ffi spartex block bottleneck")
      ->delimiter(',')
      ->capture_default_str();
  c->add_option("--seeds", a->seeds, "Seeds of every layer")->delimiter(',')->capture_default_str();
  c->footer(
      "Runs share the machine, one on each thread. Example:\n"
      "  cutaway xmc compare --data debian-deps --limit 20000 --fan-in 16 --epochs 6");
  c->callback([a, &status] { status = guarded([&] { return run(*a); }); });
}

}  // namespace cutaway::tools
