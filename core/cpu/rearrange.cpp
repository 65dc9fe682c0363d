#include <algorithm>
#include <cstdint>
#include <cstring>

#include <cutaway/core/kernels/index.h>
#include <cutaway/core/parallel.h>

// Kernels that move elements without looking at them: one instance for each element size.
namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

template <class T>
void triangle(const TriangleArgs& a) {
  const auto* in = static_cast<const T*>(a.in);
  auto* out = static_cast<T*>(a.out);
  const int64_t m = a.columns;
  parallel_for(a.count * a.rows, std::max<int64_t>(1, kGrain / m), [&](int64_t from, int64_t to) {
    for (int64_t row = from; row < to; ++row) {
      // Kept: columns [0, end) below the diagonal, [begin, m) above it.
      const int64_t i = row % a.rows;
      const int64_t begin = a.upper ? std::clamp<int64_t>(i + a.diagonal, 0, m) : 0;
      const int64_t end = a.upper ? m : std::clamp<int64_t>(i + a.diagonal + 1, 0, m);
      T* y = out + row * m;
      const T* x = in + row * m;
      for (int64_t j = 0; j < begin; ++j) y[j] = 0;
      for (int64_t j = begin; j < end; ++j) y[j] = x[j];
      for (int64_t j = end; j < m; ++j) y[j] = 0;
    }
  });
}

// Fills a kernel's row for every type with the instance of its size.
template <class Args>
void set_by_size(Kernel<Args>& kernel, typename Kernel<Args>::Fn b1, typename Kernel<Args>::Fn b2,
                 typename Kernel<Args>::Fn b4, typename Kernel<Args>::Fn b8) {
  for (int t = 0; t < kNumDTypes; ++t) {
    const int64_t size = size_of(DType(t));
    kernel.set(DeviceKind::cpu, DType(t), size == 1 ? b1 : size == 2 ? b2 : size == 4 ? b4 : b8);
  }
}

}  // namespace

void register_rearrange_kernels() {
  set_by_size(kernels::triangle, triangle<uint8_t>, triangle<uint16_t>, triangle<uint32_t>,
              triangle<uint64_t>);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
