#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <cutaway/core/io/onnx_file.h>

namespace cutaway::onnx {

// A model of an ONNX file that runs on the ops of the engine. Standard operators of opsets 6 to 18
// as docs/onnx.md lists them; values are tensors, on the device of the inputs.
class Model {
 public:
  // Raises IoError for a broken file, and ValueError naming node and operator for operators that
  // cannot be run and for nodes that read a value before it is made.
  static Model load(const std::string& path);
  explicit Model(File file);

  // Inputs in the order of input_names(), results in the order of output_names(). Raises ValueError
  // when their number is wrong, a size or type is not what the file says, or a node fails: the text
  // names the node, its operator and, where it is at fault, the attribute.
  Tensors run(const Tensors& inputs) const;
  // The same by name.
  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs) const;

  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;
  const File& file() const { return file_; }
  // Sizes and types of all values of a run, by name.
  std::map<std::string, Tensor> values(const Tensors& inputs) const;

 private:
  using Values = std::map<std::string, Tensor, std::less<>>;
  Values evaluate(const Tensors& inputs) const;

  File file_;
};

// Names of the operators that Model runs.
std::vector<std::string> known_operators();

}  // namespace cutaway::onnx
