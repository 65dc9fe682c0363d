// Broken files: every reader answers with a value or with one cutaway::Error, whatever the bytes
// are.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/datasets/readers.h>

namespace cutaway {
namespace {

using Bytes = std::vector<uint8_t>;
using Reader = std::function<void(const Bytes&)>;

Bytes bytes_of(const std::string& s) { return Bytes(s.begin(), s.end()); }

Bytes safetensors_file(const std::string& header, const std::string& data) {
  const uint64_t n = header.size();
  std::string s(reinterpret_cast<const char*>(&n), 8);
  return bytes_of(s + header + data);
}

Bytes npy_file(const std::string& header, const std::string& data) {
  std::string s("\x93NUMPY\x01\x00", 8);
  s += char(header.size() & 255);
  s += char(header.size() >> 8);
  return bytes_of(s + header + data);
}

const Reader kSafetensors = [](const Bytes& b) {
  io::parse_safetensors("file", b.data(), int64_t(b.size()));
};
const Reader kNpy = [](const Bytes& b) { io::parse_npy("file", b.data(), int64_t(b.size())); };
const Reader kIdx = [](const Bytes& b) { data::parse_idx("file", b.data(), int64_t(b.size())); };
const Reader kCsv = [](const Bytes& b) {
  data::parse_csv("file", std::string(b.begin(), b.end()));
};
const Reader kGzip = [](const Bytes& b) { io::gunzip(b, "file", 1 << 20); };

// True if the reader accepts; a refusal must be a cutaway::Error.
bool accepts(const Reader& reader, const Bytes& b) {
  try {
    reader(b);
    return true;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("file"), std::string::npos) << e.what();
    return false;
  }
}

// Every cut of a good file, then bit flips, overwritten words and insertions at positions from a
// fixed sequence.
void mutate(const Reader& reader, const Bytes& good) {
  ASSERT_TRUE(accepts(reader, good));
  for (size_t n = 0; n < good.size(); n += 1 + good.size() / 300) {
    accepts(reader, Bytes(good.begin(), good.begin() + int64_t(n)));
  }
  uint32_t state = 7;
  const auto next = [&](size_t below) {
    state = state * 1664525u + 1013904223u;
    return size_t(state >> 8) % below;
  };
  for (int round = 0; round < 3000; ++round) {
    Bytes b = good;
    for (size_t k = 0; k <= next(3); ++k) {
      switch (next(3)) {
        case 0:
          b[next(b.size())] ^= uint8_t(1u << next(8));
          break;
        case 1:
          b[next(b.size())] = uint8_t(next(2) ? 0xFF : next(256));
          break;
        default:
          b.insert(b.begin() + int64_t(next(b.size())), uint8_t(next(256)));
      }
    }
    accepts(reader, b);
  }
}

const std::string kTwo =
    R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";

TEST(Fuzz, safetensors) { mutate(kSafetensors, safetensors_file(kTwo, std::string(11, 'x'))); }
TEST(Fuzz, npy) {
  mutate(kNpy, npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
                        std::string(24, 'y')));
}
TEST(Fuzz, idx) {
  std::string s("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12);
  mutate(kIdx, bytes_of(s + "abcdef"));
}
TEST(Fuzz, csv) { mutate(kCsv, bytes_of("a,b,\"c\"\"d\"\r\n1,2.5,x\r\n\n-3e2,nan,y")); }
TEST(Fuzz, gzip) {
  const Bytes good = io::read_file(data::samples_folder() + "/digits/digits.csv.gz");
  ASSERT_TRUE(accepts(kGzip, good));
  for (size_t n = 0; n < good.size(); n += good.size() / 50) {
    EXPECT_FALSE(accepts(kGzip, Bytes(good.begin(), good.begin() + int64_t(n)))) << n;
  }
  Bytes flipped = good;
  flipped[good.size() / 2] ^= 4;
  EXPECT_FALSE(accepts(kGzip, flipped));
}

TEST(Safetensors, FC_7bf0_hostile_header_lengths) {
  EXPECT_FALSE(accepts(kSafetensors, Bytes(8, 0xFF)));
  Bytes long_header(1024, 0);
  const uint64_t n = 200000000;
  std::memcpy(long_header.data(), &n, 8);
  EXPECT_FALSE(accepts(kSafetensors, long_header));
  Bytes one_more = safetensors_file("{}", "");
  one_more[0] = 3;
  EXPECT_FALSE(accepts(kSafetensors, one_more));
  EXPECT_FALSE(accepts(kSafetensors, Bytes(7, 0)));
  EXPECT_FALSE(accepts(kSafetensors, {}));
  EXPECT_TRUE(accepts(kSafetensors, safetensors_file("{}", "")));
  EXPECT_FALSE(accepts(kSafetensors, safetensors_file(" {}", "")));
  EXPECT_FALSE(accepts(kSafetensors, safetensors_file("{\"a\":" + std::string(100000, '['), "")));
}

TEST(Safetensors, FC_3645_duplicate_names) {
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  try {
    kSafetensors(safetensors_file("{" + w + "," + w + "}", "x"));
    FAIL() << "no exception";
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("duplicate tensor name w"), std::string::npos) << e.what();
  }
}

