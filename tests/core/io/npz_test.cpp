// Values and field cases of the format; hostile files are in tests/fuzz/npz.
#include <cutaway/core/io/npz.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/zip.h>
#include <tests/paths.h>

namespace cutaway::io {
namespace {

using Values = std::vector<double>;

NamedArrays stored(const std::string& name) {
  return load_npz(std::string(kSourceDir) + "/tests/fuzz/npz/" + name + ".npz");
}
std::string scratch() {
  return (std::filesystem::temp_directory_path() /
          ("cutaway_" + std::to_string(::getpid()) + ".npz"))
      .string();
}

TEST(Npz, FC_60d6_every_way_to_store_a_member) {
  for (const char* name : {"good_stored", "good_deflated", "good_zip64", "good_streamed",
                           "good_name_without_ending"}) {
    const NamedArrays arrays = stored(name);
    ASSERT_EQ(arrays.size(), 2u) << name;
    EXPECT_EQ(arrays[0].first, "a") << name;
    EXPECT_EQ(arrays[0].second.to_vector(), (Values{1, 2})) << name;
    EXPECT_EQ(arrays[1].first, "b") << name;
    EXPECT_EQ(arrays[1].second.to_vector(), (Values{3})) << name;
  }
  try {
    stored("crc_wrong");
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("member a.npy: its CRC is wrong"), std::string::npos);
  }
}

TEST(Npz, what_is_written_reads_back) {
  const NamedArrays arrays = {{"weights", arange(0, 6).reshape({2, 3})},
                              {"größe/x", arange(0, 6).reshape({2, 3}).t()},
                              {"scalar", scalar_tensor(2.5)},
                              {"nothing", zeros({0, 4}, {.dtype = DType::i64})},
                              {"long", arange(0, 300000)},
                              {"flags", ones({3}, {.dtype = DType::boolean})}};
  const std::string path = scratch();
  Bytes first;
  for (const bool compress : {true, false}) {
    save_npz(path, arrays, {.compress = compress});
    const NamedArrays back = load_npz(path);
    ASSERT_EQ(back.size(), arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ(back[i].first, arrays[i].first);
      EXPECT_EQ(back[i].second.dtype(), arrays[i].second.dtype());
      EXPECT_EQ(back[i].second.sizes(), arrays[i].second.sizes());
      EXPECT_TRUE(back[i].second.to_vector() == arrays[i].second.to_vector());
    }
    const Bytes bytes = read_file(path);
    if (compress) first = bytes;
    save_npz(path, arrays, {.compress = compress});
    EXPECT_TRUE(read_file(path) == bytes) << "the same arrays give the same bytes";
  }
  EXPECT_LT(first.size(), read_file(path).size() / 2);
  save_npz(path, {});
  EXPECT_EQ(load_npz(path).size(), 0u);
  std::filesystem::remove(path);
  EXPECT_THROW(save_npz(path, {{"a", ones({1})}, {"a", ones({1})}}), IoError);
  EXPECT_THROW(save_npz(path, {{"", ones({1})}}), IoError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Zip, members_are_limited) {
  const Bytes zeros(100000, 0);
  const Bytes archive = make_zip({{"z", zeros}});
  EXPECT_LT(archive.size(), 1000u);
  const ZipReader reader("archive", archive);
  ASSERT_EQ(reader.members().size(), 1u);
  EXPECT_TRUE(reader.read(reader.members()[0], 100000) == zeros);
  EXPECT_THROW(reader.read(reader.members()[0], 99999), IoError);
  EXPECT_TRUE(reader.read(reader.members()[0], 100000) == zeros) << "a refusal changes nothing";
  EXPECT_THROW(make_zip({{"", zeros}}), IoError);
  EXPECT_THROW(make_zip({{std::string("a\0b", 3), zeros}}), IoError);
}

}  // namespace
}  // namespace cutaway::io
