#include <cutaway/autograd/onnx_rule.h>

#include <fmt/format.h>
#include <set>

#include <cutaway/core/error.h>

namespace cutaway {

void OnnxGraph::add_weight(const Tensor& t, const std::string& name) {
  if (t.defined()) weights_.try_emplace(t.impl(), name);
}

void OnnxGraph::bind(const Tensor& t, const std::string& name) {
  if (!known_.try_emplace(t.impl(), Known{t, name}).second) return;
  if (t.storage()) by_storage_.emplace(t.storage(), t.impl());
  names_.try_emplace(name, 1);
}

std::string OnnxGraph::unique(const std::string& base) {
  int& count = names_[base];
  if (count++ == 0) return base;
  std::string name;
  do {
    name = fmt::format("{}_{}", base, count++);
  } while (names_.contains(name));
  names_[name] = 1;
  return name;
}

// Handles without history (detach) are other handles of the same values.
const std::string* OnnxGraph::find(const Tensor& t) const {
  if (const auto it = known_.find(t.impl()); it != known_.end()) return &it->second.name;
  if (!t.storage()) return nullptr;
  const auto [begin, end] = by_storage_.equal_range(t.storage());
  for (auto it = begin; it != end; ++it) {
    const TensorImpl* k = it->second;
    const bool same = k->dtype == t.dtype() && k->layout.sizes == t.sizes() &&
                      k->layout.strides == t.strides() && k->layout.offset == t.layout().offset;
    if (same) return &known_.at(k).name;
  }
  return nullptr;
}

std::string OnnxGraph::value(const Tensor& t) {
  if (const std::string* name = find(t)) return *name;
  const auto weight = weights_.find(t.impl());
  const std::string name = unique(weight != weights_.end() ? weight->second : "constant");
  graph.initializers.push_back({name, t.detach()});
  bind(t, name);
  return name;
}

void OnnxGraph::add(const RecordedOp& op) {
  OnnxCall call(*this, op);
  if (!op.op->onnx) call.refuse("has no equivalent in ONNX");
  op.op->onnx(call);
  for (const Tensor& t : op.outputs) {
    if (t.defined()) producers_[t.impl()] = &op;
  }
}

void OnnxGraph::finish(const std::vector<std::string>& results) {
  std::set<std::string> live(results.begin(), results.end());
  std::vector<onnx::Node> kept;
  for (size_t k = graph.nodes.size(); k-- > 0;) {
    onnx::Node& n = graph.nodes[k];
    if (std::none_of(n.outputs.begin(), n.outputs.end(),
                     [&](const std::string& s) { return live.contains(s); })) {
      continue;
    }
    live.insert(n.inputs.begin(), n.inputs.end());
    kept.push_back(std::move(n));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  for (const auto& [value, why] : missing_) {
    if (live.contains(value)) throw ValueError("onnx", why);
  }
  std::erase_if(graph.initializers,
                [&](const onnx::NamedTensor& t) { return !live.contains(t.name); });
}

// ---- what rules write

std::string OnnxCall::name(int i) { return has(i) ? graph_.value(in(i)) : ""; }

std::string OnnxCall::cast(int i, DType type) { return cast(name(i), in(i).dtype(), type); }

std::string OnnxCall::cast(const std::string& value, DType from, DType to) {
  return from == to ? value : node("Cast", {value}, {{"to", onnx::type_number(to)}});
}

std::string OnnxCall::constant(const Tensor& value) {
  const std::string name = graph_.unique("constant");
  graph_.graph.initializers.push_back({name, value});
  return name;
}

std::string OnnxCall::number(double value, DType type) {
  return constant(tensor({value}, {}, {.dtype = type}));
}

std::string OnnxCall::list(const Shape& values) { return constant(index_tensor(values)); }

std::vector<std::string> OnnxCall::nodes(const char* type, std::vector<std::string> inputs,
                                         int results, onnx::Attributes attributes) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  const std::string base =
      op_.module.empty() ? op_.op->name : fmt::format("{}/{}", op_.module, op_.op->name);
  onnx::Node n{.op_type = type, .inputs = std::move(inputs), .attributes = std::move(attributes)};
  for (int i = 0; i < results; ++i) n.outputs.push_back(graph_.unique(base));
  n.name = fmt::format("{}:{}", n.outputs[0], type);
  std::vector<std::string> names = n.outputs;
  graph_.graph.nodes.push_back(std::move(n));
  return names;
}

std::string OnnxCall::node(const char* type, std::vector<std::string> inputs,
                           onnx::Attributes attributes) {
  return nodes(type, std::move(inputs), 1, std::move(attributes))[0];
}

void OnnxCall::no_result(int i, const std::string& why) {
  const std::string name = graph_.unique("missing");
  graph_.missing_[name] =
      fmt::format("{}{}{}: {}", op_.op->name, op_.module.empty() ? "" : " in ", op_.module, why);
  result(i, name);
}

const Tensors* OnnxCall::made_by(int i, const char* op) const {
  const auto it = graph_.producers_.find(in(i).impl());
  if (it == graph_.producers_.end() || std::string(it->second->op->name) != op) return nullptr;
  return &it->second->inputs;
}

void OnnxCall::refuse(const std::string& why) const {
  throw ValueError("onnx", fmt::format("{} {}{}", op_.op->name, why,
                                       op_.module.empty() ? "" : "; in module " + op_.module));
}

}  // namespace cutaway
