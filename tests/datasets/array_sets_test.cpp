// Named arrays as data sets: NPZ, folders of NPY, MATLAB.
#include <gtest/gtest.h>

#include <cutaway/core/error.h>
#include <cutaway/core/io/npy.h>
#include <cutaway/core/io/npz.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/array_sets.h>
#include <tests/datasets/scratch.h>
#include <tests/paths.h>

namespace cutaway::data {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

Tensor bytes(const Shape& sizes) {
  Tensor t = empty(sizes, {.dtype = DType::u8});
  for (int64_t i = 0; i < t.numel(); ++i) t.data<uint8_t>()[i] = uint8_t(i);
  return t;
}
Tensor numbers(const Values& v, DType dtype = DType::i64) {
  return cast_raw(tensor(v, {.dtype = DType::f64}), dtype);
}
std::string refused(const io::NamedArrays& arrays, NamedSet options = {}) {
  return refusal([&] { named_dataset("set", arrays, "train", options); });
}

TEST(NamedSets, splits_of_their_own) {
  const io::NamedArrays arrays = {{"x_train", bytes({2, 3})},
                                  {"y_train", numbers({3, 5})},
                                  {"x_test", bytes({1, 3})},
                                  {"y_test", numbers({7})}};
  const Scratch s;
  io::save_npz(s.path("set.npz"), arrays);
  const Dataset train = open(s.path("set.npz"), "train"), test = open(s.path("set.npz"), "test");
  EXPECT_EQ(train.inputs.sizes(), (Shape{2, 3}));
  EXPECT_EQ(train.inputs.dtype(), DType::u8);
  EXPECT_EQ(train.scale, 1.0 / 255);
  // Classes are numbered over both parts.
  EXPECT_EQ(train.classes, (Names{"3", "5", "7"}));
  EXPECT_EQ(train.targets.to_vector(), (Values{0, 1}));
  EXPECT_EQ(test.targets.to_vector(), (Values{2}));
  EXPECT_EQ(test.inputs.to_vector(), (Values{0, 1, 2}));
}

TEST(NamedSets, names_of_other_collections) {
  // Split before the name, and "val" beside "test".
  const io::NamedArrays medical = {
      {"train_images", bytes({3, 4, 4})}, {"val_images", bytes({1, 4, 4})},
      {"test_images", bytes({2, 4, 4})},  {"train_labels", numbers({0, 1, 1})},
      {"val_labels", numbers({0})},       {"test_labels", numbers({1, 0})}};
  EXPECT_EQ(named_dataset("set", medical, "train").inputs.sizes(), (Shape{3, 1, 4, 4}));
  EXPECT_EQ(named_dataset("set", medical, "test").targets.to_vector(), (Values{1, 0}));
  const io::NamedArrays valid = {{"X_train", bytes({2, 3})},
                                 {"Y_train", numbers({0, 1})},
                                 {"X_val", bytes({1, 3})},
                                 {"Y_val", numbers({1})}};
  EXPECT_EQ(named_dataset("set", valid, "test").size(), 1);
  // Two arrays of which one has a known name.
  const io::NamedArrays two = {{"features", bytes({5, 3})}, {"raw_data", numbers({0, 0, 1, 1, 1})}};
  EXPECT_EQ(named_dataset("set", two, "train").size(), 4);  // every fifth is for testing
  EXPECT_EQ(named_dataset("set", two, "test").inputs.to_vector(), (Values{12, 13, 14}));
}

TEST(NamedSets, sizes_and_types) {
  const auto open = [](const Tensor& x, const Tensor& y) {
    return named_dataset("set", {{"x", x}, {"y", y}}, "train");
  };
  const Tensor y = numbers({0, 1});
  // Channels last become first: pixel (row 1, column 2) of channel 1 is byte (1·4 + 2)·3 + 1.
  const Dataset picture = open(bytes({2, 2, 4, 3}), y);
  ASSERT_EQ(picture.inputs.sizes(), (Shape{2, 3, 2, 4}));
  EXPECT_EQ(picture.inputs.data<uint8_t>()[8 + 4 + 2], 19);
  EXPECT_EQ(open(bytes({2, 3, 8, 3}), y).inputs.sizes(), (Shape{2, 3, 8, 3}));
  EXPECT_EQ(open(numbers({4, 5}), y).inputs.sizes(), (Shape{2, 1}));
  EXPECT_EQ(open(numbers({4, 5}), y).inputs.dtype(), DType::f32);
  // Rows with a single 1 are classes, others values.
  const auto rows = [](const Values& v) {
    return make_view(numbers(v), Layout::contiguous({2, 3}));
  };
  EXPECT_EQ(open(bytes({2, 3}), rows({0, 0, 1, 1, 0, 0})).targets.to_vector(), (Values{2, 0}));
  EXPECT_EQ(open(bytes({2, 3}), rows({0, 1, 1, 1, 0, 0})).targets.sizes(), (Shape{2, 3}));
  EXPECT_EQ(open(bytes({2, 3}), numbers({0.5, 2}, DType::f64)).targets.dtype(), DType::f32);
}

TEST(NamedSets, folders_of_npy) {
  const Scratch s;
  std::filesystem::create_directories(s.path("set"));
  io::save_npy(s.path("set/inputs.npy"), bytes({5, 2}));
  EXPECT_NE(refusal([&] { open(s.path("set"), "train"); }).find("inputs without targets"),
            std::string::npos);
  io::save_npy(s.path("set/targets.npy"), numbers({0, 1, 2, 3, 4}));
  EXPECT_EQ(open(s.path("set"), "train").inputs.sizes(), (Shape{4, 2}));
  EXPECT_EQ(open(s.path("set"), "test").targets.to_vector(), (Values{4}));
  EXPECT_EQ(open(s.path("set/inputs.npy"), "test").targets.to_vector(), (Values{4}));
}

TEST(NamedSets, matlab_has_examples_last_and_two_dimensions) {
  const NamedSet matlab{.matlab = true};
  const Tensor y = make_view(numbers({1, 2}), Layout::contiguous({1, 2}));
  const auto x = [&](const Shape& sizes) {
    return named_dataset("set", {{"X", bytes(sizes)}, {"Y", y}}, "train", matlab).inputs;
  };
  EXPECT_EQ(x({3, 2}).to_vector(), (Values{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(x({4, 5, 2}).sizes(), (Shape{2, 1, 4, 5}));
  const Tensor colours = x({4, 5, 3, 2});
  ASSERT_EQ(colours.sizes(), (Shape{2, 3, 4, 5}));
  // Example 1, channel 2, row 3, column 4 was at ((3·5 + 4)·3 + 2)·2 + 1 = 119.
  EXPECT_EQ(colours.data<uint8_t>()[60 + 40 + 15 + 4], 119);
  const io::NamedArrays views = {
      {"data{1}", bytes({3, 2})}, {"data{2}", bytes({1, 2})}, {"gt{1}", y}, {"gt{2}", y}};
  EXPECT_EQ(named_dataset("set", views, "train", matlab).inputs.to_vector(),
            (Values{0, 2, 4, 0, 1, 3, 5, 1}));
  EXPECT_EQ(open(std::string(kSourceDir) + "/tests/fuzz/matlab/good.mat", "train").size(), 2);
}

TEST(NamedSets, what_does_not_fit_is_told_with_the_arrays) {
  EXPECT_NE(refused({}).find("neither inputs nor targets; it holds no arrays"), std::string::npos);
  const std::string lone = refused({{"x_train", bytes({2, 3})}});
  EXPECT_NE(lone.find("set: there are inputs without targets; it holds x_train [2,3]"),
            std::string::npos)
      << lone;
  EXPECT_NE(
      refused({{"x", bytes({2, 3})}, {"y", numbers({0, 1, 2})}}).find("inputs [2,3] for 3 targets"),
      std::string::npos);
  EXPECT_NE(refused({{"x", bytes({2, 3})}, {"y", bytes({2, 3, 4})}}).find("targets have sizes"),
            std::string::npos);
  EXPECT_NE(refused({{"x", bytes({2, 3})}, {"y", full({}, 1.0)}}).find("are one number"),
            std::string::npos);
  EXPECT_NE(refused({{"x{1}", bytes({2, 3})}, {"y{1}", numbers({0, 1})}, {"y{2}", numbers({1, 1})}})
                .find("targets of several views differ"),
            std::string::npos);
  EXPECT_NE(refused({{"x_train", bytes({1, 3})},
                     {"y_train", bytes({1, 3})},
                     {"x_test", bytes({1, 3})},
                     {"y_test", bytes({1, 2})}})
                .find("targets of the splits have other sizes"),
            std::string::npos);
}

}  // namespace
}  // namespace cutaway::data
