#pragma once
#include <memory>
#include <vector>

#include <cutaway/autograd/meta.h>
#include <cutaway/core/record/hook.h>

namespace cutaway::detail {

// What a step does to the gradient of one leaf.
struct WatchedGradient {
  enum class Start : uint8_t { any, undefined, same };
  std::shared_ptr<GradSlot> slot;
  Start start;             // what a replay needs to find
  const Storage* storage;  // same: the gradient's
};

// Gradients that the calling thread touches while alive.
class GradientWatch {
 public:
  GradientWatch();
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  void note(const std::shared_ptr<GradSlot>& slot, bool replaced);
  std::vector<WatchedGradient> gradients;

 private:
  GradientWatch* before_;
};

// Hooks of Tensor and the engine, called while somebody records: a gradient is read or added to,
// or replaced whatever it was.
void gradient_used(const std::shared_ptr<GradSlot>& slot);
void gradient_replaced(const std::shared_ptr<GradSlot>& slot);

}  // namespace cutaway::detail
