#include <cutaway/autograd/checkpoint.h>

#include <fmt/format.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/checkpoint_frame.h>
#include <cutaway/core/error.h>

namespace cutaway {
namespace {

thread_local CheckpointFrame* current_frame = nullptr;

}  // namespace

CheckpointFrame* CheckpointFrame::current() { return current_frame; }

CheckpointFrame::Scope::Scope(CheckpointFrame* frame) : before_(current_frame) {
  current_frame = frame;
}
CheckpointFrame::Scope::~Scope() { current_frame = before_; }

CheckpointFrame::CheckpointFrame(Fn fn, const Tensors& inputs)
    : fn_(std::move(fn)), generator_(default_generator()), autocast_(context().autocast) {
  // Inside an outer region these values belong to the outer frame and are restored by it.
  for (const Tensor& t : inputs) {
    inputs_.emplace_back(t);
    needs_grad_.push_back(t.requires_grad());
  }
}

uint32_t CheckpointFrame::store(const Tensor& t) {
  const uint32_t index = stored_++;
  if (collecting_) {
    if (index >= present_.size()) {
      throw AutogradError("checkpoint", "the region saved more values when it was run again",
                          "the function must not depend on anything that changes between runs");
    }
    if (present_[index]) values_[index] = t.detach();
  } else {
    present_.push_back(true);
  }
  return index;
}

Tensor CheckpointFrame::restore(uint32_t index) {
  if (index >= values_.size() || !values_[index].defined()) run_again();
  return values_[index];
}

void CheckpointFrame::forget(uint32_t index) {
  if (index < present_.size()) present_[index] = false;
  if (index < values_.size()) values_[index] = Tensor();
}

void CheckpointFrame::run_again() {
  Tensors inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Tensor t = inputs_[i].unpack("checkpoint", std::source_location::current()).detach();
    if (needs_grad_[i]) t.set_requires_grad();
    inputs.push_back(std::move(t));
  }
  const Generator after = default_generator();
  const uint8_t autocast = context().autocast;
  const uint32_t expected = stored_;
  // The nodes of this run die at its end and drop what they saved; a frame of their own keeps them
  // from emptying this one.
  auto second = std::make_shared<CheckpointFrame>(nullptr, Tensors{});
  second->collecting_ = true;
  second->present_.assign(expected, true);
  second->values_.resize(expected);
  Tensors kept;
  try {
    default_generator() = generator_;
    context().autocast = autocast_;
    GradModeGuard grad_on(true);
    Scope scope(second.get());
    const Tensors results = fn_(inputs);
    kept = second->values_;
  } catch (...) {
    default_generator() = after;
    context().autocast = autocast;
    throw;
  }
  default_generator() = after;
  context().autocast = autocast;
  if (second->stored_ != expected) {
    throw AutogradError("checkpoint",
                        fmt::format("the region saved {} values when it was run again; need {}",
                                    second->stored_, expected),
                        "the function must not depend on anything that changes between runs");
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!present_[i]) kept[i] = Tensor();
  }
  values_ = std::move(kept);
}

Tensors checkpoint(std::function<Tensors(const Tensors&)> fn, const Tensors& inputs) {
  if (!context().grad_enabled) return fn(inputs);
  auto frame = std::make_shared<CheckpointFrame>(fn, inputs);
  CheckpointFrame::Scope scope(frame.get());
  return fn(inputs);
}

Tensor checkpoint(std::function<Tensor(const Tensor&)> fn, const Tensor& x) {
  return checkpoint([fn = std::move(fn)](const Tensors& in) { return Tensors{fn(in[0])}; },
                    Tensors{x})[0];
}

}  // namespace cutaway
