// MATLAB files made by hand, by libmatio and by h5py (tests/fuzz/corpus_matlab.py), and by MATLAB
// itself where CUTAWAY_EXTERNAL_DATA has some.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/dataset.h>
#include <cutaway/datasets/mat_file.h>
#include <tests/datasets/scratch.h>
#include <tests/paths.h>

namespace cutaway::data {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

std::string corpus(const std::string& name) {
  return std::string(kSourceDir) + "/tests/fuzz/matlab/" + name + ".mat";
}
MatFile read(const std::string& name) { return load_mat(corpus(name)); }
Tensor array(const MatFile& file, const std::string& name) {
  for (const auto& [n, a] : file.arrays) {
    if (n == name) return a;
  }
  ADD_FAILURE() << "there is no " << name;
  return {};
}

void expect_x_and_y(const MatFile& m) {
  EXPECT_EQ(array(m, "X").sizes(), (Shape{2, 3}));
  EXPECT_EQ(array(m, "X").to_vector(), (Values{1, 2, 3, 4, 5, 6}));  // rows, of columns in the file
  EXPECT_EQ(array(m, "X").dtype(), DType::f64);
  EXPECT_EQ(array(m, "y").sizes(), (Shape{2, 1}));
  EXPECT_EQ(array(m, "y").dtype(), DType::u8);
}

TEST(Matlab, the_same_arrays_in_every_version) {
  expect_x_and_y(read("good"));
  expect_x_and_y(read("good_packed"));
  expect_x_and_y(read("good_version_7_3"));
  const MatFile old = read("good_version_4");
  EXPECT_EQ(array(old, "x").to_vector(), (Values{1, 3, 2, 4}));
  EXPECT_EQ(array(old, "y").to_vector(), (Values{1, 2}));
  EXPECT_EQ(array(read("good_big_endian"), "X").to_vector(), (Values{1.5, -2}));
  EXPECT_EQ(array(read("good_version_4_big_endian"), "x").item(), 9);
  const MatFile hdf5 = read("good_version_7_3_packed");
  EXPECT_EQ(array(hdf5, "X").to_vector(), (Values{1, 2, 3, 4, 5, 6}));
  const Tensor z = array(hdf5, "Z");
  ASSERT_EQ(z.sizes(), (Shape{2, 3, 4}));
  EXPECT_EQ(z.dtype(), DType::i32);  // int16
  for (int i = 0; i < 24; ++i) {     // element (a,b,c) is a + 2b + 6c
    EXPECT_EQ(z.data<int32_t>()[i], i / 12 + 2 * (i / 4 % 3) + 6 * (i % 4)) << i;
  }
  EXPECT_EQ(array(hdf5, "flag").dtype(), DType::boolean);
}

TEST(Matlab, classes_cells_structs_and_what_is_left_out) {
  const MatFile every = read("good_every_class");
  const std::pair<DType, double> want[] = {{DType::f32, 0},   {DType::i8, -8},   {DType::u8, 9},
                                           {DType::i32, -10}, {DType::i32, 11},  {DType::i32, -12},
                                           {DType::i64, 13},  {DType::i64, -14}, {DType::i64, 15}};
  ASSERT_EQ(every.arrays.size(), std::size(want));
  for (size_t i = 1; i < std::size(want); ++i) {
    EXPECT_EQ(every.arrays[i].second.dtype(), want[i].first) << i;
    EXPECT_EQ(every.arrays[i].second.item(), want[i].second) << i;
  }
  const MatFile cell = read("good_cell");
  EXPECT_EQ(array(cell, "c{1}").to_vector(), (Values{1, 2}));
  EXPECT_EQ(array(cell, "c{2}").item(), 7);
  const MatFile structs = read("good_struct");
  EXPECT_EQ(array(structs, "s.a").item(), 5);
  ASSERT_EQ(structs.left_out.size(), 1u);
  EXPECT_EQ(structs.left_out[0], (std::pair<std::string, std::string>{"s.bc", "text"}));
  EXPECT_EQ(array(read("good_sparse"), "p").to_vector(), (Values{0, 8, 7, 0}));
  EXPECT_EQ(array(read("good_three_dimensions"), "a").to_vector(), (Values{1, 3, 2, 4}));
  EXPECT_EQ(array(read("good_empty_array"), "a").sizes(), (Shape{0, 3}));
  EXPECT_EQ(array(read("good_logical"), "a").to_vector(), (Values{0, 1}));
  EXPECT_EQ(read("good_complex").left_out[0].second, "complex numbers");
}

TEST(Matlab, packed_files_and_files_that_are_not_there) {
  const Scratch s;
  const io::Bytes packed = io::gzip(io::read_file(corpus("good_version_7_3")));
  s.put("set.mat.gz", {packed.begin(), packed.end()});
  expect_x_and_y(load_mat(s.path("set.mat.gz")));
  EXPECT_NE(refusal([&] { load_mat(s.path("no.mat")); }).find("no.mat"), std::string::npos);
}

void add_numbers(std::string& out, std::initializer_list<uint32_t> numbers) {
  for (const uint32_t v : numbers) out.append(reinterpret_cast<const char*>(&v), 4);
}

// Cells in cells so deep that libmatio, which calls itself for each, leaves its stack.
TEST(Matlab, a_file_that_makes_the_library_crash_is_refused) {
  constexpr uint32_t kDepth = 200000, kInnermost = 64, kCell = 48;  // bytes
  std::string file(124, ' ');
  file += std::string("\0\1IM", 4);
  const auto begin = [&](uint32_t size, uint32_t kind) {  // an array [1,1] without a name
    add_numbers(file, {14, size - 8, 6, 8, kind, 0, 5, 8, 1, 1, 1, 0});
  };
  for (uint32_t left = kDepth; left > 0; --left) begin(kInnermost + kCell * left, 1);
  begin(kInnermost, 6);
  add_numbers(file, {9, 8, 0, 0});
  const io::Bytes bytes(file.begin(), file.end());
  const std::string message = refusal([&] { parse_mat("deep.mat", bytes); });
  EXPECT_NE(message.find("deep.mat: is damaged: libmatio crashed"), std::string::npos) << message;
  expect_x_and_y(read("good"));  // and this process goes on
}

#ifndef __SANITIZE_ADDRESS__  // its allocator of g++ 12 may be locked by another thread in a fork
// The reader forks while other threads compute, allocate and read as well.
TEST(Matlab, several_threads_read_at_once) {
  std::atomic<bool> done = false;
  std::thread busy([&] {
    while (!done) {
      std::vector<std::string> all;
      for (int i = 0; i < 100; ++i) all.emplace_back(1000 + i, 'x');
      parallel_for(1 << 16, 1 << 12, [](int64_t, int64_t) {});
    }
  });
  std::vector<std::thread> readers;
  std::atomic<int> good = 0, refused = 0;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        good += array(read("good_version_7_3"), "X").to_vector() == Values{1, 2, 3, 4, 5, 6};
        refused += !refusal([&] { read("hdf5_zeros"); }).empty();
      }
    });
  }
  for (std::thread& t : readers) t.join();
  done = true;
  busy.join();
  EXPECT_EQ(good, 40);
  EXPECT_EQ(refused, 40);
}
#endif

