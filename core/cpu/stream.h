#pragma once
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

// Stores that go around the caches. An ordinary store first reads the line that it changes; for a
// result that no cache can hold until somebody reads it, that is a quarter to a third of all
// traffic.
namespace cutaway::cpu::CUTAWAY_VARIANT {

// Results from this size on are streamed: half of a usual last-level cache.
inline constexpr int64_t kStreamedBytes = int64_t(16) << 20;

// Copies whole cache lines to a line's beginning. stream_fence() must follow the last of them.
inline void stream_lines(void* to, const void* from, int64_t lines) {
#if defined(__SSE2__)
  auto* t = static_cast<__m128i*>(to);
  const auto* f = static_cast<const __m128i*>(from);
  for (int64_t i = 0; i < 4 * lines; i += 4) {
    const __m128i a = _mm_load_si128(f + i), b = _mm_load_si128(f + i + 1);
    const __m128i c = _mm_load_si128(f + i + 2), d = _mm_load_si128(f + i + 3);
    _mm_stream_si128(t + i, a);
    _mm_stream_si128(t + i + 1, b);
    _mm_stream_si128(t + i + 2, c);
    _mm_stream_si128(t + i + 3, d);
  }
#else
  std::memcpy(to, from, size_t(64 * lines));
#endif
}

// A vector to a place on a multiple of its size, the same way.
template <class T, class Lanes>
[[gnu::always_inline]] inline void stream_vector(T* to, Lanes v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)v);
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)v);
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)v);
#else
  std::memcpy(to, &v, sizeof v);
#endif
}

// Streamed lines become visible to other threads before anything stored later.
inline void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
