#pragma once
#include <memory>

#include <cutaway/core/tensor.h>

namespace cutaway {

class CheckpointFrame;

// A value kept for backward: storage and layout with the version at the time, but no history.
// History is re-attached from the edges of the node that saved it, so a node that saves its own
// output makes no reference cycle (Note: gradient cycles), and checkpoints need to restore values
// only.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& t) { keep(t); }
  Saved(Saved&& o) noexcept;
  Saved& operator=(Saved&&) = delete;
  ~Saved() {
    if (storage_) storage_->drop();
  }
  // Saves the value; nothing may have been saved before.
  void keep(const Tensor& t);

  bool defined() const { return storage_ || frame_; }
  // The value, in a handle of its own; raises AutogradError naming `op` and the writer when it was
  // changed in place since.
  Tensor unpack(const char* op, const std::source_location& site) const;
  // Bytes kept alive by this value itself (0 inside a checkpoint).
  int64_t bytes() const;
  void reset();

 private:
  // No tensor handle: most values are saved once and read at most once.
  Storage* storage_ = nullptr;
  Layout layout_;
  DType dtype_ = DType::f32;
  Device device_;
  uint32_t version_ = 0;
  uint32_t index_ = 0;                      // in the frame
  std::shared_ptr<CheckpointFrame> frame_;  // set inside a checkpoint instead of storage_
};

}  // namespace cutaway
