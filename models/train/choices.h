#pragma once
#include <functional>
#include <memory>
#include <string>

#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/nn/optim/lbfgs.h>
#include <cutaway/nn/optim/optimizer.h>
#include <cutaway/nn/sched/schedule.h>

namespace cutaway::train {

// Raises ValueError naming the option that is out of range.
void check_config(const TrainConfig& config);
std::string config_text(const TrainConfig& config);  // the content of config.json

// The optimiser of a run by name: one that steps on gradients, or L-BFGS, which asks for the loss
// several times in a step.
class ChosenOptimizer {
 public:
  // Raises ValueError for an unknown name.
  ChosenOptimizer(const TrainConfig& config, nn::NamedTensors parameters);

  optim::Optimizer* stepping() const { return stepping_.get(); }  // null for L-BFGS
  optim::Lbfgs* lbfgs() const { return lbfgs_.get(); }            // null for all others
  double lr() const;
  void set_lr(double lr);
  // For checkpoints, as "optim".
  SavedPart saved() const;

 private:
  std::unique_ptr<optim::Optimizer> stepping_;
  std::unique_ptr<optim::Lbfgs> lbfgs_;
};

// The schedule by name over this many steps; "plateau" is constant here. Raises ValueError for an
// unknown name.
sched::Schedule make_schedule(const TrainConfig& config, int64_t steps);

}  // namespace cutaway::train
