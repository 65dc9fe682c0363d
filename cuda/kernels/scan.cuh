#pragma once
#include <algorithm>

#include <cutaway/core/kernels/reduce.h>
#include <cutaway/core/kernels/scan.h>
#include <cutaway/core/math/exponential.h>
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/device/team.h>

// Running sums, products, extremes and first-order recurrences. Neighbouring lines are walked by
// neighbouring threads; a line of neighbouring elements is scanned by a block. Where there are few
// lines they are cut into chunks: their totals are scanned first, then each chunk starts from what
// stands before it. A policy S says what is computed:
//   Acc (16 bytes at most), start(): what stands before the first element;
//   element(args, base, i): the i-th of the line at `base`; merge(left, right), associative;
//   write(args, at, acc).
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr int kScanThreads = 256;
constexpr int kScanItems = 4;  // of a lane, in one step of a block
constexpr int kScanTile = kScanThreads * kScanItems;

struct ScanPlan {
  int64_t lines = 0;
  int64_t chunks = 1, chunk = 0;
  // Of each chunk: its total in the first launch, then what stands before it.
  void* carries = nullptr;
  bool totals = false;  // write these, no results
};

DEVICE int64_t scan_place(const ScanArgs& a, int64_t base, int64_t i) {
  return base + (a.reverse ? a.n - 1 - i : i) * a.inner;
}
DEVICE int64_t scan_base(const ScanArgs& a, int64_t line) {
  return a.inner == 1 ? line * a.n : line / a.inner * a.n * a.inner + line % a.inner;
}

// A thread for each chunk of a line.
template <class S>
KERNEL walk_lines(ScanArgs a, ScanPlan p) {
  using Acc = typename S::Acc;
  const int64_t number = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t line = number % p.lines, c = number / p.lines;
  if (c >= p.chunks) return;
  const auto carries = global<Acc>(p.carries);
  const int64_t base = scan_base(a, line), begin = c * p.chunk;
  const int64_t end = begin + p.chunk < a.n ? begin + p.chunk : a.n;
  bool any = !p.totals && c > 0;
  Acc acc = S::start();
  if (any) acc = carries[line * p.chunks + c];
  for (int64_t i = begin; i < end; ++i) {
    const Acc before = acc, here = S::element(a, base, i);
    acc = any ? S::merge(acc, here) : here;
    any = true;
    if (!p.totals) S::write(a, scan_place(a, base, i), a.exclusive ? before : acc);
  }
  if (p.totals) carries[line * p.chunks + c] = acc;
}

// A block for each chunk of a line of neighbouring elements. Each warp scans kScanItems · 32
// elements that follow each other. Elements behind the end come last, so they change nothing.
template <class S>
KERNEL scan_lines(ScanArgs a, ScanPlan p) {
  using Acc = typename S::Acc;
  SHARED(unsigned long long, words, 2 * kScanThreads / 32);
  const auto parts = recast<Acc>(words);
  const int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int64_t line = blockIdx.x / p.chunks, c = blockIdx.x % p.chunks;
  const auto carries = global<Acc>(p.carries);
  const int64_t base = scan_base(a, line), begin = c * p.chunk;
  const int64_t end = begin + p.chunk < a.n ? begin + p.chunk : a.n;
  bool any = !p.totals && c > 0;
  Acc carry = S::start();
  if (any) carry = carries[line * p.chunks + c];
  for (int64_t tile = begin; tile < end; tile += warps * 32 * kScanItems) {
    const int64_t first = tile + warp * 32 * kScanItems + lane;
    Acc v[kScanItems], total = S::start();
    CUTAWAY_UNROLL
    for (int j = 0; j < kScanItems; ++j) {
      v[j] = first + 32 * j < end ? S::element(a, base, first + 32 * j) : S::start();
      for (int step = 1; step < 32; step *= 2) {
        const Acc left = shuffle_up(v[j], step);
        if (lane >= step) v[j] = S::merge(left, v[j]);
      }
      if (j > 0) v[j] = S::merge(total, v[j]);
      total = shuffle_from(v[j], 31);
    }
    __syncthreads();  // the parts of the last step have been read
    if (lane == 31) parts[warp] = total;
    __syncthreads();
    Acc before = carry;  // of this warp
    bool before_any = any;
    for (int w = 0; w < warps; ++w) {
      if (w == warp) {
        before = carry;
        before_any = any;
      }
      const Acc part = parts[w];
      carry = any ? S::merge(carry, part) : part;
      any = true;
    }
    if (p.totals) continue;
    Acc last = before_any ? before : S::start();
    CUTAWAY_UNROLL
    for (int j = 0; j < kScanItems; ++j) {
      const Acc result = before_any ? S::merge(before, v[j]) : v[j];
      const Acc left = shuffle_up(result, 1);
      const int64_t i = first + 32 * j;
      if (i < end) {
        S::write(a, scan_place(a, base, i), !a.exclusive ? result : lane > 0 ? left : last);
      }
      last = shuffle_from(result, 31);
    }
  }
  if (p.totals && t == 0) carries[line * p.chunks + c] = carry;
}

