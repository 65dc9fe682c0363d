#pragma once
#include <cutaway/models/grokking/criterion.h>
#include <cutaway/models/grokking/train.h>
#include <cutaway/models/report/svg.h>

namespace cutaway::grokking {

// Accuracies over log epochs, with the three stages shaded.
std::string accuracy_plot(const RunResult& run);
// Mean violation of each law over log epochs.
std::string violation_plot(const RunResult& run);
std::string dimension_plot(const RunResult& run);
// Tokens on components 2 pair and 2 pair + 1 of the embedding, each by its name; neighbours on the
// circle of the theory are joined.
std::string component_plot(const Task& task, const Tensor& entities, int pair);
// Shares of frequencies of the embedding, in the order of the theory.
std::string spectrum_plot(const Task& task, const Tensor& entities);
// Checkpoints of runs: log10 of the largest violation against test accuracy, with τ.
std::string criterion_plot(const std::vector<Checkpoint>& checkpoints, double tau);

}  // namespace cutaway::grokking
