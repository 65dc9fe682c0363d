#include <cutaway/datasets/csr.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>

namespace cutaway::data {

void add_row(Csr& matrix, std::vector<std::pair<int32_t, float>>& entries) {
  std::sort(entries.begin(), entries.end());
  const size_t first = matrix.index.size();
  for (const auto& [index, value] : entries) {
    if (matrix.index.size() > first && matrix.index.back() == index) {
      matrix.value.back() += value;
    } else {
      matrix.index.push_back(index);
      matrix.value.push_back(value);
    }
  }
  matrix.start.push_back(matrix.entries());
}

Csr take_rows(const Csr& matrix, const std::vector<int64_t>& rows) {
  Csr out;
  out.cols = matrix.cols;
  for (const int64_t r : rows) {
    if (r < 0 || r >= matrix.rows()) {
      throw IndexError("take_rows", fmt::format("row out of range; got {}, there are {} rows", r,
                                                matrix.rows()));
    }
    const auto begin = matrix.start[size_t(r)], end = matrix.start[size_t(r) + 1];
    out.index.insert(out.index.end(), matrix.index.begin() + begin, matrix.index.begin() + end);
    if (!matrix.value.empty()) {
      out.value.insert(out.value.end(), matrix.value.begin() + begin, matrix.value.begin() + end);
    }
    out.start.push_back(out.entries());
  }
  return out;
}

Csr transpose(const Csr& matrix) {
  Csr out;
  out.cols = matrix.rows();
  out.start.assign(size_t(matrix.cols) + 1, 0);
  for (const int32_t c : matrix.index) ++out.start[size_t(c) + 1];
  for (size_t c = 1; c < out.start.size(); ++c) out.start[c] += out.start[c - 1];
  std::vector<int64_t> next(out.start.begin(), out.start.end() - 1);
  out.index.resize(matrix.index.size());
  out.value.resize(matrix.value.size());
  for (int64_t r = 0; r < matrix.rows(); ++r) {
    for (int64_t at = matrix.start[size_t(r)]; at < matrix.start[size_t(r) + 1]; ++at) {
      const size_t to = size_t(next[size_t(matrix.index[size_t(at)])]++);
      out.index[to] = int32_t(r);
      if (!matrix.value.empty()) out.value[to] = matrix.value[size_t(at)];
    }
  }
  return out;
}

void check_csr(const Csr& m, const std::string& what) {
  const auto fail = [&](const std::string& rule) { throw ValueError("csr", what + rule); };
  if (m.start.empty() || m.start.front() != 0 || m.start.back() != m.entries()) {
    fail(": row starts do not span the entries");
  }
  if (!m.value.empty() && m.value.size() != m.index.size()) {
    fail(fmt::format(": {} values for {} entries", m.value.size(), m.index.size()));
  }
  for (int64_t r = 0; r < m.rows(); ++r) {
    const int64_t begin = m.start[size_t(r)], end = m.start[size_t(r) + 1];
    if (begin > end || end > m.entries()) fail(fmt::format(": row {} ends before it starts", r));
    for (int64_t at = begin; at < end; ++at) {
      const int32_t index = m.index[size_t(at)];
      if (index < 0 || index >= m.cols) {
        fail(fmt::format(": row {} has index {}, there are {} columns", r, index, m.cols));
      }
      if (at > begin && m.index[size_t(at) - 1] >= index) {
        fail(fmt::format(": row {} is not ascending at index {}", r, index));
      }
      if (!m.value.empty() && !std::isfinite(m.value[size_t(at)])) {
        fail(fmt::format(": row {} index {} is not finite", r, index));
      }
    }
  }
}

Tensor dense(const Csr& matrix, const std::string& what) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(matrix.rows(), matrix.cols, &bytes) ||
      bytes > io::unpack_limit() / int64_t(sizeof(float))) {
    throw IoError("csr",
                  fmt::format("{}: {} rows of {} columns are too many for a dense tensor; it may "
                              "have {} MiB",
                              what, matrix.rows(), matrix.cols, io::unpack_limit() >> 20),
                  "load_libsvm and load_xmc give them sparse; cutaway xmc trains on them so");
  }
  Tensor out = zeros({matrix.rows(), matrix.cols});
  float* x = out.data<float>();
  for (int64_t r = 0; r < matrix.rows(); ++r, x += matrix.cols) {
    const auto index = matrix.row(r);
    for (size_t i = 0; i < index.size(); ++i) {
      x[index[i]] = matrix.value.empty() ? 1.f : matrix.values(r)[i];
    }
  }
  return out;
}

}  // namespace cutaway::data