// Totals of chunks become what stands before them; a thread for each line.
template <class S>
KERNEL scan_totals(ScanPlan p) {
  using Acc = typename S::Acc;
  const int64_t line = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= p.lines) return;
  const auto carries = global<Acc>(p.carries);
  Acc acc = carries[line * p.chunks];
  for (int64_t c = 1; c < p.chunks; ++c) {
    const Acc here = carries[line * p.chunks + c];
    carries[line * p.chunks + c] = acc;
    acc = S::merge(acc, here);
  }
}

template <class S>
void launch_scan(const ScanArgs& a, const ScanPlan& p, bool by_blocks) {
  if (by_blocks) {
    const int64_t warps = blocks_for(a.n, 32 * kScanItems);
    launch({.name = "scan_lines",
            .grid = {static_cast<unsigned>(p.lines * p.chunks)},
            .block = {static_cast<unsigned>(warps < 8 ? 32 * warps : kScanThreads)}},
           scan_lines<S>, a, p);
  } else {
    launch({.name = "walk_lines",
            .grid = {static_cast<unsigned>(blocks_for(p.lines * p.chunks, kScanThreads))},
            .block = {kScanThreads},
            .sync = Sync::none},
           walk_lines<S>, a, p);
  }
}
template <class S>
void scan(const ScanArgs& a) {
  ScanPlan p;
  p.lines = a.outer * a.inner;
  p.chunk = a.n;
  if (p.lines == 0 || a.n == 0) return;
  const bool by_blocks = a.inner == 1 && a.n > 16;
  // Fewer blocks or threads than this leave a large GPU idle.
  const int64_t wanted = by_blocks ? 528 : 32768, least = by_blocks ? 4 * kScanTile : 64;
  if (2 * p.lines < wanted && a.n > least) {
    const int64_t chunks = std::min(blocks_for(a.n, least), blocks_for(wanted, p.lines));
    p.chunk = blocks_for(blocks_for(a.n, chunks), kScanTile) * kScanTile;
    if (!by_blocks) p.chunk = blocks_for(a.n, chunks);
    p.chunks = blocks_for(a.n, p.chunk);
  }
  if (p.chunks == 1) return launch_scan<S>(a, p, by_blocks);
  DeviceArray<typename S::Acc> carries(p.lines * p.chunks);
  p.carries = carries.get();
  p.totals = true;
  launch_scan<S>(a, p, by_blocks);
  launch({.name = "scan_totals",
          .grid = {static_cast<unsigned>(blocks_for(p.lines, kScanThreads))},
          .block = {kScanThreads},
          .sync = Sync::none},
         scan_totals<S>, p);
  p.totals = false;
  launch_scan<S>(a, p, by_blocks);
}

// ---- policies

template <class T>
struct RunningSum {
  using Acc = SumAcc<T>;
  using Out = SumOut<T>;
  DEVICE Acc start() { return 0; }
  DEVICE Acc element(const ScanArgs& a, int64_t base, int64_t i) {
    const T x = global<const T>(a.in)[scan_place(a, base, i)];
    return static_cast<Acc>(compute(x));
  }
  DEVICE Acc merge(Acc l, Acc r) { return l + r; }
  DEVICE void write(const ScanArgs& a, int64_t at, Acc v) {
    global<Out>(a.out)[at] = static_cast<Out>(v);
  }
};
template <class T>
struct RunningProd : RunningSum<T> {
  using Acc = SumAcc<T>;
  DEVICE Acc start() { return 1; }
  DEVICE Acc merge(Acc l, Acc r) { return l * r; }
};
template <class T>
struct RunningLogSumExp : RunningSum<T> {
  DEVICE double start() { return -std::numeric_limits<double>::infinity(); }
  DEVICE double merge(double l, double r) {
    const double high = l > r ? l : r, low = l > r ? r : l;
    if (l != l || r != r) return l + r;
    const bool infinite = math::detail::abs_of(high) == std::numeric_limits<double>::infinity();
    return infinite ? high : high + math::log1p(math::exp(low - high));
  }
};

