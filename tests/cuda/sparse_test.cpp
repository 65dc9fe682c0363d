#include <gtest/gtest.h>

#include <cutaway/core/error.h>
#include <cutaway/cuda/lib/sparse.h>

#include <tests/cuda/emu_buffer.h>

namespace cutaway::cuda::emu {
namespace {

// [[1, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 5]]
struct Example {
  Buffer<int64_t> starts{std::vector<int64_t>{0, 2, 2, 3, 5}};
  Buffer<int64_t> indices{std::vector<int64_t>{0, 2, 1, 0, 2}};
  Buffer<double> values{std::vector<double>{1, 2, 3, 4, 5}};
  CsrMatrix matrix() { return {4, 3, 5, starts.get(), indices.get(), values.get()}; }
};

TEST(CudaSparse, ProductWithADenseMatrix) {
  Example s;
  const Buffer<double> b(std::vector<double>{1, 2, 0, 3, 4, 0, 5, 6, 0});
  const Buffer<double> c(std::vector<double>(8, 1.0));
  Spmm x{.dtype = DType::f64, .a = s.matrix(), .n = 2, .alpha = 2, .beta = 1, .ldb = 3, .ldc = 2};
  x.b = b.get();
  x.c = c.get();
  spmm(x);
  EXPECT_EQ(c.values(), (std::vector<double>{23, 29, 1, 1, 19, 25, 59, 77}));
}
TEST(CudaSparse, ProductOfTheTransposed) {
  Example s;
  const Buffer<double> b(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}), c(6);
  Spmm x{.dtype = DType::f64, .transpose_a = true, .a = s.matrix(), .n = 2, .ldb = 2, .ldc = 2};
  x.b = b.get();
  x.c = c.get();
  spmm(x);
  EXPECT_EQ(c.values(), (std::vector<double>{29, 34, 15, 18, 37, 44}));
}
TEST(CudaSparse, SampledProduct) {
  Example s;
  const Buffer<double> a(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  const Buffer<double> b(std::vector<double>{1, 0, 0, 1, 1, 1});
  Sddmm x{.dtype = DType::f64, .s = s.matrix(), .k = 2, .beta = 10, .lda = 2, .ldb = 2};
  x.a = a.get();
  x.b = b.get();
  sddmm(x);
  EXPECT_EQ(s.values.values(), (std::vector<double>{11, 23, 36, 47, 65}));
}
TEST(CudaSparse, BrokenStructureIsNamed) {
  Example s;
  const Buffer<int64_t> far(std::vector<int64_t>{0, 3, 1, 0, 2});
  const Buffer<double> b(std::vector<double>(6, 1.0)), c(8);
  Spmm x{.dtype = DType::f64, .a = s.matrix(), .n = 2, .b = b.get(), .ldb = 2, .ldc = 2};
  x.c = c.get();
  x.a.indices = far.get();
  EXPECT_THROW(spmm(x), IndexError);
  x.dtype = DType::bf16;
  EXPECT_THROW(spmm(x), DTypeError);
}

}  // namespace
}  // namespace cutaway::cuda::emu
