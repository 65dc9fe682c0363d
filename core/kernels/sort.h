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

inline void visit_args(ArgumentVisitor& v, SortArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}, {"inner", a.inner}, {"k", a.k}});
  v.reads(a.in);
  v.writes(a.values);
  v.writes(a.indices);
}
inline void visit_args(ArgumentVisitor& v, UniqueArgs& a) {
  v.numbers({{"n", a.n}});
  v.reads(a.sorted);
  v.reads(a.order);
  v.writes(a.values);
  v.writes(a.inverse);
  v.writes(a.counts);
  v.host_result(a.groups, 1);
}
inline void visit_args(ArgumentVisitor& v, SearchArgs& a) {
  v.numbers({{"rows", a.rows}, {"n", a.n}, {"m", a.m}});
  v.reads(a.sorted);
  v.reads(a.values);
  v.writes(a.out);
}

namespace kernels {
inline constinit Kernel<SortArgs> sort{"sort"};
inline constinit Kernel<UniqueArgs> unique{"unique"};
inline constinit Kernel<SearchArgs> search_sorted{"search_sorted"};
}  // namespace kernels

}  // namespace cutaway