TEST(Safetensors, FC_f3b7_offsets_and_shapes_that_disagree) {
  const auto one = [](const std::string& shape, const std::string& offsets,
                      const std::string& data) {
    return safetensors_file(
        R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", data);
  };
  const std::string eight(8, 'z');
  for (const auto& [shape, offsets] :
       std::vector<std::pair<std::string, std::string>>{{"[1000,1000]", "[0,4]"},
                                                        {"[1]", "[8,4]"},
                                                        {"[1]", "[0,4]"},
                                                        {"[3]", "[0,12]"},
                                                        {"[4294967296,4294967296]", "[0,0]"},
                                                        {"[-1]", "[0,4]"},
                                                        {"[1.5]", "[0,4]"},
                                                        {"[2]", "[0,4,8]"}}) {
    EXPECT_FALSE(accepts(kSafetensors, one(shape, offsets, eight))) << shape << offsets;
  }
  EXPECT_TRUE(accepts(kSafetensors, one("[2]", "[0,8]", eight)));
}

TEST(Safetensors, FC_8b41_legal_oddities) {
  std::string data("\x07\x00\x00\xC0\x3F", 5);
  const Bytes file = safetensors_file(
      R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("__metadata__":{"k":"v"},"e ü":{"dtype":"F32","shape":[0,3],"data_offsets":[1,1]}}   )",
      data);
  const io::TensorFile f = io::parse_safetensors("file", file.data(), int64_t(file.size()));
  EXPECT_EQ(f.at("a").item(), 7);
  EXPECT_EQ(f.at("b").item(), 1.5);
  EXPECT_EQ(f.at("e ü").sizes(), (Shape{0, 3}));
  EXPECT_EQ(f.metadata.at("k"), "v");
}

TEST(Npy, FC_3922_byte_orders_and_types) {
  const auto read = [](const std::string& descr, const std::string& data) {
    const Bytes b =
        npy_file("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }\n", data);
    return io::parse_npy("file", b.data(), int64_t(b.size()));
  };
  EXPECT_EQ(read(">f4", std::string("\x3F\xC0\0\0", 4)).item(), 1.5);
  EXPECT_EQ(read("<f2", std::string("\0\x3E", 2)).item(), 1.5);
  EXPECT_EQ(read("|b1", "\x02").dtype(), DType::boolean);
  EXPECT_THROW(read("<U2", std::string(8, 'a')), IoError);
  EXPECT_THROW(read("|O", std::string(8, 'a')), IoError);
}

TEST(Csv, FC_b694_marks_line_ends_and_blank_lines) {
  const data::CsvTable t = data::parse_csv("file", "\xEF\xBB\xBF\"a\",\"b\"\r\n1,2\r\n\r\n3,4");
  EXPECT_EQ(t.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(t.values.to_vector(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_FALSE(accepts(kCsv, bytes_of(std::string("\xFF\xFE"
                                                  "1\0,\0",
                                                  6))));
}

TEST(Csv, FC_3348_is_the_first_row_a_header) {
  EXPECT_EQ(data::parse_csv("file", "a,b\n1,2").values.size(0), 1);
  EXPECT_EQ(data::parse_csv("file", "1,2\n3,4").values.size(0), 2);
  EXPECT_EQ(data::parse_csv("file", "nan,inf\n1,2").values.size(0), 2);
  data::CsvOptions yes;
  yes.header = data::CsvOptions::Header::yes;
  EXPECT_EQ(data::parse_csv("file", "2019,2020\n1,2", yes).columns[0], "2019");
}

TEST(Csv, FC_e2bb_missing_values_categories_and_large_integers) {
  data::CsvOptions missing;
  missing.missing = {"", "NA"};
  missing.header = data::CsvOptions::Header::no;
  EXPECT_TRUE(std::isnan(data::parse_csv("file", "1,1\n,1\n1,1", missing).values.to_vector()[2]));
  EXPECT_TRUE(std::isnan(data::parse_csv("file", ",1\n1,1\nNA,1", missing).values.to_vector()[4]));
  const data::CsvTable t =
      data::parse_csv("file", "x\nb\na\nb", {.header = data::CsvOptions::Header::yes});
  EXPECT_EQ(t.categories[0], (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(t.values.to_vector(), (std::vector<double>{0, 1, 0}));
  EXPECT_THROW(data::parse_csv("file", "1\n9007199254740993", missing), IoError);
  EXPECT_THROW(data::parse_csv("file", "a\n1\nn/a", {}), IoError);
}

}  // namespace
}  // namespace cutaway
