#pragma once
#include <CLI/CLI.hpp>

#include <cutaway/models/haste/options.h>

namespace cutaway::tools {

// Subcommands of `xmc` that live in files of their own.
void add_xmc_convert(CLI::App& xmc, int& status);
void add_xmc_groups(CLI::App& xmc, int& status);
void add_xmc_bench(CLI::App& xmc, int& status);
void add_xmc_compare(CLI::App& xmc, int& status);

// Options of a run: its data, its layers, its training.
void add_xmc_options(CLI::App& command, haste::RunOptions& options);

}  // namespace cutaway::tools
