#pragma once
#include <cutaway/core/kernels/reduce.h>
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/device/team.h>

// How a reduction walks its input. A policy R says what is computed:
//   In, Acc (16 bytes at most), Context; context(args, output, base): what add() wants to know of
//   an output whose elements start at `base`; identity(); add(acc, x, context, where);
//   merge(acc, acc); finish(args, output, acc) writes the result. With a type Paired, `value` is a
//   second input laid out as the first, and add(acc, x, second, context). With a type Heavy, add()
//   is long code that takes longer than to fetch an element: then it is not unrolled much.
// Note: fixed trees. Elements are given to threads, and partial results merged, in an order that
// depends on the shape alone.
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr int kReduceThreads = 256;
constexpr int64_t kReduceBlocks = 264;  // fewer leave a large GPU idle: then outputs are cut
constexpr int64_t kReduceChunk = 4096;  // elements that a block should have at least

// An element: its number among the reduced ones, and its place in the input.
struct Where {
  int64_t r, offset;
};
struct NoContext {};

struct ReducePlan {
  bool columns = false;  // neighbouring threads take neighbouring outputs
  bool vectors = false;  // 16 bytes at once
  bool narrow = false;   // divisions of 32 bits are enough
  int width = 1;         // rows: threads of a team; columns: outputs side by side in a block
  int64_t chunks = 1;    // parts of an output
  int64_t chunk = 0;     // elements of a part
};

DEVICE int64_t place_of(int64_t i, int rank, const int64_t* sizes, const int64_t* strides,
                        bool narrow) {
  if (rank == 1) return i * strides[0];
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    int64_t rest;
    if (narrow) {
      rest = static_cast<uint32_t>(i) / static_cast<uint32_t>(sizes[d]);
    } else {
      rest = i / sizes[d];
    }
    offset += (i - rest * sizes[d]) * strides[d];
    i = rest;
  }
  return offset;
}
DEVICE int64_t kept_place(const ReduceArgs& a, int64_t o, bool narrow) {
  return place_of(o, a.kept_rank, a.kept_sizes, a.kept_strides, narrow);
}
DEVICE int64_t reduced_place(const ReduceArgs& a, int64_t r, bool narrow) {
  return place_of(r, a.reduced_rank, a.reduced_sizes, a.reduced_strides, narrow);
}

// Elements first, first + step, … before `end`, V neighbours each, added to acc. Batches of loads
// go out before the first of them is needed.
template <class R, int V, int kBatch, class Context>
DEVICE typename R::Acc accumulate(const ReduceArgs& a, bool narrow, int64_t base, int64_t first,
                                  int64_t step, int64_t end, const Context& context) {
  using In = typename R::In;
  constexpr bool kPaired = requires { typename R::Paired; };
  const auto x = global<const In>(a.in);
  typename R::Acc acc = R::identity();
  for (int64_t i = first; i < end; i += kBatch * step) {
    Vec<In, V> v[kBatch] = {}, second[kPaired ? kBatch : 1] = {};
    int64_t at[kBatch] = {};
    CUTAWAY_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (i + b * step >= end) continue;
      at[b] = base + reduced_place(a, i + b * step, narrow);
      v[b] = load<V>(x, at[b]);
      if constexpr (kPaired) second[b] = load<V>(global<const In>(a.value), at[b]);
    }
    CUTAWAY_UNROLL
    for (int b = 0; b < kBatch; ++b) {
      if (i + b * step >= end) continue;
      for (int k = 0; k < V; ++k) {
        if constexpr (kPaired) {
          acc = R::add(acc, v[b][k], second[b][k], context);
        } else {
          acc = R::add(acc, v[b][k], context, Where{i + b * step + k, at[b] + k});
        }
      }
    }
  }
  return acc;
}

template <class R>
inline constexpr bool kHeavy = requires {
  typename R::Heavy;
};
// Elements that are read at once.
template <class R>
inline constexpr int kVector = kHeavy<R> ? 1 : kWide<typename R::In>;

// A team for each part of an output.
template <class R>
KERNEL reduce_rows(ReduceArgs a, ReducePlan p, typename R::Acc* partial) {
  constexpr int V = kVector<R>, kBatch = kHeavy<R> ? 1 : V > 4 ? 2 : 4;
  const Team team = this_team(p.width);
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * (kReduceThreads / p.width) + team.index;
  const int64_t o = unit / p.chunks, begin = unit % p.chunks * p.chunk;
  const bool live = o < a.outputs;
  typename R::Acc acc = R::identity();
  if (live) {
    const int64_t base = kept_place(a, o, p.narrow);
    const int64_t end = begin + p.chunk < a.count ? begin + p.chunk : a.count;
    const auto context = R::context(a, o, base);
    acc = p.vectors ? accumulate<R, V, kBatch>(a, p.narrow, base, begin + team.lane * V,
                                               p.width * V, end, context)
                    : accumulate<R, 1, kBatch>(a, p.narrow, base, begin + team.lane, p.width, end,
                                               context);
  }
  acc = team_reduce(team, acc, [](auto l, auto r) { return R::merge(l, r); });
  if (!live || team.lane != 0) return;
  if (p.chunks > 1) {
    global<typename R::Acc>(partial)[unit] = acc;
  } else {
    R::finish(a, o, acc);
  }
}

