#include <cutaway/datasets/targets.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>

#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/formats.h>

namespace cutaway::data {
namespace {

// Rows of a tensor, byte for byte.
Tensor rows_of(const Tensor& t, const std::vector<int64_t>& rows) {
  const Tensor from = contiguous_raw(t);
  Shape sizes = from.sizes();
  const int64_t row = from.numel() / std::max<int64_t>(sizes[0], 1) * size_of(from.dtype());
  sizes[0] = int64_t(rows.size());
  Tensor out = empty(sizes, {.dtype = from.dtype()});
  auto* to = static_cast<uint8_t*>(out.raw());
  for (size_t i = 0; row > 0 && i < rows.size(); ++i) {
    std::memcpy(to + int64_t(i) * row, static_cast<const uint8_t*>(from.raw()) + rows[i] * row,
                size_t(row));
  }
  return out;
}

}  // namespace

Targets make_targets(std::span<const double> numbers, TargetOptions options) {
  const auto n = int64_t(numbers.size());
  const bool whole = std::all_of(numbers.begin(), numbers.end(), [&](double v) {
    return std::fabs(v) < 0x1p53 && v == std::floor(v) && (options.renumber || v >= 0);
  });
  Targets out;
  if (!whole) {
    out.values = empty({n});
    std::transform(numbers.begin(), numbers.end(), out.values.data<float>(),
                   [](double v) { return float(v); });
    return out;
  }
  out.values = empty({n}, {.dtype = DType::i64});
  int64_t* y = out.values.data<int64_t>();
  std::transform(numbers.begin(), numbers.end(), y, [](double v) { return int64_t(v); });
  if (!options.renumber) return out;
  std::vector<int64_t> seen(y, y + n);
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  if (seen.empty() || seen.front() == 0) return out;
  for (const int64_t c : seen) out.classes.push_back(std::to_string(c));
  std::transform(y, y + n, y, [&](int64_t v) {
    return int64_t(std::lower_bound(seen.begin(), seen.end(), v) - seen.begin());
  });
  return out;
}

Dataset take_examples(const Dataset& set, const std::vector<int64_t>& examples) {
  Dataset out = set;
  out.inputs = rows_of(set.inputs, examples);
  out.targets = rows_of(set.targets, examples);
  return out;
}

Dataset take_split(const Dataset& set, const std::string& split) {
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < set.size(); ++i) {
    if (in_split(i, split)) examples.push_back(i);
  }
  return take_examples(set, examples);
}

}  // namespace cutaway::data
