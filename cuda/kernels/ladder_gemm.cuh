#pragma once
#include <cutaway/core/math/config.h>
#include <cutaway/cuda/device/mma.h>
#include <cutaway/cuda/ladder.h>

// How a product of matrices gets fast, for f32: C [m,n] = A [m,k] · B [k,n], all row-major. Steps
// that load 16 bytes at a time need k, n and the row distances to be multiples of 4; other sizes
// take the step before them.
namespace cutaway::cuda::CUTAWAY_TARGET {

// The reference: a thread makes one element of C.
KERNEL gemm_thread_per_element(MatmulArgs x) {
  const auto a = global<const float>(x.a), b = global<const float>(x.b);
  const auto c = global<float>(x.c);
  const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t row = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
  if (row >= x.m || column >= x.n) return;
  float sum = 0;
  for (int64_t q = 0; q < x.k; ++q) {
    const float u = a[row * x.a_row + q], v = b[q * x.b_row + column];
    sum = math::detail::madd(u, v, sum);
  }
  c[row * x.c_row + column] = sum;
}

inline constexpr int kGemmTile = 32;

KERNEL gemm_shared_tiles(MatmulArgs x) {
  SHARED(float, left, kGemmTile* kGemmTile);
  SHARED(float, right, kGemmTile* kGemmTile);
  const auto a = global<const float>(x.a), b = global<const float>(x.b);
  const auto c = global<float>(x.c);
  const int tx = int(threadIdx.x), ty = int(threadIdx.y);
  const int64_t column = int64_t(blockIdx.x) * kGemmTile + tx;
  const int64_t row = int64_t(blockIdx.y) * kGemmTile + ty;
  float sum = 0;
  for (int64_t q0 = 0; q0 < x.k; q0 += kGemmTile) {
    float u = 0, v = 0;
    if (row < x.m && q0 + tx < x.k) u = a[row * x.a_row + q0 + tx];
    if (q0 + ty < x.k && column < x.n) v = b[(q0 + ty) * x.b_row + column];
    left[ty * kGemmTile + tx] = u;
    right[ty * kGemmTile + tx] = v;
    __syncthreads();
    for (int q = 0; q < kGemmTile; ++q) {
      const float p = left[ty * kGemmTile + q], r = right[q * kGemmTile + tx];
      sum = math::detail::madd(p, r, sum);
    }
    __syncthreads();
  }
  if (row < x.m && column < x.n) c[row * x.c_row + column] = sum;
}

// ---- 128 × 128 of C a block of 256 threads
inline constexpr int kGemmBlock = 128, kGemmDepth = 8;
// Row distance of the turned tile of A: the 4 numbers of a 16-byte load go to rows whose banks do
// not meet those of the neighbour's.
inline constexpr int kGemmTurned = kGemmBlock + 4;

// Four neighbours, zeros beyond the edge.
DEVICE Vec<float, 4> gemm_load(const Global<const float>& p, int64_t row, int64_t column,
                               int64_t rows, int64_t columns, int64_t distance) {
  Vec<float, 4> v = {};
  if (row < rows && column < columns) v = load<4>(p, row * distance + column);
  return v;
}

KERNEL gemm_register_tiles(MatmulArgs x) {
  SHARED(float, left, kGemmDepth* kGemmTurned);
  SHARED(float, right, kGemmDepth* kGemmBlock);
  const auto a = global<const float>(x.a), b = global<const float>(x.b);
  const auto c = global<float>(x.c);
  const int t = int(threadIdx.x), tx = t % 16, ty = t / 16;
  const int64_t row0 = int64_t(blockIdx.y) * kGemmBlock, column0 = int64_t(blockIdx.x) * kGemmBlock;
  float sum[8][8] = {};
  for (int64_t q0 = 0; q0 < x.k; q0 += kGemmDepth) {
    const int row = t / 2, q = t % 2 * 4;
    const Vec<float, 4> u = gemm_load(a, row0 + row, q0 + q, x.m, x.k, x.a_row);
    const Vec<float, 4> v = gemm_load(b, q0 + t / 32, column0 + t % 32 * 4, x.k, x.n, x.b_row);
    for (int i = 0; i < 4; ++i) left[(q + i) * kGemmTurned + row] = u[i];
    store(right, t / 32 * kGemmBlock + t % 32 * 4, v);
    __syncthreads();
    for (int d = 0; d < kGemmDepth; ++d) {
      Vec<float, 4> p[2], r[2];
      for (int h = 0; h < 2; ++h) {
        p[h] = load<4>(left, d * kGemmTurned + 64 * h + ty * 4);
        r[h] = load<4>(right, d * kGemmBlock + 64 * h + tx * 4);
      }
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) {
          sum[i][j] = math::detail::madd(p[i / 4][i % 4], r[j / 4][j % 4], sum[i][j]);
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    const int64_t row = row0 + i / 4 * 64 + ty * 4 + i % 4;
    for (int h = 0; h < 2; ++h) {
      const int64_t column = column0 + h * 64 + tx * 4;
      if (row >= x.m || column >= x.n) continue;
      const Vec<float, 4> out = {
          {sum[i][4 * h], sum[i][4 * h + 1], sum[i][4 * h + 2], sum[i][4 * h + 3]}};
      store(c, row * x.c_row + column, out);
    }
  }
}

// ---- the same on tensor cores: 8 warps, each 32 × 64 of the 128 × 128. The row distances make the
// addresses of a fragment's 32 lanes fall into 32 banks.
inline constexpr int kMmaDepth = 16, kMmaLeft = kMmaDepth + 4, kMmaRight = kGemmBlock + 8;
inline constexpr int kMmaLeftSize = kGemmBlock * kMmaLeft;
inline constexpr int kMmaStage = kMmaLeftSize + kMmaDepth * kMmaRight;

// Starts the copies of one tile of A and B.
DEVICE void gemm_start_tile(Shared<float> stage, const Global<const float>& a,
                            const Global<const float>& b, const MatmulArgs& x, int64_t row0,
                            int64_t column0, int64_t q0) {
  const int t = int(threadIdx.x);
  const Vec<float, 4> zeros = {};
  for (int h = 0; h < 2; ++h) {
    // Eight lanes take eight rows, so that their 16-byte writes fill all banks once.
    const int row = t % 8 + 8 * (t / 32) + 64 * h, q = t / 8 % 4 * 4;
    if (row0 + row < x.m && q0 + q < x.k) {
      copy_async<4>(stage, row * kMmaLeft + q, a, (row0 + row) * x.a_row + q0 + q);
    } else {
      store(stage, row * kMmaLeft + q, zeros);
    }
    const int line = t / 32 + 8 * h, column = t % 32 * 4;
    const int to = kMmaLeftSize + line * kMmaRight + column;
    if (q0 + line < x.k && column0 + column < x.n) {
      copy_async<4>(stage, to, b, (q0 + line) * x.b_row + column0 + column);
    } else {
      store(stage, to, zeros);
    }
  }
  copy_async_commit();
}

// x as the sum of two tf32 numbers.
struct SplitNumber {
  uint32_t high, low;
};
DEVICE SplitNumber gemm_split(float x) {
  const uint32_t high = to_tf32(x);
  return {high, to_tf32(x - math::detail::from_bits(high))};
}

// One tile: three products give back nearly all bits of f32; low · low would be below them.
DEVICE void gemm_multiply_tile(Shared<float> stage, int row0, int column0, float (&sum)[2][8][4]) {
  const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
  for (int q0 = 0; q0 < kMmaDepth; q0 += 8) {
    uint32_t high[2][4], low[2][4];
    for (int i = 0; i < 2; ++i) {
      for (int r = 0; r < 4; ++r) {
        const int row = row0 + 16 * i + g + 8 * (r % 2), q = q0 + t + 4 * (r / 2);
        const float v = stage[row * kMmaLeft + q];
        const SplitNumber s = gemm_split(v);
        high[i][r] = s.high;
        low[i][r] = s.low;
      }
    }
    for (int j = 0; j < 8; ++j) {
      uint32_t b_high[2], b_low[2];
      for (int r = 0; r < 2; ++r) {
        const float v = stage[kMmaLeftSize + (q0 + t + 4 * r) * kMmaRight + column0 + 8 * j + g];
        const SplitNumber s = gemm_split(v);
        b_high[r] = s.high;
        b_low[r] = s.low;
      }
      for (int i = 0; i < 2; ++i) {
        mma_tf32(sum[i][j], low[i], b_high);
        mma_tf32(sum[i][j], high[i], b_low);
        mma_tf32(sum[i][j], high[i], b_high);
      }
    }
  }
}

KERNEL gemm_tensor_cores(MatmulArgs x) {
  SHARED(float, stages, 2 * kMmaStage);
  const auto a = global<const float>(x.a), b = global<const float>(x.b);
  const auto c = global<float>(x.c);
  const int warp = int(threadIdx.x) / 32, row = warp / 2 * 32, column = warp % 2 * 64;
  const int64_t row0 = int64_t(blockIdx.y) * kGemmBlock, column0 = int64_t(blockIdx.x) * kGemmBlock;
  float sum[2][8][4] = {};
  gemm_start_tile(stages, a, b, x, row0, column0, 0);
  int stage = 0;
  for (int64_t q0 = 0; q0 < x.k; q0 += kMmaDepth) {
    if (q0 + kMmaDepth < x.k) {
      gemm_start_tile(stages + (1 - stage) * kMmaStage, a, b, x, row0, column0, q0 + kMmaDepth);
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    __syncthreads();
    gemm_multiply_tile(stages + stage * kMmaStage, row, column, sum);
    __syncthreads();
    stage = 1 - stage;
  }
  const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int h = 0; h < 2; ++h) {
        const int64_t to_row = row0 + row + 16 * i + g + 8 * h;
        const int64_t to_column = column0 + column + 8 * j + 2 * t;
        if (to_row >= x.m || to_column >= x.n) continue;
        const Vec<float, 2> pair = {{sum[i][j][2 * h], sum[i][j][2 * h + 1]}};
        store(c, to_row * x.c_row + to_column, pair);
      }
    }
  }
}

