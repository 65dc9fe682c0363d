// Pictures with values computed by hand, or by libjpeg where named; hostile files are in
// tests/fuzz/image.
#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/image_decode.h>
#include <cutaway/datasets/images.h>
#include <tests/datasets/scratch.h>
#include <tests/paths.h>

namespace cutaway::data {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

std::string corpus(const std::string& name) {
  return std::string(kSourceDir) + "/tests/fuzz/image/" + name;
}
std::string content(const std::string& name) {
  const io::Bytes b = io::read_file(corpus(name));
  return {b.begin(), b.end()};
}
Tensor read(const std::string& name, const PictureOptions& options = {}) {
  return load_image(corpus(name), options);
}
// A BMP file of one colour, b g r.
std::string bmp(int width, int height, const std::string& bgr) {
  const auto number = [](uint32_t v) {
    std::string s;
    for (int i = 0; i < 4; ++i) s += char(uint8_t(v >> 8 * i));
    return s;
  };
  std::string rows;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) rows += bgr;
    rows.resize((rows.size() + 3) / 4 * 4);
  }
  return "BM" + number(uint32_t(54 + rows.size())) + number(0) + number(54) + number(40) +
         number(uint32_t(width)) + number(uint32_t(height)) + std::string("\1\0\x18\0", 4) +
         std::string(24, '\0') + rows;
}

