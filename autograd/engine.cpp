#include <fmt/format.h>
#include <algorithm>
#include <queue>

#include <cutaway/autograd/anomaly.h>
#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/node.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/record_watch.h>
#include <cutaway/core/trace.h>

namespace cutaway {
namespace {

// What one run of the engine knows about a node.
struct State {
  Node* node;
  int dependencies = 0;  // consumers that have not run yet
  bool needed = false;   // leads to a wanted input
  Tensors gradients;     // sums so far, one for each output
};

// Node → State, open addressing: the engine looks a node up for every edge.
class StateMap {
 public:
  explicit StateMap(size_t expected) { grow(std::max<size_t>(64, expected * 2)); }
  // Index of the node's state, and whether it is new.
  std::pair<uint32_t, bool> insert(Node* n) {
    if (states.size() * 2 >= slots_.size()) grow(slots_.size() * 2);
    for (size_t i = hash(n);; ++i) {
      uint32_t& slot = slots_[i & mask_];
      if (slot == kFree) {
        slot = uint32_t(states.size());
        states.push_back({n, 0, false, {}});
        return {slot, true};
      }
      if (states[slot].node == n) return {slot, false};
    }
  }
  State* find(Node* n) {
    for (size_t i = hash(n);; ++i) {
      const uint32_t slot = slots_[i & mask_];
      if (slot == kFree) return nullptr;
      if (states[slot].node == n) return &states[slot];
    }
  }
  std::vector<State> states;

 private:
  static constexpr uint32_t kFree = ~0u;
  size_t hash(Node* n) const {
    return (reinterpret_cast<uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15ull >> 20;
  }
  void grow(size_t size) {
    size_t n = 64;
    while (n < size) n *= 2;
    slots_.assign(n, kFree);
    mask_ = n - 1;
    for (uint32_t s = 0; s < states.size(); ++s) {
      size_t i = hash(states[s].node);
      while (slots_[i & mask_] != kFree) ++i;
      slots_[i & mask_] = s;
    }
  }
  std::vector<uint32_t> slots_;
  size_t mask_ = 0;
};

// A wanted gradient: output `slot` of `node`, to be stored in results[index].
struct Target {
  Node* node;
  uint32_t slot;
  size_t index;
};

class Engine {
 public:
  Engine(bool create_graph, bool retain_graph)
      : create_graph_(create_graph), retain_(retain_graph), map_(64) {}

  void run(const std::vector<Edge>& roots, const Tensors& upstreams, std::vector<Target> targets,
           Tensors* results);

 private:
  void discover(const std::vector<Edge>& roots);
  void mark_needed(const std::vector<Target>& targets);
  void add_gradient(const Edge& edge, Tensor grad);
  void apply_hooks(State& s);
  void accumulate_leaf(State& s);
  void call(State& s);