TEST(Matlab, files_that_matlab_wrote) {
  const char* folder = std::getenv("CUTAWAY_EXTERNAL_DATA");
  if (folder == nullptr) GTEST_SKIP() << "CUTAWAY_EXTERNAL_DATA is not set";
  const std::string ldl = std::string(folder) + "/ldl/SJAFFE.mat";
  const std::string views = std::string(folder) + "/multiview/NGs_Per0.1.mat";
  if (!std::filesystem::exists(ldl) || !std::filesystem::exists(views)) {
    GTEST_SKIP() << "CUTAWAY_EXTERNAL_DATA has no " << ldl << " and " << views;
  }
  const Tensor labels = array(load_mat(ldl), "labels");
  ASSERT_EQ(labels.sizes(), (Shape{213, 6}));
  for (int i = 0; i < 213; ++i) {  // distributions
    double sum = 0;
    for (int k = 0; k < 6; ++k) sum += labels.data<double>()[i * 6 + k];
    EXPECT_NEAR(sum, 1, 1e-9) << i;
  }
  const MatFile m = load_mat(views);
  EXPECT_EQ(array(m, "data{3}").sizes(), (Shape{2000, 500}));
  // An example is there in a view, or all its features are NaN.
  const std::vector<double> there = array(m, "MissingStatus").to_vector();
  const Tensor first = array(m, "data{1}");
  int seen = 0;
  for (int i = 0; i < 500; ++i) seen += !std::isnan(first.data<double>()[i]);
  EXPECT_EQ(seen, array(m, "index{1}").numel());
  EXPECT_EQ(there.size(), 1500u);
  const Dataset train = open(views, "train");
  EXPECT_EQ(train.inputs.sizes(), (Shape{400, 6000}));  // three views side by side
  EXPECT_EQ(train.classes, (Names{"1", "2", "3", "4", "5"}));
}

}  // namespace
}  // namespace cutaway::data
