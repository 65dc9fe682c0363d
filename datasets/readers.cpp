#include <cutaway/datasets/readers.h>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::data {
namespace {

[[noreturn]] void fail(const char* format, const std::string& file, const std::string& rule,
                       std::string_view hint = {}) {
  throw IoError(format, file + ": " + rule, hint);
}

uint32_t big_endian(const uint8_t* p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
}

}  // namespace

Tensor parse_idx(const std::string& name, const uint8_t* data, int64_t bytes) {
  if (bytes < 4 || data[0] != 0 || data[1] != 0)
    fail("idx", name, "does not begin like an IDX file");
  struct Type {
    uint8_t code;
    DType dtype;
  };
  constexpr Type kTypes[] = {{0x08, DType::u8},
                             {0x09, DType::i8},
                             {0x0C, DType::i32},
                             {0x0D, DType::f32},
                             {0x0E, DType::f64}};
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](auto& t) { return t.code == data[2]; });
  if (type == std::end(kTypes))
    fail("idx", name, fmt::format("unknown element type {:#x}", data[2]));
  const int rank = data[3];
  if (rank < 1 || rank > kMaxRank)
    fail("idx", name, fmt::format("{} dimensions; need 1 to 8", rank));
  if (bytes < 4 + 4 * rank) fail("idx", name, "is cut off in the header");
  Shape sizes;
  const int64_t width = size_of(type->dtype);
  int64_t need = width;
  bool overflow = false;
  for (int d = 0; d < rank; ++d) {
    sizes.push_back(big_endian(data + 4 + 4 * d));
    // Zeros aside: no product of sizes may wrap, whatever their order.
    const int64_t factor = std::max<int64_t>(sizes.back(), 1);
    overflow = __builtin_mul_overflow(need, factor, &need) || overflow;
  }
  if (sizes.contains(0)) need = 0;
  const int64_t have = bytes - 4 - 4 * rank;
  if (overflow || need != have) {
    fail("idx", name,
         fmt::format("sizes {} need {} data bytes, there are {}", to_string(sizes),
                     overflow ? "too many" : std::to_string(need), have));
  }
  Tensor t = empty(sizes, {.dtype = type->dtype});
  if (need == 0) return t;
  uint8_t* out = static_cast<uint8_t*>(t.raw());
  std::memcpy(out, data + 4 + 4 * rank, size_t(need));
  for (int64_t i = 0; width > 1 && i < need; i += width) std::reverse(out + i, out + i + width);
  return t;
}

Tensor load_idx(const std::string& path) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return parse_idx(path, bytes.data(), int64_t(bytes.size()));
}

namespace {

struct Cell {
  std::string text;
  bool quoted = false;
};
struct Row {
  int64_t line;
  std::vector<Cell> cells;
};

// Splits text into rows of cells; blank lines are skipped.
std::vector<Row> split_rows(const std::string& name, const std::string& text, char separator) {
  std::vector<Row> rows;
  int64_t line = 1;
  size_t i = 0;
  while (i < text.size()) {
    Row row{line, {}};
    for (;;) {
      Cell cell;
      if (i < text.size() && text[i] == '"') {
        cell.quoted = true;
        for (++i;; ++i) {
          if (i >= text.size())
            fail("csv", name + ":" + std::to_string(row.line), "a quoted cell does not end");
          if (text[i] == '\n') ++line;
          if (text[i] != '"') {
            cell.text += text[i];
          } else if (i + 1 < text.size() && text[i + 1] == '"') {
            cell.text += text[i++];
          } else {
            ++i;
            break;
          }
        }
      }
      while (i < text.size() && text[i] != separator && text[i] != '\n' && text[i] != '\r')
        cell.text += text[i++];
      row.cells.push_back(std::move(cell));
      if (i < text.size() && text[i] == separator) {
        ++i;
        continue;
      }
      break;
    }
    if (i < text.size() && text[i] == '\r') ++i;
    if (i < text.size() && text[i] == '\n') ++i;
    ++line;
    const bool blank = row.cells.size() == 1 && row.cells[0].text.empty() && !row.cells[0].quoted;
    if (!blank) rows.push_back(std::move(row));
  }
  return rows;
}

// Whether a decimal number that f64 cannot hold is a tiny one, by its power of ten: the place of
// its first digit other than 0, counted from the point, plus the exponent.
bool is_tiny(std::string_view number) {
  const size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view mantissa = number.substr(0, e);
  const size_t point = std::min(mantissa.find('.'), e),
               first = std::min(mantissa.find_first_of("123456789"), e);
  int64_t power = int64_t(point) - int64_t(first);
  if (e < number.size()) {
    const std::string_view exponent = number.substr(e + 1);
    if (exponent.size() > 12) return exponent[0] == '-';  // no mantissa can make up for it
    int64_t shift = 0;
    std::from_chars(exponent.data() + (exponent[0] == '+'), exponent.data() + exponent.size(),
                    shift);
    power += shift;
  }
  return power < 0;
}

// Strict decimal number, the same under every locale; blanks around it are allowed. A whole number
// that f64 cannot hold exactly is not silently rounded.
enum class Number { yes, no, overflow, inexact };
Number parse_number(const std::string& cell, double& value) {
  const char* begin = cell.data();
  const char* end = begin + cell.size();
  while (begin < end && (*begin == ' ' || *begin == '\t')) ++begin;
  while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) --end;
  if (begin < end && *begin == '+' && begin + 1 < end && begin[1] != '-' && begin[1] != '+')
    ++begin;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (begin == end || stop != end) return Number::no;
  if (error == std::errc::result_out_of_range) {
    // from_chars reports both ends; a tiny number is 0 to f64's resolution.
    value = 0;
    return is_tiny({begin, size_t(end - begin)}) ? Number::yes : Number::overflow;
  }
  if (error != std::errc()) return Number::no;
  if (std::fabs(value) >= 9007199254740992.0 &&
      std::string_view(begin, size_t(end - begin)).find_first_not_of("+-0123456789") ==
          std::string_view::npos) {
    int64_t whole = 0;
    const auto [wstop, werror] = std::from_chars(begin, end, whole);
    if (wstop != end || werror != std::errc() || value >= 0x1p63 || int64_t(value) != whole)
      return Number::inexact;
  }
  return Number::yes;
}

