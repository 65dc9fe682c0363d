#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cutaway/datasets/loader.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::train {

// Where a training run stands, apart from weights and moments. Nothing in it depends on the clock,
// so equal runs write equal bytes.
struct Progress {
  int64_t step = 0;  // optimiser steps done
  data::Loader::Position position;
  double loss_sum = 0;  // over the examples since the last row of metrics.csv
  int64_t correct = 0, seen = 0;
  int64_t rows = 0;  // of metrics.csv
  // The best test result at the end of an epoch; step −1: none yet.
  int64_t best_step = -1;
  double best_accuracy = 0, best_loss = 0;
};

// Something with a state that a checkpoint keeps beside the model, as NAME.safetensors.
struct SavedPart {
  std::string name;
  std::function<nn::NamedTensors()> state;
  std::function<void(const nn::NamedTensors&)> load;
};
// Of anything with state_dict() and load_state_dict(), which must outlive it.
template <class T>
SavedPart saved_part(const char* name, T& target) {
  return {name, [&target] { return target.state_dict(); },
          [&target](const nn::NamedTensors& state) { target.load_state_dict(state); }};
}

// Writes folder/step-N/{model,optim,…}.safetensors and state.json under a temporary name, flushes
// them, renames, and then points folder/latest to it; older generations are removed after that. A
// crash at any moment leaves one complete generation.
void save_checkpoint(const std::string& folder, const nn::Module& model,
                     const std::vector<SavedPart>& parts, const Progress& progress);
void save_checkpoint(const std::string& folder, const nn::Module& model,
                     const optim::Optimizer& optimizer, const Progress& progress);
// Loads the newest complete generation into model, parts and the default generator. Everything is
// read and checked before anything stays changed. Raises IoError when there is none or it is
// damaged.
Progress load_checkpoint(const std::string& folder, nn::Module& model,
                         const std::vector<SavedPart>& parts);
Progress load_checkpoint(const std::string& folder, nn::Module& model, optim::Optimizer& optimizer);
// Weights only, for evaluation: a checkpoint folder or a .safetensors file. Of a run that averaged
// its weights, the averages.
void load_weights(const std::string& path, nn::Module& model);
// Path of the newest complete generation; empty when there is none.
std::string latest_checkpoint(const std::string& folder);

}  // namespace cutaway::train
