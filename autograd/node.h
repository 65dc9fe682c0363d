#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <vector>

#include <cutaway/autograd/meta.h>
#include <cutaway/autograd/op.h>
#include <cutaway/autograd/saved.h>

namespace cutaway {

// Size and type of one output of a node: what its gradient must look like.
struct OutputInfo {
  Shape sizes;
  DType dtype = DType::f32;
  Device device;

  void set(const Tensor& t) {
    sizes.assign(t.sizes());
    dtype = t.dtype();
    device = t.device();
  }
};

// Backward of a user-defined function (autograd/function.h).
struct CustomBackward {
  virtual ~CustomBackward() = default;
  virtual const char* name() const = 0;
  virtual void backward(Backward& b) = 0;
};

struct NodeHooks {
  struct TensorHook {
    uint32_t slot;
    std::shared_ptr<bool> alive;
    std::function<Tensor(const Tensor&)> fn;
  };
  struct Retained {
    uint32_t slot;
    std::weak_ptr<GradSlot> grad;
  };
  struct AfterAccumulate {
    std::shared_ptr<bool> alive;
    std::function<void(const Tensor&)> fn;
  };
  struct NodeHook {
    std::shared_ptr<bool> alive;
    std::function<void(Tensors&)> fn;
  };
  std::vector<TensorHook> tensor;
  std::vector<Retained> retained;
  std::vector<AfterAccumulate> after;
  std::vector<NodeHook> before_backward;  // may change the gradients of the outputs
  std::vector<NodeHook> after_backward;   // may change the gradients of the inputs
};

// One recorded op: one pooled block that holds the header, edges, saved values, output descriptions
// and a copy of the attributes.
struct Node {
  std::atomic<uint32_t> refs{1};
  uint32_t num_edges = 0;
  uint32_t num_saved = 0;
  uint32_t num_outputs = 0;
  uint32_t attr_bytes = 0;
  uint32_t total_bytes = 0;
  bool released = false;         // saved values are gone
  bool poison = false;           // runs (and raises) whenever a gradient reaches it
  const OpRecord* op = nullptr;  // null: accumulator of a leaf
  uint64_t sequence = 0;         // grows with every node; consumers have higher numbers
  const ModuleScope* module = nullptr;
  std::source_location site;
  std::weak_ptr<GradSlot> leaf;  // accumulators only
  std::unique_ptr<CustomBackward> custom;
  std::unique_ptr<NodeHooks> hooks;

  std::span<Edge> edges() { return {reinterpret_cast<Edge*>(this + 1), num_edges}; }
  // Saved inputs in order, then saved outputs, then extras.
  std::span<Saved> saved() {
    return {reinterpret_cast<Saved*>(edges().data() + num_edges), num_saved};
  }
  std::span<OutputInfo> outputs() {
    return {reinterpret_cast<OutputInfo*>(saved().data() + num_saved), num_outputs};
  }
  const void* attrs() { return outputs().data() + num_outputs; }
  const char* name() const;
  NodeHooks& need_hooks();
  // Frees saved values; the node stays as part of the graph.
  void release_saved();
};

// A node with default-constructed parts; count 1.
Node* new_node(const OpRecord* op, uint32_t edges, uint32_t saved, uint32_t outputs,
               uint32_t attr_bytes);
// A node whose backward raises with `why`; marks values that are constant only by mistake.
NodePtr poison_node(const Tensor& value, const char* saved_by);

// Hooks on the producer of `t`: run before its rule (gradients of its outputs) or after (of its
// inputs).
HookHandle register_node_hook_before(const Tensor& t, std::function<void(Tensors&)> hook);
HookHandle register_node_hook_after(const Tensor& t, std::function<void(Tensors&)> hook);

// Links outputs of a user function to the graph.
void record_custom(std::unique_ptr<CustomBackward> custom, const Tensors& inputs,
                   const Tensors& outputs, std::source_location site);

}  // namespace cutaway