struct ColumnReader {
  const std::string& name;
  const CsvOptions& options;
  CsvTable& table;

  bool is_missing(const Cell& c) const {
    return std::find(options.missing.begin(), options.missing.end(), c.text) !=
           options.missing.end();
  }

  void read(const std::vector<Row>& rows, size_t first, size_t column) {
    const int64_t width = int64_t(table.columns.size());
    double* out = table.values.data<double>() + column;
    std::map<std::string, int64_t> numbers;
    bool any_number = false, any_text = false;
    const Row* text_row = nullptr;
    for (size_t r = first; r < rows.size(); ++r) {
      const Cell& cell = rows[r].cells[column];
      double& value = out[int64_t(r - first) * width];
      if (is_missing(cell)) {
        value = NAN;
        continue;
      }
      switch (parse_number(cell.text, value)) {
        case Number::yes:
          any_number = true;
          break;
        case Number::overflow:
          complain(rows[r], column, "is too large for f64");
          break;
        case Number::inexact:
          complain(rows[r], column, "is a whole number that f64 cannot hold exactly");
          break;
        case Number::no:
          if (!any_text) text_row = &rows[r];
          any_text = true;
          const auto [at, fresh] = numbers.emplace(cell.text, int64_t(numbers.size()));
          if (fresh) table.categories[column].push_back(cell.text);
          value = double(at->second);
      }
      if (any_text && (any_number || text_row->cells[column].text.empty())) {
        complain(*text_row, column, "is not a number");
      }
    }
  }

  [[noreturn]] void complain(const Row& row, size_t column, const char* why) const {
    const std::string& text = row.cells[column].text;
    throw IoError("csv",
                  fmt::format("{}:{}: column {} '{}': \"{}\" {}", name, row.line, column + 1,
                              table.columns[column], text, why),
                  fmt::format("--missing {} reads it as NaN", text.empty() ? "''" : text));
  }
};

}  // namespace

CsvTable parse_csv(const std::string& name, const std::string& text, const CsvOptions& options) {
  std::string body = text;
  if (body.starts_with("\xEF\xBB\xBF")) body.erase(0, 3);
  if (body.starts_with("\xFF\xFE") || body.starts_with("\xFE\xFF"))
    fail("csv", name, "is UTF-16; need UTF-8", "convert it with iconv");
  if (body.find('\0') != std::string::npos) fail("csv", name, "holds zero bytes; it is not text");
  const std::vector<Row> rows = split_rows(name, body, options.separator);
  if (rows.empty()) fail("csv", name, "has no rows");
  const size_t width = rows[0].cells.size();
  for (const Row& row : rows) {
    if (row.cells.size() != width) {
      fail("csv", fmt::format("{}:{}", name, row.line),
           fmt::format("{} cells, the first row has {}", row.cells.size(), width));
    }
  }
  bool header = options.header == CsvOptions::Header::yes;
  if (options.header == CsvOptions::Header::automatic) {
    double ignored;
    for (const Cell& c : rows[0].cells) {
      const bool missing = std::find(options.missing.begin(), options.missing.end(), c.text) !=
                           options.missing.end();
      header =
          header || (!missing && !c.text.empty() && parse_number(c.text, ignored) == Number::no);
    }
  }
  CsvTable table;
  for (size_t c = 0; c < width; ++c)
    table.columns.push_back(header ? rows[0].cells[c].text : fmt::format("c{}", c));
  const size_t first = header ? 1 : 0;
  table.values = zeros({int64_t(rows.size() - first), int64_t(width)}, {.dtype = DType::f64});
  table.categories.resize(width);
  ColumnReader reader{name, options, table};
  for (size_t c = 0; c < width; ++c) reader.read(rows, first, c);
  return table;
}

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  const io::Bytes bytes = io::read_maybe_gzip(path);
  return parse_csv(path, std::string(bytes.begin(), bytes.end()), options);
}

}  // namespace cutaway::data
