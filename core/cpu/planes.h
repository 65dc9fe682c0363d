#pragma once
#include <algorithm>
#include <cstring>

#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/math/half.h>

// Planes of channels, one after the other, turned into positions with a channel in each lane, and
// back. What is stored as bf16 is f32 in lanes.
namespace cutaway::cpu::CUTAWAY_VARIANT {

namespace detail {
typedef uint16_t HalfLanes __attribute__((vector_size(kVectorBytes / 2)));
typedef uint16_t LooseHalfLanes
    __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
typedef uint32_t WideLanes __attribute__((vector_size(kVectorBytes)));
}  // namespace detail

[[gnu::always_inline]] inline Vector<float> load_lanes(const float* p) { return load_vector(p); }
[[gnu::always_inline]] inline Vector<float> load_lanes(const BFloat16* p) {
  const detail::HalfLanes h = *reinterpret_cast<const detail::LooseHalfLanes*>(p);
  return (Vector<float>)(__builtin_convertvector(h, detail::WideLanes) << 16);
}
[[gnu::always_inline]] inline void store_lanes(float* p, Vector<float> v) { store_vector(p, v); }
[[gnu::always_inline]] inline void store_lanes(BFloat16* p, Vector<float> v) {
  const detail::WideLanes u = (detail::WideLanes)v;
  const detail::WideLanes rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, nan = (u >> 16) | 0x40u;
  const detail::WideLanes bits = (u & 0x7fffffffu) > 0x7f800000u ? nan : rounded;
  *reinterpret_cast<detail::LooseHalfLanes*>(p) = __builtin_convertvector(bits, detail::HalfLanes);
}

// Rows [first, last) of planes of height × width, of which some may lie outside.
struct PlaneRows {
  int channels;  // at most kVectorLanes<float>
  int64_t height, width, first, last;
  int64_t begin() const { return std::clamp<int64_t>(first, 0, height) * width; }
  int64_t end() const { return std::max(begin(), std::min(last, height) * width); }
};

// to [last − first, row] positions: column w of a plane at left + w, zeros around. `end` is where
// readable memory ends.
template <class S>
void planes_to_lanes(const PlaneRows& p, const S* x, const S* end, int64_t left, int64_t row,
                     float* to) {
  constexpr int kL = kVectorLanes<float>;
  const int64_t size = p.height * p.width;
  for (int64_t h = p.first; h < p.last; ++h) {
    float* line = to + (h - p.first) * row * kL;
    const bool inside = h >= 0 && h < p.height;
    std::fill(line, line + (inside ? left : row) * kL, 0.0f);
    if (inside) std::fill(line + (left + p.width) * kL, line + row * kL, 0.0f);
  }
  int64_t w = 0;
  float* out = to + ((p.begin() / p.width - p.first) * row + left) * kL;
  for (int64_t i = p.begin(); i < p.end(); i += kL) {
    const int64_t count = std::min<int64_t>(kL, p.end() - i);
    const S* from = x + i;
    S rest[kL][kL];
    int64_t distance = size;
    if (end - from < (p.channels - 1) * size + kL) {
      for (int j = 0; j < p.channels; ++j) {
        std::memcpy(static_cast<void*>(rest[j]), from + j * size, size_t(count) * sizeof(S));
      }
      from = rest[0], distance = kL;
    }
    Vector<float> lanes[kL];
#pragma GCC unroll 16
    for (int j = 0; j < kL; ++j) {
      lanes[j] = j < p.channels ? load_lanes(from + j * distance) : Vector<float>{};
    }
    transpose_rows(lanes);
#pragma GCC unroll 16
    for (int q = 0; q < kL; ++q) {
      if (q >= count) break;
      store_vector(out, lanes[q]);
      out += kL;
      if (++w == p.width) w = 0, out += (row - p.width) * kL;
    }
  }
}

// The other direction: from [last − first, row] positions into planes.
template <class S>
void lanes_to_planes(const PlaneRows& p, const float* from, int64_t row, S* y) {
  constexpr int kL = kVectorLanes<float>;
  const int64_t size = p.height * p.width;
  int64_t w = 0;
  for (int64_t i = p.begin(); i < p.end(); i += kL) {
    const int64_t count = std::min<int64_t>(kL, p.end() - i);
    Vector<float> lanes[kL] = {};
#pragma GCC unroll 16
    for (int q = 0; q < kL; ++q) {
      if (q >= count) break;
      lanes[q] = load_vector(from);
      from += kL;
      if (++w == p.width) w = 0, from += (row - p.width) * kL;
    }
    transpose_rows(lanes);
#pragma GCC unroll 16
    for (int j = 0; j < kL; ++j) {
      if (j >= p.channels) break;
      if (count == kL) {
        store_lanes(y + j * size + i, lanes[j]);
      } else {
        S rest[kL];
        store_lanes(rest, lanes[j]);
        std::memcpy(static_cast<void*>(y + j * size + i), rest, size_t(count) * sizeof(S));
      }
    }
  }
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
