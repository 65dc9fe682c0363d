#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <cutaway/autograd/op.h>
#include <cutaway/core/io/onnx_file.h>

// How records become nodes of ONNX. A record's `.onnx` rule says it beside its meaning: a function
// of OnnxCall, or one of the templates below for ops with a node of their own.
namespace cutaway {

inline constexpr int64_t kOnnxOpset = 17;  // of the nodes that rules write

// One op of a watched run: what rules are applied to.
struct RecordedOp {
  const OpRecord* op = nullptr;
  Tensors inputs, outputs;
  std::vector<char> attrs;
  std::string module;  // path of the module that called it
};

// A graph that grows op by op.
class OnnxGraph {
 public:
  // A value from outside, and a weight, which becomes an initializer where it is first read.
  void add_input(const Tensor& t, const std::string& name) { bind(t, name); }
  void add_weight(const Tensor& t, const std::string& name);
  // The nodes of one op. Raises ValueError naming the op and its module when it has no rule, or the
  // rule refuses.
  void add(const RecordedOp& op);
  // The name under which a tensor is known; others become constants.
  std::string value(const Tensor& t);
  // Drops what no result needs. Raises ValueError when a result needs what ONNX does not give.
  void finish(const std::vector<std::string>& results);

  onnx::Graph graph;

 private:
  friend class OnnxCall;
  void bind(const Tensor& t, const std::string& name);
  std::string unique(const std::string& base);
  const std::string* find(const Tensor& t) const;

  struct Known {
    Tensor tensor;  // kept, so that its address stays its own
    std::string name;
  };
  std::map<const TensorImpl*, Known> known_;
  std::multimap<const Storage*, const TensorImpl*> by_storage_;
  std::map<const TensorImpl*, std::string> weights_;
  std::map<const TensorImpl*, const RecordedOp*> producers_;
  std::map<std::string, int> names_;
  std::map<std::string, std::string> missing_;  // value → why it has no node
};

// What a rule sees of its op, and what it writes.
class OnnxCall {
 public:
  OnnxCall(OnnxGraph& graph, const RecordedOp& op) : graph_(graph), op_(op) {}

  template <class A>
  const A& attrs() const {
    return *reinterpret_cast<const A*>(op_.attrs.data());
  }
  int inputs() const { return int(op_.inputs.size()); }
  int outputs() const { return int(op_.outputs.size()); }
  bool has(int i) const { return i < inputs() && op_.inputs[size_t(i)].defined(); }
  const Tensor& in(int i = 0) const { return op_.inputs[size_t(i)]; }
  const Tensor& out(int i = 0) const { return op_.outputs[size_t(i)]; }
  DType type() const { return out().dtype(); }
  // A dimension of input 0 counted from the front.
  int64_t dim(int64_t d) const { return d < 0 ? d + std::max(in().dim(), 1) : d; }

  // Names of values: an input ("" when left out), the same in another type, a new constant.
  std::string name(int i);
  std::string cast(int i, DType type);
  std::string cast(const std::string& value, DType from, DType to);
  std::string constant(const Tensor& value);
  std::string number(double value) { return number(value, type()); }
  std::string number(double value, DType type);
  std::string list(const Shape& values);  // i64 [n]
  // A node; gives the name of its result, or of several.
  std::string node(const char* type, std::vector<std::string> inputs,
                   onnx::Attributes attributes = {});
  std::vector<std::string> nodes(const char* type, std::vector<std::string> inputs, int results,
                                 onnx::Attributes attributes = {});
  // `value` is result i; a result without a node raises only where something needs it.
  void result(int i, const std::string& value) { graph_.bind(out(i), value); }
  void result(const std::string& value) { result(0, value); }
  void no_result(int i, const std::string& why);
  // The inputs of the op called `op` that made input i; null when another one did.
  const Tensors* made_by(int i, const char* op) const;
  std::string value(const Tensor& t) { return graph_.value(t); }
  // Raises ValueError naming op and module.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  OnnxGraph& graph_;
  const RecordedOp& op_;
};

// A text as a template argument.
template <size_t n>
struct FixedText {
  char text[n] = {};
  constexpr FixedText(const char (&from)[n]) { std::copy_n(from, n, text); }
};

// One node whose operands have the type of the result.
template <FixedText type>
void onnx_map(OnnxCall& c) {
  std::vector<std::string> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.cast(i, c.type()));
  c.result(c.node(type.text, in));
}
// One node that takes its operands as they are.
template <FixedText type>
void onnx_same(OnnxCall& c) {
  std::vector<std::string> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.name(i));
  c.result(c.node(type.text, in));
}
// A comparison: operands in their common type.
template <FixedText type>
void onnx_compare(OnnxCall& c) {
  const DType t = promote(c.in(0).dtype(), c.in(1).dtype());
  c.result(c.node(type.text, {c.cast(0, t), c.cast(1, t)}));
}

}  // namespace cutaway
