#include <cutaway/nn/onnx/model.h>

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <cutaway/nn/onnx/node_call.h>

namespace cutaway::onnx {
namespace {

std::string label(const Node& n) {
  const std::string name = !n.name.empty() ? n.name : n.outputs.empty() ? "" : n.outputs[0];
  return fmt::format("node '{}' ({})", name, n.op_type);
}

void check_nodes(const File& f) {
  std::set<std::string> known{""};
  for (const ValueInfo& v : f.graph.inputs) known.insert(v.name);
  for (const NamedTensor& t : f.graph.initializers) known.insert(t.name);
  for (const Node& n : f.graph.nodes) {
    if (!n.domain.empty() || !find_operator(n.op_type)) {
      const std::string of = n.domain.empty() ? "" : fmt::format(" of domain {}", n.domain);
      throw ValueError("onnx", fmt::format("{}: the operator{} cannot be run", label(n), of),
                       "docs/onnx.md lists those that can");
    }
    for (const std::string& s : n.inputs) {
      if (!known.contains(s)) {
        throw ValueError("onnx",
                         fmt::format("{} reads '{}', which nothing before it makes", label(n), s));
      }
    }
    known.insert(n.outputs.begin(), n.outputs.end());
  }
  for (const ValueInfo& v : f.graph.outputs) {
    if (!known.contains(v.name)) {
      throw ValueError("onnx", fmt::format("nothing makes the result '{}'", v.name));
    }
  }
}

// Sizes and type must be those of the file where it says them.
void check_input(const ValueInfo& v, const Tensor& t) {
  bool fits = !v.has_shape || int(v.dims.size()) == t.dim();
  std::string need;
  for (size_t d = 0; v.has_shape && d < v.dims.size(); ++d) {
    const Dim& dim = v.dims[d];
    if (fits && dim.value >= 0) fits = t.sizes()[int(d)] == dim.value;
    need += (d ? "," : "") + (dim.value >= 0     ? std::to_string(dim.value)
                              : dim.name.empty() ? "?"
                                                 : dim.name);
  }
  if (!fits) {
    throw ShapeError("onnx", fmt::format("input '{}' has other sizes; got {}, need [{}]", v.name,
                                         to_string(t.sizes()), need));
  }
  if (v.type > 0 && engine_type(v.type) != t.dtype()) {
    throw DTypeError("onnx", fmt::format("input '{}' has another type; got {}, need {}", v.name,
                                         name_of(t.dtype()), type_name(v.type)));
  }
}

std::vector<const ValueInfo*> free_inputs(const Graph& g) {
  std::set<std::string> given;
  for (const NamedTensor& t : g.initializers) given.insert(t.name);
  std::vector<const ValueInfo*> list;
  for (const ValueInfo& v : g.inputs) {
    if (!given.contains(v.name)) list.push_back(&v);
  }
  return list;
}

Tensors run_node(const Node& n, Tensors inputs, int64_t opset) {
  try {
    NodeCall call(n, std::move(inputs), opset);
    find_operator(n.op_type)->run(call);
    call.check_attributes();
    if (call.results.size() < n.outputs.size()) {
      call.fail(
          fmt::format("gives {} results; {} are asked for", call.results.size(), n.outputs.size()));
    }
    return std::move(call.results);
  } catch (const Error& e) {
    throw ValueError("onnx", fmt::format("{}: {}", label(n), e.what()));
  }
}

}  // namespace

Model Model::load(const std::string& path) { return Model(load_file(path)); }

Model::Model(File file) : file_(std::move(file)) { check_nodes(file_); }

Model::Values Model::evaluate(const Tensors& inputs) const {
  const NoGradGuard no_grad;
  const auto need = free_inputs(file_.graph);
  if (inputs.size() != need.size()) {
    throw ValueError("onnx", fmt::format("got {} inputs, need {}", inputs.size(), need.size()));
  }
  Values values;
  for (const NamedTensor& t : file_.graph.initializers) values[t.name] = t.value;
  for (size_t i = 0; i < need.size(); ++i) {
    if (inputs[i].defined()) check_input(*need[i], inputs[i]);
    values[need[i]->name] = inputs[i];
  }
  const auto it = file_.opsets.find("");
  const int64_t opset = it == file_.opsets.end() ? 1 : it->second;
  for (const Node& n : file_.graph.nodes) {
    Tensors in;
    for (const std::string& s : n.inputs) in.push_back(s.empty() ? Tensor() : values.at(s));
    const Tensors out = run_node(n, std::move(in), opset);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!n.outputs[i].empty()) values[n.outputs[i]] = out[i];
    }
  }
  return values;
}

Tensors Model::run(const Tensors& inputs) const {
  const Values values = evaluate(inputs);
  Tensors results;
  for (const ValueInfo& v : file_.graph.outputs) results.push_back(values.at(v.name));
  return results;
}

std::map<std::string, Tensor> Model::run(const std::map<std::string, Tensor>& inputs) const {
  Tensors list;
  for (const std::string& name : input_names()) {
    const auto it = inputs.find(name);
    if (it == inputs.end()) throw ValueError("onnx", fmt::format("input '{}' is missing", name));
    list.push_back(it->second);
  }
  for (const auto& [name, value] : inputs) {
    const auto names = input_names();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw ValueError("onnx", fmt::format("there is no input '{}'", name));
    }
  }
  const Tensors out = run(list);
  std::map<std::string, Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) results[file_.graph.outputs[i].name] = out[i];
  return results;
}

std::map<std::string, Tensor> Model::values(const Tensors& inputs) const {
  const Values all = evaluate(inputs);
  return {all.begin(), all.end()};
}

std::vector<std::string> Model::input_names() const {
  std::vector<std::string> names;
  for (const ValueInfo* v : free_inputs(file_.graph)) names.push_back(v->name);
  return names;
}
std::vector<std::string> Model::output_names() const {
  std::vector<std::string> names;
  for (const ValueInfo& v : file_.graph.outputs) names.push_back(v.name);
  return names;
}

std::vector<std::string> known_operators() {
  std::vector<std::string> names;
  for (const auto& list :
       {math_operators(), reduce_operators(), shape_operators(), index_operators(),
        layer_operators(), pool_operators(), recurrent_operators(), resize_operators()}) {
    for (const Operator& o : list) names.push_back(o.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cutaway::onnx