  bool create_graph_;
  bool retain_;
  bool capture_ = false;
  StateMap map_;
};

// Consumers have higher numbers than producers, so the ready node with the highest number runs
// first; leaves run as soon as they are complete (their hooks may start communication).
struct Earlier {
  bool operator()(const Node* a, const Node* b) const {
    const bool leaf_a = !a->op, leaf_b = !b->op;
    if (leaf_a != leaf_b) return leaf_b;
    return a->sequence < b->sequence;
  }
};

void Engine::discover(const std::vector<Edge>& roots) {
  std::vector<Node*> stack;
  for (const Edge& e : roots) {
    if (map_.insert(e.node.get()).second) stack.push_back(e.node.get());
  }
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Edge& e : n->edges()) {
      if (!e.node) continue;
      const auto [index, fresh] = map_.insert(e.node.get());
      ++map_.states[index].dependencies;
      if (fresh) stack.push_back(e.node.get());
    }
  }
}

void Engine::mark_needed(const std::vector<Target>& targets) {
  std::vector<State*> order;
  for (State& s : map_.states) order.push_back(&s);
  // Producers first. Leaves have no edges, so their place does not matter.
  std::sort(order.begin(), order.end(),
            [](State* a, State* b) { return a->node->sequence < b->node->sequence; });
  for (const Target& t : targets) {
    if (State* s = map_.find(t.node)) s->needed = true;
  }
  for (State* s : order) s->needed = s->needed || s->node->poison;
  for (State* s : order) {
    for (const Edge& e : s->node->edges()) {
      if (!s->needed && e.node) s->needed = map_.find(e.node.get())->needed;
    }
  }
}

// The one place where sizes and types that differ from the forward value are brought back.
Tensor match(const OutputInfo& info, Tensor grad, const Node& to) {
  if (grad.sizes() != info.sizes) {
    const bool reducible = grad.dim() >= info.sizes.rank();
    if (!reducible) {
      throw AutogradError(to.name(),
                          fmt::format("a gradient has other sizes than its value; got {}, need {}",
                                      to_string(grad.sizes()), to_string(info.sizes)));
    }
    grad = sum_to(grad, info.sizes);
  }
  if (grad.dtype() != info.dtype) grad = grad.to(info.dtype);
  return grad;
}

void Engine::add_gradient(const Edge& edge, Tensor grad) {
  State& s = *map_.find(edge.node.get());
  if (capture_ && !s.needed) return;
  grad = match(edge.node.get()->outputs()[edge.slot], std::move(grad), *edge.node.get());
  if (s.gradients.empty()) s.gradients.resize(edge.node.get()->num_outputs);
  Tensor& sum = s.gradients[edge.slot];
  if (!sum.defined()) {
    sum = std::move(grad);
  } else {
    sum = add(std::move(sum), grad);
  }
}

void Engine::apply_hooks(State& s) {
  NodeHooks& hooks = *s.node->hooks;
  for (size_t i = 0; i < hooks.tensor.size(); ++i) {
    const auto hook = hooks.tensor[i];  // a copy: the hook may change the list
    if (!*hook.alive || !s.gradients[hook.slot].defined()) continue;
    Tensor changed = hook.fn(s.gradients[hook.slot]);
    if (!changed.defined()) continue;
    if (changed.sizes() != s.gradients[hook.slot].sizes()) {
      throw AutogradError(
          s.node->name(),
          fmt::format("a hook must keep the sizes of the gradient; got {}, need {}",
                      to_string(changed.sizes()), to_string(s.gradients[hook.slot].sizes())));
    }
    s.gradients[hook.slot] = changed;
  }
  std::erase_if(hooks.tensor, [](const auto& h) { return !*h.alive; });
  for (const auto& r : hooks.retained) {
    if (auto slot = r.grad.lock()) slot->grad = s.gradients[r.slot];
  }
  for (size_t i = 0; i < hooks.before_backward.size(); ++i) {
    const auto hook = hooks.before_backward[i];
    if (*hook.alive) hook.fn(s.gradients);
  }
}

// Note: stored gradients. A gradient kept in .grad has memory of its own, so that nobody's later
// write shows up in it; a fresh value that nobody else holds is taken over without a copy.
Tensor own(Tensor grad, bool keep_history) {
  const TensorImpl* impl = grad.impl();
  const bool alone = impl->refs.load() == 1 && impl->storage && impl->storage->refs.load() == 1 &&
                     impl->contiguous && !impl->storage->owner;
  if (keep_history) return alone ? grad : grad.clone();
  if (alone && !impl->meta) return grad;
  return alone ? grad.detach() : grad.detach().clone();
}

void Engine::accumulate_leaf(State& s) {
  if (s.gradients.empty() || !s.gradients[0].defined()) return;
  auto slot = s.node->leaf.lock();
  if (!slot) return;
  if (recording_somewhere()) [[unlikely]] detail::gradient_used(slot);
  Tensor grad = std::move(s.gradients[0]);
  if (!slot->grad.defined()) {
    slot->grad = own(std::move(grad), create_graph_);
  } else if (create_graph_ || slot->grad.requires_grad()) {
    slot->grad = add(slot->grad, grad);
  } else {
    slot->grad.add_(grad);
  }
  if (!s.node->hooks || !slot->owner) return;
  slot->owner->refs.fetch_add(1);
  const Tensor leaf = Tensor::take(slot->owner);
  auto& after = s.node->hooks->after;
  for (size_t i = 0; i < after.size(); ++i) {
    const auto hook = after[i];
    if (*hook.alive) hook.fn(leaf);
  }
  std::erase_if(after, [](const auto& h) { return !*h.alive; });
}

void Engine::call(State& s) {
  Node& n = *s.node;
  if (n.released && n.num_saved) {
    throw AutogradError(n.name(),
                        "this part of the graph was already used and its saved values freed",
                        "pass retain_graph = true to the first backward call");
  }
  Context& c = context();
  const ModuleScope* module = c.module;
  c.module = n.module;
  struct Restore {
    Context& c;
    const ModuleScope* module;
    ~Restore() { c.module = module; }
  } restore{c, module};
  CallScope scope(n.site);
  Backward b(n, s.gradients.data());
  const auto rule = !create_graph_ && n.op->fast_backward ? n.op->fast_backward : n.op->backward;
  if (trace::enabled()) [[unlikely]] {
    trace::OpEvent event(n.op->name);
    rule(b);
    event.finish_backward(s.gradients.data(), int(s.gradients.size()), b.grads.data(),
                          int(b.grads.size()));
  } else {
    rule(b);
  }
  if (c.anomaly) check_backward_values(b);
  if (n.hooks) {
    for (size_t i = 0; i < n.hooks->after_backward.size(); ++i) {
      const auto hook = n.hooks->after_backward[i];
      if (*hook.alive) hook.fn(b.grads);
    }
  }
  s.gradients.clear();
  if (!retain_) n.release_saved();
  for (uint32_t i = 0; i < n.num_edges; ++i) {
    if (n.edges()[i].node && b.grads[i].defined())
      add_gradient(n.edges()[i], std::move(b.grads[i]));
  }
}

void Engine::run(const std::vector<Edge>& roots, const Tensors& upstreams,
                 std::vector<Target> targets, Tensors* results) {
  GradModeGuard mode(create_graph_);
  capture_ = results != nullptr;
  discover(roots);
  if (capture_) mark_needed(targets);
  for (size_t i = 0; i < roots.size(); ++i) add_gradient(roots[i], upstreams[i]);
  std::priority_queue<Node*, std::vector<Node*>, Earlier> ready;
  for (State& s : map_.states) {
    if (s.dependencies == 0) ready.push(s.node);
  }
  std::sort(targets.begin(), targets.end(),
            [](const Target& a, const Target& b) { return a.node < b.node; });
  while (!ready.empty()) {
    Node* n = ready.top();
    ready.pop();
    State& s = *map_.find(n);
    const bool reached = !s.gradients.empty();
    if (reached && n->hooks) {
      if (recording_somewhere()) [[unlikely]] recording::refuse(n->name(), "has hooks");
      apply_hooks(s);
    }
    if (capture_ && reached) {
      auto t = std::lower_bound(targets.begin(), targets.end(), n,
                                [](const Target& a, Node* b) { return a.node < b; });
      for (; t != targets.end() && t->node == n; ++t) (*results)[t->index] = s.gradients[t->slot];
    }
    if (reached) {
      const bool inner = std::any_of(n->edges().begin(), n->edges().end(), [&](const Edge& e) {
        return e.node && (!capture_ || map_.find(e.node.get())->needed);
      });
      if (!n->op) {
        if (!capture_) accumulate_leaf(s);
      } else if (inner || n->num_edges == 0) {
        call(s);
      }
      s.gradients.clear();
    }
    for (const Edge& e : n->edges()) {
      if (e.node && --map_.find(e.node.get())->dependencies == 0) ready.push(e.node.get());
    }
  }
}

// Root edges and upstream gradients, checked.
std::vector<Edge> root_edges(const char* op, const Tensors& outputs, const Tensors& given,
                             Tensors& upstreams) {
  if (!given.empty() && given.size() != outputs.size()) {
    throw AutogradError(op,
                        fmt::format("needs one upstream gradient for each output; got {}, need {}",
                                    given.size(), outputs.size()));
  }
  std::vector<Edge> roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    Edge e = gradient_edge(out);
    if (!e.node) {
      throw AutogradError(op,
                          fmt::format("output {} {} has no history and does not require grad", i,
                                      to_string(out.sizes())),
                          "was it computed under no-grad, detached, or from constants only?");
    }
    if (!given.empty() && given[i].defined()) {
      if (given[i].sizes() != out.sizes()) {
        throw ShapeError(
            op, fmt::format("upstream {} must have the sizes of its output; got {}, need {}", i,
                            to_string(given[i].sizes()), to_string(out.sizes())));
      }
      upstreams.push_back(given[i]);
    } else if (out.numel() == 1) {
      upstreams.push_back(ones_like(out));
    } else {
      throw AutogradError(
          op,
          fmt::format("an output with {} elements needs an upstream gradient; got {}", out.numel(),
                      to_string(out.sizes())),
          "reduce it with sum() or mean(), or pass upstream");
    }
    roots.push_back(std::move(e));
  }
  return roots;
}

}  // namespace

