// Small cases of the readers with their values; hostile files are in tests/fuzz.
#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/datasets/readers.h>
#include <tests/comma_locale.h>

namespace cutaway::data {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

CsvTable parse(const std::string& text, CsvOptions::Header header = CsvOptions::Header::automatic,
               const Names& missing = {}) {
  return parse_csv("file", text, {.header = header, .missing = missing});
}
std::string refusal(const std::string& text) {
  try {
    parse(text);
    return {};
  } catch (const IoError& e) {
    return e.what();
  }
}

TEST(Csv, FC_b694_marks_line_ends_and_blank_lines) {
  const CsvTable t = parse("\xEF\xBB\xBF\"a\",\"b\"\r\n1,2\r\n\r\n3,4");
  EXPECT_EQ(t.columns, (Names{"a", "b"}));
  EXPECT_EQ(t.values.to_vector(), (Values{1, 2, 3, 4}));
  EXPECT_NE(refusal(std::string("\xFF\xFE\x31\0,\0", 6)).find("UTF-16"), std::string::npos);
  EXPECT_NE(refusal(std::string("\xFE\xFF\0\x31\0,", 6)).find("UTF-16"), std::string::npos);
}

TEST(Csv, FC_3348_is_the_first_row_a_header) {
  EXPECT_EQ(parse("a,b\n1,2").values.size(0), 1);
  EXPECT_EQ(parse("1,2\n3,4").values.size(0), 2);
  EXPECT_EQ(parse("nan,inf\n1,2").values.size(0), 2);
  EXPECT_EQ(parse("2019,2020\n1,2").values.size(0), 2);
  EXPECT_EQ(parse("2019,2020\n1,2", CsvOptions::Header::yes).columns, (Names{"2019", "2020"}));
}

TEST(Csv, FC_e2bb_missing_values_categories_and_large_integers) {
  const auto no = CsvOptions::Header::no;
  const Values later = parse("1,1\n,1\n1,1", no, {"", "NA"}).values.to_vector();
  EXPECT_TRUE(std::isnan(later[2]));
  EXPECT_EQ(later[0], 1);
  const Values first = parse(",1\n1,1\nNA,1", no, {"", "NA"}).values.to_vector();
  EXPECT_TRUE(std::isnan(first[0]));
  EXPECT_EQ(first[2], 1);
  EXPECT_TRUE(std::isnan(first[4]));
  const CsvTable t = parse("x\nb\na\nb", CsvOptions::Header::yes);
  EXPECT_EQ(t.categories[0], (Names{"b", "a"}));
  EXPECT_EQ(t.values.to_vector(), (Values{0, 1, 0}));
  for (const char* not_listed : {"NA", "?", "null"}) {
    EXPECT_THROW(parse(std::string("a\n1\n") + not_listed), IoError) << not_listed;
    EXPECT_TRUE(
        std::isnan(parse(std::string("1\n") + not_listed, no, {not_listed}).values.to_vector()[1]));
  }
  EXPECT_THROW(parse("1\n9007199254740993"), IoError);
  EXPECT_EQ(parse("1\n9007199254740992").values.to_vector()[1], 9007199254740992.0);
}

TEST(Csv, FC_4744_numbers_under_a_decimal_comma) {
  const test::CommaLocale locale;
  const CsvTable t = parse("1.5,2e-3,+4,-.5,nan,-inf, 7,0.1\n");
  const Values v = t.values.to_vector();
  const Values want = {1.5, 0.002, 4, -0.5, NAN, -INFINITY, 7, 0.1};
  ASSERT_EQ(v.size(), want.size());
  for (size_t i = 0; i < v.size(); ++i) {
    if (i == 4) {
      EXPECT_TRUE(std::isnan(v[i]));
    } else {
      EXPECT_EQ(v[i], want[i]) << i;
    }
  }
  EXPECT_NE(refusal("1\n1e400\n").find("too large for f64"), std::string::npos);
  EXPECT_NE(refusal("1\n0x10\n").find("\"0x10\" is not a number"), std::string::npos);
  EXPECT_NE(refusal("1\n1_000\n").find("\"1_000\" is not a number"), std::string::npos);
}

TEST(Csv, numbers_too_small_for_f64_are_zero) {
  const std::string zeros(400, '0');
  EXPECT_EQ(parse("1e-400,1E-400,-1e-9999999999,0." + zeros + "1\n").values.to_vector(),
            (Values{0, 0, 0, 0}));
  EXPECT_NE(refusal("1\n1" + zeros + "\n"), "");
  EXPECT_NE(refusal("1\n1E400\n"), "");
}

TEST(Idx, values_of_every_type) {
  const auto read = [](const std::string& s) {
    return parse_idx("file", reinterpret_cast<const uint8_t*>(s.data()), int64_t(s.size()));
  };
  const Tensor u8 = read(std::string("\0\0\x08\x02\0\0\0\x01\0\0\0\x02\xFF\x03", 14));
  EXPECT_EQ(u8.dtype(), DType::u8);
  EXPECT_EQ(u8.sizes(), (Shape{1, 2}));
  EXPECT_EQ(u8.to_vector(), (Values{255, 3}));
  const Tensor i32 = read(std::string("\0\0\x0C\x01\0\0\0\x01\xFF\xFF\xFF\xFE", 12));
  EXPECT_EQ(i32.item(), -2);
  EXPECT_EQ(i32.dtype(), DType::i32);
  EXPECT_EQ(read(std::string("\0\0\x0D\x01\0\0\0\x01\x3F\xC0\0\0", 12)).item(), 1.5);
}

}  // namespace
}  // namespace cutaway::data
