#pragma once
#include <cutaway/core/kernel.h>
#include <cutaway/core/shape.h>

// Kernels that read or write at places given by i64 indices. Indices are dense and checked by the
// caller; -1 means no place: nothing is written there, and zero is read. A task owns what it writes
// and goes through indices in order, so that results do not depend on the number of threads.
namespace cutaway {

// First position i with index[i] outside of [low, high) and, with has_ignored, not `ignored`; or
// -1.
struct BoundsArgs {
  const int64_t* index = nullptr;
  int64_t n = 0, low = 0, high = 0;
  int64_t* found = nullptr;  // host
  int64_t ignored = 0;
  bool has_ignored = false;
};

// out[i] = in[i, but index[i] in dimension `dim`] for all i of sizes [rank] (those of index and
// out).
struct GatherArgs {
  int rank = 0;  // at least 1
  int dim = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t in_strides[kMaxRank] = {};
  const int64_t* index = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
};

// out[i, but index[i] in dimension `dim`] gets src[i], for all i of sizes [rank] (those of index).
// `out` is dense, holds the old values, and has n places in that dimension.
struct ScatterArgs {
  int rank = 0;
  int dim = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t out_strides[kMaxRank] = {};
  int64_t src_strides[kMaxRank] = {};
  int64_t n = 0;
  const int64_t* index = nullptr;
  const void* src = nullptr;  // null: `value` is written everywhere
  const void* value = nullptr;
  void* out = nullptr;
};

enum class ScatterMode : uint8_t { sum, mean, prod, amax, amin };
// As scatter, but values that meet are reduced: in order, sums, products and means of floating
// types in f64, rounded once. Without include_self the old value of a place that is hit does not
// count.
struct ScatterReduceArgs : ScatterArgs {
  ScatterMode mode = ScatterMode::sum;
  bool include_self = true;
  bool atomics = false;  // sums may be added in any order, rounded each time, where that is faster
  int64_t* counts = nullptr;  // for mean: values that went into each place; dense, as out
};

// Rows: out[o, k, :] = in[o, index[k], :] for in [outer, n, inner], index [count].
struct TakeRowsArgs {
  const int64_t* index = nullptr;
  const void* in = nullptr;
  void* out = nullptr;
  int64_t outer = 0, n = 0, count = 0, inner = 0;
};
// out[o, index[k], :] = in[o, k, :] for out [outer, n, inner]; the last k wins.
using PutRowsArgs = TakeRowsArgs;
// out[o, index[k], :] reduced with in[o, k, :], as in scatter_reduce; counts [n].
struct ReduceRowsArgs : TakeRowsArgs {
  ScatterMode mode = ScatterMode::sum;
  bool include_self = true;
  bool atomics = false;
  int64_t* counts = nullptr;
};

// Positions of elements that are not zero (NaN is not). Blocks of kNonzeroBlock elements: without
// `out` their numbers are stored in counts, with it positions are written from counts[block] on.
inline constexpr int64_t kNonzeroBlock = 16384;
struct NonzeroArgs {
  const void* in = nullptr;
  int64_t n = 0;
  int64_t* counts = nullptr;
  int64_t* out = nullptr;
};

inline void visit_args(ArgumentVisitor& v, BoundsArgs& a) {
  v.numbers({{"n", a.n}, {"low", a.low}, {"high", a.high}});
  v.reads(a.index);
  v.host_result(a.found, 1);
}
inline void visit_args(ArgumentVisitor& v, GatherArgs& a) {
  v.sizes(a.sizes, a.rank);
  v.reads(a.index);
  v.reads(a.in);
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, ScatterArgs& a) {
  v.sizes(a.sizes, a.rank);
  v.reads(a.index);
  v.reads(a.src);
  v.reads(a.value);
  v.changes(a.out);
}
inline void visit_args(ArgumentVisitor& v, ScatterReduceArgs& a) {
  visit_args(v, static_cast<ScatterArgs&>(a));
  v.writes(a.counts);
}
inline void visit_args(ArgumentVisitor& v, TakeRowsArgs& a) {
  v.numbers({{"outer", a.outer}, {"n", a.n}, {"count", a.count}, {"inner", a.inner}});
  v.reads(a.index);
  v.reads(a.in);
  v.writes(a.out);
}
inline void visit_args(ArgumentVisitor& v, ReduceRowsArgs& a) {
  visit_args(v, static_cast<TakeRowsArgs&>(a));
  v.writes(a.counts);
}
inline void visit_args(ArgumentVisitor& v, NonzeroArgs& a) {
  v.numbers({{"n", a.n}});
  v.reads(a.in);
  v.writes(a.counts);
  v.writes(a.out);
}

namespace kernels {
inline constinit Kernel<BoundsArgs> index_bounds{"index_bounds"};  // type i64
inline constinit Kernel<GatherArgs> gather{"gather"};
inline constinit Kernel<ScatterArgs> scatter{"scatter"};
inline constinit Kernel<ScatterReduceArgs> scatter_reduce{"scatter_reduce"};
inline constinit Kernel<TakeRowsArgs> take_rows{"take_rows"};
inline constinit Kernel<PutRowsArgs> put_rows{"put_rows"};
inline constinit Kernel<ReduceRowsArgs> reduce_rows{"reduce_rows"};
inline constinit Kernel<NonzeroArgs> nonzero{"nonzero"};
}  // namespace kernels

}  // namespace cutaway
