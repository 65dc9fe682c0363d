#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <cutaway/autograd/saved.h>
#include <cutaway/core/rng.h>

namespace cutaway {

// Stands in for the values that ops inside one checkpointed region would have saved. It keeps the
// inputs of the region and the generator's position; the first value asked for runs the region
// again and keeps what the same ops save in the same order.
class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  using Fn = std::function<Tensors(const Tensors&)>;
  CheckpointFrame(Fn fn, const Tensors& inputs);

  // The frame that collects saved values of this thread, or null.
  static CheckpointFrame* current();

  uint32_t store(const Tensor& t);
  Tensor restore(uint32_t index);
  void forget(uint32_t index);

  // Makes `frame` (or none) current while alive.
  class Scope {
   public:
    explicit Scope(CheckpointFrame* frame);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    CheckpointFrame* before_;
  };

 private:
  void run_again();

  Fn fn_;
  std::vector<Saved> inputs_;
  std::vector<bool> needs_grad_;
  Generator generator_;
  uint8_t autocast_;
  uint32_t stored_ = 0;
  bool collecting_ = false;
  std::vector<Tensor> values_;
  std::vector<bool> present_;
};

}  // namespace cutaway
