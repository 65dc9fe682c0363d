// Note: own product. B is cut into panels of a few vectors, A into strips of a few rows; one strip
// by one panel is a tile of C that stays in registers while it runs along k. OpenBLAS 0.3.21 takes
// kernels for 256-bit vectors on many processors with 512-bit ones, and it must copy both operands
// of small products; here an operand is copied only where its strides hurt (docs/benchmarks.md has
// the measurements). Processors without AVX2 use the BLAS library.
#include <cutaway/core/cpu/gemm.h>

#include <algorithm>
#include <cstring>

#include <cutaway/core/cpu/gemm_tile.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/linalg/blas.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

#ifdef CUTAWAY_OWN_GEMM

constexpr int64_t kDepth = 512;  // of k at a time: a strip of A stays in the first-level cache
// Rows of A and columns of B at a time: both blocks stay in the second-level cache, and a product
// needs no more memory than they take.
constexpr int64_t kRows = 192, kColumns = 384;
constexpr int64_t kWorthSplitting = int64_t{1} << 20;  // multiplications a thread

template <class T>
constexpr int64_t round_to_lanes(int64_t n) {
  return (n + kVectorLanes<T> - 1) / kVectorLanes<T> * kVectorLanes<T>;
}

// Vectors of the next panel when `left` remain; five become three and two.
int panel_vectors(int64_t left) {
  if (left > kTileVectors && left < 2 * kTileVectors) return int(left + 1) / 2;
  return int(std::min<int64_t>(left, kTileVectors));
}

// out [depth, width] = columns 0 … n of b, zeros behind them.
template <class T>
void pack_panel(const Matrix<T>& b, int64_t depth, int64_t n, int64_t width, T* out) {
  constexpr int kL = kVectorLanes<T>;
  if (b.column == 1) {
    for (int64_t q = 0; q < depth; ++q, out += width) {
      const T* in = b.data + q * b.row;
      int64_t j = 0;
      for (; j + kL <= n; j += kL) store_vector(out + j, load_vector(in + j));
      if (j < width) {
        Vector<T> rest{};
        for (int i = 0; i < n - j; ++i) rest[i] = in[j + i];
        store_vector(out + j, rest);
      }
    }
    return;
  }
  for (int64_t j0 = 0; j0 < width; j0 += kL) {
    const int64_t count = std::min<int64_t>(kL, n - j0);
    const T* in = b.data + j0 * b.column;
    int64_t q = 0;
    if (b.row == 1) {
      for (; q + kL <= depth; q += kL) {
        transpose_square(in + q, b.column, int(count), out + q * width + j0, width);
      }
    }
    for (; q < depth; ++q) {
      T* o = out + q * width + j0;
      for (int64_t j = 0; j < count; ++j) o[j] = in[q * b.row + j * b.column];
      for (int64_t j = count; j < kL; ++j) o[j] = 0;
    }
  }
}

// One panel of B: packed, or as it lies.
template <class T>
struct Panel {
  const T* data;
  int64_t step;
};

// A product on one thread.
template <class T>
class Blocked {
 public:
  explicit Blocked(const Product<T>& p)
      : p_(p),
        depth_(std::min(p.k, kDepth)),
        columns_(std::min(round_to_lanes<T>(p.n), kColumns)),
        pack_b_(!b_lies_well()),
        pack_a_(!a_lies_well()),
        b_(depth_ * (pack_b_ ? columns_ : kTileColumns<T>)),
        a_(pack_a_ ? depth_ * std::min(p.m, kRows) : 0) {}

  void run() {
    for (int64_t j0 = 0; j0 < p_.n; j0 += columns_) {
      const int64_t n = std::min(columns_, p_.n - j0);
      for (int64_t q0 = 0; q0 < p_.k; q0 += depth_) {
        const int64_t depth = std::min(depth_, p_.k - q0);
        const Matrix<T> b = p_.b.block(q0, j0);
        prepare(b, depth, n);
        for (int64_t i0 = 0; i0 < p_.m; i0 += kRows) {
          run_rows(b, i0, std::min(kRows, p_.m - i0), j0, n, q0, depth);
        }
      }
    }
  }

 private:
  // Whole vectors can be read from B, each read by few tiles or from nearby rows.
  bool b_lies_well() const {
    if (p_.b.column != 1) return false;
    if (p_.m <= 4 * kTileRows[kTileVectors]) return true;
    const int64_t bytes = p_.b.row * int64_t(sizeof(T));
    return p_.k * bytes <= (int64_t{1} << 20) && bytes % 4096 != 0;
  }
  // Numbers of A are read one by one, along a row; a transposed A jumps from row to row, which is
  // fine unless every panel does it again.
  bool a_lies_well() const {
    return p_.a.column == 1 || (p_.n <= kTileColumns<T> && p_.a.row == 1);
  }

