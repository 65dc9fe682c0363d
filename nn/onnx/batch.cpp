#include <cutaway/nn/onnx/batch.h>

#include <fmt/format.h>
#include <map>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::onnx {
namespace {

[[noreturn, gnu::cold]] void fail(const std::string& what) {
  throw ValueError("onnx", "the graph depends on the batch: " + what,
                   "export with .dynamic_batch = false for a fixed batch");
}

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  return a.numel() == 0 || a.is_same(b) || all(logical_or(eq(a, b), ne(a, a))).item<bool>();
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  return a.name == b.name && a.type == b.type && a.f == b.f && a.i == b.i && a.s == b.s &&
         a.ints == b.ints && a.floats == b.floats && a.strings == b.strings;
}

void check_same_nodes(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size()) {
    fail(fmt::format("{} nodes for a batch of 2, {} for 3", a.nodes.size(), b.nodes.size()));
  }
  for (size_t k = 0; k < a.nodes.size(); ++k) {
    const Node &x = a.nodes[k], &y = b.nodes[k];
    bool same = x.op_type == y.op_type && x.inputs == y.inputs && x.outputs == y.outputs &&
                x.attributes.size() == y.attributes.size();
    for (size_t i = 0; same && i < x.attributes.size(); ++i) {
      same = same_attribute(x.attributes[i], y.attributes[i]);
    }
    if (!same) fail(fmt::format("node '{}' ({})", x.name, x.op_type));
  }
}

// Writes the nodes that compute what grows with the batch, in front of all others.
class Freed {
 public:
  explicit Freed(Graph& g) : graph_(g) {}

  // i64 [n] whose entries are `two` for a batch of 2 and `three` for 3.
  std::string list(const std::string& name, const Tensor& two, const Tensor& three) {
    std::vector<std::string> parts;
    const auto a = two.to_vector(), b = three.to_vector();
    for (size_t i = 0; i < a.size(); ++i) {
      const int64_t x = int64_t(a[i]), slope = int64_t(b[i]) - x, rest = x - 2 * slope;
      const std::string part = fmt::format("{}.{}", name, i);
      if (slope == 0) {
        parts.push_back(constant(part, {x}));
        continue;
      }
      std::string value = batch();
      if (slope != 1) value = node("Mul", {value, constant(part + ".slope", {slope})}, part + ".a");
      if (rest != 0) value = node("Add", {value, constant(part + ".rest", {rest})}, part + ".b");
      parts.push_back(value);
    }
    return node("Concat", parts, name, {{"axis", 0}});
  }

  // The value under `name` for every batch, from that for a batch of 2.
  void expand(const std::string& name, const Tensor& two, const Tensor& three) {
    Tensor one = two;
    for (int d = 0; d < two.dim(); ++d) {
      if (two.sizes()[d] != three.sizes()[d]) one = slice(one, d, 0, 1).contiguous();
    }
    const bool even = same_values(one.expand(two.sizes()).contiguous(), two) &&
                      same_values(one.expand(three.sizes()).contiguous(), three);
    if (!even) fail(fmt::format("constant '{}' {}", name, to_string(two.sizes())));
    graph_.initializers.push_back({name + ".row", one});
    const std::string sizes =
        list(name + ".sizes", index_tensor(two.sizes()), index_tensor(three.sizes()));
    node("Expand", {name + ".row", sizes}, name);
  }

  void prepend() { graph_.nodes.insert(graph_.nodes.begin(), nodes_.begin(), nodes_.end()); }

 private:
  std::string constant(const std::string& name, const Shape& values) {
    graph_.initializers.push_back({name, index_tensor(values)});
    return name;
  }
  std::string node(const char* type, const std::vector<std::string>& inputs,
                   const std::string& output, const Attributes& attributes = {}) {
    nodes_.push_back({.name = output + ":" + type,
                      .op_type = type,
                      .inputs = inputs,
                      .outputs = {output},
                      .attributes = attributes});
    return output;
  }
  // The size of the batch, i64 [1].
  const std::string& batch() {
    if (!batch_.empty()) return batch_;
    batch_ = "batch.size";
    node("Shape", {graph_.inputs[0].name}, batch_, {{"start", 0}, {"end", 1}});
    return batch_;
  }

  Graph& graph_;
  std::vector<Node> nodes_;
  std::string batch_;
};

// Reshape needs no more than one -1 for a single size that grows.
bool as_inferred(Graph& g, NamedTensor& t, const Tensor& three) {
  for (const Node& n : g.nodes) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] == t.name && (n.op_type != "Reshape" || i != 1)) return false;
    }
  }
  std::vector<int64_t> sizes;
  int growing = 0;
  const auto a = t.value.to_vector(), b = three.to_vector();
  for (size_t i = 0; i < a.size(); ++i) {
    growing += a[i] != b[i];
    if (a[i] == 0 || a[i] == -1) return false;
    sizes.push_back(a[i] != b[i] ? -1 : int64_t(a[i]));
  }
  if (growing == 1) t.value = index_tensor(sizes);
  return growing == 1;
}

void free_dims(std::vector<ValueInfo>& two, const std::vector<ValueInfo>& three) {
  for (size_t k = 0; k < two.size(); ++k) {
    for (size_t d = 0; d < two[k].dims.size(); ++d) {
      Dim& dim = two[k].dims[d];
      if (three[k].dims.size() != two[k].dims.size()) fail("the rank of " + two[k].name);
      if (dim.value == three[k].dims[d].value) continue;
      dim = {-1, dim.value == 2 && three[k].dims[d].value == 3 ? "batch" : ""};
    }
  }
}

}  // namespace

Graph with_free_batch(Graph two, const Graph& three) {
  check_same_nodes(two, three);
  std::map<std::string, Tensor> other;
  for (const NamedTensor& t : three.initializers) other[t.name] = t.value;
  Freed freed(two);
  std::vector<NamedTensor> all = std::move(two.initializers);
  two.initializers.clear();
  for (NamedTensor& t : all) {
    const auto it = other.find(t.name);
    if (it == other.end()) fail(fmt::format("constant '{}'", t.name));
    const Tensor& b = it->second;
    if (same_values(t.value, b) || (t.value.dtype() == DType::i64 && t.value.dim() == 1 &&
                                    t.value.sizes() == b.sizes() && as_inferred(two, t, b))) {
      two.initializers.push_back(t);
    } else if (t.value.dtype() == DType::i64 && t.value.dim() == 1 &&
               t.value.sizes() == b.sizes()) {
      freed.list(t.name, t.value, b);
    } else if (t.value.dim() == b.dim() && t.value.dtype() == b.dtype()) {
      freed.expand(t.name, t.value, b);
    } else {
      fail(fmt::format("constant '{}' {}", t.name, to_string(t.value.sizes())));
    }
  }
  freed.prepend();
  free_dims(two.inputs, three.inputs);
  free_dims(two.outputs, three.outputs);
  return two;
}

}  // namespace cutaway::onnx
