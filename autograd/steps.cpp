#include <cutaway/autograd/steps.h>

#include <fmt/format.h>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/node.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/text.h>

namespace cutaway {
namespace {

constexpr int64_t kPrintedWhole = 12;  // elements

std::string place_of(const std::source_location& site) {
  return fmt::format("{}:{}", source_name(site.file_name()), site.line());
}

std::string describe(const Tensor& g) {
  if (!g.defined()) return "none";
  const std::string sizes = to_string(g.sizes());
  if (g.is_meta() || g.numel() == 0) return sizes;
  NoGradGuard no_grad;
  const Tensor flat = g.to(kCpu).to(DType::f64).reshape({-1});
  if (g.numel() > kPrintedWhole) {
    return fmt::format("{} rms {:.3g}", sizes, square(flat).mean().item());
  }
  std::string text = sizes;
  for (const double v : flat.to_vector()) text += fmt::format(" {:.4g}", v);
  return text;
}

// All nodes that a gradient of `root` can reach.
std::vector<Node*> nodes_below(Node* root) {
  std::set<Node*> seen{root};
  std::vector<Node*> list{root};
  for (size_t i = 0; i < list.size(); ++i) {
    for (const Edge& e : list[i]->edges()) {
      if (e.node && seen.insert(e.node.get()).second) list.push_back(e.node.get());
    }
  }
  return list;
}

BackwardStep describe_node(Node& node, const Tensors& upstream) {
  BackwardStep step;
  step.op = node.op ? node.name() : "leaf";
  step.formula = node.op ? node.op->backward_text : "grad += g";
  step.module = module_path(node.module);
  step.site = node.op ? place_of(node.site) : "";
  step.upstream = upstream;
  return step;
}

}  // namespace

std::string to_string(const BackwardStep& step) {
  std::string text = fmt::format("{:<14} {}\n", step.op, step.formula);
  if (!step.module.empty()) text += fmt::format("  at   {}\n", step.module);
  if (!step.site.empty()) text += fmt::format("  in   {}\n", step.site);
  for (const Tensor& g : step.upstream) text += fmt::format("  got  {}\n", describe(g));
  for (const Tensor& g : step.gradients) text += fmt::format("  gave {}\n", describe(g));
  return text;
}

void step_backward(const Tensor& loss, const std::function<void(const BackwardStep&)>& look) {
  const Edge root = gradient_edge(loss);
  if (!root.node) return loss.backward();  // which says what is wrong
  const auto alive = std::make_shared<bool>(true);
  const auto arriving = std::make_shared<Tensors>();
  const std::vector<Node*> nodes = nodes_below(root.node.get());
  for (Node* node : nodes) {
    NodeHooks& hooks = node->need_hooks();
    hooks.before_backward.push_back({alive, [node, arriving, &look](Tensors& upstream) {
                                       *arriving = upstream;
                                       if (!node->op) look(describe_node(*node, upstream));
                                     }});
    hooks.after_backward.push_back({alive, [node, arriving, &look](Tensors& gradients) {
                                      BackwardStep step = describe_node(*node, *arriving);
                                      step.gradients = gradients;
                                      look(step);
                                    }});
  }
  struct Remove {
    const std::vector<Node*>& nodes;
    const std::shared_ptr<bool>& alive;
    ~Remove() {
      *alive = false;
      for (Node* node : nodes) {
        std::erase_if(node->hooks->before_backward, [](const auto& h) { return !*h.alive; });
        std::erase_if(node->hooks->after_backward, [](const auto& h) { return !*h.alive; });
      }
    }
  } remove{nodes, alive};
  loss.backward();
}

}  // namespace cutaway
