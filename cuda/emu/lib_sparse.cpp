#include <cutaway/cuda/lib/sparse.h>

#include <string>

#include <cutaway/core/error.h>
#include <cutaway/cuda/emu/graph.h>
#include <cutaway/cuda/emu/library.h>

namespace cutaway::cuda::emu {
namespace {

void check_type(const char* op, DType dtype) {
  if (dtype == DType::f32 || dtype == DType::f64) return;
  throw DTypeError(op, std::string("sparse products are of f32 or f64; got ") + name_of(dtype));
}

// Reads the structure, and checks that it is one: hardware would read anywhere.
void check_structure(const LibraryCall& call, const char* op, const CsrMatrix& a) {
  call.reads("the row starts", a.starts, 1, (a.rows + 1) * int64_t(sizeof(int64_t)), 0);
  call.reads("the column indices", a.indices, 1, a.entries * int64_t(sizeof(int64_t)), 0);
  bool good = a.starts[0] == 0 && a.starts[a.rows] == a.entries;
  for (int64_t i = 0; i < a.rows; ++i) good = good && a.starts[i] <= a.starts[i + 1];
  for (int64_t e = 0; e < a.entries; ++e) {
    good = good && a.indices[e] >= 0 && a.indices[e] < a.columns;
  }
  if (good) return;
  throw IndexError(
      op, "row starts must ascend from 0 to the number of entries, and columns lie in [0, " +
              std::to_string(a.columns) + ")");
}

template <class T>
void multiply(const Spmm& x) {
  const T* b = static_cast<const T*>(x.b);
  const T* values = static_cast<const T*>(x.a.values);
  T* c = static_cast<T*>(x.c);
  const int64_t rows = x.transpose_a ? x.a.columns : x.a.rows;
  for (int64_t i = 0; i < rows; ++i) {
    T* row = c + i * x.ldc;
    for (int64_t j = 0; j < x.n; ++j) row[j] = x.beta == 0 ? T(0) : T(x.beta) * row[j];
  }
  for (int64_t i = 0; i < x.a.rows; ++i) {
    for (int64_t e = x.a.starts[i]; e < x.a.starts[i + 1]; ++e) {
      const int64_t column = x.a.indices[e];
      const T v = T(x.alpha) * values[e];
      T* to = c + (x.transpose_a ? column : i) * x.ldc;
      const T* from = b + (x.transpose_a ? i : column) * x.ldb;
      for (int64_t j = 0; j < x.n; ++j) to[j] += v * from[j];
    }
  }
}

template <class T>
void sample(const Sddmm& x) {
  T* values = static_cast<T*>(x.s.values);
  for (int64_t i = 0; i < x.s.rows; ++i) {
    const T* a = static_cast<const T*>(x.a) + i * x.lda;
    for (int64_t e = x.s.starts[i]; e < x.s.starts[i + 1]; ++e) {
      const T* b = static_cast<const T*>(x.b) + x.s.indices[e] * x.ldb;
      double sum = 0;
      for (int64_t q = 0; q < x.k; ++q) sum += double(a[q]) * double(b[q]);
      const double old = x.beta == 0 ? 0 : x.beta * double(values[e]);
      values[e] = T(x.alpha * sum + old);
    }
  }
}

}  // namespace

void spmm(const Spmm& x) {
  check_type("spmm", x.dtype);
  if (recording()) return record([x] { spmm(x); });
  const LibraryCall call("spmm");
  check_structure(call, "spmm", x.a);
  const int64_t size = size_of(x.dtype);
  const int64_t m = x.transpose_a ? x.a.columns : x.a.rows;
  const int64_t inner = x.transpose_a ? x.a.rows : x.a.columns;
  call.reads("the values", x.a.values, 1, x.a.entries * size, 0);
  call.reads("B", x.b, inner, x.n * size, x.ldb * size);
  if (x.beta != 0) call.reads("C", x.c, m, x.n * size, x.ldc * size);
  call.writes(x.c, m, x.n * size, x.ldc * size);
  if (x.dtype == DType::f32) return multiply<float>(x);
  multiply<double>(x);
}

void sddmm(const Sddmm& x) {
  check_type("sddmm", x.dtype);
  if (recording()) return record([x] { sddmm(x); });
  const LibraryCall call("sddmm");
  check_structure(call, "sddmm", x.s);
  const int64_t size = size_of(x.dtype);
  call.reads("A", x.a, x.s.rows, x.k * size, x.lda * size);
  call.reads("B", x.b, x.s.columns, x.k * size, x.ldb * size);
  if (x.beta != 0) call.reads("the values", x.s.values, 1, x.s.entries * size, 0);
  call.writes(x.s.values, 1, x.s.entries * size, 0);
  if (x.dtype == DType::f32) return sample<float>(x);
  sample<double>(x);
}

}  // namespace cutaway::cuda::emu