// Threads along x take neighbouring outputs, those along y share the elements of one.
template <class R>
KERNEL reduce_columns(ReduceArgs a, ReducePlan p, typename R::Acc* partial) {
  const int64_t o = static_cast<int64_t>(blockIdx.x) * p.width + threadIdx.x;
  const int64_t begin = blockIdx.y * p.chunk;
  const bool live = o < a.outputs;
  typename R::Acc acc = R::identity();
  if (live) {
    const int64_t base = kept_place(a, o, p.narrow);
    const int64_t end = begin + p.chunk < a.count ? begin + p.chunk : a.count;
    const auto context = R::context(a, o, base);
    constexpr int kBatch = kHeavy<R> ? 1 : 8;
    acc =
        accumulate<R, 1, kBatch>(a, p.narrow, base, begin + threadIdx.y, blockDim.y, end, context);
  }
  acc = column_reduce(acc, [](auto l, auto r) { return R::merge(l, r); });
  if (!live || threadIdx.y != 0) return;
  if (p.chunks > 1) {
    global<typename R::Acc>(partial)[blockIdx.y * a.outputs + o] = acc;
  } else {
    R::finish(a, o, acc);
  }
}

// Merges the parts of each output: neighbours for rows, `outputs` apart for columns.
template <class R>
KERNEL reduce_parts(ReduceArgs a, ReducePlan p, const typename R::Acc* partial, int width) {
  const Team team = this_team(width);
  const int64_t o = static_cast<int64_t>(blockIdx.x) * (kReduceThreads / width) + team.index;
  const auto parts = global<const typename R::Acc>(partial);
  const bool live = o < a.outputs;
  typename R::Acc acc = R::identity();
  for (int64_t c = team.lane; c < p.chunks && live; c += width) {
    const typename R::Acc part = parts[p.columns ? c * a.outputs + o : o * p.chunks + c];
    acc = R::merge(acc, part);
  }
  acc = team_reduce(team, acc, [](auto l, auto r) { return R::merge(l, r); });
  if (live && team.lane == 0) R::finish(a, o, acc);
}

// ---- plans

inline bool reduces_columns(const ReduceArgs& a) {
  const int kept = a.kept_rank - 1, reduced = a.reduced_rank - 1;
  if (kept < 0 || a.count == 0 || a.kept_sizes[kept] == 1) return false;
  return reduced < 0 || a.kept_strides[kept] < a.reduced_strides[reduced];
}
inline bool reduces_vectors(const ReduceArgs& a, int v) {
  const int last = a.reduced_rank - 1;
  if (last < 0 || a.reduced_strides[last] != 1 || !aligned16(a.in)) return false;
  bool fits = a.reduced_sizes[last] % v == 0;
  for (int d = 0; d < last; ++d) fits = fits && a.reduced_strides[d] % v == 0;
  for (int d = 0; d < a.kept_rank; ++d) fits = fits && a.kept_strides[d] % v == 0;
  return fits;
}
inline ReducePlan plan_reduction(const ReduceArgs& a, int v) {
  ReducePlan p;
  p.narrow = a.count < (int64_t{1} << 31) && a.outputs < (int64_t{1} << 31);
  p.columns = reduces_columns(a);
  p.vectors = !p.columns && v > 1 && reduces_vectors(a, v);
  int64_t blocks, least;
  if (p.columns) {
    p.width = power_of_two_from(a.kept_sizes[a.kept_rank - 1], 32);
    blocks = blocks_for(a.outputs, p.width);
    least = 16 * (kReduceThreads / p.width);
  } else {
    const int each = p.vectors ? v : 1;
    const int64_t steps = (a.count + each - 1) / each;
    p.width = steps <= 32 * 8 ? power_of_two_from(steps, 32)
                              : power_of_two_from((steps + 7) / 8, kReduceThreads);
    blocks = blocks_for(a.outputs, kReduceThreads / p.width);
    least = kReduceChunk;
  }
  if (blocks < kReduceBlocks && a.count > least) {
    const int64_t most = blocks_for(a.count, least), wanted = blocks_for(2 * kReduceBlocks, blocks);
    p.chunks = most < wanted ? most : wanted;
  }
  // A multiple of 64, so that vectors do not straddle the border.
  p.chunk = p.chunks == 1 ? a.count : blocks_for(blocks_for(a.count, p.chunks), 64) * 64;
  p.chunks = p.chunks == 1 ? 1 : blocks_for(a.count, p.chunk);
  return p;
}

