// Losses of negative labels and rounded steps of SGD against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/labels.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/philox.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>

namespace cutaway {
namespace {

// z and its loss, from the logits.
std::pair<Tensor, double> run_loss(const Tensor& logits, bool hinge, float scale) {
  const Tensor z = logits.clone();
  double loss = -1;
  kernels::negative_loss(
      kCpu, DType::f32,
      {.n = z.numel(), .hinge = hinge, .scale = scale, .z = z.raw(), .loss = &loss});
  return {z, loss};
}

TEST(NegativeLoss, equals_its_formulas_in_f64) {
  Generator random{.seed = 3};
  for (const int64_t n : {0, 1, 15, 257, 10007}) {
    const Tensor logits = randn({n}, {}, &random) * 5.0;
    for (const bool hinge : {false, true}) {
      const auto [z, loss] = run_loss(logits, hinge, 0.5f);
      double want = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double x = logits.data<float>()[i], above = std::max(0.0, 1 + x);
        want += hinge ? above * above : std::log1p(std::exp(x));
        const double g = 0.5 * (hinge ? 2 * above : 1 / (1 + std::exp(-x)));
        EXPECT_NEAR(z.data<float>()[i], g, 1e-6 * std::max(1.0, g)) << x;
      }
      EXPECT_NEAR(loss, want, 1e-6 * std::max(1.0, want)) << n << (hinge ? ", hinge" : "");
    }
  }
}

TEST(NegativeLoss, keeps_large_logits_and_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor logits = tensor({1e4, -1e4, double(nan)}).to(DType::f32);
  for (const bool hinge : {false, true}) {
    const auto [z, loss] = run_loss(logits, hinge, 1);
    EXPECT_EQ(z.data<float>()[0], hinge ? 2 * 10001.0f : 1.0f);
    EXPECT_EQ(z.data<float>()[1], 0.0f);
    EXPECT_TRUE(std::isnan(z.data<float>()[2])) << hinge;
    EXPECT_TRUE(std::isnan(loss)) << hinge;
  }
}

TEST(NegativeLoss, has_the_same_bits_on_any_number_of_threads) {
  const int before = num_threads();
  Generator random{.seed = 4};
  const Tensor logits = randn({300007}, {}, &random);
  set_num_threads(1);
  const auto one = run_loss(logits, false, 1);
  for (const int threads : {2, 3}) {
    set_num_threads(threads);
    const auto more = run_loss(logits, false, 1);
    EXPECT_EQ(one.first.to_vector(), more.first.to_vector());
    EXPECT_EQ(one.second, more.second);
  }
  set_num_threads(before);
}

struct Step {
  Tensor w, grad, buffer;
  int64_t first = 0;

  void run(int64_t begin, int64_t end, bool momentum) const {
    kernels::rounded_sgd(kCpu, DType::bf16,
                         {.n = end - begin,
                          .first = first + begin,
                          .param = w.data<BFloat16>() + begin,
                          .grad = grad.data<float>() + begin,
                          .buffer = momentum ? buffer.data<float>() + begin : nullptr,
                          .lr = 0.1f,
                          .momentum = 0.9f,
                          .weight_decay = 0.01f,
                          .seed = 5,
                          .stream = 6,
                          .block = uint64_t(7) << 36});
  }
};

Step some_step(int64_t n, int64_t first) {
  Generator random{.seed = 8};
  return {randn({n}, {}, &random).to(DType::bf16), randn({n}, {}, &random), randn({n}, {}, &random),
          first};
}

TEST(RoundedSgd, adds_the_words_of_philox_and_cuts) {
  for (const int64_t first : {0, 3, 255, 12345}) {
    for (const bool momentum : {false, true}) {
      const int64_t n = 1000;
      const Step s = some_step(n, first), start = some_step(n, first);
      s.run(0, n, momentum);
      for (int64_t i = 0; i < n; ++i) {
        const float old = float(start.w.data<BFloat16>()[i]);
        double m = double(start.grad.data<float>()[i]) + 0.01f * double(old);
        if (momentum) m += double(0.9f) * double(start.buffer.data<float>()[i]);
        const float exact = float(double(old) - double(0.1f) * m);
        const auto at = uint64_t(first + i);
        const uint32_t word = math::philox4(5, 6, (uint64_t(7) << 36) + at / 4).word[at % 4];
        const uint32_t bits = std::bit_cast<uint32_t>(exact);
        // f32 arithmetic may differ in the last bits, which moves the cut once in a long while.
        const uint16_t low = uint16_t((bits - 4 + (word >> 16)) >> 16);
        const uint16_t high = uint16_t((bits + 4 + (word >> 16)) >> 16);
        const uint16_t got = s.w.data<BFloat16>()[i].bits;
        EXPECT_TRUE(got == low || got == high) << i << ": " << float(s.w.data<BFloat16>()[i]);
        if (momentum) {
          EXPECT_NEAR(s.buffer.data<float>()[i], m, 1e-5);
        }
      }
    }
  }
}

TEST(RoundedSgd, does_not_depend_on_pieces_or_threads) {
  const int before = num_threads();
  set_num_threads(1);
  const int64_t n = 100003;
  const Step whole = some_step(n, 17), pieces = some_step(n, 17), threads = some_step(n, 17);
  whole.run(0, n, true);
  for (int64_t at = 0; at < n; at += 9973) pieces.run(at, std::min(n, at + 9973), true);
  set_num_threads(3);
  threads.run(0, n, true);
  set_num_threads(before);
  EXPECT_EQ(whole.w.to_vector(), pieces.w.to_vector());
  EXPECT_EQ(whole.w.to_vector(), threads.w.to_vector());
}

// The mean of 10^5 roundings lies within three standard errors.
TEST(RoundedSgd, is_unbiased) {
  const int64_t n = 100000;
  for (const float x : {1.0f, 1.001f, -0.3337f, 3.14159f, 1e-20f}) {
    const Tensor w = zeros({n}, {.dtype = DType::bf16}), grad = full({n}, -double(x));
    kernels::rounded_sgd(
        kCpu, DType::bf16,
        {.n = n, .param = w.raw(), .grad = grad.data<float>(), .lr = 1, .seed = 11, .stream = 1});
    double sum = 0, squares = 0;
    for (const double y : w.to_vector()) {
      sum += y - double(x);
      squares += (y - double(x)) * (y - double(x));
    }
    const double mean = sum / double(n);
    const double error = std::sqrt(std::max(0.0, squares / double(n) - mean * mean) / double(n));
    EXPECT_LE(std::abs(mean), 3 * error + 1e-30) << x;
  }
}

TEST(RoundedSgd, infinities_stay_infinite) {
  const Tensor w = zeros({2}, {.dtype = DType::bf16}), grad = tensor({-INFINITY, NAN});
  const Tensor g = grad.to(DType::f32);
  kernels::rounded_sgd(kCpu, DType::bf16,
                       {.n = 2, .param = w.raw(), .grad = g.data<float>(), .lr = 1, .seed = 1});
  EXPECT_EQ(w.data<BFloat16>()[0].bits, 0x7f80);
  EXPECT_TRUE(std::isnan(float(w.data<BFloat16>()[1])));
}

}  // namespace
}  // namespace cutaway
