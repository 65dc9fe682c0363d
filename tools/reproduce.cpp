// The statements of a paper, each measured and held against its bound.
#include <fmt/format.h>
#include <chrono>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/reproduce/reproduce.h>
#include <cutaway/models/train/run_folder.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

struct ReproduceArgs {
  Common common;
  std::string slug, json;
  bool quick = false, full = false;
};

// Characters, not bytes: what a column of text takes on a terminal.
size_t columns(const std::string& s) {
  size_t n = 0;
  for (char c : s) n += (c & 0xC0) != 0x80;
  return n;
}
std::string padded(const std::string& s, size_t width) {
  return s + std::string(width > columns(s) ? width - columns(s) : 0, ' ');
}

void print_statement(const reproduce::Statement& s) {
  std::string line = fmt::format("{} {}  {}  {}", padded(s.id, 4), status_text(s.status),
                                 padded(s.text, 60), padded(s.measured, 18));
  if (!s.bound.empty()) line += "  bound " + s.bound;
  if (!s.seeds.empty()) line += fmt::format("  seeds {}", fmt::join(s.seeds, " "));
  fmt::print("{}\n", line);
  if (s.status == reproduce::Status::fail && !s.note.empty()) fmt::print("        {}\n", s.note);
  std::fflush(stdout);
}

int run_reproduce(const ReproduceArgs& a) {
  if (a.slug.empty()) {
    for (const reproduce::Study& s : reproduce::studies()) {
      fmt::print("{:<16} {} (--full: {})\n", s.slug, s.title, s.full);
    }
    return 0;
  }
  const reproduce::Study& study = reproduce::study(a.slug);
  if (a.quick && a.full) throw ValueError("reproduce", "choose one of --quick and --full");
  apply_common(a.common);
  const std::string folder =
      a.common.out.empty() ? train::next_run_path("reproduce-" + a.slug) : a.common.out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw IoError("reproduce", folder + ": " + error.message());
  if (!a.common.quiet) fmt::print("{}   {}\n", study.slug, study.title);
  const auto progress = [&](const std::string& text) {
    if (!a.common.quiet) fmt::print(stderr, "      … {}\n", text);
  };
  reproduce::Run run({.full = a.full,
                      .seed = a.common.seed,
                      .folder = folder,
                      .command = fmt::format("cutaway reproduce {} --{} --seed {}", study.slug,
                                             a.full ? "full" : "quick", a.common.seed),
                      .on_statement = print_statement,
                      .on_progress = progress});
  const auto begin = std::chrono::steady_clock::now();
  study.run(run);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  run.write_report(study, seconds.count());
  if (!a.json.empty()) io::write_file_atomic(a.json, run.json(study.slug));
  using reproduce::Status;
  fmt::print("{} passed, {} failed, {} skipped in {:.0f} s\nreport  {}/report.html\n",
             run.count(Status::pass), run.count(Status::fail), run.count(Status::skip),
             seconds.count(), folder);
  return run.count(Status::fail) ? 1 : 0;
}

}  // namespace

void add_reproduce(CLI::App& app, int& status) {
  auto a = std::make_shared<ReproduceArgs>();
  CLI::App* c = app.add_subcommand("reproduce", "Measure a paper's statements: PASS, FAIL or SKIP");
  c->footer("Example:\n  cutaway reproduce grokking --quick --json grokking.json");
  add_common(*c, a->common);
  c->add_option("study", a->slug, "Which paper; without it all are listed");
  c->add_flag("--quick", a->quick, "What fits into two minutes on two cores (default)");
  c->add_flag("--full", a->full, "All statements");
  c->add_option("--json", a->json, "Write the statements to this file");
  c->callback([a, &status] { status = guarded([&] { return run_reproduce(*a); }); });
}

}  // namespace cutaway::tools