// The last of equal extremes is kept, and of several NaN the last.
template <class T, int kSign>
struct RunningExtreme {
  struct Acc {
    std::conditional_t<kIsFloating<T>, ComputeOf<T>, int64_t> value;
    int64_t index;
  };
  DEVICE Acc start() { return {0, 0}; }
  DEVICE Acc element(const ScanArgs& a, int64_t base, int64_t i) {
    const T x = global<const T>(a.in)[base + i * a.inner];
    return {compute(x), i};
  }
  DEVICE Acc merge(Acc l, Acc r) {
    const bool reaches = kSign > 0 ? r.value >= l.value : r.value <= l.value;
    return r.value != r.value || (l.value == l.value && reaches) ? r : l;
  }
  DEVICE void write(const ScanArgs& a, int64_t at, Acc v) {
    global<T>(a.out)[at] = static_cast<T>(v.value);
    if (a.index) global<int64_t>(a.index)[at] = v.index;
  }
};
template <class T, int kSign>
void running_extreme(ScanArgs a) {
  a.reverse = a.exclusive = false;
  scan<RunningExtreme<T, kSign>>(a);
}

// A stretch of a recurrence: t → factor · t + offset.
template <class T>
struct Recurrence {
  struct Acc {
    double factor, offset;
  };
  DEVICE Acc start() { return {1, 0}; }
  DEVICE Acc element(const ScanArgs& a, int64_t base, int64_t i) {
    const T x = global<const T>(a.in)[scan_place(a, base, i)];
    // Before the first element there is nothing: no product, so that an infinite factor is no NaN.
    if (i == 0) return {0, wide(x)};
    const T f = global<const T>(a.factor)[scan_place(a, base, a.shifted ? i - 1 : i)];
    return {wide(f), wide(x)};
  }
  DEVICE Acc merge(Acc l, Acc r) { return {l.factor * r.factor, r.factor * l.offset + r.offset}; }
  DEVICE void write(const ScanArgs& a, int64_t at, Acc v) {
    global<T>(a.out)[at] = static_cast<T>(v.offset);
  }
};

// ---- gradient of a product: of each element the product of those before times that of those
// after; a block for each row, a stretch of it for each thread.

template <class T>
KERNEL prod_grad(ProdGradArgs a, double* before) {
  SHARED(double, products, kScanThreads);
  const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int64_t row = blockIdx.x, base = row * a.n, each = (a.n + threads - 1) / threads;
  const int64_t begin = t * each, end = begin + each < a.n ? begin + each : a.n;
  const auto x = global<const T>(a.in);
  const auto grad = global<T>(a.grad);
  const auto left = global<double>(before);
  double product = 1;
  for (int64_t i = begin; i < end; ++i) {
    const T v = x[base + i];
    product *= wide(v);
  }
  products[t] = product;
  __syncthreads();
  double lower = 1;
  for (int k = 0; k < t; ++k) lower *= products[k];
  const T upstream = global<const T>(a.upstream)[row];
  double upper = wide(upstream);
  for (int k = threads - 1; k > t; --k) upper *= products[k];
  for (int64_t i = begin; i < end; ++i) {
    const T v = x[base + i];
    left[base + i] = lower;
    lower *= wide(v);
  }
  for (int64_t i = end - 1; i >= begin; --i) {
    const T v = x[base + i];
    grad[base + i] = static_cast<T>(left[base + i] * upper);
    upper *= wide(v);
  }
}
template <class T>
void prod_backward(const ProdGradArgs& a) {
  if (a.outer == 0 || a.n == 0) return;
  DeviceArray<double> before(a.outer * a.n);
  const int64_t threads = std::min<int64_t>(kScanThreads, blocks_for(a.n, 32) * 32);
  launch({.name = "prod_backward",
          .grid = {static_cast<unsigned>(a.outer)},
          .block = {static_cast<unsigned>(threads)}},
         prod_grad<T>, a, before.get());
}

template <class T>
void set_scans(DType t) {
  kernels::cumsum.set(kDevice, t, &scan<RunningSum<T>>);
  kernels::cumprod.set(kDevice, t, &scan<RunningProd<T>>);
  kernels::cummax.set(kDevice, t, [](const ScanArgs& a) { running_extreme<T, 1>(a); });
  kernels::cummin.set(kDevice, t, [](const ScanArgs& a) { running_extreme<T, -1>(a); });
}
template <class T>
void set_floating_scans(DType t) {
  set_scans<T>(t);
  kernels::logcumsumexp.set(kDevice, t, &scan<RunningLogSumExp<T>>);
  kernels::linear_scan.set(kDevice, t, &scan<Recurrence<T>>);
  kernels::prod_backward.set(kDevice, t, &prod_backward<T>);
}

void register_scan_kernels() {
  set_floating_scans<double>(DType::f64);
  set_floating_scans<float>(DType::f32);
  set_floating_scans<BFloat16>(DType::bf16);
  set_floating_scans<Float16>(DType::f16);
  set_scans<int64_t>(DType::i64);
  set_scans<int32_t>(DType::i32);
  set_scans<uint8_t>(DType::u8);
  set_scans<int8_t>(DType::i8);
  set_scans<uint8_t>(DType::boolean);  // true is 1
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
