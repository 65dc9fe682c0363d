#pragma once
#include <string>
#include <vector>

#include <cutaway/models/haste/evaluate.h>
#include <cutaway/models/haste/model.h>

namespace cutaway::haste {

// Where a run stands apart from tensors. Nothing in it depends on the clock.
struct Progress {
  int64_t step = 0;   // done
  int64_t epoch = 0;  // the one that goes on, from 0
  int64_t batch = 0;  // of it, done
  double loss_sum = 0;
  int64_t loss_count = 0, rewired = 0;
  double best = -1, best_p5 = -1;  // of the best epoch: its measure, and P@5
  int64_t best_epoch = 0;             // counted from 1; 0: none
  int64_t batch_rows = 0;             // samples of a batch, so that `batch` keeps its meaning
};

// One file: every tensor that training needs, the order of labels, where the run stands. Written
// under a temporary name, flushed and renamed: a crash leaves the file before or this one.
void save_training(const std::string& path, const Model& model, const LabelOrder& order,
                   const Progress& progress);
// Raises IoError for a damaged file, ValueError for one with another order of labels.
Progress load_training(const std::string& path, Model& model, const LabelOrder& order);

// Weights alone, for evaluation and prediction, with what is needed to build the model.
struct WeightsInfo {
  int64_t words = 0, samples = 0, epoch = 0;  // features, training samples, the epoch they are of
  std::vector<int64_t> frequency;             // of the labels of the data, in training samples
};
struct Weights {
  nn::NamedTensors tensors;
  LabelOrder order;
  WeightsInfo info;
};
void save_weights(const std::string& path, const Model& model, const LabelOrder& order,
                  const WeightsInfo& info);
Weights load_weights(const std::string& path);
// The model that the weights belong to. Raises ValueError or ShapeError when the options are those
// of another one.
std::unique_ptr<Model> model_of(const RunOptions& options, const Weights& weights);
// Raises ValueError unless features and labels of a set are those of the weights.
void check_fits(const Weights& weights, const XmcSet& set);
// Raises ValueError unless both orders are the same.
void check_order(const std::string& path, const LabelOrder& saved, const LabelOrder& wanted);

}  // namespace cutaway::haste
