#include <gtest/gtest.h>

#include <numeric>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/device.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor.h>
#include <cutaway/cuda/lib/sparse.h>
#include <cutaway/cuda/runtime/graph.h>
#include <cutaway/cuda/runtime/memory.h>
#include <cutaway/cuda/runtime/stream.h>

namespace cutaway::cuda::gpu {
namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

// These need a GPU; each says so where there is none.
class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_backend(DeviceKind::cuda)) GTEST_SKIP() << cuda_missing();
  }
};

std::vector<int> numbers(size_t n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 1);
  return v;
}

TEST_F(Gpu, CopiesOfAnySizeComeBack) {
  for (size_t n : {size_t{1}, size_t{1000}, size_t{262144}, size_t{3000001}}) {
    const auto in = numbers(n);
    std::vector<int> out(n);
    const auto bytes = int64_t(n * sizeof(int));
    void *a = allocate(bytes), *b = allocate(bytes);
    copy_in(a, in.data(), bytes);
    copy_within(b, a, bytes);
    copy_out(out.data(), b, bytes);
    release(a);
    release(b);
    EXPECT_EQ(out, in) << n;
  }
}
TEST_F(Gpu, StreamsWaitForEvents) {
  const auto in = numbers(100000);
  std::vector<int> out(in.size());
  const auto bytes = int64_t(in.size() * sizeof(int));
  void *a = allocate(bytes), *b = allocate(bytes);
  copy_in(a, in.data(), bytes);
  Event filled;
  filled.record();
  Stream other;
  other.wait_for(filled);
  {
    const StreamScope scope(other);
    note_use(a);
    note_use(b);
    copy_within(b, a, bytes);
    copy_out(out.data(), b, bytes);
  }
  EXPECT_EQ(out, in);
  release(a);
  release(b);
  Event last;
  last.record();
  last.wait();
  EXPECT_TRUE(last.passed());
  EXPECT_GE(last.milliseconds_since(filled), 0);
}
TEST_F(Gpu, PinnedMemoryCarriesValues) {
  PinnedBuffer pinned(4000);
  auto* values = static_cast<int*>(pinned.data());
  std::iota(values, values + 1000, 7);
  void* a = allocate(4000);
  pinned.start_to_device(a, 4000);
  PinnedBuffer back(4000);
  back.start_from_device(a, 4000);
  synchronize(kGpu);
  EXPECT_EQ(static_cast<int*>(back.data())[999], 7 + 999);
  release(a);
}
TEST_F(Gpu, MemoryThatDoesNotExistIsRefusedWithATable) {
  const Tensor kept = zeros({1000}, {.device = kGpu});
  try {
    allocate(int64_t{1} << 50);
    FAIL();
  } catch (const MemoryError& e) {
    EXPECT_NE(std::string(e.what()).find("in use by"), std::string::npos) << e.what();
  }
  EXPECT_EQ(kept.to_vector()[999], 0);
}
TEST_F(Gpu, OneDeviceAProcess) {
  EXPECT_THROW(zeros({1}, {.device = {DeviceKind::cuda, 1}}), DeviceError);
}

TEST_F(Gpu, AGraphRepeatsAStep) {
  Tensor x = full({1000}, 2.0, {.device = kGpu}), sum = zeros({1000}, {.device = kGpu});
  Graph graph([&] { sum.add_(x * x + 1.0); });  // runs once as usual
  EXPECT_GE(graph.nodes(), 1);
  EXPECT_EQ(sum.to_vector()[5], 5);
  graph.replay();
  graph.replay();
  EXPECT_EQ(sum.to_vector()[5], 15);
  x.fill_(3.0);
  graph.replay();
  EXPECT_EQ(sum.to_vector()[999], 25);
}
TEST_F(Gpu, AStepThatReadsValuesCannotBeRecorded) {
  const Tensor x = full({10}, 2.0, {.device = kGpu});
  EXPECT_THROW(Graph([&] { (void)x.to_vector(); }), CudaError);
  EXPECT_EQ((x * 2.0).to_vector()[3], 4);  // the device still works
}

template <class T>
struct OnDevice {
  void* data;
  int64_t bytes;
  explicit OnDevice(const std::vector<T>& v) : bytes(int64_t(v.size() * sizeof(T))) {
    data = allocate(bytes);
    copy_in(data, v.data(), bytes);
  }
  ~OnDevice() { release(data); }
  OnDevice(const OnDevice&) = delete;
  T* get() const { return static_cast<T*>(data); }
  std::vector<T> values() const {
    std::vector<T> v(static_cast<size_t>(bytes) / sizeof(T));
    copy_out(v.data(), data, bytes);
    return v;
  }
};

// [[1, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 5]]
TEST_F(Gpu, SparseProducts) {
  const OnDevice<int64_t> starts({0, 2, 2, 3, 5}), indices({0, 2, 1, 0, 2});
  const OnDevice<double> values({1, 2, 3, 4, 5}), b({1, 2, 3, 4, 5, 6}), c(std::vector<double>(8));
  const OnDevice<double> d({1, 2, 3, 4, 5, 6, 7, 8}), e(std::vector<double>(6));
  Spmm x{.dtype = DType::f64, .n = 2, .ldb = 2, .ldc = 2};
  x.a = {4, 3, 5, starts.get(), indices.get(), values.get()};
  x.b = b.get();
  x.c = c.get();
  spmm(x);
  EXPECT_EQ(c.values(), (std::vector<double>{11, 14, 0, 0, 9, 12, 29, 38}));
  x.transpose_a = true;
  x.b = d.get();
  x.c = e.get();
  spmm(x);
  EXPECT_EQ(e.values(), (std::vector<double>{29, 34, 15, 18, 37, 44}));
  Sddmm s{.dtype = DType::f64, .s = x.a, .k = 2, .beta = 10, .lda = 2, .ldb = 2};
  s.a = d.get();
  s.b = b.get();
  sddmm(s);
  EXPECT_EQ(values.values(), (std::vector<double>{15, 37, 69, 63, 133}));
}

}  // namespace
}  // namespace cutaway::cuda::gpu
