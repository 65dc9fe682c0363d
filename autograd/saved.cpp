#include <cutaway/autograd/saved.h>

#include <fmt/format.h>

#include <cutaway/autograd/checkpoint_frame.h>
#include <cutaway/core/context.h>
#include <cutaway/core/error.h>

namespace cutaway {

Saved::Saved(const Tensor& t) {
  if (CheckpointFrame* frame = CheckpointFrame::current()) {
    index_ = frame->store(t);
    frame_ = frame->shared_from_this();
    return;
  }
  value_ = t.detach();  // a handle of its own: later changes of t's flags or data do not reach it
  version_ = t.storage() ? t.storage()->version : 0;
}

Tensor Saved::unpack(const char* op, const std::source_location& site) const {
  if (frame_) return frame_->restore(index_);
  if (!value_.defined()) {
    throw AutogradError(op, "the values saved for backward were already freed",
                        "pass retain_graph = true to the first backward call");
  }
  const Storage* s = value_.storage();
  if (s && s->version != version_) [[unlikely]] {
    throw AutogradError(
        op, fmt::format("a value {} saved for backward was changed in place; saved by {} ({}:{}), "
                        "written by {}; got version {}, need {}",
                        to_string(value_.sizes()), op, site.file_name(), site.line(),
                        s->writer ? s->writer : "an unnamed write", s->version, version_),
        "use the out-of-place form of the write, or clone() the value before it");
  }
  return value_;
}

int64_t Saved::bytes() const {
  return value_.defined() ? value_.numel() * size_of(value_.dtype()) : 0;
}

void Saved::reset() {
  value_ = Tensor();
  if (frame_) frame_->forget(index_);
  frame_.reset();
}

}  // namespace cutaway
