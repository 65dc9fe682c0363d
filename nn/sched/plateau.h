#pragma once
#include <cstdint>
#include <limits>

#include <cutaway/nn/module.h>

namespace cutaway::sched {

struct PlateauOptions {
  double factor = 0.5;       // what the learning rate is multiplied by
  int64_t patience = 1;      // epochs in a row without progress that are let pass
  double threshold = 1e-3;   // least relative progress
  double min_factor = 1e-3;  // of the base learning rate
};

// Lowers the learning rate when a loss stops falling. Unlike a Schedule it has a state. Raises
// ValueError for options outside their range.
class Plateau {
 public:
  explicit Plateau(PlateauOptions options = {});
  // The loss of another epoch; returns the factor on the base learning rate from now on. A loss
  // that is not a number is no progress.
  double step(double loss);
  double factor() const { return factor_; }

  // "factor", "best" and "waited" (f64, 0-d).
  nn::NamedTensors state_dict() const;
  // Loads what state_dict gave; raises ValueError for anything else.
  void load_state_dict(const nn::NamedTensors& state);

 private:
  PlateauOptions options_;
  double factor_ = 1, best_ = std::numeric_limits<double>::infinity();
  int64_t waited_ = 0;
};

}  // namespace cutaway::sched
