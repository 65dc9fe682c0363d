#include <algorithm>
#include <type_traits>
#include <utility>

#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/kernels/random.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/random_normal.h>
#include <cutaway/core/parallel.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

// Random numbers. Words are drawn for a chunk of blocks at a time, in a loop that vectorises, then
// turned into values. Compiled without fused multiply-add, so that all CPU variants give equal
// bits.

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kChunk = 256;  // elements
constexpr int64_t kGrainChunks = kGrain / 4 / kChunk;

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

// The words of the blocks from `block` on, for kChunk elements: math::philox4, some vectors of
// blocks at a time, since each of its rounds waits for the one before.
void draw_words(uint64_t seed, uint64_t stream, uint64_t block, uint32_t* words) {
  constexpr int kTogether = 4;
  static_assert(kChunk / 4 % (kTogether * kWideLanes) == 0);
  Wide lane;
  for (int j = 0; j < kWideLanes; ++j) lane[j] = uint64_t(j);
  for (int64_t i = 0; i < kChunk / 4; i += kTogether * kWideLanes) {
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

// Calls body(begin, count, words, twin) for chunks of elements; `twin` holds the low halves of
// 64-bit words where kWide is set.
template <bool kWide, class F>
void for_chunks(const RandomArgs& a, F&& body) {
  const int64_t chunks = (a.n + kChunk - 1) / kChunk;
  parallel_for(chunks, kGrainChunks, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kChunk];
    alignas(64) uint32_t twin[kWide ? kChunk : 1];
    for (int64_t c = begin; c < end; ++c) {
      const uint64_t block = a.offset + static_cast<uint64_t>(c * (kChunk / 4));
      draw_words(a.seed, a.stream, block, words);
      if constexpr (kWide) draw_words(a.seed, a.stream ^ math::kTwinStream, block, twin);
      body(c * kChunk, std::min(kChunk, a.n - c * kChunk), words, twin);
    }
  });
}

uint64_t joined(uint32_t high, uint32_t low) { return static_cast<uint64_t>(high) << 32 | low; }

// Uniform in [0, 1) with as many bits as the type holds there, so that rounding never gives 1.
template <class T>
auto unit(uint32_t word, uint32_t low) {
  if constexpr (std::is_same_v<T, double>) {
    return math::uniform_f64(joined(word, low));
  } else {
    constexpr int kBits = std::is_same_v<T, BFloat16> ? 8 : std::is_same_v<T, Float16> ? 11 : 24;
    return static_cast<float>(static_cast<int32_t>(word >> (32 - kBits))) *
           (1.0f / static_cast<float>(1 << kBits));
  }
}

template <class T>
void uniform(const RandomArgs& a) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const C low = static_cast<C>(a.a), width = static_cast<C>(a.b - a.a);
  const C high = static_cast<C>(T(static_cast<C>(a.b)));
  for_chunks<std::is_same_v<T, double>>(
      a, [&](int64_t begin, int64_t n, const uint32_t* words, const uint32_t* twin) {
        T* y = static_cast<T*>(a.out) + begin;
        for (int64_t i = 0; i < n; ++i) {
          const C u = unit<T>(words[i], std::is_same_v<T, double> ? twin[i] : 0);
          const T v = T(low + width * u);
          y[i] = static_cast<C>(v) < high ? v : T(low);  // a sum may round up to the end
        }
      });
}

template <class T>
void normal(const RandomArgs& a) {
  constexpr bool kWide = std::is_same_v<T, double>;
  using C = std::conditional_t<kWide, double, float>;
  const C mean = static_cast<C>(a.a), deviation = static_cast<C>(a.b);
  for_chunks<kWide>(a, [&](int64_t begin, int64_t n, const uint32_t* words, const uint32_t* twin) {
    alignas(64) C z[kChunk];
    for (int64_t i = 0; i < kChunk; i += 4) {
      math::Normal4<C> four;
      if constexpr (kWide) {
        math::Philox4x64 p;
        for (int k = 0; k < 4; ++k) p.word[k] = joined(words[i + k], twin[i + k]);
        four = math::normal4(p);
      } else {
        four = math::normal4(math::Philox4{{words[i], words[i + 1], words[i + 2], words[i + 3]}});
      }
      for (int k = 0; k < 4; ++k) z[i + k] = four.value[k];
    }
    T* y = static_cast<T*>(a.out) + begin;
    for (int64_t i = 0; i < n; ++i) y[i] = T(mean + deviation * z[i]);
  });
}

template <class T>
void bernoulli(const RandomArgs& a) {
  for_chunks<false>(a, [&](int64_t begin, int64_t n, const uint32_t* words, const uint32_t*) {
    T* y = static_cast<T*>(a.out) + begin;
    const T* p = static_cast<const T*>(a.in) + begin;
    for (int64_t i = 0; i < n; ++i) {
      const double u = math::uniform_f32(words[i]);
      y[i] = T(u < static_cast<double>(p[i]) ? 1.0f : 0.0f);
    }
  });
}

template <class T>
void dropout(const RandomArgs& a) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const float keep = static_cast<float>(a.a);
  const C scale = static_cast<C>(a.b);
  for_chunks<false>(a, [&](int64_t begin, int64_t n, const uint32_t* words, const uint32_t*) {
    T* y = static_cast<T*>(a.out) + begin;
    const T* x = static_cast<const T*>(a.in) + begin;
    for (int64_t i = 0; i < n; ++i) {
      const C kept = static_cast<C>(x[i]) * scale;
      y[i] = T(math::bernoulli(words[i], keep) ? kept : C(0));
    }
  });
}

void integers(const RandomArgs& a) {
  int64_t* y = static_cast<int64_t*>(a.out);
  parallel_for(a.n, kGrain / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t v =
          math::bounded_u64(a.seed, a.stream, a.offset, static_cast<uint64_t>(i), a.range);
      y[i] = static_cast<int64_t>(static_cast<uint64_t>(a.low) + v);
    }
  });
}

template <class T>
void register_type(DType t) {
  kernels::random_uniform.set(DeviceKind::cpu, t, &uniform<T>);
  kernels::random_normal.set(DeviceKind::cpu, t, &normal<T>);
  kernels::random_bernoulli.set(DeviceKind::cpu, t, &bernoulli<T>);
  kernels::random_dropout.set(DeviceKind::cpu, t, &dropout<T>);
}

}  // namespace

void register_random_kernels() {
  register_type<double>(DType::f64);
  register_type<float>(DType::f32);
  register_type<BFloat16>(DType::bf16);
  register_type<Float16>(DType::f16);
  kernels::random_integers.set(DeviceKind::cpu, DType::i64, &integers);
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
