#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway {

struct Node;

// A counted pointer to a Node.
class NodePtr {
 public:
  NodePtr() = default;
  explicit NodePtr(Node* taken) : node_(taken) {}
  NodePtr(const NodePtr& o) : node_(o.node_) {
    if (node_) retain();
  }
  NodePtr(NodePtr&& o) noexcept : node_(o.node_) { o.node_ = nullptr; }
  NodePtr& operator=(NodePtr o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~NodePtr() {
    if (node_) drop();
  }
  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node* release() {
    Node* n = node_;
    node_ = nullptr;
    return n;
  }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  void retain() const;
  void drop() const;

  Node* node_ = nullptr;
};

// Where a gradient flows: output `slot` of `node`. Empty when no gradient is wanted.
struct Edge {
  NodePtr node;
  uint32_t slot = 0;
};

// Place of an accumulated gradient. Owned by the tensor; nodes know it weakly, so that a gradient
// with history never keeps itself alive (Note: gradient cycles).
struct GradSlot {
  Tensor grad;
  TensorImpl* owner = nullptr;  // null once the tensor is gone
};

// Gradient record of a tensor: a leaf that requires grad, or a result with its producer.
struct AutogradMeta {
  bool requires_grad = false;  // leaves only
  NodePtr node;                // producer, or the leaf's accumulator (made on demand)
  uint32_t slot = 0;
  bool is_leaf = true;
  std::shared_ptr<GradSlot> grad;  // leaves and retained results
};

// The edge that leads to this tensor: producer, accumulator, or empty.
Edge gradient_edge(const Tensor& t);
// Makes `t` output `slot` of `node`.
void set_history(const Tensor& t, NodePtr node, uint32_t slot);

// Removes a hook; safe to call at any time, also from inside the hook.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::shared_ptr<bool> alive) : alive_(std::move(alive)) {}
  void remove() {
    if (alive_) *alive_ = false;
  }

 private:
  std::shared_ptr<bool> alive_;
};

// Called once with the full gradient of `t`; may return another one (same shape) or an undefined
// tensor to keep it. Hooks run in order of registration. Raises AutogradError when `t` needs no
// grad.
HookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor& grad)> hook);
// Called on a leaf after its gradient has been accumulated into grad().
HookHandle register_after_accumulate(const Tensor& leaf,
                                     std::function<void(const Tensor& leaf)> hook);

}  // namespace cutaway