TEST(Image, png_of_every_kind) {
  const Tensor grey = read("good_grey.png");
  EXPECT_EQ(grey.sizes(), (Shape{1, 2, 3}));
  EXPECT_EQ(grey.dtype(), DType::u8);
  EXPECT_EQ(grey.to_vector(), (Values{1, 2, 3, 253, 254, 255}));
  // Pixels (0,1,2), (3,4,5) as planes.
  EXPECT_EQ(read("good_colour.png").to_vector(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(read("good_palette.png").to_vector(), (Values{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  EXPECT_EQ(read("good_16_bits.png").to_vector(), (Values{0x12, 0x56}));
  EXPECT_EQ(read("good_1_bit.png").to_vector(), (Values{255, 0, 255, 0, 0, 255, 0, 255, 255}));
  EXPECT_EQ(read("good_alpha.png").sizes(), (Shape{3, 2, 1}));
  EXPECT_EQ(read("good_grey_alpha.png").to_vector(), (Values{0x55}));
  // None, left, above, their mean, Paeth's: what is stored is always 9, 7.
  EXPECT_EQ(read("good_filters.png").to_vector(), (Values{9, 7, 9, 16, 18, 23, 18, 27, 27, 34}));
}

TEST(Image, bmp_rows_and_colours) {
  // Two rows from below, b g r.
  EXPECT_EQ(read("good_colour.bmp").to_vector(), (Values{3, 6, 3, 6, 2, 5, 2, 5, 1, 4, 1, 4}));
  EXPECT_EQ(read("good_palette.bmp").to_vector(), (Values{1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(Image, jpeg_as_libjpeg_reads_it) {
  const Values want = {11, 31,  82,  120, 139, 190, 250, 0,  38,  65,  111, 150, 179, 234, 13,
                       9,  102, 117, 177, 207, 213, 22,  51, 60,  138, 152, 195, 193, 0,   64,
                       88, 126, 172, 204, 230, 13,  96,  82, 132, 147, 198, 233, 27,  48,  99};
  const Values grey = read("good_grey.jpg").to_vector();
  ASSERT_EQ(grey.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(grey[i], want[i], 2) << i;
  for (const char* name : {"good_colour.jpg", "good_progressive.jpg"}) {
    const Tensor x = read(name);
    ASSERT_EQ(x.sizes(), (Shape{3, 8, 8}));
    // Red grows along the row, green down the column, blue is 128; sampled and quantised.
    const uint8_t* p = x.data<uint8_t>();
    for (int i = 0; i < 64; ++i) {
      EXPECT_NEAR(p[i], i % 8 * 32, 60) << name << i;
      EXPECT_NEAR(p[64 + i], i / 8 * 32, 60) << name << i;
      EXPECT_NEAR(p[128 + i], 128, 60) << name << i;
    }
  }
}

TEST(Image, channels_and_sizes_as_asked) {
  EXPECT_EQ(read("good_grey.png", {.channels = 3}).sizes(), (Shape{3, 2, 3}));
  const Tensor grey = read("good_colour.png", {.channels = 1});
  EXPECT_EQ(grey.sizes(), (Shape{1, 1, 2}));
  EXPECT_NEAR(grey.to_vector()[1], 0.299 * 3 + 0.587 * 4 + 0.114 * 5, 1);
  const Scratch s;
  const std::string blue = s.put("blue.bmp", bmp(40, 30, {char(200), 10, 20}));
  const Tensor small = load_image(blue, {.height = 7, .width = 5});
  EXPECT_EQ(small.sizes(), (Shape{3, 7, 5}));
  for (int i = 0; i < 35; ++i) {
    EXPECT_NEAR(small.data<uint8_t>()[i], 20, 1);
    EXPECT_NEAR(small.data<uint8_t>()[70 + i], 200, 1);
  }
  // The middle of a wide picture: its left and right thirds are gone.
  Pixels wide{{1, 3, 1}, {10, 100, 200}};
  EXPECT_EQ(resize_picture(wide, 2, 2).values, (std::vector<uint8_t>{100, 100, 100, 100}));
  EXPECT_EQ(resize_picture(wide, 1, 3).values, wide.values);
  EXPECT_THROW(read("good_grey.png", {.height = 5}), ValueError);
  EXPECT_THROW(read("good_grey.png", {.height = -5, .width = -5}), ValueError);
  EXPECT_THROW(read("good_grey.png", {.channels = 2}), ValueError);
}

TEST(ImageFolder, sub_folders_are_classes) {
  const Scratch s;
  for (int i = 0; i < 6; ++i) {
    const std::string name = std::to_string(i) + (i == 3 ? ".BMP" : ".bmp");
    s.put("set/dog/" + name, bmp(3, 2, {char(i), 0, 0}));
  }
  s.put("set/cat/a.png", content("good_grey.png"));
  s.put("set/cat/.hidden.png", "nothing");
  s.put("set/cat/notes.txt", "nothing");
  s.put("set/empty/notes.txt", "nothing");
  const Dataset train = open(s.path("set"), "train"), test = open(s.path("set"), "test");
  EXPECT_EQ(train.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(train.inputs.sizes(), (Shape{6, 3, 2, 3}));
  EXPECT_EQ(train.targets.to_vector(), (Values{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(train.scale, 1.0 / 255);
  EXPECT_EQ(test.inputs.sizes(), (Shape{1, 3, 2, 3}));  // the fifth dog
  EXPECT_EQ(test.inputs.data<uint8_t>()[12], 4);        // blue
  EXPECT_EQ(test.classes, train.classes);
  EXPECT_EQ(train.inputs.data<uint8_t>()[5], 255);  // the cat, its grey as red
}

TEST(ImageFolder, splits_as_folders) {
  const Scratch s;
  s.put("set/train/a/1.png", content("good_grey.png"));
  s.put("set/train/b/1.png", content("good_grey.png"));
  EXPECT_NE(refusal([&] { open(s.path("set"), "train"); }).find("none test"), std::string::npos);
  s.put("set/val/b/7.png", content("good_grey.png"));
  EXPECT_EQ(open(s.path("set"), "train").inputs.sizes(), (Shape{2, 1, 2, 3}));
  EXPECT_EQ(open(s.path("set"), "test").targets.to_vector(), (Values{1}));
  s.put("set/val/c/7.png", content("good_grey.png"));
  EXPECT_NE(refusal([&] { open(s.path("set"), "train"); }).find("val/c: there is no such class"),
            std::string::npos);
}

TEST(ImageFolder, sizes_as_text) {
  EXPECT_EQ(parse_resize("64x48").height, 64);
  EXPECT_EQ(parse_resize("64x48").width, 48);
  EXPECT_EQ(parse_resize("32").width, 32);
  EXPECT_EQ(parse_resize("").height, 0);
  for (const char* wrong :
       {"x", "64x", "x64", "0", "-1x5", "64x48x3", "a", "1e9", "70000x1", " 3"}) {
    EXPECT_NE(refusal<ValueError>([&] { parse_resize(wrong); }).find("HEIGHTxWIDTH"),
              std::string::npos)
        << wrong;
  }
}

TEST(ImageFolder, one_size_or_a_size_that_is_asked_for) {
  const Scratch s;
  s.put("set/a/1.bmp", bmp(3, 2, "abc"));
  s.put("set/b/2.bmp", bmp(2, 3, "abc"));
  const std::string message = refusal([&] { open(s.path("set"), "train"); });
  EXPECT_NE(message.find("b/2.bmp has 3×2 pixels"), std::string::npos) << message;
  EXPECT_NE(message.find("--resize"), std::string::npos) << message;
  const Dataset d = open(s.path("set"), "train", {.height = 4, .width = 4});
  EXPECT_EQ(d.inputs.sizes(), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(d.inputs.data<uint8_t>()[0], 'c');
  EXPECT_THROW(open("digits", "train", {.height = 4, .width = 4}), ValueError);
  s.put("set/b/3.bmp", "BM");
  EXPECT_NE(refusal([&] { open(s.path("set"), "train"); }).find("b/3.bmp: is damaged"),
            std::string::npos);
}

}  // namespace
}  // namespace cutaway::data
