#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <cutaway/models/grokking/geometry.h>
#include <cutaway/models/grokking/model.h>
#include <cutaway/models/grokking/symmetry.h>
#include <cutaway/models/grokking/task.h>

namespace cutaway::grokking {

// Everything that makes a run; config.json holds exactly this.
struct RunOptions {
  std::string task = "add";
  int64_t p = 47;
  double train_fraction = 0.5, weight_decay = 2, lr = 2e-3;
  std::string model = "transformer";  // or mlp
  int64_t d = 64, heads = 4, hidden = 256;
  std::string prompt = "none";  // comm assoc both triangle trans nuclear entropy lipschitz augment
  double lambda = 1;
  std::string optimizer = "adamw";  // or grokfast
  int64_t epochs = 20000, after = 2000;
  uint64_t seed = 1;
  int64_t tuples = 512;        // of each law and step
  std::string assoc = "rule";  // or soft: the model's own intermediates
  std::string domain = "all";  // or train: instances with at least one training input
  bool unordered = false, binary = false, unchecked = false;
  int64_t pairs_max = 20000;
  double embed_scale = 1, output_scale = 1;
  int64_t eval_tuples = 2000;
};
// ci: p = 47, d = 64, hidden 256, r = 0.5, w = 2, lr 2e-3; paper: p = 113, d = 128, hidden 512 and
// the training fraction and weight decay of the task's family. Raises ValueError for another name.
RunOptions preset(const std::string& name, const std::string& task);
void save_options(const RunOptions& options, const std::string& path);
RunOptions load_options(const std::string& path);
// Raises ValueError for options that do not fit together: unknown names, a prompt that does not
// belong to the task (for associativity with the offending triple), values out of range.
void check_options(const RunOptions& options, const Task& task);
Task task_of(const RunOptions& options);
std::unique_ptr<Network> network_of(const RunOptions& options, const Task& task);

// One evaluation: a row of log.csv. Violations are of the fixed evaluation instances.
struct LogRow {
  int64_t epoch = 0;
  double train_loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = 0;
  std::vector<double> mean, max;  // of the violation, for each law of the task
  int effective_dimension = 0;
  double norm = 0;                                            // of all parameters
  double fourier = std::numeric_limits<double>::quiet_NaN();  // share of the 10 strongest
  double mean_violation() const;                              // mean over laws
  double max_violation() const;                               // largest over laws
};

struct Stages {
  int64_t t_mem = -1, t_50 = -1, t_99 = -1, t_gen = -1, t_sym = -1, t_geo = -1;  // −1: never
};
// First epochs at which: training accuracy is 1; test accuracy reaches 0.5, 0.99, 1; the mean
// violation falls below tau and training is memorised; the effective dimension is at most half of
// its maximum so far and stays so.
Stages find_stages(const std::vector<LogRow>& rows, double tau);
// Threshold on the mean violation for t_sym, from calibration seeds of their own (README); NaN
// without laws.
double frozen_tau(const std::vector<Law>& laws);

struct RunResult {
  RunOptions options;
  Task task;
  Split split;
  std::unique_ptr<Network> network;
  std::vector<LogRow> rows;
  Stages stages;
  double seconds = 0, steps_per_second = 0;  // of training steps alone
  // t_gen, or the limit of epochs when it was never reached.
  double solved_at() const { return double(stages.t_gen >= 0 ? stages.t_gen : options.epochs); }
};

struct RunHooks {
  std::function<void(const LogRow&)> on_row;
  std::function<void(int64_t epoch, const Network&)> on_checkpoint;  // every 500 epochs
  std::function<bool()> stop;                                        // asked after each evaluation
};
// Trains until test accuracy is 1 and `after` more epochs are done, or until the limit (section 4).
// The same bits for any number of threads.
RunResult train(const RunOptions& options, const RunHooks& hooks = {});
// Several runs side by side, each on one thread.
std::vector<RunResult> train_all(const std::vector<RunOptions>& options);

// Evaluations every 10 epochs up to 1000, then every 50.
bool evaluates_at(int64_t epoch);

// log.csv of a run, and back.
std::string log_text(const Task& task, const std::vector<LogRow>& rows);
std::vector<LogRow> read_log(const std::string& path);

}  // namespace cutaway::grokking
