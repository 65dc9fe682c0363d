#include <cutaway/autograd/node.h>

#include <new>

#include <cutaway/core/alloc/pool.h>

namespace cutaway {
namespace {

std::atomic<uint64_t> next_sequence{1};

// Note: releasing graphs. A chain of a million nodes must not be freed by recursion. Whoever drops
// the last reference puts the node on this thread's list; the outermost caller empties the list.
struct ReleaseList {
  std::vector<Node*> nodes;
  bool draining = false;
};
thread_local ReleaseList* release_list = nullptr;

void destroy_node(Node* n) {
  for (Saved& s : n->saved()) s.~Saved();
  for (Edge& e : n->edges()) e.~Edge();
  for (OutputInfo& o : n->outputs()) o.~OutputInfo();
  const uint32_t bytes = n->total_bytes;
  n->~Node();
  pool_free(n, bytes);
}

void release_node(Node* n) {
  if (release_list) {
    release_list->nodes.push_back(n);
    return;
  }
  ReleaseList list;
  release_list = &list;
  destroy_node(n);
  while (!list.nodes.empty()) {
    Node* next = list.nodes.back();
    list.nodes.pop_back();
    destroy_node(next);
  }
  release_list = nullptr;
}

void poison_backward(Backward& b) {
  const char* by = b.attrs<const char*>();
  throw AutogradError(
      by,
      "second derivative through a value that was saved for backward but is neither "
      "input nor output; its dependence on the inputs is unknown",
      "save inputs or outputs only, or compute the value again in backward");
}

const OpRecord kPoison{.name = "saved_intermediate",
                       .signature = "",
                       .meaning = "Marks a saved intermediate value.",
                       .formula = "",
                       .shapes = "",
                       .forward = nullptr,
                       .backward = poison_backward};

void custom_backward(Backward& b) { b.node.custom->backward(b); }

const OpRecord kCustom{.name = "custom",
                       .signature = "",
                       .meaning = "A function with a derivative given by the user.",
                       .formula = "",
                       .shapes = "",
                       .forward = nullptr,
                       .backward = custom_backward};

}  // namespace

void NodePtr::retain() const { node_->refs.fetch_add(1, std::memory_order_relaxed); }
void NodePtr::drop() const {
  if (node_->refs.load(std::memory_order_acquire) == 1 ||
      node_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    release_node(node_);
  }
}

Node* new_node(const OpRecord* op, uint32_t edges, uint32_t saved, uint32_t outputs,
               uint32_t attr_bytes) {
  const size_t bytes = sizeof(Node) + edges * sizeof(Edge) + saved * sizeof(Saved) +
                       outputs * sizeof(OutputInfo) + attr_bytes;
  Node* n = new (pool_allocate(int64_t(bytes))) Node;
  n->op = op;
  n->num_edges = edges;
  n->num_saved = saved;
  n->num_outputs = outputs;
  n->attr_bytes = attr_bytes;
  n->total_bytes = uint32_t(bytes);
  n->sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  n->module = context().module;
  n->site = context().site;
  for (Edge& e : n->edges()) new (&e) Edge;
  for (Saved& s : n->saved()) new (&s) Saved;
  for (OutputInfo& o : n->outputs()) new (&o) OutputInfo;
  return n;
}

const char* Node::name() const {
  if (!op) return "leaf";
  return custom ? custom->name() : op->name;
}

NodeHooks& Node::need_hooks() {
  if (!hooks) hooks = std::make_unique<NodeHooks>();
  return *hooks;
}

void Node::release_saved() {
  if (released) return;
  released = true;
  for (Saved& s : saved()) s.reset();
}

NodePtr poison_node(const Tensor& value, const char* saved_by) {
  Node* n = new_node(&kPoison, 0, 0, 1, sizeof(const char*));
  n->poison = true;
  n->outputs()[0].set(value);
  *static_cast<const char**>(const_cast<void*>(n->attrs())) = saved_by;
  return NodePtr(n);
}

void record_custom(std::unique_ptr<CustomBackward> custom, const Tensors& inputs,
                   const Tensors& outputs, std::source_location site) {
  Node* n = new_node(&kCustom, uint32_t(inputs.size()), 0, uint32_t(outputs.size()), 0);
  n->custom = std::move(custom);
  n->site = site;
  NodePtr node(n);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) n->edges()[i] = gradient_edge(inputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    n->outputs()[i].set(outputs[i]);
    if (outputs[i].is_floating()) set_history(outputs[i], node, uint32_t(i));
  }
}

}  // namespace cutaway
