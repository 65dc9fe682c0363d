#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cutaway/core/tensor.h>

// What an ONNX file holds (onnx/onnx, docs/IR.md), as plain values.
namespace cutaway::onnx {

struct Graph;

// An option of a node. `type` says which of the members counts.
struct Attribute {
  enum class Type : uint8_t {
    none = 0,
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    texts = 8,
    other = 9
  };
  std::string name;
  Type type = Type::none;
  float f = 0;
  int64_t i = 0;
  std::string s;
  Tensor t;
  std::shared_ptr<Graph> g;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;

  Attribute() = default;
  Attribute(std::string name, int64_t v) : name(std::move(name)), type(Type::integer), i(v) {}
  Attribute(std::string name, int v) : Attribute(std::move(name), int64_t(v)) {}
  Attribute(std::string name, double v) : name(std::move(name)), type(Type::real), f(float(v)) {}
  Attribute(std::string name, const char* v) : name(std::move(name)), type(Type::text), s(v) {}
  Attribute(std::string name, std::span<const int64_t> v)
      : name(std::move(name)), type(Type::integers), ints(v.begin(), v.end()) {}
  Attribute(std::string name, const Shape& v)
      : Attribute(std::move(name), std::span<const int64_t>(v)) {}
};
using Attributes = std::vector<Attribute>;

struct Node {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;  // "": left out
  Attributes attributes;
};

struct Dim {
  int64_t value = -1;  // -1: `name`, or unknown
  std::string name;
};
// Name, type and sizes of an input, a result or a value between.
struct ValueInfo {
  std::string name;
  int type = 0;  // number of the format's TensorProto.DataType; 0: no tensor, or unknown
  bool has_shape = false;
  std::vector<Dim> dims;
};

struct NamedTensor {
  std::string name;
  Tensor value;
};
struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<NamedTensor> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
};

struct File {
  int64_t ir_version = 8;
  std::map<std::string, int64_t> opsets;  // domain ("" is the standard one) → version
  std::string producer, producer_version, description;
  std::map<std::string, std::string> metadata;
  Graph graph;
};

// Numbers and names of element types. type_name gives "float16", "uint32", …. engine_type raises
// DTypeError for types without values here (text, complex numbers); 16-bit and unsigned integers
// become the next wider type.
int type_number(DType dtype);
std::string type_name(int number);
DType engine_type(int number);

// Reads a model. Lengths, numbers and sizes are treated as hostile: IoError names the file, and no
// more memory than a small multiple of the file's size is taken. Weights in other files and sparse
// ones raise IoError.
File load_file(const std::string& path);
File parse_file(const std::string& name, std::span<const uint8_t> data);
// Writes atomically. Raises IoError at 2 GiB, the most that the format can hold.
void save_file(const std::string& path, const File& file);
std::string file_bytes(const File& file);

// One tensor alone, as the test vectors of ONNX store them.
NamedTensor parse_tensor(const std::string& name, std::span<const uint8_t> data);

}  // namespace cutaway::onnx
