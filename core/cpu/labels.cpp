#include <algorithm>
#include <bit>

#include <cutaway/core/cpu/philox_words.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/cpu/vector_math.h>
#include <cutaway/core/kernels/labels.h>
#include <cutaway/core/math/exponential.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kLossChunk = 4096;  // logits whose losses are summed apart
constexpr int64_t kLossBlock = 256;   // … and of these in one loop

// Losses of one chunk.
template <bool Hinge>
double chunk_loss(const float* z, int64_t n) {
  alignas(64) float loss[kLossBlock];
  double total = 0;
  for (int64_t b = 0; b < n; b += kLossBlock) {
    const int64_t count = std::min(kLossBlock, n - b);
    const float* x = z + b;
    for (int64_t i = 0; i < count; ++i) {
      const float above = x[i] < -1.0f ? 0.0f : 1.0f + x[i];
      loss[i] = Hinge ? above * above : math::softplus(x[i]);
    }
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) sum += loss[i];
    total += double(sum);
  }
  return total;
}

template <bool Hinge>
void chunk_gradient(float* z, int64_t n, float scale) {
  if constexpr (Hinge) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) z[i] = scale * (z[i] < -1.0f ? 0.0f : 2.0f * (1.0f + z[i]));
  } else {
    map_vectors([scale](auto v) { return scale * math::lanes::sigmoid(v); }, n, z, z);
  }
}

template <bool Hinge, bool Want>
void chunk_losses(const NegativeLossArgs& a) {
  const int64_t chunks = (a.n + kLossChunk - 1) / kLossChunk;
  const Scratch<double> part(Want ? chunks : 0);
  float* z = static_cast<float*>(a.z);
  parallel_for(chunks, kGrain / kLossChunk, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      float* own = z + c * kLossChunk;
      const int64_t n = std::min(kLossChunk, a.n - c * kLossChunk);
      if constexpr (Want) part[c] = chunk_loss<Hinge>(own, n);
      chunk_gradient<Hinge>(own, n, a.scale);
    }
  });
  if constexpr (Want) {
    double total = 0;
    for (int64_t c = 0; c < chunks; ++c) total += part[c];
    *a.loss = total;
  }
}

void negative_loss(const NegativeLossArgs& a) {
  if (a.hinge) {
    a.loss ? chunk_losses<true, true>(a) : chunk_losses<true, false>(a);
  } else {
    a.loss ? chunk_losses<false, true>(a) : chunk_losses<false, false>(a);
  }
}

// Elements [begin, end) of the tensor, within one chunk of words.
template <bool Momentum>
void round_chunk(const RoundedSgdArgs& a, int64_t begin, int64_t end, const uint32_t* words) {
  uint16_t* w = static_cast<uint16_t*>(a.param) + (begin - a.first);
  const float* grad = a.grad + (begin - a.first);
  float* buffer = Momentum ? a.buffer + (begin - a.first) : nullptr;
  const int64_t n = end - begin;
  const float lr = a.lr, momentum = a.momentum, decay = a.weight_decay;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float old = std::bit_cast<float>(uint32_t(w[i]) << 16);
    float g = grad[i] + decay * old;
    if constexpr (Momentum) {
      g += momentum * buffer[i];
      buffer[i] = g;
    }
    const uint32_t bits = std::bit_cast<uint32_t>(old - lr * g);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    w[i] = uint16_t((bits + (finite ? words[i] >> 16 : 0u)) >> 16);
  }
}

void rounded_sgd(const RoundedSgdArgs& a) {
  const int64_t first = a.first / kWordChunk, last = (a.first + a.n + kWordChunk - 1) / kWordChunk;
  parallel_for(last - first, kGrain / kWordChunk, [&](int64_t from, int64_t to) {
    alignas(64) uint32_t words[kWordChunk];
    for (int64_t c = first + from; c < first + to; ++c) {
      draw_words(a.seed, a.stream, a.block + uint64_t(c * (kWordChunk / 4)), words);
      const int64_t begin = std::max(a.first, c * kWordChunk);
      const int64_t end = std::min(a.first + a.n, (c + 1) * kWordChunk);
      const uint32_t* own = words + (begin - c * kWordChunk);
      a.buffer ? round_chunk<true>(a, begin, end, own) : round_chunk<false>(a, begin, end, own);
    }
  });
}

}  // namespace

void register_labels_kernels() {
  kernels::negative_loss.set(DeviceKind::cpu, DType::f32, negative_loss);
  kernels::rounded_sgd.set(DeviceKind::cpu, DType::bf16, rounded_sgd);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