  void prepare(const Matrix<T>& b, int64_t depth, int64_t n) {
    const int64_t whole = n / kVectorLanes<T> * kVectorLanes<T>;
    if (!pack_b_) {
      if (whole < n) pack_panel(b.block(0, whole), depth, n - whole, kVectorLanes<T>, b_.get());
      return;
    }
    each_panel(n, [&](int64_t j, int vectors) {
      const int64_t width = vectors * kVectorLanes<T>;
      pack_panel(b.block(0, j), depth, std::min(width, n - j), width, b_.get() + j * depth);
    });
  }

  // Calls body(first column, vectors).
  template <class F>
  void each_panel(int64_t n, F&& body) const {
    int64_t left = (n + kVectorLanes<T> - 1) / kVectorLanes<T>;
    for (int64_t j = 0; j < n;) {
      int vectors = panel_vectors(left);
      // As it lies only whole vectors can be read: the rest is a panel by itself.
      if (!pack_b_ && n < j + vectors * kVectorLanes<T> && vectors > 1) --vectors;
      body(j, vectors);
      j += vectors * kVectorLanes<T>;
      left -= vectors;
    }
  }

  Panel<T> panel(const Matrix<T>& b, int64_t depth, int64_t n, int64_t j, int vectors) const {
    const int64_t width = vectors * kVectorLanes<T>;
    if (pack_b_) return {b_.get() + j * depth, width};
    if (j + width > n) return {b_.get(), width};
    return {b.data + j, b.row};
  }

  void run_rows(const Matrix<T>& b, int64_t i0, int64_t m, int64_t j0, int64_t n, int64_t q0,
                int64_t depth) {
    Matrix<T> a = p_.a.block(i0, q0);
    if (pack_a_) a = pack_rows(a, m, depth);
    const bool first = q0 == 0;
    Finish<T> f{nullptr, p_.c_row, p_.alpha, first ? p_.beta : T(1), nullptr, 0};
    each_panel(n, [&](int64_t j, int vectors) {
      const Panel<T> at = panel(b, depth, n, j, vectors);
      f.bias = first && p_.bias ? p_.bias + j0 + j : nullptr;
      f.last = int(std::min<int64_t>(kVectorLanes<T>, n - j - (vectors - 1) * kVectorLanes<T>));
      // Strips of nearly equal height: a short last one would waste the registers.
      const int64_t most = kTileRows[vectors], strips = (m + most - 1) / most;
      int64_t i = 0;
      for (int64_t s = 0; s < strips; ++s) {
        const int rows = int((m - i + strips - s - 1) / (strips - s));
        f.c = p_.c + (i0 + i) * p_.c_row + j0 + j;
        find_tile<T>(rows, vectors)(depth, a.data + i * a.row, a.row, a.column, at.data, at.step,
                                    f);
        i += rows;
      }
    });
  }

  // Column by column, as they are read.
  Matrix<T> pack_rows(const Matrix<T>& a, int64_t m, int64_t depth) {
    for (int64_t q = 0; q < depth; ++q) {
      const T* in = a.data + q * a.column;
      T* out = a_.get() + q * m;
      if (a.row == 1) {
        std::memcpy(out, in, size_t(m) * sizeof(T));
      } else {
        for (int64_t i = 0; i < m; ++i) out[i] = in[i * a.row];
      }
    }
    return {a_.get(), 1, m};
  }

  const Product<T>& p_;
  const int64_t depth_, columns_;
  const bool pack_b_, pack_a_;
  const Scratch<T> b_, a_;
};

// Few rows of A against rows of a transposed B: packing B would cost more than the product.
template <class T>
bool wants_dots(const Product<T>& p) {
  return p.m <= 4 && p.b.row == 1 && p.a.column == 1;
}

template <class T>
void run_dots(const Product<T>& p) {
  constexpr int64_t kL = kVectorLanes<T>;
  const int64_t grain = 1 + kWorthSplitting / (p.m * p.k) / kL;
  parallel_for((p.n + kL - 1) / kL, grain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * kL; j < std::min(end * kL, p.n); j += kL) {
      const int count = int(std::min(kL, p.n - j));
      for (int64_t i = 0; i < p.m; ++i) {
        const Vector<T> sum =
            dots(p.a.data + i * p.a.row, p.b.data + j * p.b.column, p.b.column, count, p.k);
        const Finish<T> f{nullptr, 0, T(p.alpha), T(p.beta), nullptr, count};
        finish_part(f, p.c + i * p.c_row + j, p.bias ? p.bias + j : nullptr, sum);
      }
    }
  });
}

