#pragma once
#include <cutaway/core/kernel.h>

// Order of elements: NaN is greater than everything, -0 equals +0, equal elements keep their order.
namespace cutaway {

// Lines of n elements: in [outer, n, inner], dense. Writes the first k of each sorted line to
// values and their places to indices, both [outer, k, inner]; either may be null. n < 2³².
struct SortArgs {
  const void* in = nullptr;
  void* values = nullptr;
  int64_t* indices = nullptr;
  int64_t outer = 0, n = 0, inner = 0, k = 0;
  bool descending = false;
};

// Groups of equal elements in a sorted list: values[g], counts[g], inverse[order[i]] = g. A NaN is
// a group of its own. *groups receives their number.
struct UniqueArgs {
  const void* sorted = nullptr;
  const int64_t* order = nullptr;
  int64_t n = 0;
  void* values = nullptr;
  int64_t* inverse = nullptr;
  int64_t* counts = nullptr;
  int64_t* groups = nullptr;  // host
};

// out[r, j] = number of elements of sorted[r, :] below values[r, j], or not above it with `right`.
// sorted [rows, n] (or [n] for all rows), values and out [rows, m].
struct SearchArgs {
  const void* sorted = nullptr;
  const void* values = nullptr;
  int64_t* out = nullptr;
  int64_t rows = 0, n = 0, m = 0;
  bool shared = false;  // one sorted row for all
  bool right = false;
};

namespace kernels {
inline constinit Kernel<SortArgs> sort{"sort"};
inline constinit Kernel<UniqueArgs> unique{"unique"};
inline constinit Kernel<SearchArgs> search_sorted{"search_sorted"};
}  // namespace kernels

}  // namespace cutaway
