#pragma once
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/language.h>
#include <cutaway/cuda/lib/gemm.h>
#include <cutaway/cuda/ladder.h>

// Matrix products: through the library what it takes, by an own tiled kernel the rest (integers,
// strides the library has no words for, sums over a batch that 16-bit types must not round).
namespace cutaway::cuda::CUTAWAY_TARGET {

// What products are summed in. Integers wrap around: unsigned.
template <class T>
struct SumOf {
  using Type = float;
};
template <>
struct SumOf<double> {
  using Type = double;
};
template <>
struct SumOf<int64_t> {
  using Type = uint64_t;
};
template <>
struct SumOf<int32_t> {
  using Type = uint32_t;
};
template <>
struct SumOf<uint8_t> {
  using Type = uint32_t;
};
template <>
struct SumOf<int8_t> {
  using Type = uint32_t;
};

// A factor as the sum's type; integers by way of a signed number, so that -1 is one less than 0.
template <class Sum>
DEVICE Sum factor(double x) {
  if constexpr (std::is_floating_point_v<Sum>) {
    return Sum(x);
  } else {
    return Sum(int64_t(x));
  }
}

// One operand: element (i, q) with i along the result and q along the inner size.
struct Operand {
  int64_t offset, row, inner, rows;
};

// Where the matrices of one index of the batch begin.
struct BatchOffsets {
  int64_t c = 0, a = 0, b = 0;
};
DEVICE_HOST BatchOffsets batch_offsets(const MatmulArgs& x, int64_t index) {
  BatchOffsets o;
  for (int d = x.rank - 1; d >= 0; --d) {
    const int64_t at = index % x.sizes[d];
    index /= x.sizes[d];
    o.c += at * x.strides[0][d];
    o.a += at * x.strides[1][d];
    o.b += at * x.strides[2][d];
  }
  return o;
}

// Note: the tiled kernel. 256 threads make a square tile of C, thread (tx, ty) the elements
// (ty + 16i, tx + 16j). Tiles of A and B lie in shared memory with the inner index first, so that
// the lanes of a warp read neighbours of one row and one or two elements of the other. Rows are
// padded such that the transposing writes meet no bank twice.
inline constexpr int kInnerTile = 16;
template <class Sum, int Tile>
inline constexpr int kTileRow = Tile + (sizeof(Sum) == 8 ? 1 : 2);

template <class T, int Tile, class Sum>
DEVICE void load_tile(const Shared<Sum>& to, const Global<const T>& from, const Operand& s,
                      int64_t i0, int64_t q0, int64_t inner) {
  const bool along_inner = s.inner == 1;
  for (int t = int(threadIdx.x); t < Tile * kInnerTile; t += 256) {
    int i = t % Tile, q = t / Tile;
    if (along_inner) {
      i = t / kInnerTile;
      q = t % kInnerTile;
    } else if constexpr (Tile == 16) {
      q = t / 32 + 8 * (t / 16 % 2);  // rows whose banks do not meet
    }
    Sum v = 0;
    if (i0 + i < s.rows && q0 + q < inner) {
      const T element = from[s.offset + (i0 + i) * s.row + (q0 + q) * s.inner];
      v = Sum(element);
    }
    to[q * kTileRow<Sum, Tile> + i] = v;
  }
}

template <class T, int Tile>
KERNEL tiled_product(MatmulArgs x, int64_t column_tiles) {
  using Sum = typename SumOf<T>::Type;
  constexpr int kPer = Tile / 16, kRow = kTileRow<Sum, Tile>;
  SHARED(Sum, left, kInnerTile * kRow);
  SHARED(Sum, right, kInnerTile * kRow);
  const auto a = global<const T>(x.a), b = global<const T>(x.b), bias = global<const T>(x.bias);
  const auto c = global<T>(x.c);
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  const int64_t i0 = blockIdx.x / column_tiles * Tile, j0 = blockIdx.x % column_tiles * Tile;
  const int64_t inner = x.alpha == 0 ? 0 : x.k;
  const int64_t results = x.sum_batch ? 1 : x.batch;
  for (int64_t index = blockIdx.y; index < results; index += gridDim.y) {
    Sum sum[kPer][kPer] = {};
    const int64_t end = x.sum_batch ? x.batch : index + 1;
    for (int64_t part = index; part < end; ++part) {
      const BatchOffsets o = batch_offsets(x, part);
      const Operand sa{o.a, x.a_row, x.a_column, x.m}, sb{o.b, x.b_column, x.b_row, x.n};
      for (int64_t q0 = 0; q0 < inner; q0 += kInnerTile) {
        load_tile<T, Tile, Sum>(left, a, sa, i0, q0, inner);
        load_tile<T, Tile, Sum>(right, b, sb, j0, q0, inner);
        __syncthreads();
        for (int q = 0; q < kInnerTile; ++q) {
          Sum u[kPer], v[kPer];
          for (int i = 0; i < kPer; ++i) u[i] = left[q * kRow + ty + 16 * i];
          for (int j = 0; j < kPer; ++j) v[j] = right[q * kRow + tx + 16 * j];
          for (int i = 0; i < kPer; ++i) {
            for (int j = 0; j < kPer; ++j) sum[i][j] += u[i] * v[j];
          }
        }
        __syncthreads();
      }
    }
    const int64_t to = x.sum_batch ? 0 : batch_offsets(x, index).c;
    for (int i = 0; i < kPer; ++i) {
      const int64_t row = i0 + ty + 16 * i;
      for (int j = 0; j < kPer; ++j) {
        const int64_t column = j0 + tx + 16 * j;
        if (row >= x.m || column >= x.n) continue;
        Sum value = factor<Sum>(x.alpha) * sum[i][j];
        if (x.beta != 0) {
          const T old = c[to + row * x.c_row + column];
          value += factor<Sum>(x.beta) * Sum(old);
        }
        if (x.bias) {
          const T added = bias[column];
          value += Sum(added);
        }
        c[to + row * x.c_row + column] = T(value);
      }
    }
  }
}

template <class T, int Tile>
void launch_tiled(const MatmulArgs& x) {
  const int64_t rows = blocks_for(x.m, Tile), columns = blocks_for(x.n, Tile);
  const int64_t results = x.sum_batch ? 1 : x.batch;
  launch({.name = "matmul_tiled",
          .grid = {unsigned(rows * columns), unsigned(results < 65535 ? results : 65535)},
          .block = {256}},
         tiled_product<T, Tile>, x, columns);
}

template <class T>
void own_product(const MatmulArgs& x) {
  if (x.m <= 32 && x.n <= 32) return launch_tiled<T, 16>(x);
  launch_tiled<T, 64>(x);
}

// How the library sees a matrix: as it lies, transposed, or not at all.
struct LibraryForm {
  bool usable, transposed;
  int64_t distance;
};
inline LibraryForm library_form(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if (column == 1 || columns == 1) {
    const int64_t d = rows == 1 ? columns : row;
    if (d >= columns) return {true, false, d};
  }
  if (row == 1 || rows == 1) {
    const int64_t d = columns == 1 ? rows : column;
    if (d >= rows) return {true, true, d};
  }
  return {false, false, 0};
}

// The same products with as few batch dimensions as their strides allow.
inline MatmulArgs merged_batch(const MatmulArgs& x) {
  MatmulArgs out = x;
  out.rank = 0;
  for (int d = 0; d < x.rank; ++d) {
    if (x.sizes[d] == 1) continue;
    const int last = out.rank - 1;
    bool joins = last >= 0;
    for (int i = 0; joins && i < 3; ++i) {
      // The sum over a batch has one C.
      if (i == 0 && x.sum_batch) continue;
      joins = out.strides[i][last] == x.sizes[d] * x.strides[i][d];
    }
    const int to = joins ? last : out.rank++;
    out.sizes[to] = x.sizes[d] * (joins ? out.sizes[last] : 1);
    for (int i = 0; i < 3; ++i) out.strides[i][to] = x.strides[i][d];
  }
  return out;
}

template <class T>
KERNEL fill_rows(Gemm g) {
  const auto bias = global<const T>(g.bias);
  const auto c = global<T>(g.c);
  const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= g.n) return;
  const T v = bias[column];
  for (int64_t i = blockIdx.y; i < g.m * g.batch; i += gridDim.y) {
    c[i / g.m * g.c_stride + i % g.m * g.ldc + column] = v;
  }
}

