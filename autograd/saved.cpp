#include <cutaway/autograd/saved.h>

#include <fmt/format.h>
#include <utility>

#include <cutaway/autograd/checkpoint_frame.h>
#include <cutaway/core/context.h>
#include <cutaway/core/error.h>
#include <cutaway/core/text.h>

namespace cutaway {

Saved::Saved(Saved&& o) noexcept
    : storage_(std::exchange(o.storage_, nullptr)),
      layout_(o.layout_),
      dtype_(o.dtype_),
      device_(o.device_),
      version_(o.version_),
      index_(o.index_),
      frame_(std::move(o.frame_)) {}

void Saved::keep(const Tensor& t) {
  if (CheckpointFrame* frame = CheckpointFrame::current()) {
    index_ = frame->store(t);
    frame_ = frame->shared_from_this();
    return;
  }
  const Layout& layout = t.layout();
  storage_ = t.storage();
  storage_->retain();
  layout_.sizes.assign(layout.sizes);
  layout_.strides.assign(layout.strides);
  layout_.offset = layout.offset;
  dtype_ = t.dtype();
  device_ = t.device();
  version_ = storage_->version;
}

Tensor Saved::unpack(const char* op, const std::source_location& site) const {
  if (frame_) return frame_->restore(index_);
  if (!storage_) {
    throw AutogradError(op, "the values saved for backward were already freed",
                        "pass retain_graph = true to the first backward call");
  }
  if (storage_->version != version_) [[unlikely]] {
    throw AutogradError(
        op,
        fmt::format("a value {} saved for backward was changed in place; saved by {} ({}:{}), "
                    "written by {}; got version {}, need {}",
                    to_string(layout_.sizes), op, source_name(site.file_name()), site.line(),
                    storage_->writer ? storage_->writer : "an unnamed write", storage_->version,
                    version_),
        "use the out-of-place form of the write, or clone() the value before it");
  }
  storage_->retain();
  TensorImpl* impl = detail::new_impl(dtype_, device_, layout_, storage_);
  impl->contiguous = layout_.is_contiguous();
  impl->is_view = true;
  return Tensor::take(impl);
}

int64_t Saved::bytes() const { return storage_ ? layout_.sizes.numel() * size_of(dtype_) : 0; }

void Saved::reset() {
  if (storage_) std::exchange(storage_, nullptr)->drop();
  if (frame_) frame_->forget(index_);
  frame_.reset();
}

}  // namespace cutaway