void backward(const Tensors& outputs, const Tensors& given, const GradOptions& options) {
  Tensors upstreams;
  const std::vector<Edge> roots = root_edges("backward", outputs, given, upstreams);
  Engine engine(options.create_graph, options.retain_graph.value_or(options.create_graph));
  engine.run(roots, upstreams, {}, nullptr);
}

Tensors grad(const Tensors& outputs, const Tensors& inputs, const GradOptions& options,
             const Tensors& given) {
  Tensors upstreams;
  const std::vector<Edge> roots = root_edges("grad", outputs, given, upstreams);
  std::vector<Target> targets;
  std::vector<Edge> keep_alive;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Edge e = gradient_edge(inputs[i]);
    if (!e.node && !options.allow_unused) {
      throw AutogradError(
          "grad", fmt::format("input {} {} does not require grad", i, to_string(inputs[i].sizes())),
          "call set_requires_grad() before it is used");
    }
    if (!e.node) continue;
    targets.push_back({e.node.get(), e.slot, i});
    keep_alive.push_back(std::move(e));
  }
  Tensors results(inputs.size());
  Engine engine(options.create_graph, options.retain_graph.value_or(options.create_graph));
  engine.run(roots, upstreams, std::move(targets), &results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() && !options.allow_unused) {
      throw AutogradError("grad",
                          fmt::format("input {} {} was not used to compute the outputs", i,
                                      to_string(inputs[i].sizes())),
                          "allow_unused = true gives an undefined result instead");
    }
  }
  return results;
}

}  // namespace cutaway