// The library's product; where it has none with a bias, on top of rows that hold the bias.
template <class T>
bool try_gemm(const Gemm& g) {
  if (gemm(g)) return true;
  if (g.epilogue != Epilogue::bias) return false;
  const int64_t rows = g.m * g.batch;
  launch({.name = "matmul_bias",
          .grid = {unsigned(blocks_for(g.n, 128)), unsigned(rows < 4096 ? rows : 4096)},
          .block = {128},
          .sync = Sync::none},
         fill_rows<T>, g);
  Gemm plain = g;
  plain.epilogue = Epilogue::none;
  plain.beta = 1;
  return gemm(plain);
}

// Calls of the library for the outer batch dimensions; more go to the own kernel.
inline constexpr int64_t kMostCalls = 16;

// Runs what is one call, or a few. False when the library cannot take it.
template <class T>
bool library_product(DType dtype, const MatmulArgs& args) {
  MatmulArgs x = merged_batch(args);
  if (x.k == 0 || x.alpha == 0 || (x.m <= 4 && x.n <= 4 && x.k <= 4)) return false;
  if (x.sum_batch && x.rank == 1 && x.strides[1][0] == x.k * x.a_column &&
      x.strides[2][0] == x.k * x.b_row) {  // one long inner size
    x.k *= x.batch;
    x.rank = 0;
    x.batch = 1;
  }
  const LibraryForm a = library_form(x.m, x.k, x.a_row, x.a_column);
  const LibraryForm b = library_form(x.k, x.n, x.b_row, x.b_column);
  if (!a.usable || !b.usable || (x.m > 1 && x.c_row < x.n)) return false;
  Gemm g{.dtype = dtype,
         .transpose_a = a.transposed,
         .transpose_b = b.transposed,
         .m = x.m,
         .n = x.n,
         .k = x.k,
         .alpha = x.alpha,
         .beta = x.beta,
         .lda = a.distance,
         .ldb = b.distance,
         .ldc = x.m == 1 ? x.n : x.c_row};
  if (x.bias) {
    g.epilogue = Epilogue::bias;
    g.bias = x.bias;
  }
  if (x.rank > 0 && !x.sum_batch) {
    const int d = --x.rank;
    g.batch = x.sizes[d];
    g.c_stride = x.strides[0][d];
    g.a_stride = x.strides[1][d];
    g.b_stride = x.strides[2][d];
    if (g.b_stride == 0 && !g.transpose_a && g.a_stride == g.m * g.lda &&
        g.c_stride == g.m * g.ldc) {  // one tall A
      g.m *= g.batch;
      g.batch = 1;
    }
  }
  const int64_t calls = x.batch / g.batch / (g.m / x.m);
  if (calls > kMostCalls || (x.sum_batch && calls > 1 && sizeof(T) == 2)) return false;
  for (int64_t i = 0; i < calls; ++i) {
    const BatchOffsets o = batch_offsets(x, i);
    g.a = static_cast<const T*>(x.a) + o.a;
    g.b = static_cast<const T*>(x.b) + o.b;
    g.c = static_cast<T*>(x.c) + (x.sum_batch ? 0 : o.c);
    if (x.sum_batch && i > 0) g.beta = 1;
    if (!try_gemm<T>(g)) return false;
  }
  return true;
}

