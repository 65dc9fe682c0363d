#include <cutaway/autograd/function.h>

#include <fmt/format.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/node.h>

namespace cutaway {

// The node part of a user function: saved values with their origin (input, output, or neither).
class FunctionNode : public CustomBackward {
 public:
  explicit FunctionNode(std::unique_ptr<Function> function) : function_(std::move(function)) {}

  FunctionContext context;

  Function& function() { return *function_; }
  const char* name() const override { return function_->name(); }

  void keep_saved(const Tensors& inputs, const Tensors& outputs) {
    context.node_ = this;
    for (const Tensor& t : context.to_save) {
      Origin origin{Saved(t), -1, -1};
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].defined() && inputs[i].is_same(t)) origin.input = int(i);
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].is_same(t)) origin.output = int(i);
      }
      saved_.push_back(std::move(origin));
    }
    context.to_save.clear();
  }

  void backward(Backward& b) override {
    node_ = &b.node;
    Tensors upstream;
    for (uint32_t i = 0; i < b.node.num_outputs; ++i) upstream.push_back(b.upstream(int(i)));
    Tensors grads = function_->backward(context, upstream);
    if (grads.size() != b.grads.size()) {
      throw AutogradError(
          name(), fmt::format("backward must return one gradient for each input; got {}, need {}",
                              grads.size(), b.grads.size()));
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      if (b.needs(int(i))) b.set(int(i), std::move(grads[i]));
    }
  }

  Tensor unpack(size_t i) const {
    if (i >= saved_.size()) {
      throw AutogradError(
          name(), fmt::format("asked for saved tensor {}; forward saved {}", i, saved_.size()));
    }
    const Origin& o = saved_[i];
    Tensor value = o.value.unpack(name(), node_->site);
    if (!cutaway::context().grad_enabled || !value.is_floating()) return value;
    Tensor t = value.detach();
    if (o.input >= 0) {
      const Edge& e = node_->edges()[size_t(o.input)];
      if (e.node) set_history(t, e.node, e.slot);
    } else if (o.output >= 0) {
      node_->refs.fetch_add(1, std::memory_order_relaxed);
      set_history(t, NodePtr(node_), uint32_t(o.output));
    } else {
      set_history(t, poison_node(t, name()), 0);
    }
    return t;
  }

 private:
  struct Origin {
    Saved value;
    int input, output;
  };
  std::unique_ptr<Function> function_;
  std::vector<Origin> saved_;
  Node* node_ = nullptr;
};

Tensor FunctionContext::saved(size_t i) const { return node_->unpack(i); }

Tensors apply(std::unique_ptr<Function> function, const Tensors& inputs, std::source_location at) {
  CallScope scope(at);
  bool record = false;
  for (const Tensor& t : inputs) record = record || (t.defined() && t.requires_grad());
  record = record && context().grad_enabled;
  auto node = std::make_unique<FunctionNode>(std::move(function));
  Tensors outputs;
  {
    NoGradGuard no_grad;
    outputs = node->function().forward(node->context, inputs);
  }
  // An input handed through must not get this node as its own producer.
  for (Tensor& out : outputs) {
    for (const Tensor& in : inputs) {
      if (in.defined() && out.is_same(in)) out = out.detach();
    }
  }
  if (record) {
    node->keep_saved(inputs, outputs);
    record_custom(std::move(node), inputs, outputs, at);
  }
  return outputs;
}

}  // namespace cutaway
