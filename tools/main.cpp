// The cutaway command: one program, one source file a subcommand.
#include <fmt/format.h>
#include <unistd.h>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <system_error>

#include <cutaway/core/device.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>
#include <cutaway/core/trace.h>

#include <tools/commands.h>

namespace cutaway::tools {
namespace {

// CLI11 alone would wrap -1 and cap what is too large.
const CLI::Validator kWholeNumber(
    [](std::string& text) {
      uint64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
      return whole ? std::string() : "need a whole number from 0 to 2^64 - 1; got " + text;
    },
    "UINT", "whole number");

}  // namespace

void add_common(CLI::App& command, Common& c) {
  command.add_option("--seed", c.seed, "Seed of every random number (0 … 18446744073709551615)")
      ->capture_default_str()
      ->check(kWholeNumber);
  command
      .add_option("--threads", c.threads,
                  "Threads of kernels and BLAS; 0 takes all cores, more than 256 are capped")
      ->capture_default_str()
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command.add_option("--device", c.device, "cpu, cuda or emu")->capture_default_str();
  command.add_option("--out", c.out, "Folder for results");
  command.add_flag("--quiet", c.quiet, "Print results only");
}

void apply_common(const Common& c) {
  const Device device = device_from_name(c.device);
  if (device.kind == DeviceKind::meta)
    throw DeviceError("device", "meta has no values; need cpu, cuda or emu");
  if (device.kind != DeviceKind::cpu && !has_backend(device.kind)) {
    throw DeviceError("device", c.device + " is not part of this build", cuda::cuda_missing());
  }
  if (c.threads > 256) fmt::print(stderr, "cutaway: --threads {} is capped at 256\n", c.threads);
  if (c.threads > 0) set_num_threads(c.threads);
  manual_seed(c.seed);
}

int guarded(const std::function<int()>& fn) {
  try {
    return fn();
  } catch (const Error& e) {
    std::string line;
    for (const char* c = e.what(); *c; ++c) {
      if (*c != '\n') {
        line += *c;
        continue;
      }
      line += ';';
      while (c[1] == ' ' && c[2] == ' ') ++c;
    }
    fmt::print(stderr, "cutaway: {}\n", line);
    return 2;
  }
}

void say(bool quiet, const std::string& line) {
  if (quiet) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

namespace {

// The known option nearest to a misspelt one, by edit distance; empty when none is near.
std::string nearest_option(const CLI::App& app, const std::string& given) {
  std::string best;
  size_t best_distance = 4;
  for (const CLI::Option* o : app.get_options()) {
    const std::string name = "--" + o->get_single_name();
    std::vector<size_t> row(name.size() + 1);
    for (size_t j = 0; j <= name.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= given.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= name.size(); ++j) {
        const size_t up = row[j];
        row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (given[i - 1] != name[j - 1])});
        diagonal = up;
      }
    }
    if (row[name.size()] < best_distance) {
      best_distance = row[name.size()];
      best = name;
    }
  }
  return best;
}

// CLI11's message, with a hint for misspelt options; help and version as CLI11 prints them.
int explain(CLI::App& app, const CLI::ParseError& e) {
  if (e.get_exit_code() == 0) return app.exit(e);
  const CLI::App* used = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  fmt::print(stderr, "cutaway: {}\n", e.what());
  for (const std::string& word : used->remaining(true)) {
    const std::string near =
        word.starts_with("--") ? nearest_option(*used, word.substr(0, word.find('='))) : "";
    if (!near.empty()) fmt::print(stderr, "  hint: did you mean {}?\n", near);
  }
  if (used == &app) fmt::print(stderr, "  hint: cutaway --help lists the commands\n");
  return 2;
}

// CUTAWAY_TRACE=log prints a line for each op; any other value is a file for a Chrome trace.
void start_trace() {
  const char* set = std::getenv("CUTAWAY_TRACE");
  if (!set || !*set) return;
  std::string(set) == "log" ? trace::start_log() : trace::start();
}
void finish_trace() {
  const char* set = std::getenv("CUTAWAY_TRACE");
  if (set && *set && std::string(set) != "log") trace::save_chrome(set);
}

int run(int argc, char** argv) {
  CLI::App app{"Cutaway: train models on a deep-learning engine whose every part you can see."};
  app.set_version_flag("--version", std::string("cutaway ") + CUTAWAY_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  int status = 0;
  add_train(app, status);
  add_eval(app, status);
  add_predict(app, status);
  add_generate(app, status);
  add_tokenizer(app, status);
  add_list(app, status);
  add_ops(app, status);
  add_bench(app, status);
  add_trace(app, status);
  add_doctor(app, status);
  add_bayes_attn(app, status);
  add_depthlaw(app, status);
  add_reproduce(app, status);
  add_grok(app, status);
  add_xmc(app, status);
  add_onnx(app, status);
  try {
    start_trace();
    app.parse(argc, argv);
    finish_trace();
  } catch (const CLI::ParseError& e) {
    return explain(app, e);
  }
  return status;
}

// Lets idle threads sleep after some microseconds. By default they spin for milliseconds: two
// commands side by side on two cores then take five times as long as one after the other. The
// OpenMP runtime reads the variable before main(), so the program starts once more; what it starts
// itself does not inherit it.
void wait_shortly(char** argv) {
  constexpr const char *kSpins = "GOMP_SPINCOUNT", *kOurs = "CUTAWAY_WAITS_SHORTLY";
  if (std::getenv(kOurs)) {
    unsetenv(kSpins);
    unsetenv(kOurs);
    return;
  }
  if (std::getenv(kSpins) || std::getenv("OMP_WAIT_POLICY")) return;  // the user's choice
  setenv(kSpins, "2000", 1);
  setenv(kOurs, "1", 1);
  // By its own path, which is the name that top and ps show.
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) execv(self.c_str(), argv);
  unsetenv(kSpins);  // no /proc: as it was
  unsetenv(kOurs);
}

}  // namespace
}  // namespace cutaway::tools

int main(int argc, char** argv) {
  cutaway::tools::wait_shortly(argv);
  try {
    return cutaway::tools::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "cutaway: {}\n", e.what());
    return 1;
  }
}
