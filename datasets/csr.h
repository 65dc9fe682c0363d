#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::data {

// Sparse rows: entries of row i are index[start[i]] … index[start[i+1]−1], ascending and each
// once, with value[…] beside them; no values at all mean that every entry is 1.
struct Csr {
  int64_t cols = 0;
  std::vector<int64_t> start{0};  // [rows + 1]
  std::vector<int32_t> index;
  std::vector<float> value;

  int64_t rows() const { return int64_t(start.size()) - 1; }
  int64_t entries() const { return int64_t(index.size()); }
  std::span<const int32_t> row(int64_t i) const {
    return {index.data() + start[size_t(i)], size_t(start[size_t(i) + 1] - start[size_t(i)])};
  }
  std::span<const float> values(int64_t i) const {
    return {value.data() + start[size_t(i)], size_t(start[size_t(i) + 1] - start[size_t(i)])};
  }
};

// Columns that a file may have.
inline constexpr int64_t kMostColumns = int64_t(1) << 27;

// Adds a row; its (index, value) pairs are sorted, and values of an index met twice are added.
void add_row(Csr& matrix, std::vector<std::pair<int32_t, float>>& entries);
// The rows with these numbers, in this order. Raises IndexError for a row that is not there.
Csr take_rows(const Csr& matrix, const std::vector<int64_t>& rows);
// Entry (i, j) as (j, i): [cols, rows]. O(entries).
Csr transpose(const Csr& matrix);
// Raises ValueError naming `what` unless starts, indices and values (finite) agree.
void check_csr(const Csr& matrix, const std::string& what);
// All entries and the zeros between them, f32 [rows, cols]. Raises IoError naming `what` when that
// is more than io::unpack_limit() bytes.
Tensor dense(const Csr& matrix, const std::string& what);

}  // namespace cutaway::data
