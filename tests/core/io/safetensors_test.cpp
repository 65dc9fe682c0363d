// Small cases of the format with their values; hostile files are in tests/fuzz/safetensors.
#include <gtest/gtest.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/tensor.h>

namespace cutaway {
namespace {

io::Bytes safetensors_file(const std::string& header, const std::string& data) {
  const uint64_t n = header.size();
  const std::string s = std::string(reinterpret_cast<const char*>(&n), 8) + header + data;
  return {s.begin(), s.end()};
}
io::TensorFile parse(const io::Bytes& b) {
  return io::parse_safetensors("file", b.data(), int64_t(b.size()));
}
// The text of the error; empty when the file is accepted.
std::string refusal(const io::Bytes& b) {
  try {
    parse(b);
    return {};
  } catch (const IoError& e) {
    return e.what();
  }
}
bool says(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

TEST(Safetensors, FC_7bf0_hostile_header_lengths) {
  EXPECT_TRUE(says(refusal(io::Bytes(8, 0xFF)), "header length 18446744073709551615"));
  io::Bytes long_header(1024, 0);
  const uint64_t n = 200000000;
  std::memcpy(long_header.data(), &n, 8);
  EXPECT_TRUE(says(refusal(long_header), "header length 200000000"));
  io::Bytes one_more = safetensors_file("{}", "");
  one_more[0] = 3;
  EXPECT_TRUE(says(refusal(one_more), "exceeds the file"));
  EXPECT_TRUE(says(refusal(io::Bytes(7, 0)), "at least 8 bytes"));
  EXPECT_TRUE(says(refusal({}), "at least 8 bytes"));
  EXPECT_EQ(parse(safetensors_file("{}", "")).tensors.size(), 0u);
  EXPECT_TRUE(says(refusal(safetensors_file(" {}", "")), "must begin with {"));
  const std::string deep(100000, '[');
  EXPECT_TRUE(says(refusal(safetensors_file("{\"a\":" + deep, "")), "nested too deeply"));
}

TEST(Safetensors, FC_3645_duplicate_names) {
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::string other = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]})";
  EXPECT_TRUE(says(refusal(safetensors_file("{" + w + "," + other + "}", "xy")),
                   "duplicate tensor name w"));
  EXPECT_NE(refusal(safetensors_file(R"({"__metadata__":{},"__metadata__":{}})", "")), "");
}

TEST(Safetensors, FC_f3b7_offsets_and_shapes_that_disagree) {
  const auto one = [](const std::string& shape, const std::string& offsets,
                      const std::string& type = "F32") {
    return safetensors_file(R"({"a":{"dtype":")" + type + R"(","shape":)" + shape +
                                R"(,"data_offsets":)" + offsets + "}}",
                            std::string(8, 'z'));
  };
  for (const auto& [shape, offsets] :
       std::vector<std::pair<std::string, std::string>>{{"[1000,1000]", "[0,4]"},
                                                        {"[1]", "[8,4]"},
                                                        {"[3]", "[0,12]"},
                                                        {"[4294967296,4294967296]", "[0,0]"},
                                                        {"[-1]", "[0,4]"},
                                                        {"[1.5]", "[0,4]"},
                                                        {"[2]", "[0,4,8]"}}) {
    EXPECT_TRUE(says(refusal(one(shape, offsets)), "tensor a")) << shape << offsets;
  }
  EXPECT_TRUE(says(refusal(one("[1]", "[0,4]")), "4 bytes after the last tensor"));
  EXPECT_TRUE(says(refusal(one("[1]", "[90,94]", "F7")), "tensor a"));
  EXPECT_EQ(refusal(one("[2]", "[0,8]")), "");
  const std::string a = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)";
  const auto two = [&](const std::string& offsets) {
    const std::string b = R"("b":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}}";
    return refusal(safetensors_file(a + b, std::string(12, 'z')));
  };
  EXPECT_TRUE(says(two("[2,6]"), "overlap"));
  EXPECT_TRUE(says(two("[8,12]"), "hole"));
}

TEST(Safetensors, FC_8b41_legal_oddities) {
  const std::string data("\x07\x00\x00\xC0\x3F\x80\x3F", 7);
  const io::TensorFile f =
      parse(safetensors_file(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("h":{"dtype":"BF16","shape":[],"data_offsets":[5,7]},)"
                             R"("__metadata__":{"k":"v"},)"
                             R"("e ü/../x":{"dtype":"F32","shape":[0,3],"data_offsets":[1,1]}}   )",
                             data));
  EXPECT_EQ(f.at("a").item(), 7);
  EXPECT_EQ(f.at("b").item(), 1.5);
  EXPECT_EQ(f.at("h").item(), 1.0);
  EXPECT_EQ(f.at("h").dim(), 0);
  EXPECT_EQ(f.at("e ü/../x").sizes(), (Shape{0, 3}));
  EXPECT_EQ(f.metadata.at("k"), "v");
  // All of it is kept when it is written again.
  const std::string path =
      (std::filesystem::temp_directory_path() / ("cutaway_" + std::to_string(::getpid()) + ".st"))
          .string();
  io::save_safetensors(path, f);
  const io::TensorFile again = io::load_safetensors(path);
  std::filesystem::remove(path);
  EXPECT_EQ(again.metadata, f.metadata);
  ASSERT_EQ(again.tensors.size(), 4u);
  for (const auto& [name, t] : f.tensors) {
    EXPECT_EQ(again.at(name).dtype(), t.dtype()) << name;
    EXPECT_EQ(again.at(name).sizes(), t.sizes()) << name;
    EXPECT_EQ(again.at(name).to_vector(), t.to_vector()) << name;
  }
}

TEST(Safetensors, names_that_are_not_utf8_cannot_be_written) {
  const std::string path = std::filesystem::temp_directory_path().string() + "/cutaway_no_file.st";
  EXPECT_THROW(io::save_safetensors(path, {{{"\xff", zeros({1})}}, {}}), IoError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace cutaway
