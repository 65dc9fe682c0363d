// The output layer's step against autograd through the op, its memory to the byte, stochastic
// rounding, and the same bits on one and two threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>
#include <cutaway/models/haste/output_layer.h>

namespace cutaway::haste {
namespace {

constexpr int64_t kBatch = 21, kFeatures = 48, kLabels = 101;

Csr some_positives(int64_t labels) {
  Csr p;
  p.cols = labels;
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t l = b % 7; l < labels; l += 29 + b) p.index.push_back(int32_t(l));
    p.start.push_back(int64_t(p.index.size()));
  }
  return p;
}

Tensor features() {
  Generator random{.seed = 3};
  return randn({kFeatures, kBatch}, {}, &random);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector(), y = b.to_vector();
  EXPECT_EQ(x.size(), y.size());
  double off = 0;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    off = std::max(off, std::abs(x[i] - y[i]));
  return off;
}

// Chunks of labels that are no multiple of anything, and a rate of 1: the change is the gradient.
TEST(OutputLayer, step_equals_autograd_through_the_op) {
  for (const OutputKind kind : {OutputKind::haste, OutputKind::ffi}) {
    OutputLayer layer({.kind = kind,
                       .labels = kLabels,
                       .features = kFeatures,
                       .group = 16,
                       .fan_in = 16,
                       .index_replace = true,
                       .chunk = 48,
                       .momentum = false});
    const Tensor x = features(), xt = x.t().contiguous().set_requires_grad();
    const Tensor weight = layer.weight().clone().set_requires_grad();
    const Tensor bias = layer.bias().clone().set_requires_grad();
    const Csr positives = some_positives(kLabels);
    const Tensor y = zeros({kBatch, kLabels});
    for (int64_t b = 0; b < kBatch; ++b) {
      for (const int32_t l : positives.row(b)) y.data<float>()[b * kLabels + l] = 1;
    }
    const Tensor z = group_shared_linear(xt, layer.index(), weight, bias, layer.group());
    const Tensor loss = sum(softplus(z) - z * y);
    loss.backward();
    const auto result = layer.step(x, positives, {.lr = 1, .want_loss = true});
    EXPECT_NEAR(result.loss, loss.item(), 1e-5 * std::abs(loss.item()));
    EXPECT_LE(largest_difference(result.dx, xt.grad().t()), 1e-4);
    EXPECT_LE(largest_difference(weight.detach() - layer.weight(), weight.grad()), 1e-4);
    EXPECT_LE(largest_difference(bias.detach() - layer.bias(), bias.grad()), 1e-4);
  }
}

TEST(OutputLayer, memory_is_exact) {
  for (const bool momentum : {false, true}) {
    for (const int64_t group : {1, 16, 32}) {
      const OutputLayer layer({.kind = group == 1 ? OutputKind::ffi : OutputKind::haste,
                               .labels = 128,
                               .features = kFeatures,
                               .group = group,
                               .fan_in = 32,
                               .momentum = momentum});
      std::map<std::string, int64_t> bytes;
      int64_t total = 0;
      for (const auto& [name, n] : layer.memory()) {
        bytes[name] = n;
        total += n;
      }
      EXPECT_EQ(bytes["index"], 4 * 128 * 32 / group);
      const int64_t parameters = 4 * (128 * 32 + 128);
      EXPECT_EQ(total, parameters * (momentum ? 2 : 1) + 4 * 128 * 32 / group);
    }
  }
}

TEST(OutputLayer, threads_do_not_matter) {
  const int before = num_threads();
  for (const OutputKind kind : {OutputKind::haste, OutputKind::ffi, OutputKind::dense,
                                OutputKind::block, OutputKind::bottleneck}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      std::vector<double> seen;
      for (const int threads : {1, 2, 3}) {
        set_num_threads(threads);
        OutputLayer layer({.kind = kind,
                           .labels = kLabels,
                           .features = kFeatures,
                           .group = 16,
                           .fan_in = 16,
                           .dtype = dtype});
        std::vector<double> values;
        for (int64_t step = 1; step <= 3; ++step) {
          const auto r = layer.step(
              features(), some_positives(kLabels),
              {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4, .step = step, .want_loss = true});
          values = r.dx.to_vector();
          values.push_back(r.loss);
        }
        const auto weight = layer.weight().to_vector();
        values.insert(values.end(), weight.begin(), weight.end());
        if (threads == 1) seen = values;
        EXPECT_EQ(values, seen) << int(kind) << ", " << threads << " threads";
      }
    }
  }
  set_num_threads(before);
}

#ifndef __SANITIZE_ADDRESS__  // there every block comes from the system
// After the first steps the layer lives on what it has: nothing is asked of the system.
TEST(OutputLayer, a_steady_step_takes_no_new_memory) {
  const Tensor x = features();
  const Csr positives = some_positives(20000);
  for (const OutputKind kind : {OutputKind::haste, OutputKind::ffi, OutputKind::dense,
                                OutputKind::block, OutputKind::bottleneck}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      OutputLayer layer({.kind = kind,
                         .labels = 20000,
                         .features = kFeatures,
                         .group = 32,
                         .fan_in = 16,
                         .dtype = dtype});
      const auto run = [&] { (void)layer.step(x, positives, {.lr = 0.01, .momentum = 0.9}); };
      for (int i = 0; i < 3; ++i) run();
      const MemoryStats before = memory_stats();
      for (int i = 0; i < 5; ++i) run();
      const MemoryStats after = memory_stats();
      EXPECT_EQ(after.live, before.live) << int(kind);
      EXPECT_EQ(after.from_system, before.from_system) << int(kind);
    }
  }
}
#endif

}  // namespace
}  // namespace cutaway::haste