template <class R>
void reduce(const ReduceArgs& a) {
  if (a.outputs == 0) return;
  constexpr bool kPaired = requires { typename R::Paired; };
  const bool second_fits = !kPaired || aligned16(a.value);
  const ReducePlan p = plan_reduction(a, second_fits ? kVector<R> : 1);
  DeviceArray<typename R::Acc> partial(p.chunks > 1 ? a.outputs * p.chunks : 0);
  if (p.columns) {
    launch({.name = "reduce_columns",
            .grid = {static_cast<unsigned>(blocks_for(a.outputs, p.width)),
                     static_cast<unsigned>(p.chunks)},
            .block = {static_cast<unsigned>(p.width),
                      static_cast<unsigned>(kReduceThreads / p.width)}},
           reduce_columns<R>, a, p, partial.get());
  } else {
    const int64_t blocks = blocks_for(a.outputs * p.chunks, kReduceThreads / p.width);
    launch(
        {.name = "reduce_rows", .grid = {static_cast<unsigned>(blocks)}, .block = {kReduceThreads}},
        reduce_rows<R>, a, p, partial.get());
  }
  if (p.chunks == 1) return;
  const int width = p.columns ? 1 : power_of_two_from(p.chunks, kReduceThreads);
  launch({.name = "reduce_parts",
          .grid = {static_cast<unsigned>(blocks_for(a.outputs, kReduceThreads / width))},
          .block = {kReduceThreads}},
         reduce_parts<R>, a, p, partial.get(), width);
}

// ---- policies that several families build upon

template <class T>
struct Sum {
  using In = T;
  using Acc = SumAcc<T>;
  using Out = SumOut<T>;
  DEVICE NoContext context(const ReduceArgs&, int64_t, int64_t) { return {}; }
  DEVICE Acc identity() { return 0; }
  DEVICE Acc add(Acc a, T x, NoContext, Where) { return a + static_cast<Acc>(compute(x)); }
  DEVICE Acc merge(Acc a, Acc b) { return a + b; }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) {
    global<Out>(args.out)[o] = static_cast<Out>(a);
  }
};

// Largest (sign 1) or smallest (sign −1) element; a NaN stays.
template <class T, int kSign>
struct Extreme {
  using In = T;
  using Acc = ComputeOf<T>;
  DEVICE NoContext context(const ReduceArgs&, int64_t, int64_t) { return {}; }
  DEVICE Acc identity() {
    using Limits = std::numeric_limits<Acc>;
    if constexpr (Limits::has_infinity) return static_cast<Acc>(-kSign) * Limits::infinity();
    return kSign > 0 ? Limits::lowest() : Limits::max();
  }
  DEVICE Acc add(Acc a, T x, NoContext, Where) { return merge(a, compute(x)); }
  DEVICE Acc merge(Acc a, Acc b) {
    const bool better = kSign > 0 ? b > a : b < a;
    return better || b != b ? b : a;
  }
  DEVICE void finish(const ReduceArgs& args, int64_t o, Acc a) {
    global<T>(args.out)[o] = static_cast<T>(a);
  }
};

// Sums of d and d² for d = x − first element: mean and variance in one pass. The first element is
// within the data, so in f64 nothing that f32 could show is lost to cancellation.
struct ShiftedSums {
  double sum, squares;
};
template <class T>
struct Shifted {
  using In = T;
  using Acc = ShiftedSums;
  DEVICE double context(const ReduceArgs& a, int64_t, int64_t base) {
    if (a.count == 0) return 0;
    const T first = global<const T>(a.in)[base];
    return wide(first);
  }
  DEVICE Acc identity() { return {0, 0}; }
  DEVICE Acc add(Acc a, T x, double shift, Where) {
    const double d = wide(x) - shift;
    return {a.sum + d, a.squares + d * d};
  }
  DEVICE Acc merge(Acc a, Acc b) { return {a.sum + b.sum, a.squares + b.squares}; }
  // Σ (x − mean)².
  DEVICE double spread(Acc a, double count) {
    const double s = a.squares - a.sum * (a.sum / count);
    return s < 0 ? 0 : s;
  }
};

// Σ (x − mean)² for means that are known.
template <class T>
struct Spread : Sum<T> {
  DEVICE double context(const ReduceArgs& a, int64_t o, int64_t) {
    return global<const double>(a.context)[o];
  }
  DEVICE double add(double a, T x, double mean, Where) {
    const double d = wide(x) - mean;
    return a + d * d;
  }
};
// The mean kept in f64.
template <class T>
struct WideMean : Sum<T> {
  DEVICE void finish(const ReduceArgs& args, int64_t o, double a) {
    global<double>(args.out)[o] = a / static_cast<double>(args.count);
  }
};

}  // namespace cutaway::cuda::CUTAWAY_TARGET
