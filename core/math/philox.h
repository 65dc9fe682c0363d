#pragma once
#include <cutaway/core/math/config.h>

// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", 2011). A number depends on (seed, stream, offset, element index)
// and on nothing else: not on threads, chunks, vector width or device.
//
// Note: which words an element uses. The elements of one draw share blocks of four: element i
// reads block  offset + i / 4,  word  i mod 4.  Types with more than 32 bits take a second word
// at the same place of the twin stream, stream with its top bit flipped; user streams therefore
// stay below 2^63. So a draw of n elements moves the offset by ⌈n/4⌉ blocks for every type,
// and an f64 uniform agrees with the f32 one in its leading 24 bits.

namespace cutaway::math {

struct Philox4 {
  uint32_t word[4];
};

// Random bits of block `block`: 10 rounds, key = seed, counter = (block, stream), low words first.
CUTAWAY_HD Philox4 philox4(uint64_t seed, uint64_t stream, uint64_t block) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  CUTAWAY_UNROLL
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0;
    const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

inline constexpr uint64_t kTwinStream = 1ull << 63;

// The four 64-bit words of a block: high halves from the stream, low halves from its twin.
struct Philox4x64 {
  uint64_t word[4];
};
CUTAWAY_HD Philox4x64 philox4x64(uint64_t seed, uint64_t stream, uint64_t block) {
  const Philox4 high = philox4(seed, stream, block);
  const Philox4 low = philox4(seed, stream ^ kTwinStream, block);
  Philox4x64 r{};
  for (int i = 0; i < 4; ++i) {
    r.word[i] = static_cast<uint64_t>(high.word[i]) << 32 | low.word[i];
  }
  return r;
}

// The 32 or 64 random bits of element i of a draw that starts at block `offset`.
CUTAWAY_HD uint32_t random_u32(uint64_t seed, uint64_t stream, uint64_t offset, uint64_t i) {
  return philox4(seed, stream, offset + i / 4).word[i % 4];
}
CUTAWAY_HD uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t offset, uint64_t i) {
  return philox4x64(seed, stream, offset + i / 4).word[i % 4];
}

// Uniform in [0, 1): the upper 24 bits times 2^-24, the upper 53 bits times 2^-53.
CUTAWAY_HD float uniform_f32(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}
CUTAWAY_HD double uniform_f64(uint64_t word) {
  // Needs no 64-bit integer conversion: 1.f − 1 from the upper 52 bits, plus bit 53.
  const double high = detail::from_bits((word >> 12) | 0x3ff0000000000000u) - 1.0;
  return high + static_cast<double>(static_cast<int32_t>((word >> 11) & 1u)) * 0x1p-53;
}

// True with probability p: u < p. Never for p = 0, always for p = 1; the caller checks 0 ≤ p ≤ 1.
CUTAWAY_HD bool bernoulli(uint32_t word, float p) { return uniform_f32(word) < p; }

namespace detail {
// The upper 64 bits of a·b.
CUTAWAY_HD uint64_t mul_high(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}
}  // namespace detail

// Unbiased integer in [0, range) for element i, range ≥ 1 (checked by the caller). Multiplies 64
// random bits by range; the few words that would favour some results are drawn again under
// another key, so other elements are not moved (Lemire, "Fast random integer generation in an
// interval", 2019).
CUTAWAY_HD uint64_t bounded_u64(uint64_t seed, uint64_t stream, uint64_t offset, uint64_t i,
                                uint64_t range) {
  uint64_t word = random_u64(seed, stream, offset, i);
  if (word * range < range) {
    const uint64_t surplus = (0 - range) % range;  // 2^64 mod range
    while (word * range < surplus) {
      seed += 0x9E3779B97F4A7C15u;
      word = random_u64(seed, stream, offset, i);
    }
  }
  return detail::mul_high(word, range);
}

}  // namespace cutaway::math
