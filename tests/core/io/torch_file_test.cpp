// Values of files that PyTorch wrote (tests/golden/make_torch_files.py); hostile files are in
// tests/fuzz/torch.
#include <cutaway/core/io/torch_file.h>

#include <gtest/gtest.h>

#include <map>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <tests/paths.h>

namespace cutaway::io {
namespace {

using Values = std::vector<double>;

std::string golden(const std::string& name) {
  return std::string(kSourceDir) + "/tests/golden/torch/" + name;
}
const std::map<std::string, Tensor>& nested() {
  static const std::map<std::string, Tensor> all = [] {
    std::map<std::string, Tensor> m;
    for (auto& [name, t] : load_torch(golden("nested.pt"))) m[name] = t;
    return m;
  }();
  return all;
}

TEST(TorchFile, names_are_keys_and_places_joined_by_dots) {
  std::string names;
  for (const auto& [name, t] : load_torch(golden("nested.pt"))) names += name + " ";
  EXPECT_EQ(names,
            "model.weight model.transposed model.row model.odd model.wide every.float64 "
            "every.float32 every.bfloat16 every.float16 every.int64 every.int32 every.uint8 "
            "every.int8 every.bool list.0 list.1.x empty 7 parameter ");
}

TEST(TorchFile, every_element_type) {
  const std::pair<const char*, DType> types[] = {
      {"float64", DType::f64}, {"float32", DType::f32}, {"bfloat16", DType::bf16},
      {"float16", DType::f16}, {"int64", DType::i64},   {"int32", DType::i32},
      {"uint8", DType::u8},    {"int8", DType::i8},     {"bool", DType::boolean}};
  for (const auto& [name, dtype] : types) {
    const Tensor& t = nested().at(std::string("every.") + name);
    EXPECT_EQ(t.dtype(), dtype) << name;
    EXPECT_EQ(t.to_vector(), (dtype == DType::boolean ? Values{0, 1, 1} : Values{0, 1, 3})) << name;
  }
}

TEST(TorchFile, strided_tensors_share_their_storage) {
  const Tensor& weight = nested().at("model.weight");
  EXPECT_EQ(weight.to_vector(), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  const Tensor& transposed = nested().at("model.transposed");
  EXPECT_EQ(transposed.sizes(), (Shape{4, 3}));
  EXPECT_EQ(transposed.to_vector(), (Values{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(nested().at("model.row").to_vector(), (Values{4, 5, 6, 7}));
  EXPECT_EQ(nested().at("model.odd").to_vector(), (Values{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(nested().at("model.wide").to_vector(),
            (Values{0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8}));
  EXPECT_EQ(transposed.storage(), weight.storage());
}

TEST(TorchFile, scalars_empty_tensors_and_parameters) {
  EXPECT_EQ(nested().at("list.0").dim(), 0);
  EXPECT_EQ(nested().at("list.0").item(), 2.5);
  EXPECT_EQ(nested().at("empty").sizes(), (Shape{0, 3}));
  EXPECT_EQ(nested().at("7").item<int64_t>(), 7);
  EXPECT_EQ(nested().at("parameter").to_vector(), (Values{1, -2}));
  EXPECT_FALSE(nested().at("parameter").requires_grad());
}

TEST(TorchFile, the_old_format_is_refused_with_a_way_out) {
  try {
    load_torch(golden("old.pt"));
    FAIL() << "accepted";
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("old format without zip"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("hint: save it again"), std::string::npos) << e.what();
  }
}

TEST(TorchFile, content_tells_it_from_safetensors) {
  const Bytes torch = read_file(golden("nested.pt")), old = read_file(golden("old.pt"));
  const Bytes safe = read_file(std::string(kSourceDir) + "/tests/golden/pool.safetensors");
  EXPECT_TRUE(is_torch_file(torch.data(), int64_t(torch.size())));
  EXPECT_TRUE(is_torch_file(old.data(), int64_t(old.size())));
  EXPECT_FALSE(is_torch_file(safe.data(), int64_t(safe.size())));
  EXPECT_FALSE(is_torch_file(safe.data(), 0));
}

}  // namespace
}  // namespace cutaway::io
