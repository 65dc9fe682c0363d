#pragma once
#include <algorithm>

#include <cutaway/cuda/device/limits.h>
#include <cutaway/cuda/device/scratch.h>
#include <cutaway/cuda/ladder.h>
#include <cutaway/cuda/kernels/row_norm_long.cuh>

// Normalisation of rows. A row is read once and kept in registers; statistics are f64, so that a
// large common offset cancels. A block works on several rows one after the other: it reads weight
// and bias once, and adds up their gradients before it writes a partial sum.
namespace cutaway::cuda::CUTAWAY_TARGET {

constexpr int kNormElements = 16;  // of a row, in the registers of a thread
// Rows longer than this are read several times. Up to 512 threads share a row where a thread has
// few enough registers: forward, in whole vectors.
constexpr int64_t kNormForward = 512 * kNormElements, kNormBackward = 256 * kNormElements;
// Two blocks for each multiprocessor of a large GPU are enough to keep memory busy, and few enough
// that weights and partial sums are a small part of what is moved. Where that would leave a block
// fewer than kNormRows rows, one block has to do. The backward pass needs so many registers that
// only one block is resident anyway.
constexpr int64_t kNormMultiprocessors = 132, kNormRows = 32;
constexpr int kNormForwardBlocks = 2, kNormBackwardBlocks = 1;  // for each multiprocessor

// Means and rstds of so many rows are moved between memory and shared memory together: one at a
// time each would cost a sector of 32 bytes.
constexpr int kNormStaged = kNormThreads;

// How rows are given to blocks.
struct NormPlan {
  int width = 0;   // threads of a team
  int teams = 0;   // of a block
  int rounds = 0;  // rows a team works on
  int64_t blocks = 0;
};
inline NormPlan plan_rows(const RowNormArgs& a, int v, int blocks_each) {
  NormPlan p;
  const int narrow = power_of_two_from((a.width + v - 1) / v, 32);
  p.width = a.width <= 32 * kNormElements
                ? narrow
                : power_of_two_from((a.width + kNormElements - 1) / kNormElements, 512);
  p.teams = p.width < kNormThreads ? kNormThreads / p.width : 1;
  const int64_t for_all = blocks_for(a.rows, p.teams * blocks_each * kNormMultiprocessors);
  const int64_t for_one = blocks_for(a.rows, p.teams * kNormMultiprocessors);
  const int64_t enough = blocks_for(kNormRows, p.teams);
  p.rounds = static_cast<int>(std::max(for_all, std::min(for_one, enough)));
  p.blocks = blocks_for(a.rows, int64_t{p.teams} * p.rounds);
  return p;
}

// One of weight and bias, from shared memory; `none` where there is no such operand.
template <class T, int V>
DEVICE Vec<T, V> affine_at(Shared<T> staged, bool present, int64_t i, T none) {
  if (present) return load<V>(staged, i);
  Vec<T, V> v;
  for (int k = 0; k < V; ++k) v[k] = none;
  return v;
}
template <class T, int V>
DEVICE void stage(Shared<T> to, const void* from, int64_t n) {
  if (from == nullptr) return;
  const auto values = global<const T>(from);
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * V; i < n; i += blockDim.x * V) {
    store(to, i, load<V>(values, i));
  }
}

// The rows of a block whose statistics are staged in a round: [first, first + count).
struct StagedRows {
  int64_t first = 0;
  int count = 0;  // that exist
};
DEVICE StagedRows staged_rows(const RowNormArgs& a, const NormPlan& plan, int round) {
  const int before = round * plan.teams / kNormStaged * kNormStaged;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * plan.rounds * plan.teams + before;
  const int64_t here = min(kNormStaged, plan.rounds * plan.teams - before), left = a.rows - first;
  return {first, static_cast<int>(left < here ? (left < 0 ? 0 : left) : here)};
}
DEVICE bool starts_stage(const NormPlan& plan, int round) {
  return round * plan.teams % kNormStaged == 0;
}
DEVICE bool ends_stage(const NormPlan& plan, int round) {
  return round + 1 == plan.rounds || starts_stage(plan, round + 1);
}

// ---- forward

template <class T, int V>
KERNEL row_norm_in_registers(RowNormArgs a, NormPlan plan) {
  using C = ComputeOf<T>;
  DYNAMIC_SHARED(T, weight);
  SHARED(double, staged_means, kNormStaged);
  SHARED(double, staged_rstds, kNormStaged);
  const int64_t n = a.width;
  const auto bias = weight + n;
  stage<T, V>(weight, a.weight, n);
  stage<T, V>(bias, a.bias, n);
  __syncthreads();
  const Team team = this_team(plan.width);
  const auto x = global<const T>(a.in);
  const auto y = global<T>(a.out);
  const auto means = global<double>(a.mean), rstds = global<double>(a.rstd);
  for (int round = 0; round < plan.rounds; ++round) {
    const int64_t row =
        (static_cast<int64_t>(blockIdx.x) * plan.rounds + round) * plan.teams + team.index;
    const int size = row < a.rows ? static_cast<int>(n) : 0, step = plan.width * V;
    const int64_t base = row * n;
    C v[kNormElements] = {};
    double mean = 0, squares = 0;
    CUTAWAY_UNROLL
    for (int j = 0, i = team.lane * V; j < kNormElements; j += V, i += step) {
      if (i < size) {
        const Vec<T, V> in = load<V>(x, base + i);
        for (int k = 0; k < V; ++k) v[j + k] = compute(in[k]);
        for (int k = 0; k < V; ++k) mean += static_cast<double>(v[j + k]);
      }
    }
    mean = a.mean ? team_reduce(team, mean, Plus()) / static_cast<double>(n) : 0;
    CUTAWAY_UNROLL
    for (int j = 0, i = team.lane * V; j < kNormElements; j += V, i += step) {
      if (i < size) {
        for (int k = 0; k < V; ++k) {
          const double d = static_cast<double>(v[j + k]) - mean;
          squares += d * d;
        }
      }
    }
    squares = team_reduce(team, squares, Plus());
    const double rstd = 1 / math::detail::sqrt_of(squares / static_cast<double>(n) + a.eps);
    if (team.lane == 0) {
      const int place = (round * plan.teams + team.index) % kNormStaged;
      staged_means[place] = mean;
      staged_rstds[place] = rstd;
    }
    CUTAWAY_UNROLL
    for (int j = 0, i = team.lane * V; j < kNormElements; j += V, i += step) {
      if (i < size) {
        const Vec<T, V> w = affine_at<T, V>(weight, a.weight, i, T(1.0f));
        const Vec<T, V> b = affine_at<T, V>(bias, a.bias, i, T(0.0f));
        Vec<T, V> out;
        for (int k = 0; k < V; ++k) out[k] = normalized<T>(v[j + k], mean, rstd, w[k], b[k]);
        store(y, base + i, out);
      }
    }
    if (!ends_stage(plan, round)) continue;
    __syncthreads();
    const StagedRows staged = staged_rows(a, plan, round);
    const int t = static_cast<int>(threadIdx.x);
    if (t < staged.count) {
      if (a.mean) means[staged.first + t] = staged_means[t];
      rstds[staged.first + t] = staged_rstds[t];
    }
    __syncthreads();
  }
}

// ---- backward: with ĝ = g · weight and x̂ = (x − mean) rstd,
// dx = rstd (ĝ − mean ĝ − x̂ mean(ĝ x̂)); sums over rows of g x̂ and of g for weight and bias.

// Partial sums of a block: double [2][V][width / V], which is how lanes hold the columns.
template <int V>
DEVICE int64_t partial_place(int64_t column, int64_t width) {
  return column % V * (width / V) + column / V;
}

// Adds the sums of all teams in order and writes them.
template <int V>
DEVICE void write_partial_sums(const NormPlan& plan, const Team& team, int64_t n,
                               const double (&for_weight)[kNormElements],
                               const double (&for_bias)[kNormElements], Shared<double> sums,
                               double* partial) {
  const auto out = global<double>(partial);
  const int64_t block = static_cast<int64_t>(blockIdx.x) * 2 * n;
  for (int turn = 0; turn < plan.teams; ++turn) {
    if (turn == team.index) {
      CUTAWAY_UNROLL
      for (int j = 0; j < kNormElements; ++j) {
        const int64_t i = (j / V * plan.width + team.lane) * V + j % V;
        if (i >= n) continue;
        const int64_t place = partial_place<V>(i, n);
        double w = for_weight[j], b = for_bias[j];
        if (turn > 0) {
          w += sums[place];
          b += sums[n + place];
        }
        if (turn + 1 == plan.teams) {
          out[block + place] = w;
          out[block + n + place] = b;
        } else {
          sums[place] = w;
          sums[n + place] = b;
        }
      }
    }
    __syncthreads();
  }
}

template <class T, int V>
KERNEL row_norm_backward_in_registers(RowNormArgs a, NormPlan plan, double* partial) {
  using C = ComputeOf<T>;
  // Sums of the teams first, where there are several, for the sake of alignment.
  DYNAMIC_SHARED(double, sums);
  SHARED(double, staged_means, kNormStaged);
  SHARED(double, staged_rstds, kNormStaged);
  const int64_t n = a.width, rows = a.rows;
  const auto weight = recast<T>(sums + (partial && plan.teams > 1 ? 2 * n : 0));
  stage<T, V>(weight, a.weight, n);
  __syncthreads();
  const Team team = this_team(plan.width);
  const auto x = global<const T>(a.in), g = global<const T>(a.grad);
  const auto dx = global<T>(a.out);
  const auto means = global<const double>(a.mean), rstds = global<const double>(a.rstd);
  double for_weight[kNormElements] = {}, for_bias[kNormElements] = {};
  for (int round = 0; round < plan.rounds; ++round) {
    const int64_t row =
        (static_cast<int64_t>(blockIdx.x) * plan.rounds + round) * plan.teams + team.index;
    const int size = row < rows ? static_cast<int>(n) : 0, step = plan.width * V;
    const int64_t base = row * n;
    if (starts_stage(plan, round)) {
      __syncthreads();
      const StagedRows staged = staged_rows(a, plan, round);
      const int t = static_cast<int>(threadIdx.x);
      if (t < staged.count) {
        staged_means[t] = a.mean ? double(means[staged.first + t]) : 0;
        staged_rstds[t] = rstds[staged.first + t];
      }
      __syncthreads();
    }
    double mean = 0, rstd = 0;
    if (size > 0) {
      const int place = (round * plan.teams + team.index) % kNormStaged;
      mean = staged_means[place];
      rstd = staged_rstds[place];
    }
    C v[kNormElements] = {}, u[kNormElements] = {};
    double sum = 0, dot = 0;
    CUTAWAY_UNROLL
    for (int j = 0, i = team.lane * V; j < kNormElements; j += V, i += step) {
      if (i < size) {
        const Vec<T, V> xv = load<V>(x, base + i), gv = load<V>(g, base + i);
        const Vec<T, V> w = affine_at<T, V>(weight, a.weight, i, T(1.0f));
        for (int k = 0; k < V; ++k) {
          v[j + k] = compute(xv[k]);
          u[j + k] = compute(gv[k]);
          const double hat = (wide(xv[k]) - mean) * rstd, scaled = wide(gv[k]) * wide(w[k]);
          sum += scaled;
          dot += scaled * hat;
          for_weight[j + k] += wide(gv[k]) * hat;
          for_bias[j + k] += wide(gv[k]);
        }
      }
    }
    if (a.out) {
      sum = a.mean ? team_reduce(team, sum, Plus()) / static_cast<double>(n) : 0;
      dot = team_reduce(team, dot, Plus()) / static_cast<double>(n);
      CUTAWAY_UNROLL
      for (int j = 0, i = team.lane * V; j < kNormElements; j += V, i += step) {
        if (i < size) {
          const Vec<T, V> w = affine_at<T, V>(weight, a.weight, i, T(1.0f));
          Vec<T, V> out;
          for (int k = 0; k < V; ++k) {
            const double hat = (static_cast<double>(v[j + k]) - mean) * rstd;
            out[k] = static_cast<T>(rstd *
                                    (static_cast<double>(u[j + k]) * wide(w[k]) - sum - hat * dot));
          }
          store(dx, base + i, out);
        }
      }
    }
  }
  if (partial) write_partial_sums<V>(plan, team, n, for_weight, for_bias, sums, partial);
}

// The partial sums added up in a fixed order.
template <class T, int V>
KERNEL row_norm_gather(RowNormArgs a, const double* partial, int64_t parts) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x, n = a.width;
  const bool of_bias = blockIdx.y == 1;
  const auto sums = global<const double>(partial);
  double total = 0;
  for (int64_t p = threadIdx.y; p < parts && column < n; p += 8) {
    total += sums[p * 2 * n + (of_bias ? n : 0) + partial_place<V>(column, n)];
  }
  total = column_reduce(total, Plus());
  void* to = of_bias ? a.grad_bias : a.grad_weight;
  if (threadIdx.y == 0 && column < n && to) global<T>(to)[column] = static_cast<T>(total);
}

// ---- launches

