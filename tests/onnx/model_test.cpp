#include <gtest/gtest.h>

#include <functional>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/protobuf.h>
#include <cutaway/nn/onnx/model.h>

namespace cutaway::onnx {
namespace {

File small(Node node, int inputs = 1) {
  File f;
  f.opsets[""] = 17;
  for (int i = 0; i < inputs; ++i) {
    const std::string name = "x" + std::to_string(i);
    node.inputs.push_back(name);
    f.graph.inputs.push_back(
        {.name = name, .type = 1, .has_shape = true, .dims = {{-1, "n"}, {3, ""}}});
  }
  node.outputs = {"y"};
  node.name = "first";
  f.graph.nodes = {node};
  f.graph.outputs.push_back({.name = "y", .type = 1});
  return f;
}

std::string message(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was raised";
}

void expect_message(const std::function<void()>& fn, const std::string& part) {
  const std::string text = message(fn);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(OnnxModel, errors_name_node_operator_and_attribute) {
  expect_message([] { Model(small({.op_type = "GridSample"})); },
                 "node 'first' (GridSample): the operator cannot be run");
  expect_message([] { Model(small({.op_type = "Relu", .domain = "acme"})); }, "of domain acme");
  const Tensor x = ones({2, 3});
  expect_message(
      [&] {
        Model(small({.op_type = "Elu", .attributes = {{"alpha", 1}}})).run(Tensors{x});
      },
      "node 'first' (Elu): [onnx] attribute 'alpha' must be a float; got an int");
  expect_message(
      [&] {
        Model(small({.op_type = "Elu", .attributes = {{"beta", 1.0}}})).run(Tensors{x});
      },
      "attribute 'beta' is not known");
  expect_message([&] { Model(small({.op_type = "Add"})).run(Tensors{x}); }, "input 1 is missing");
  expect_message(
      [&] {
        Model(small({.op_type = "Softmax", .attributes = {{"axis", 7}}})).run(Tensors{x});
      },
      "node 'first' (Softmax)");
}

TEST(OnnxModel, inputs_are_held_against_the_file) {
  const Model model(small({.op_type = "Relu"}));
  expect_message([&] { model.run(Tensors{ones({2, 4})}); }, "got [2,4], need [n,3]");
  expect_message([&] { model.run(Tensors{ones({2, 3}, {.dtype = DType::f64})}); }, "need float");
  expect_message([&] { model.run(Tensors{}); }, "got 0 inputs, need 1");
  EXPECT_EQ(model.run(Tensors{full({5, 3}, -1)})[0].sum().item(), 0);
  const std::map<std::string, Tensor> named{{"x0", ones({1, 3})}};
  EXPECT_EQ(model.run(named).at("y").sum().item(), 3);
}

TEST(OnnxModel, order_of_nodes_is_checked) {
  File f = small({.op_type = "Relu"});
  f.graph.nodes[0].inputs = {"later"};
  expect_message([&] { Model{f}; }, "reads 'later', which nothing before it makes");
  f = small({.op_type = "Relu"});
  f.graph.outputs[0].name = "z";
  expect_message([&] { Model{f}; }, "nothing makes the result 'z'");
}

TEST(OnnxFile, written_files_read_back) {
  File f = small(
      {.op_type = "Pad", .attributes = {{"a", 3}, {"b", 0.5}, {"c", "text"}, {"d", Shape{4, -5}}}});
  f.metadata["k"] = "v";
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32,
                        DType::u8, DType::i8, DType::boolean}) {
    f.graph.initializers.push_back({name_of(t), ones({2, 3}, {.dtype = t})});
  }
  f.graph.initializers.push_back({"none", ones({0, 3})});
  const std::string bytes = file_bytes(f);
  const File g =
      parse_file("bytes", {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_EQ(file_bytes(g), bytes);
  EXPECT_EQ(g.graph.nodes[0].attributes[3].ints, (std::vector<int64_t>{4, -5}));
  EXPECT_EQ(g.graph.inputs[0].dims[0].name, "n");
  EXPECT_EQ(g.metadata.at("k"), "v");
  ASSERT_EQ(g.graph.initializers.size(), f.graph.initializers.size());
  for (size_t i = 0; i < f.graph.initializers.size(); ++i) {
    EXPECT_EQ(g.graph.initializers[i].value.dtype(), f.graph.initializers[i].value.dtype());
    EXPECT_EQ(g.graph.initializers[i].value.to_vector(), f.graph.initializers[i].value.to_vector());
  }
}

TEST(Protobuf, numbers_of_all_sizes) {
  io::ProtoWriter w;
  const std::vector<int64_t> numbers{0, 1, 127, 128, 300, INT64_MAX, -1, INT64_MIN};
  for (const int64_t n : numbers) w.integer(5, n);
  w.integers(5, numbers);
  w.real64(6, 0.1);
  std::vector<int64_t> got;
  double real = 0;
  const std::string& text = w.text();
  io::ProtoReader r("bytes", "Test", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  while (r.next()) r.field() == 5 ? r.integers(got) : void(real = r.real64());
  std::vector<int64_t> twice = numbers;
  twice.insert(twice.end(), numbers.begin(), numbers.end());
  EXPECT_EQ(got, twice);
  EXPECT_EQ(real, 0.1);
}

}  // namespace
}  // namespace cutaway::onnx
