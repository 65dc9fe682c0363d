#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace cutaway::tools {

// Options that every command has.
struct Common {
  uint64_t seed = 1;
  int threads = 0;  // 0: all cores
  std::string device = "cpu";
  std::string out;
  bool quiet = false;
};
// Adds --seed, --threads, --device, --out and --quiet.
void add_common(CLI::App& command, Common& common);
// Applies them; raises ValueError or DeviceError with what is possible.
void apply_common(const Common& common);

// Each adds its subcommand; the callback sets `status`, the exit status of the program.
void add_train(CLI::App& app, int& status);
void add_eval(CLI::App& app, int& status);
void add_predict(CLI::App& app, int& status);
void add_generate(CLI::App& app, int& status);
void add_list(CLI::App& app, int& status);
void add_tokenizer(CLI::App& app, int& status);
void add_ops(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_trace(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_bayes_attn(CLI::App& app, int& status);
void add_depthlaw(CLI::App& app, int& status);
void add_reproduce(CLI::App& app, int& status);
void add_grok(CLI::App& app, int& status);
void add_xmc(CLI::App& app, int& status);
void add_onnx(CLI::App& app, int& status);

// What fn returns; 2, and its message in one line, when it raises an Error: input that a person can
// mend.
int guarded(const std::function<int()>& fn);

// A progress-free line for people, unless quiet.
void say(bool quiet, const std::string& line);

}  // namespace cutaway::tools
