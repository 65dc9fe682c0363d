// CIFAR's binary files with values written here; hostile files are in tests/fuzz/cifar.
#include <gtest/gtest.h>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/cifar.h>
#include <tests/datasets/scratch.h>

namespace cutaway::data {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

// Records in which byte p of picture i is (i + p) % 251.
std::string records(const Names& labels) {
  std::string all;
  for (size_t i = 0; i < labels.size(); ++i) {
    all += labels[i];
    for (size_t p = 0; p < 3072; ++p) all += char(uint8_t((i + p) % 251));
  }
  return all;
}
std::string packed(const std::string& content) {
  const io::Bytes b = io::gzip({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
  return {b.begin(), b.end()};
}

TEST(Cifar, batches_of_ten_classes_in_order) {
  const Scratch s;
  s.put("data_batch_1.bin", records({"\x07", "\x02"}));
  s.put("data_batch_2.bin.gz", packed(records({"\x09"})));
  s.put("test_batch.bin", records({"\x01"}));
  const Dataset train = open(s.path(), "train"), test = open(s.path(), "test");
  EXPECT_EQ(train.inputs.sizes(), (Shape{3, 3, 32, 32}));
  EXPECT_EQ(train.inputs.dtype(), DType::u8);
  EXPECT_EQ(train.targets.to_vector(), (Values{7, 2, 9}));
  EXPECT_EQ(test.targets.to_vector(), (Values{1}));
  EXPECT_EQ(train.classes.size(), 10u);
  EXPECT_EQ(train.classes[7], "horse");
  EXPECT_EQ(train.scale, 1.0 / 255);
  // Picture 1, green, row 2, column 3: byte 1024 + 2·32 + 3, one more in picture 1.
  const uint8_t* x = train.inputs.data<uint8_t>();
  EXPECT_EQ(x[3072 + 1024 + 67], (1 + 1024 + 67) % 251);
  EXPECT_EQ(x[2 * 3072 + 5], 5);  // the first picture of its file
}

TEST(Cifar, a_hundred_classes_and_their_names) {
  const Scratch s;
  s.put("train.bin", records({"\x13\x63", Names::value_type("\0\0", 2)}));
  s.put("test.bin", records({"\x01\x02"}));
  const CifarBatch b = load_cifar(s.path("train.bin"), Cifar::hundred);
  EXPECT_EQ(b.coarse.to_vector(), (Values{19, 0}));
  EXPECT_EQ(b.labels.to_vector(), (Values{99, 0}));
  EXPECT_EQ(b.images.data<uint8_t>()[0], 0);
  EXPECT_TRUE(open(s.path(), "train").classes.empty());
  std::string names;
  for (int i = 0; i < 100; ++i) names += "class " + std::to_string(i) + "\n";
  s.put("fine_label_names.txt", names + "\n");
  EXPECT_EQ(open(s.path(), "test").classes[2], "class 2");
  s.put("fine_label_names.txt", "one\n");
  EXPECT_NE(refusal([&] { open(s.path(), "test"); }).find("1 names of classes; need 100"),
            std::string::npos);
}

TEST(Cifar, missing_files_are_named) {
  const Scratch s;
  s.put("data_batch_1.bin", records({"\x01"}));
  s.put("data_batch_3.bin", records({"\x01"}));
  EXPECT_NE(refusal([&] { cifar(s.path(), "train"); }).find("data_batch_2.bin is missing"),
            std::string::npos);
  EXPECT_NE(refusal([&] { cifar(s.path(), "test"); }).find("has neither test_batch.bin"),
            std::string::npos);
  EXPECT_FALSE(is_cifar(s.path("nothing")));
  EXPECT_THROW(cifar(s.path(), "all"), ValueError);
}

}  // namespace
}  // namespace cutaway::data
