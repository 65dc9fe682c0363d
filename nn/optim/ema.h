#pragma once
#include <cutaway/nn/module.h>

namespace cutaway::optim {

struct EmaOptions {
  double decay = 0.999;
  // Decay min(decay, (1 + t)/(10 + t)) in update t = 1, 2, …: the first weights are soon forgotten.
  bool warmup = false;
};

// Exponential moving average of weights, a ← d a + (1 − d) x (Polyak & Juditsky 1992 in the form of
// most trainers), kept in f64 for f64 weights and in f32 otherwise. Starts from the weights it is
// made with. Raises ValueError for a decay outside [0, 1) and for names that occur twice.
class Ema {
 public:
  explicit Ema(nn::NamedTensors weights, EmaOptions options = {});

  // Takes the present weights in; to be called after the optimiser's step.
  void update();
  int64_t updates() const { return updates_; }
  // The averages under the names of the weights.
  const nn::NamedTensors& averages() const { return averages_; }

  // While alive the weights are the averages; after that again what they were.
  class Swap {
   public:
    explicit Swap(Ema& ema);
    ~Swap();
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

   private:
    Ema& ema_;
    std::vector<Tensor> own_;
  };

  // Averages as "<name>.average" and the number of updates as "updates" (i64, 0-d).
  nn::NamedTensors state_dict() const;
  // Loads what state_dict gave. Everything is checked first: a missing or unknown name raises
  // ValueError, other sizes ShapeError.
  void load_state_dict(const nn::NamedTensors& state);

 private:
  nn::NamedTensors weights_, averages_;
  EmaOptions options_;
  int64_t updates_ = 0;
};

}  // namespace cutaway::optim
