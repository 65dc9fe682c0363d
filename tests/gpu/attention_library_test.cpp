#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/device.h>
#include <cutaway/core/rng.h>
#include <cutaway/cuda/lib/attention.h>
#include <cutaway/cuda/step_graph.h>

namespace cutaway::cuda::gpu {
namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

// o and the gradients of q, k, v, whose heads are columns of one wider matrix.
Tensors attention(AttentionBy by, DType dtype, int64_t length, int64_t depth, bool causal) {
  const AttentionByScope scope(by);
  Generator random{.seed = 5};
  const int64_t heads = 4, columns = heads * depth;
  const Tensor all =
      randn({2, length, 3 * columns}, {}, &random).to(dtype).to(kGpu).detach().set_requires_grad();
  Tensors in;
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor part = slice(all, 2, columns * i, columns * (i + 1));
    in.push_back(part.reshape({2, length, heads, depth}).transpose(1, 2));
  }
  const Tensor o = scaled_dot_product_attention(in[0], in[1], in[2], {.causal = causal});
  const Tensors g = grad({o}, {all}, {}, {ones_like(o)});
  return {o.detach(), g[0]};
}

TEST(AttentionLibrary, AgreesWithTheOwnKernels) {
  if (!has_backend(DeviceKind::cuda)) GTEST_SKIP() << cuda_missing();
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const bool causal : {false, true}) {
      for (const int64_t length : {128, 200}) {
        const Tensors own = attention(AttentionBy::own, dtype, length, 64, causal);
        const int64_t before = library_attention_passes();
        const Tensors got = attention(AttentionBy::cudnn, dtype, length, 64, causal);
        EXPECT_EQ(library_attention_passes() - before, 2) << name_of(dtype) << causal << length;
        const double bound = dtype == DType::bf16 ? 0.02 : 0.004;
        for (size_t i = 0; i < 2; ++i) {
          const double scale = amax(abs(own[i])).to(kCpu).item<double>();
          EXPECT_LT(amax(abs(own[i] - got[i])).to(kCpu).item<double>(), bound * scale)
              << name_of(dtype) << causal << length;
        }
        const Tensors again = attention(AttentionBy::cudnn, dtype, length, 64, causal);
        for (size_t i = 0; i < 2; ++i) EXPECT_EQ(again[i].to_vector(), got[i].to_vector());
      }
    }
  }
}

TEST(AttentionLibrary, IsPartOfAGraph) {
  if (!has_backend(DeviceKind::cuda)) GTEST_SKIP() << cuda_missing();
  const AttentionByScope scope(AttentionBy::cudnn);
  Tensor q = randn({1, 2, 64, 64}).to(DType::f16).to(kGpu);
  Tensor o = zeros({1, 2, 64, 64}, {DType::f16, kGpu});
  const auto step = [&] { o.copy_(scaled_dot_product_attention(q, q, q)); };
  const auto graph = record_step(kGpu, step);
  q.copy_(randn({1, 2, 64, 64}).to(DType::f16).to(kGpu));
  graph->replay();
  const auto replayed = o.to_vector();
  step();
  EXPECT_EQ(o.to_vector(), replayed);
}

}  // namespace
}  // namespace cutaway::cuda::gpu
