// Small cases of the format with their values; hostile files are in tests/fuzz/npy.
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/npy.h>

namespace cutaway {
namespace {

// A file of this version; its header length has 2 bytes in version 1, 4 later.
Tensor read(const std::string& header, const std::string& data, int version = 1) {
  std::string s = "\x93NUMPY";
  s += char(version);
  s += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) s += char(header.size() >> (8 * i) & 255);
  s += header + data;
  return io::parse_npy("file", reinterpret_cast<const uint8_t*>(s.data()), int64_t(s.size()));
}
Tensor one(const std::string& descr, const std::string& data) {
  return read("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }\n", data);
}

TEST(Npy, FC_3922_byte_orders_and_types) {
  EXPECT_EQ(one(">f4", std::string("\x3F\xC0\0\0", 4)).item(), 1.5);
  EXPECT_EQ(one("<f2", std::string("\0\x3E", 2)).item(), 1.5);
  EXPECT_EQ(one("|b1", "\x02").dtype(), DType::boolean);
  EXPECT_EQ(one("|b1", "\x02").item(), 1);
  EXPECT_EQ(one("|u1", "\xFF").item(), 255);
  EXPECT_EQ(one("|u1", "\xFF").dtype(), DType::u8);
  EXPECT_EQ(one("=i4", std::string("\x05\0\0\0", 4)).item(), 5);
  EXPECT_EQ(one("=i4", std::string("\x05\0\0\0", 4)).dtype(), DType::i32);
  for (const char* descr : {"<U2", "|O"}) {
    try {
      one(descr, std::string(8, 'a'));
      FAIL() << descr;
    } catch (const IoError& e) {
      EXPECT_NE(std::string(e.what()).find(descr), std::string::npos) << e.what();
    }
  }
}

TEST(Npy, FC_9726_versions_key_order_and_padding) {
  const std::string data("\x00\x00\x80\x3F\x00\x00\x00\x40", 8);  // 1, 2
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::vector<double> want = {1, 2};
  for (int version : {1, 2, 3}) EXPECT_EQ(read(header, data, version).to_vector(), want) << version;
  const std::string other = "{ \"shape\" : ( 2 , ) ,'fortran_order':False,   'descr' : '<f4'  }";
  EXPECT_EQ(read(other, data).to_vector(), want);
  EXPECT_EQ(read(header, data + "rest").to_vector(), want);
  // A header longer than 65535 bytes needs the 4-byte length of version 2.
  const std::string long_header = header.substr(0, header.size() - 1) + std::string(70000, ' ');
  EXPECT_EQ(read(long_header, data, 2).to_vector(), want);
  try {
    read(header, data, 9);
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("version 9"), std::string::npos) << e.what();
  }
}

TEST(Npy, what_is_written_reads_back) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("cutaway_" + std::to_string(::getpid()) + ".npy"))
          .string();
  for (const Tensor& t :
       {arange(0, 6).reshape({2, 3}), arange(0, 6).reshape({2, 3}).transpose(0, 1),
        scalar_tensor(2.5), zeros({0, 4}, {.dtype = DType::i64}),
        ones({3}, {.dtype = DType::boolean})}) {
    io::save_npy(path, t);
    const Tensor back = io::load_npy(path);
    EXPECT_EQ(back.dtype(), t.dtype());
    EXPECT_EQ(back.sizes(), t.sizes());
    EXPECT_EQ(back.to_vector(), t.to_vector());
    // The data begin at a multiple of 64 bytes.
    EXPECT_EQ((int64_t(std::filesystem::file_size(path)) - t.numel() * size_of(t.dtype())) % 64, 0);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cutaway
