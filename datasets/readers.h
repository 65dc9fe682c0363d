#pragma once
#include <optional>
#include <string>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::data {

// IDX files of the MNIST family, plain or gzipped: u8, i8, i32, f32, f64 of any rank up to 8
// (big-endian on disk). Raises IoError naming the file and the rule.
Tensor load_idx(const std::string& path);
Tensor parse_idx(const std::string& name, const uint8_t* data, int64_t bytes);

struct CsvOptions {
  enum class Header { automatic, yes, no };
  Header header =
      Header::automatic;  // automatic: the first row is a header if any cell is not a number
  char separator = ',';
  std::vector<std::string> missing;  // cells read as NaN; an empty cell counts when "" is listed
};
struct CsvTable {
  std::vector<std::string> columns;  // names; "c0", "c1", … without a header
  Tensor values;                     // f64 [rows, columns]; text columns hold category numbers
  std::vector<std::vector<std::string>> categories;  // per column; empty for numeric ones
};
// Comma-separated values with quotes, CRLF, byte order mark, optionally gzipped. A column with a
// cell that is not a number becomes categories, numbered by first appearance, only if no cell of it
// is a number; otherwise IoError names file, line and column. Numbers are read the same under every
// locale; hexadecimal and 1_000 are not numbers.
CsvTable load_csv(const std::string& path, const CsvOptions& options = {});
CsvTable parse_csv(const std::string& name, const std::string& text,
                   const CsvOptions& options = {});

}  // namespace cutaway::data
