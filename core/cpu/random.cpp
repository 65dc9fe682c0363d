#include <algorithm>
#include <type_traits>
#include <utility>

#include <cutaway/core/cpu/philox_words.h>
#include <cutaway/core/kernels/random.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/random_normal.h>
#include <cutaway/core/parallel.h>

// Random numbers. Words are drawn for a chunk of blocks at a time, in a loop that vectorises, then
// turned into values. Compiled without fused multiply-add, so that all CPU variants give equal
// bits.

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kGrainChunks = kGrain / 4 / kWordChunk;

// Calls body(begin, count, words, twin) for chunks of elements; `twin` holds the low halves of
// 64-bit words where kWide is set.
template <bool kWide, class F>
void for_chunks(const RandomArgs& a, F&& body) {
  const int64_t chunks = (a.n + kWordChunk - 1) / kWordChunk;
  parallel_for(chunks, kGrainChunks, [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kWordChunk];
    alignas(64) uint32_t twin[kWide ? kWordChunk : 1];
    for (int64_t c = begin; c < end; ++c) {
      const uint64_t block = a.offset + static_cast<uint64_t>(c * (kWordChunk / 4));
      draw_words(a.seed, a.stream, block, words);
      if constexpr (kWide) draw_words(a.seed, a.stream ^ math::kTwinStream, block, twin);
      body(c * kWordChunk, std::min(kWordChunk, a.n - c * kWordChunk), words, twin);
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
    alignas(64) C z[kWordChunk];
    for (int64_t i = 0; i < kWordChunk; i += 4) {
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
