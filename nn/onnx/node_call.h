#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cutaway/core/io/onnx_file.h>

// What the operators of nn/onnx/operators_*.cpp see of a node. Internal.
namespace cutaway::onnx {

using Ints = std::vector<int64_t>;

class NodeCall {
 public:
  NodeCall(const Node& node, Tensors inputs, int64_t opset)
      : node(node), opset(opset), inputs_(std::move(inputs)), used_(node.attributes.size()) {}

  const Node& node;
  const int64_t opset;
  Tensors results;

  int inputs() const { return int(inputs_.size()); }
  int outputs() const { return int(node.outputs.size()); }
  bool has(int i) const { return i < inputs() && inputs_[size_t(i)].defined(); }
  const Tensor& in(int i = 0) const;  // raises ValueError when it is missing
  Tensor maybe(int i) const { return has(i) ? in(i) : Tensor(); }
  Ints ints_in(int i) const;      // all values of an integer input
  double number_in(int i) const;  // the one value of an input

  // Attributes by name with their default; the wrong type raises. One that nobody asks for raises
  // after the call.
  bool given(const char* name) const;
  int64_t integer(const char* name, int64_t otherwise);
  double real(const char* name, double otherwise);
  std::string text(const char* name, const std::string& otherwise);
  Ints integers(const char* name, const Ints& otherwise = {});
  const Attribute* attribute(const char* name, Attribute::Type type);
  void ignore(const char* name);
  // Axes from the attribute (before `opset_of_input`) or input 1, counted from the front.
  std::optional<Ints> axes(int64_t opset_of_input, int rank);

  void give(const Tensor& t) { results.push_back(t); }
  [[noreturn]] void fail(const std::string& why) const;
  void check_attributes() const;

 private:
  Tensors inputs_;
  std::vector<bool> used_;
};

struct Operator {
  const char* name;
  void (*run)(NodeCall&);
  const char* engine;  // ops that it runs, for docs/onnx.md
};
std::span<const Operator> math_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> index_operators();
std::span<const Operator> layer_operators();
std::span<const Operator> pool_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> resize_operators();
const Operator* find_operator(const std::string& name);

int64_t from_front(NodeCall& c, int64_t axis, int rank);
Shape shape_of(NodeCall& c, const Ints& values);

}  // namespace cutaway::onnx