template <class T>
void run(const Product<T>& p) {
  const int64_t threads = in_parallel_region()
                              ? 1
                              : std::min<int64_t>(num_threads(), p.m * p.n * p.k / kWorthSplitting);
  if (wants_dots(p)) return run_dots(p);
  if (threads <= 1) return Blocked<T>(p).run();
  // Every thread copies its parts of A and B: cut so that they copy least.
  constexpr int64_t kStrip = kTileRows[kTileVectors];
  const int64_t strips = (p.m + kStrip - 1) / kStrip,
                panels = (p.n + kTileColumns<T> - 1) / kTileColumns<T>;
  int64_t down = 1, across = 1, least = INT64_MAX;
  for (int64_t d = 1; d <= std::min(threads, strips); ++d) {
    const int64_t e = std::min(threads / d, panels);
    const int64_t rows = (strips + d - 1) / d * kStrip,
                  columns = (panels + e - 1) / e * kTileColumns<T>;
    // The longest part in multiplications, with the copies at a price of 16 each.
    const int64_t cost = rows * columns * p.k + 16 * (rows + columns) * p.k;
    if (cost < least) least = cost, down = d, across = e;
  }
  const int64_t rows = (strips + down - 1) / down * kStrip,
                columns = (panels + across - 1) / across * kTileColumns<T>;
  parallel_chunks(down * across, [&](int64_t i) {
    const int64_t row = i / across * rows, column = i % across * columns;
    if (row >= p.m || column >= p.n) return;
    Product<T> part = p;
    part.m = std::min(rows, p.m - row);
    part.n = std::min(columns, p.n - column);
    part.a = p.a.block(row, 0);
    part.b = p.b.block(0, column);
    part.c += row * p.c_row + column;
    if (p.bias) part.bias += column;
    Blocked<T>(part).run();
  });
}

#else

// How BLAS sees a matrix: as it lies, transposed, or not at all (then it is copied).
struct BlasForm {
  bool usable, transposed;
  int64_t distance;
};

BlasForm blas_form(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  constexpr int64_t kMost = 2147483647;
  if (column == 1 || columns == 1) {
    const int64_t d = rows == 1 ? columns : row;
    if (d >= columns && d <= kMost) return {true, false, d};
  }
  if (row == 1 || rows == 1) {
    const int64_t d = columns == 1 ? rows : column;
    if (d >= rows && d <= kMost) return {true, true, d};
  }
  return {false, false, columns};
}

template <class T>
void run(const Product<T>& p) {
  const BlasForm a = blas_form(p.m, p.k, p.a.row, p.a.column);
  const BlasForm b = blas_form(p.k, p.n, p.b.row, p.b.column);
  const Scratch<T> dense_a(a.usable ? 0 : p.m * p.k), dense_b(b.usable ? 0 : p.k * p.n);
  if (!a.usable) copy_dense(p.a, p.m, p.k, dense_a.get());
  if (!b.usable) copy_dense(p.b, p.k, p.n, dense_b.get());
  if (p.bias) {
    for (int64_t i = 0; i < p.m; ++i) std::copy(p.bias, p.bias + p.n, p.c + i * p.c_row);
  }
  blas::gemm(blas::Gemm<T>{.transpose_a = a.transposed,
                           .transpose_b = b.transposed,
                           .m = p.m,
                           .n = p.n,
                           .k = p.k,
                           .alpha = p.alpha,
                           .a = a.usable ? p.a.data : dense_a.get(),
                           .lda = std::max<int64_t>(a.distance, 1),
                           .b = b.usable ? p.b.data : dense_b.get(),
                           .ldb = std::max<int64_t>(b.distance, 1),
                           .beta = p.bias ? T(1) : p.beta,
                           .c = p.c,
                           .ldc = p.c_row});
}

#endif

template <class T>
void scale_only(const Product<T>& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = p.c + i * p.c_row;
    for (int64_t j = 0; j < p.n; ++j) {
      row[j] = p.bias ? p.bias[j] : p.beta == T(0) ? T(0) : p.beta * row[j];
    }
  }
}

template <class T>
void run_checked(const Product<T>& p) {
  if (p.m <= 0 || p.n <= 0) return;
  if (p.k <= 0 || p.alpha == T(0)) return scale_only(p);
  // A column: its transpose fills the vectors.
  if (p.n == 1 && p.m > 1 && p.c_row == 1) {
    Product<T> row = p;
    row.m = 1;
    row.n = p.m;
    row.a = {p.b.data, 0, p.b.row};
    row.b = {p.a.data, p.a.column, p.a.row};
    row.c_row = p.m;
    row.bias = nullptr;
    run(row);
    for (int64_t i = 0; p.bias && i < p.m; ++i) p.c[i] += p.bias[0];
    return;
  }
  run(p);
}

}  // namespace

void gemm(const Product<float>& p) { run_checked(p); }
void gemm(const Product<double>& p) { run_checked(p); }

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
