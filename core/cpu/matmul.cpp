#include <cutaway/core/kernels/matmul.h>

#include <type_traits>

#include <cutaway/core/cpu/gemm.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Square matrices of 2, 3 or 4 rows: everything in registers, any strides. Measured on f32 batches:
// 18 to 26 ns each, where the call of BLAS takes 52 to 59.
template <class T, int N>
void multiply_tiny(const Product<T>& p) {
  T a[N][N], b[N][N];
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      a[i][j] = p.a.data[i * p.a.row + j * p.a.column];
      b[i][j] = p.b.data[i * p.b.row + j * p.b.column];
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      T sum = a[i][0] * b[0][j];
      for (int q = 1; q < N; ++q) sum += a[i][q] * b[q][j];
      p.c[i * p.c_row + j] = sum;
    }
  }
}

// Plain products only: no scaling, no bias.
template <class T>
bool try_tiny(const Product<T>& p) {
  if (p.m > 4 || p.n != p.m || p.k != p.m || p.alpha != 1 || p.beta != 0 || p.bias) return false;
  if (p.m == 2) multiply_tiny<T, 2>(p);
  if (p.m == 3) multiply_tiny<T, 3>(p);
  if (p.m == 4) multiply_tiny<T, 4>(p);
  return p.m >= 2;
}

// f64 and f32.
template <class T>
requires std::is_floating_point_v<T>
void multiply(const Product<T>& p) {
  if (!try_tiny(p)) gemm(p);
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

// Note: 16-bit products. Panels of A and B are widened to f32; the panel of C stays in f32 over the
// whole inner size and is rounded once.
constexpr int64_t kPanelRows = 256, kPanelColumns = 512, kPanelInner = 1024;

template <class T>
void start_panel(const Product<T>& p, int64_t i0, int64_t j0, int64_t rows, int64_t columns,
                 float* out) {
  const bool reads_c = p.beta != 0;
  for (int64_t i = 0; i < rows; ++i) {
    const T* c = p.c + (i0 + i) * p.c_row + j0;
    float* o = out + i * columns;
    for (int64_t j = 0; j < columns; ++j) {
      o[j] = p.bias    ? static_cast<float>(p.bias[j0 + j])
             : reads_c ? float(p.beta) * static_cast<float>(c[j])
                       : 0.0f;
    }
  }
}

template <class T>
requires kIsHalf<T>
void multiply(const Product<T>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (try_gemm(p)) return;
  }
  const int64_t mb = least(p.m, kPanelRows), nb = least(p.n, kPanelColumns),
                kb = least(p.k, kPanelInner);
  Scratch<float> a(mb * kb), b(kb * nb), c(mb * nb);
  const int64_t inner = p.alpha == 0 ? 0 : p.k;
  for (int64_t i0 = 0; i0 < p.m; i0 += mb) {
    const int64_t rows = least(mb, p.m - i0);
    for (int64_t j0 = 0; j0 < p.n; j0 += nb) {
      const int64_t columns = least(nb, p.n - j0);
      start_panel(p, i0, j0, rows, columns, c.get());
      for (int64_t k0 = 0; k0 < inner; k0 += kb) {
        const int64_t depth = least(kb, inner - k0);
        copy_dense(p.a.block(i0, k0), rows, depth, a.get());
        copy_dense(p.b.block(k0, j0), depth, columns, b.get());
        gemm(Product<float>{.m = rows,
                            .n = columns,
                            .k = depth,
                            .a = {a.get(), depth, 1},
                            .b = {b.get(), columns, 1},
                            .c = c.get(),
                            .c_row = columns,
                            .alpha = float(p.alpha),
                            .beta = 1});
      }
      for (int64_t i = 0; i < rows; ++i) {
        T* out = p.c + (i0 + i) * p.c_row + j0;
        const float* in = c.get() + i * columns;
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) math::store(out[j], in[j]);
      }
    }
  }
}

// Integers: plain loops, modulo 2^bits (unsigned arithmetic, so that overflow is defined).
template <class T>
requires std::is_integral_v<T>
void multiply(const Product<T>& p) {
  using U = std::make_unsigned_t<std::conditional_t<(sizeof(T) < 4), int32_t, T>>;
  const U alpha = U(int64_t(p.alpha)), beta = U(int64_t(p.beta));
  parallel_for(p.m, 1 + kGrain / (p.n * p.k + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* c = p.c + i * p.c_row;
      for (int64_t j = 0; j < p.n; ++j) {
        c[j] = p.bias ? p.bias[j] : beta == 0 ? T(0) : T(beta * U(c[j]));
      }
      for (int64_t q = 0; q < p.k; ++q) {
        const U x = alpha * U(p.a.data[i * p.a.row + q * p.a.column]);
        const T* b = p.b.data + q * p.b.row;
        for (int64_t j = 0; j < p.n; ++j) c[j] = T(U(c[j]) + x * U(b[j * p.b.column]));
      }
    }
  });
}

