#include <cutaway/autograd/meta.h>

#include <new>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/node.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/record_watch.h>
#include <cutaway/core/alloc/pool.h>

namespace cutaway {
namespace {

AutogradMeta& need_meta(const Tensor& t) {
  TensorImpl* impl = t.impl();
  if (!impl->meta) impl->meta = new (pool_allocate(sizeof(AutogradMeta))) AutogradMeta;
  return *impl->meta;
}

GradSlot& need_slot(AutogradMeta& meta, TensorImpl* owner) {
  if (!meta.grad) meta.grad = std::make_shared<GradSlot>(GradSlot{{}, owner});
  return *meta.grad;
}

void require_grad_flag(const char* what, const Tensor& t) {
  if (!t.requires_grad()) {
    throw AutogradError(what, "needs a tensor that requires grad; got a constant",
                        "call set_requires_grad() on the leaf first");
  }
}

}  // namespace

void destroy_meta(AutogradMeta* meta) noexcept {
  if (meta->grad) meta->grad->owner = nullptr;
  meta->~AutogradMeta();
  pool_free(meta, sizeof(AutogradMeta));
}

Edge gradient_edge(const Tensor& t) {
  AutogradMeta* meta = t.impl()->meta;
  if (!meta) return {};
  if (!meta->is_leaf) return {meta->node, meta->slot};
  if (!meta->requires_grad) return {};
  if (!meta->node) {
    need_slot(*meta, t.impl());
    Node* n = new_node(nullptr, 0, 0, 1, 0);
    n->outputs()[0].set(t);
    n->leaf = meta->grad;
    meta->node = NodePtr(n);
  }
  return {meta->node, 0};
}

void set_history(const Tensor& t, NodePtr node, uint32_t slot) {
  AutogradMeta& meta = need_meta(t);
  meta.is_leaf = false;
  meta.requires_grad = false;
  meta.node = std::move(node);
  meta.slot = slot;
}

bool Tensor::requires_grad() const {
  const AutogradMeta* meta = checked()->meta;
  return meta && (meta->requires_grad || !meta->is_leaf);
}

Tensor& Tensor::set_requires_grad(bool on) {
  if (on && !is_floating()) {
    throw DTypeError("set_requires_grad",
                     std::string("only floating tensors have gradients; got ") + name_of(dtype()),
                     "convert with to(DType::f32)");
  }
  if (!is_leaf()) {
    if (on) return *this;
    throw AutogradError("set_requires_grad", "the result of a recorded op always requires grad",
                        "use detach()");
  }
  if (!on && !impl_->meta) return *this;
  if (impl_->meta && impl_->meta->requires_grad != on) detail::note_state_change();
  AutogradMeta& meta = need_meta(*this);
  meta.requires_grad = on;
  if (!on) meta.node = {};
  return *this;
}

bool Tensor::is_leaf() const { return !checked()->meta || impl_->meta->is_leaf; }

Tensor Tensor::grad() const {
  const AutogradMeta* meta = checked()->meta;
  if (!meta || !meta->grad) return {};
  if (recording_somewhere()) [[unlikely]] detail::gradient_used(meta->grad);
  return meta->grad->grad;
}

void Tensor::set_grad(const Tensor& grad) {
  if (grad.defined() &&
      (grad.sizes() != sizes() || grad.dtype() != dtype() || grad.device() != device())) {
    throw ShapeError("set_grad", "a gradient has sizes, type and device of its tensor; got " +
                                     cutaway::to_string(grad.sizes()) + " " +
                                     name_of(grad.dtype()) + ", need " +
                                     cutaway::to_string(sizes()) + " " + name_of(dtype()));
  }
  if (!grad.defined() && !checked()->meta) return;
  GradSlot& slot = need_slot(need_meta(*this), impl_);
  if (recording_somewhere()) [[unlikely]] detail::gradient_replaced(impl_->meta->grad);
  slot.grad = grad;
}

void Tensor::zero_grad() {
  if (!checked()->meta || !impl_->meta->grad) return;
  if (recording_somewhere()) [[unlikely]] detail::gradient_replaced(impl_->meta->grad);
  impl_->meta->grad->grad = Tensor();
}

void Tensor::retain_grad() {
  require_grad_flag("retain_grad", *this);
  AutogradMeta& meta = *impl_->meta;
  if (meta.is_leaf || meta.grad) return;
  need_slot(meta, impl_);
  meta.node->need_hooks().retained.push_back({meta.slot, meta.grad});
}

void Tensor::backward() const { cutaway::backward({*this}); }
void Tensor::backward(const Tensor& upstream) const { cutaway::backward({*this}, {upstream}); }

Tensor Tensor::detach() const { return make_view(*this, checked()->layout); }

void Tensor::set_data(const Tensor& value) {
  TensorImpl* to = checked();
  const TensorImpl* from = value.impl();
  if (!is_leaf()) {
    throw AutogradError("set_data", "only leaves can get new values; this is a result of an op",
                        "assign the handle instead");
  }
  detail::note_state_change();
  if (from->storage) from->storage->retain();
  if (to->storage) to->storage->drop();
  to->storage = from->storage;
  to->layout = from->layout;
  to->numel = from->numel;
  to->dtype = from->dtype;
  to->device = from->device;
  to->contiguous = from->contiguous;
  to->is_view = from->is_view;
  if (to->meta) {
    to->meta->node = {};  // the accumulator described the old sizes and type
    if (to->meta->grad && to->meta->grad->grad.defined() &&
        to->meta->grad->grad.sizes() != sizes()) {
      to->meta->grad->grad = Tensor();
    }
  }
}

HookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook) {
  require_grad_flag("register_hook", t);
  const Edge edge = gradient_edge(t);
  auto alive = std::make_shared<bool>(true);
  edge.node->need_hooks().tensor.push_back({edge.slot, alive, std::move(hook)});
  return HookHandle(alive);
}

HookHandle register_after_accumulate(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  require_grad_flag("register_after_accumulate", leaf);
  if (!leaf.is_leaf()) {
    throw AutogradError("register_after_accumulate", "needs a leaf; got the result of an op",
                        "use register_hook");
  }
  auto alive = std::make_shared<bool>(true);
  gradient_edge(leaf).node->need_hooks().after.push_back({alive, std::move(hook)});
  return HookHandle(alive);
}

HookHandle register_node_hook_before(const Tensor& t, std::function<void(Tensors&)> hook) {
  require_grad_flag("register_node_hook_before", t);
  auto alive = std::make_shared<bool>(true);
  gradient_edge(t).node->need_hooks().before_backward.push_back({alive, std::move(hook)});
  return HookHandle(alive);
}

HookHandle register_node_hook_after(const Tensor& t, std::function<void(Tensors&)> hook) {
  require_grad_flag("register_node_hook_after", t);
  auto alive = std::make_shared<bool>(true);
  gradient_edge(t).node->need_hooks().after_backward.push_back({alive, std::move(hook)});
  return HookHandle(alive);
}

}  // namespace cutaway
