#include <cutaway/core/io/pack.h>

#include <gtest/gtest.h>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/json_lines.h>

namespace cutaway::io {
namespace {

Bytes bytes_of(const std::string& text) { return Bytes(text.begin(), text.end()); }

// Written by the lz4 program: "abcabcabc…" (90 letters) with a content checksum.
const Bytes kAbc = {0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0x0d, 0x00, 0x00, 0x00,
                    0x3f, 0x61, 0x62, 0x63, 0x03, 0x00, 0x3f, 0x50, 0x62, 0x63, 0x61,
                    0x62, 0x63, 0x00, 0x00, 0x00, 0x00, 0x42, 0x6d, 0xcc, 0x47};

TEST(Lz4, unpacks_what_the_program_wrote) {
  std::string expect;
  for (int i = 0; i < 30; ++i) expect += "abc";
  EXPECT_EQ(unlz4(kAbc, "x", 1000), bytes_of(expect));
  // Two frames with a skippable one between them.
  Bytes more = kAbc;
  const Bytes skip = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9};
  more.insert(more.end(), skip.begin(), skip.end());
  more.insert(more.end(), kAbc.begin(), kAbc.end());
  EXPECT_EQ(unlz4(more, "x", 1000), bytes_of(expect + expect));
}

TEST(Lz4, refuses_every_cut_and_every_changed_byte) {
  for (size_t n = 1; n < kAbc.size(); ++n) {
    EXPECT_THROW(unlz4({kAbc.data(), n}, "x", 1000), IoError) << n;
  }
  for (size_t i = 0; i < kAbc.size(); ++i) {
    Bytes bad = kAbc;
    bad[i] ^= 0x10;
    EXPECT_THROW(unlz4(bad, "x", 1000), IoError) << i;
  }
}

TEST(Lz4, a_file_larger_than_allowed_is_refused) {
  EXPECT_THROW(unlz4(kAbc, "x", 89), IoError);
  EXPECT_EQ(unlz4(kAbc, "x", 90).size(), 90u);
}

TEST(Gzip, packed_bytes_come_back_and_are_the_same_each_time) {
  std::string text;
  for (int i = 0; i < 300000; ++i) text += char('a' + int64_t(i) * i % 23);
  const Bytes packed = gzip(bytes_of(text));
  EXPECT_LT(packed.size(), text.size() / 2);
  EXPECT_EQ(gunzip(packed, "x", 1 << 20), bytes_of(text));
  EXPECT_EQ(gzip(bytes_of(text)), packed);
  EXPECT_TRUE(gunzip(gzip({}), "x", 10).empty());
}

TEST(Gzip, text_is_packed_by_the_name_of_the_file) {
  const auto folder = std::filesystem::temp_directory_path();
  for (const char* name : {"cutaway_pack.txt", "cutaway_pack.txt.gz"}) {
    const std::string path = (folder / name).string();
    write_text(path, "some text\n");
    EXPECT_EQ(read_unpacked(path), bytes_of("some text\n"));
    EXPECT_EQ(read_file(path)[0] == 0x1f, path.ends_with(".gz"));
    std::filesystem::remove(path);
  }
}

TEST(JsonFields, texts_and_numbers_of_the_first_level) {
  const JsonFields f = parse_json_fields(
      "f:1", R"({"uid":"A1","title":"x \u00e9","ind":[3,1,2],"rel":[1.0,0.5],"one":7,)"
             R"("deep":{"ind":[1]},"mixed":[1,"a"],"none":null,"empty":[]})");
  EXPECT_EQ(*f.text("uid"), "A1");
  EXPECT_EQ(*f.text("title"), "x \xC3\xA9");
  EXPECT_EQ(*f.list("ind"), (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(*f.list("rel"), (std::vector<double>{1, 0.5}));
  EXPECT_EQ(*f.list("one"), (std::vector<double>{7}));
  EXPECT_TRUE(f.list("empty")->empty());
  EXPECT_EQ(f.list("mixed"), nullptr);
  EXPECT_EQ(f.text("none"), nullptr);
}

TEST(JsonFields, refuses_other_things) {
  for (const char* bad : {"", "{", "[1]", "3", "\"a\"", "null", R"({"a":1,"a":2})", R"({"a":1}x)",
                          R"({"a":[[[[[[[[[1]]]]]]]]]})", "{\"a\":\"\xff\"}", R"({"a":nan})"}) {
    try {
      parse_json_fields("f:7", bad);
      ADD_FAILURE() << bad;
    } catch (const IoError& e) {
      EXPECT_NE(std::string(e.what()).find("f:7"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace cutaway::io
