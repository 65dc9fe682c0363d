#include <cutaway/models/grokking/implied.h>

#include <algorithm>
#include <array>

#include <cutaway/core/error.h>

namespace cutaway::grokking {

int64_t open_comparisons(const Task& task, const Split& split) {
  if (task.length != 3 || task.binary || !task.has(Law::transitivity)) {
    throw ValueError("grok", "open_comparisons is for comparisons with three answers");
  }
  const auto n = size_t(task.entities), attributes = task.tokens.size() - n;
  // below[a][b]: 0 nothing known, 1 a ≤ b, 2 a < b.
  using Order = std::vector<std::vector<uint8_t>>;
  std::vector<Order> orders(attributes, Order(n, std::vector<uint8_t>(n)));
  const auto input = [&](int64_t row) {
    const int64_t* v = &task.inputs[size_t(row * 3)];
    return std::array<size_t, 3>{size_t(v[0]), size_t(v[1]) - n, size_t(v[2])};
  };
  for (Order& below : orders) {
    for (size_t a = 0; a < n; ++a) below[a][a] = 1;
  }
  for (int64_t row : split.train) {
    const auto [a, k, b] = input(row);
    Order& below = orders[k];
    const int64_t answer = task.answers[size_t(row)];
    if (answer == 0) below[a][b] = 2;
    if (answer == 2) below[b][a] = 2;
    if (answer == 1) {
      below[a][b] = std::max<uint8_t>(below[a][b], 1);
      below[b][a] = std::max<uint8_t>(below[b][a], 1);
    }
  }
  for (Order& below : orders) {
    for (size_t m = 0; m < n; ++m) {
      for (size_t a = 0; a < n; ++a) {
        if (!below[a][m]) continue;
        for (size_t b = 0; b < n; ++b) {
          if (below[m][b]) {
            below[a][b] = std::max({below[a][b], below[a][m], below[m][b]});
          }
        }
      }
    }
  }
  int64_t open = 0;
  for (int64_t row : split.test) {
    const auto [a, k, b] = input(row);
    const Order& below = orders[k];
    const bool equal = below[a][b] == 1 && below[b][a] == 1;
    open += !(below[a][b] == 2 || below[b][a] == 2 || equal);
  }
  return open;
}

}  // namespace cutaway::grokking
