#pragma once
#include <functional>
#include <string>
#include <vector>

#include <cutaway/models/haste/evaluate.h>
#include <cutaway/models/haste/model.h>

namespace cutaway::haste {

// A set ready for training: frequencies, the head, the groups of the tail and the order of labels
// that follows (section 3, head/tail split and group formation).
struct Prepared {
  XmcSet set;
  LabelOrder order;
  std::vector<int64_t> frequency;  // of the labels of the data
  Csr train_labels;                // [samples, labels] in the model's order
  double seconds = 0;              // that it took
};
// Raises ValueError for an empty training or test set, and what grouping raises.
Prepared prepare(const RunOptions& options, XmcSet set);
ModelSizes sizes_of(const Prepared& prepared);

// One epoch: a row of metrics.csv.
struct EpochRow {
  int64_t epoch = 0, step = 0;
  double loss = 0;             // of a sample, summed over labels; over the steps that compute it
  std::vector<double> p, psp;  // P@1 … 5, PSP@1 … 5 of the test set, as shares
  int64_t rewired = 0;         // slots
  double seconds = 0;          // of its steps, 0 unless known
};

struct RunResult {
  RunOptions options;
  std::vector<EpochRow> rows;  // of this process
  int64_t best_epoch = 0;
  Metrics best;  // of the best epoch (RunOptions::best_by)
  bool finished = false;
  int64_t steps = 0;
  double step_seconds = 0, samples_per_second = 0;      // training steps of this process alone
  std::vector<std::pair<std::string, int64_t>> memory;  // tensor, bytes
  int64_t tail_bytes = 0;                               // of all tail tensors and their momentum
};

struct RunHooks {
  std::function<void(int64_t epochs)> on_start;  // epochs done by an earlier process
  std::function<void(const EpochRow&)> on_row;
  std::function<void(int64_t epoch, int64_t done, int64_t of, double loss, double rate)> on_step;
  std::function<bool()> stop;  // asked after every step: saves and ends
  int64_t stop_after = -1;     // steps of this process; −1: no limit
  std::string folder;          // for checkpoints; empty: none are written
};
// Learning-rate factor of step 0, 1, …: linear over `warmup` steps, then half a cosine down to 0
// at the end of all steps.
double rate_factor(const RunOptions& options, int64_t steps, int64_t step);
// Weight of the auxiliary loss: half a cosine down to 0 over the first 40 % of the steps.
double aux_factor(int64_t steps, int64_t step);

// Trains (section 4). With a folder it keeps last.safetensors and best.safetensors there and goes
// on from the first when there is one; a run that was stopped or killed ends with the same bytes as
// one that was not. The same bits for any number of threads.
RunResult train(const RunOptions& options, const Prepared& prepared, const RunHooks& hooks = {});

}  // namespace cutaway::haste