// The product at one index of the batch.
template <class T>
Product<T> product_at(const MatmulArgs& args, int64_t index) {
  int64_t c = 0, a = 0, b = 0;
  for (int d = args.rank - 1; d >= 0; --d) {
    const int64_t at = index % args.sizes[d];
    index /= args.sizes[d];
    c += at * args.strides[0][d];
    a += at * args.strides[1][d];
    b += at * args.strides[2][d];
  }
  return {args.m,
          args.n,
          args.k,
          {static_cast<const T*>(args.a) + a, args.a_row, args.a_column},
          {static_cast<const T*>(args.b) + b, args.b_row, args.b_column},
          static_cast<T*>(args.c) + c,
          args.c_row,
          decltype(Product<T>::alpha)(args.alpha),
          decltype(Product<T>::beta)(args.beta),
          static_cast<const T*>(args.bias)};
}

constexpr int64_t kSmallProduct = int64_t{1}
                                  << 21;  // multiplications: below, threads take products

template <class T>
void sum_over_batch(const MatmulArgs& args) {
  // The running sum of 16-bit types must not be rounded between the products.
  if constexpr (kIsHalf<T>) {
    Scratch<float> a(args.m * args.k), b(args.k * args.n), c(args.m * args.n);
    for (int64_t i = 0; i < args.batch; ++i) {
      const Product<T> p = product_at<T>(args, i);
      copy_dense(p.a, p.m, p.k, a.get());
      copy_dense(p.b, p.k, p.n, b.get());
      multiply(Product<float>{p.m,
                              p.n,
                              p.k,
                              {a.get(), p.k, 1},
                              {b.get(), p.n, 1},
                              c.get(),
                              p.n,
                              float(p.alpha),
                              i > 0 ? 1.0f : 0.0f,
                              nullptr});
    }
    for (int64_t i = 0; i < args.m; ++i) {
      T* out = static_cast<T*>(args.c) + i * args.c_row;
      for (int64_t j = 0; j < args.n; ++j) math::store(out[j], c.get()[i * args.n + j]);
    }
  } else {
    for (int64_t i = 0; i < args.batch; ++i) {
      Product<T> p = product_at<T>(args, i);
      if (i > 0) p.beta = 1;
      multiply(p);
    }
  }
}

template <class T>
void matmul(const MatmulArgs& args) {
  if (args.sum_batch && args.batch == 0) {  // an empty sum
    MatmulArgs none = args;
    none.rank = 0;
    none.k = 0;
    return multiply(product_at<T>(none, 0));
  }
  if (args.batch == 1) return multiply(product_at<T>(args, 0));
  if (args.sum_batch) return sum_over_batch<T>(args);
  const int64_t work = args.m * args.n * args.k + 1;
  if (work >= kSmallProduct) {
    for (int64_t i = 0; i < args.batch; ++i) multiply(product_at<T>(args, i));
    return;
  }
  parallel_for(args.batch, 1 + 8 * kGrain / work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply(product_at<T>(args, i));
  });
}

// Sums in f64 over fixed chunks of rows, chunks added in order.
constexpr int64_t kSumRows = 1024, kSumColumns = 512;

template <class T>
void column_sums(const ColumnSumArgs& args) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  using Step = std::conditional_t<kIsHalf<T>, float, T>;
  const int64_t chunks = (args.rows + kSumRows - 1) / kSumRows, columns = args.columns;
  Scratch<Wide> partial(chunks * columns);
  const auto sum_chunk = [&](int64_t chunk) {
    Wide* sums = partial.get() + chunk * columns;
    const int64_t end = least(args.rows, (chunk + 1) * kSumRows);
    for (int64_t j = 0; j < columns; ++j) sums[j] = 0;
    for (int64_t j0 = 0; j0 < columns; j0 += kSumColumns) {
      const int64_t j1 = least(columns, j0 + kSumColumns);
      for (int64_t i = chunk * kSumRows; i < end; ++i) {
        const T* row = static_cast<const T*>(args.in) + i * columns;
#pragma omp simd
        for (int64_t j = j0; j < j1; ++j) sums[j] += Wide(static_cast<Step>(row[j]));
      }
    }
  };
  if (args.rows * columns < 2 * kGrain) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum_chunk(chunk);
  } else {
    parallel_chunks(chunks, sum_chunk);
  }
  for (int64_t j = 0; j < columns; ++j) {
    Wide sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += partial.get()[chunk * columns + j];
    T& out = static_cast<T*>(args.out)[j];
    if constexpr (std::is_integral_v<T>) {
      out = T(sum);
    } else {
      math::store(out, sum);
    }
  }
}

template <class T>
void register_type(DType dtype) {
  kernels::matmul.set(DeviceKind::cpu, dtype, &matmul<T>);
  kernels::column_sums.set(DeviceKind::cpu, dtype, &column_sums<T>);
}

}  // namespace

void register_matmul_kernels() {
  register_type<double>(DType::f64);
  register_type<float>(DType::f32);
  register_type<BFloat16>(DType::bf16);
  register_type<Float16>(DType::f16);
  register_type<int64_t>(DType::i64);
  register_type<int32_t>(DType::i32);
  register_type<uint8_t>(DType::u8);
  register_type<int8_t>(DType::i8);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
