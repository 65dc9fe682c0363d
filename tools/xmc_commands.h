#pragma once
#include <CLI/CLI.hpp>

namespace cutaway::tools {

// Subcommands of `xmc` that live in files of their own.
void add_xmc_convert(CLI::App& xmc, int& status);
void add_xmc_groups(CLI::App& xmc, int& status);
void add_xmc_bench(CLI::App& xmc, int& status);

}  // namespace cutaway::tools