template <class T, DType Type>
void matmul(const MatmulArgs& args) {
  MatmulArgs x = args;
  if (x.sum_batch && x.batch == 0) {  // an empty sum
    x.batch = 1;
    x.rank = 0;
    x.k = 0;
  }
  if (x.m == 0 || x.n == 0 || x.batch == 0) return;
  if constexpr (is_floating(Type)) {
    if (library_product<T>(Type, x)) return;
  }
  own_product<T>(x);
}

// ---- sums of the columns of a matrix: 32 columns a block, 16 rows at a time. Sums in f64.
inline constexpr int kSumColumns = 32, kSumRows = 16;

template <class T, class Wide>
KERNEL sum_columns(ColumnSumArgs x) {
  SHARED(Wide, parts, kSumRows * kSumColumns);
  const auto in = global<const T>(x.in);
  const auto out = global<T>(x.out);
  const int tx = int(threadIdx.x), ty = int(threadIdx.y);
  const int64_t column = int64_t(blockIdx.x) * kSumColumns + tx;
  Wide sum = 0;
  if (column < x.columns) {
    for (int64_t i = ty; i < x.rows; i += kSumRows) {
      const T v = in[i * x.columns + column];
      if constexpr (sizeof(T) == 2) {
        sum += Wide(float(v));
      } else {
        sum += Wide(v);
      }
    }
  }
  parts[ty * kSumColumns + tx] = sum;
  for (int step = kSumRows / 2; step > 0; step /= 2) {
    __syncthreads();
    if (ty < step) {
      sum += parts[(ty + step) * kSumColumns + tx];
      parts[ty * kSumColumns + tx] = sum;
    }
  }
  if (ty == 0 && column < x.columns) out[column] = T(sum);
}

template <class T, DType Type>
void column_sums(const ColumnSumArgs& x) {
  using Wide = std::conditional_t<is_floating(Type), double, uint64_t>;
  if (x.columns == 0) return;
  launch({.name = "column_sums",
          .grid = {unsigned(blocks_for(x.columns, kSumColumns))},
          .block = {kSumColumns, kSumRows}},
         sum_columns<T, Wide>, x);
}

template <class T, DType Type>
void register_matmul_type() {
  kernels::matmul.set(kDevice, Type, &matmul<T, Type>);
  kernels::column_sums.set(kDevice, Type, &column_sums<T, Type>);
}

inline Ladder<MatmulArgs> gemm_ladder();  // ladder_gemm.cuh

void register_matmul_kernels() {
  ladders_to_fill(kDevice).gemm = gemm_ladder();
  register_matmul_type<double, DType::f64>();
  register_matmul_type<float, DType::f32>();
  register_matmul_type<BFloat16, DType::bf16>();
  register_matmul_type<Float16, DType::f16>();
  register_matmul_type<int64_t, DType::i64>();
  register_matmul_type<int32_t, DType::i32>();
  register_matmul_type<uint8_t, DType::u8>();
  register_matmul_type<int8_t, DType::i8>();
}

}  // namespace cutaway::cuda::CUTAWAY_TARGET

#include <cutaway/cuda/kernels/ladder_gemm.cuh>