inline Dim3 gemm_grid(const MatmulArgs& x, int64_t tile) {
  return {unsigned(blocks_for(x.n, tile)), unsigned(blocks_for(x.m, tile))};
}
// Whether rows can be loaded in 16 bytes.
inline bool gemm_vectors(const MatmulArgs& x) {
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  return x.k % 4 == 0 && x.n % 4 == 0 && x.a_row % 4 == 0 && x.b_row % 4 == 0 && x.c_row % 4 == 0 &&
         aligned(x.a) && aligned(x.b) && aligned(x.c);
}

inline void run_gemm_threads(const MatmulArgs& x) {
  if (x.m == 0 || x.n == 0) return;
  launch({.name = "gemm_thread_per_element",
          .grid = gemm_grid(x, 16),
          .block = {16, 16},
          .sync = Sync::none},
         gemm_thread_per_element, x);
}
inline void run_gemm_shared(const MatmulArgs& x) {
  if (x.m == 0 || x.n == 0) return;
  launch({.name = "gemm_shared_tiles",
          .grid = gemm_grid(x, kGemmTile),
          .block = {kGemmTile, kGemmTile}},
         gemm_shared_tiles, x);
}
inline void run_gemm_registers(const MatmulArgs& x) {
  if (x.m == 0 || x.n == 0 || !gemm_vectors(x)) return run_gemm_shared(x);
  launch({.name = "gemm_register_tiles", .grid = gemm_grid(x, kGemmBlock), .block = {256}},
         gemm_register_tiles, x);
}
inline void run_gemm_tensor_cores(const MatmulArgs& x) {
  if (x.m == 0 || x.n == 0 || !gemm_vectors(x)) return run_gemm_shared(x);
  launch({.name = "gemm_tensor_cores", .grid = gemm_grid(x, kGemmBlock), .block = {256}},
         gemm_tensor_cores, x);
}

inline Ladder<MatmulArgs> gemm_ladder() {
  return {
      {"thread per element",
       "One thread makes one element of C from a row of A and a column of B. Every number is read "
       "from global memory as often as it is used.",
       &run_gemm_threads},
      {"shared tiles",
       "A block brings 32 × 32 tiles of A and B into shared memory, where 32 threads use each "
       "number: 32 times less traffic, but two shared reads for every multiplication.",
       &run_gemm_shared},
      {"register tiles",
       "A thread makes 8 × 8 elements: 16 numbers in registers serve 64 multiplications. All loads "
       "are 16 bytes wide, and no two lanes meet in a bank.",
       &run_gemm_registers},
      {"tensor cores",
       "Warps multiply 16 × 8 × 8 at a time; a f32 number goes in as the sum of two tf32 numbers, "
       "so that three products keep its precision. The next tile travels meanwhile.",
       &run_gemm_tensor_cores},
  };
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET
