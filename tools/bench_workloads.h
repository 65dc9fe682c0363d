#pragma once
#include <CLI/CLI.hpp>

namespace cutaway::tools {

// Adds the options with which `cutaway bench` measures workloads. The callback does nothing when a
// subcommand was given.
void add_bench_workloads(CLI::App& bench, int& status);

}  // namespace cutaway::tools