template <class T>
bool vector_rows(const RowNormArgs& a) {
  return a.width % kWide<T> == 0 && aligned16(a.in) && aligned16(a.out) && aligned16(a.grad) &&
         aligned16(a.weight) && aligned16(a.bias);
}
inline Launch norm_launch(const char* name, int64_t blocks, int threads, int64_t shared = 0) {
  return {.name = name,
          .grid = {static_cast<unsigned>(blocks)},
          .block = {static_cast<unsigned>(threads)},
          .shared = shared};
}

template <class T, int V>
void launch_row_norm(const RowNormArgs& a) {
  const NormPlan p = plan_rows(a, V, kNormForwardBlocks);
  launch(norm_launch("row_norm", p.blocks, p.width * p.teams,
                     2 * a.width * static_cast<int64_t>(sizeof(T))),
         row_norm_in_registers<T, V>, a, p);
}
template <class T>
void row_norm(const RowNormArgs& a) {
  if (a.width == 0 || a.rows == 0) return;
  const bool vectors = vector_rows<T>(a);
  const int64_t affine = 2 * a.width * static_cast<int64_t>(sizeof(T));  // bytes
  if (a.width > (vectors ? kNormForward : kNormBackward) || affine > dynamic_shared_memory()) {
    return launch(norm_launch("row_norm", a.rows, kNormThreads), row_norm_of_long_rows<T>, a);
  }
  return vectors ? launch_row_norm<T, kWide<T>>(a) : launch_row_norm<T, 1>(a);
}

template <class T, int V>
void gather_sums(const RowNormArgs& a, const double* partial, int64_t parts) {
  launch({.name = "row_norm_gather",
          .grid = {static_cast<unsigned>(blocks_for(a.width, 32)), 2},
          .block = {32, 8}},
         row_norm_gather<T, V>, a, partial, parts);
}
template <class T, int V>
void launch_row_norm_backward(const RowNormArgs& a, bool sums) {
  const NormPlan p = plan_rows(a, V, kNormBackwardBlocks);
  DeviceArray<double> partial(sums ? p.blocks * 2 * a.width : 0);
  const int64_t for_sums = sums && p.teams > 1 ? 2 * a.width * 8 : 0;
  launch(norm_launch("row_norm_backward", p.blocks, p.width * p.teams,
                     for_sums + a.width * static_cast<int64_t>(sizeof(T))),
         row_norm_backward_in_registers<T, V>, a, p, sums ? partial.get() : nullptr);
  if (sums) gather_sums<T, V>(a, partial.get(), p.blocks);
}
template <class T>
void row_norm_backward_long(const RowNormArgs& a, bool sums) {
  if (a.out) {
    launch(norm_launch("row_norm_backward", a.rows, kNormThreads),
           row_norm_backward_of_long_rows<T>, a);
  }
  if (!sums) return;
  const int64_t per_chunk = a.rows < 64 * 32 ? 64 : blocks_for(a.rows, 32);
  const int64_t chunks = blocks_for(a.rows, per_chunk);
  DeviceArray<double> partial(chunks * 2 * a.width);
  launch({.name = "row_norm_backward",
          .grid = {static_cast<unsigned>(blocks_for(a.width, 32)), static_cast<unsigned>(chunks)},
          .block = {32, 8}},
         row_norm_sums_of_columns<T>, a, per_chunk, partial.get());
  gather_sums<T, 1>(a, partial.get(), chunks);
}
template <class T>
void row_norm_backward(const RowNormArgs& a) {
  if (a.width == 0) return;
  const bool sums = a.grad_weight || a.grad_bias;
  if (a.rows == 0) {  // sums over nothing
    if (sums) gather_sums<T, 1>(a, nullptr, 0);
    return;
  }
  if (a.width > kNormBackward) return row_norm_backward_long<T>(a, sums);
  return vector_rows<T>(a) ? launch_row_norm_backward<T, kWide<T>>(a, sums)
                           : launch_row_norm_backward<T, 1>(a, sums);
}

template <class T>
void set_row_norm(DType t) {
  kernels::row_norm.set(kDevice, t, &row_norm<T>);
  kernels::row_norm_backward.set(kDevice, t, &row_norm_backward<T>);
}

inline Ladder<RowNormArgs> layer_norm_ladder();  // ladder_norm.cuh

void register_row_norm_kernels() {
  ladders_to_fill(kDevice).layer_norm = layer_norm_ladder();
  set_row_norm<double>(DType::f64);
  set_row_norm<float>(DType::f32);
  set_row_norm<BFloat16>(DType::bf16);
  set_row_norm<Float16>(DType::f16);
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET

#include <cutaway/cuda/kernels/ladder_norm.cuh>
