#include <cutaway/autograd/node.h>

#include <bit>

namespace cutaway {
namespace {

// Index among a node's saved values of input/output bit `i` in `mask`.
uint32_t rank_in(uint32_t mask, int i) { return uint32_t(std::popcount(mask & ((1u << i) - 1))); }

[[noreturn]] void throw_not_saved(const Node& n, const char* what, int i) {
  throw AutogradError(n.name(), "backward reads " + std::string(what) + " " + std::to_string(i) +
                                    ", which the record does not save");
}

// Gives a saved value its history back, if the backward pass is being recorded.
Tensor with_history(Tensor value, const Edge& edge) {
  if (!context().grad_enabled || !edge.node) return value;
  Tensor t = value.detach();
  set_history(t, edge.node, edge.slot);
  return t;
}

}  // namespace

Backward::Backward(Node& n, const Tensor* g) : node(n), upstreams(g), grads(n.num_edges) {}

const void* Backward::attr_data() const { return node.attrs(); }

const Tensor& Backward::upstream(int i) {
  if (upstreams[i].defined()) return upstreams[i];
  if (zeros_.empty()) zeros_.resize(node.num_outputs);
  if (!zeros_[i].defined()) {
    const OutputInfo& info = node.outputs()[i];
    zeros_[i] = zeros(info.sizes, {.dtype = info.dtype, .device = info.device});
  }
  return zeros_[i];
}

bool Backward::has_upstream(int i) const { return upstreams[i].defined(); }
bool Backward::needs(int i) const { return bool(node.edges()[i].node); }
int Backward::num_inputs() const { return int(node.num_edges); }

Tensor Backward::input(int i) {
  const uint32_t mask = node.op->save_inputs;
  if (!(mask >> i & 1)) throw_not_saved(node, "input", i);
  const Saved& s = node.saved()[rank_in(mask, i)];
  if (!s.defined()) return {};
  return with_history(s.unpack(node.name(), node.site), node.edges()[i]);
}

Tensor Backward::output(int i) {
  const uint32_t mask = node.op->save_outputs;
  if (!(mask >> i & 1)) throw_not_saved(node, "output", i);
  const Saved& s = node.saved()[std::popcount(node.op->save_inputs) + rank_in(mask, i)];
  Tensor value = s.unpack(node.name(), node.site);
  if (!context().grad_enabled) return value;
  node.refs.fetch_add(1, std::memory_order_relaxed);
  return with_history(std::move(value), Edge{NodePtr(&node), uint32_t(i)});
}

int Backward::num_extras() const {
  return int(node.num_saved) - std::popcount(node.op->save_inputs) -
         std::popcount(node.op->save_outputs);
}

Tensor Backward::extra(int i) {
  const int base = std::popcount(node.op->save_inputs) + std::popcount(node.op->save_outputs);
  Tensor value = node.saved()[base + i].unpack(node.name(), node.site);
  if (!context().grad_enabled || !value.is_floating()) return value;
  return with_history(value, Edge{poison_node(value, node.op->name), 0});
}

const Shape& Backward::input_sizes(int i) const {
  const Edge& e = node.edges()[i];
  return e.node.get()->outputs()[e.slot].sizes;
}

DType Backward::input_dtype(int i) const {
  const Edge& e = node.edges()[i];
  return e.node.get()->outputs()[e.slot].dtype;
}

}  // namespace cutaway
