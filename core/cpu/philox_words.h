#pragma once
#include <cstdint>
#include <utility>

#include <cutaway/core/cpu/vector.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

// Random words for many elements at a time, in a loop that vectorises.
namespace cutaway::cpu::CUTAWAY_VARIANT {

inline constexpr int64_t kWordChunk = 256;  // words drawn together

// 64-bit lanes of which the lower halves count: a product of two such halves is one instruction.
typedef uint64_t Wide __attribute__((vector_size(kVectorBytes)));
constexpr int kWideLanes = kVectorBytes / 8;

[[gnu::always_inline]] inline Wide product(Wide a, uint64_t b) {
#if defined(__AVX512F__)
  return Wide(_mm512_maskz_mul_epu32(0xff, __m512i(a), __m512i(Wide{} + b)));
#elif defined(__AVX2__)
  return Wide(_mm256_mul_epu32(__m256i(a), __m256i(Wide{} + b)));
#elif defined(__SSE2__)
  return Wide(_mm_mul_epu32(__m128i(a), __m128i(Wide{} + b)));
#else
  return (a & 0xffffffffu) * b;
#endif
}

// to[0], to[1], … = a0, b0, a1, b1, …
template <int... I>
[[gnu::always_inline]] inline void store_pairs(Wide a, Wide b, uint32_t* to,
                                               std::integer_sequence<int, I...>) {
  constexpr int kL = kWideLanes;
  const Wide out[2] = {__builtin_shufflevector(a, b, (I / 2 + I % 2 * kL)...),
                       __builtin_shufflevector(a, b, (kL / 2 + I / 2 + I % 2 * kL)...)};
  __builtin_memcpy(to, out, sizeof(out));
}

// Words of the blocks from `block` on, for kWordChunk elements: math::philox4, some vectors of
// blocks at a time, since each of its rounds waits for the one before.
inline void draw_words(uint64_t seed, uint64_t stream, uint64_t block, uint32_t* words) {
  constexpr int kTogether = 4;
  static_assert(kWordChunk / 4 % (kTogether * kWideLanes) == 0);
  Wide lane;
  for (int j = 0; j < kWideLanes; ++j) lane[j] = uint64_t(j);
  for (int64_t i = 0; i < kWordChunk / 4; i += kTogether * kWideLanes) {
    Wide c0[kTogether], c1[kTogether], c2[kTogether], c3[kTogether];
    for (int u = 0; u < kTogether; ++u) {
      c0[u] = lane + (block + uint64_t(i + u * kWideLanes));
      c1[u] = c0[u] >> 32;
      c2[u] = Wide{} + stream;
      c3[u] = c2[u] >> 32;
    }
    uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 4
      for (int u = 0; u < kTogether; ++u) {
        const Wide p0 = product(c0[u], 0xD2511F53u), p1 = product(c2[u], 0xCD9E8D57u);
        c0[u] = (p1 >> 32) ^ c1[u] ^ uint64_t(k0);
        c2[u] = (p0 >> 32) ^ c3[u] ^ uint64_t(k1);
        c1[u] = p1;
        c3[u] = p0;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int u = 0; u < kTogether; ++u) {
      const Wide low = (c0[u] & 0xffffffffu) | (c1[u] << 32);
      const Wide high = (c2[u] & 0xffffffffu) | (c3[u] << 32);
      store_pairs(low, high, words + 4 * (i + u * kWideLanes),
                  std::make_integer_sequence<int, kWideLanes>{});
    }
  }
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
