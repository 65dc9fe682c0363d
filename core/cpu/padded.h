#pragma once
#include <cstring>

#include <cutaway/core/cpu/vector.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A padded copy of a plane: [d][h][w % phases][w / phases].
struct Padded {
  int64_t size[3], left[3], full[3];  // of the plane; before it; with both sides
  int64_t phases, pitch;              // elements of one phase of a row
  int64_t row, volume;

  Padded(const int64_t* n, const int64_t* before, const int64_t* after, int64_t column_phases)
      : phases(column_phases) {
    for (int d = 0; d < 3; ++d) {
      size[d] = n[d];
      left[d] = before[d];
      full[d] = before[d] + n[d] + after[d];
    }
    pitch = ceil_div(full[2], phases);
    row = pitch * phases;
    volume = full[0] * full[1] * row;
  }
  // Offset of padded position (d, h, w).
  int64_t at(int64_t d, int64_t h, int64_t w) const {
    return (d * full[1] + h) * row + w % phases * pitch + w / phases;
  }
};

inline constexpr int64_t kAhead =
    2048;  // bytes; short planes end before prefetching in hardware begins

// n elements, and zeros to the end of the last vector. `end` is where readable memory ends.
template <class T>
[[gnu::always_inline]] inline void copy_row(const T* from, int64_t n, const T* end, T* to) {
  constexpr int64_t kLanes = kVectorLanes<T>;
  const int64_t whole = n / kLanes * kLanes;
  __builtin_prefetch(from + kAhead / int64_t(sizeof(T)));
  for (int64_t i = 0; i < whole; i += kLanes) store_vector(to + i, load_vector(from + i));
  if (whole == n) return;
  if (end - (from + whole) >= kLanes) {
    const Vector<T> v = load_vector(from + whole);
    store_vector(to + whole, first_lanes<T>(n - whole) ? v : Vector<T>{});
  } else {
    std::memcpy(to + whole, from + whole, size_t(n - whole) * sizeof(T));
  }
}

// Fills the copy, whose padding is zero already. Rows are written in order: the zeros behind one
// fall on padding or on what is written next.
template <class T>
void pad_plane(const Padded& p, const T* x, const T* end, T* to) {
  for (int64_t d = 0; d < p.size[0]; ++d) {
    T* row = to + ((d + p.left[0]) * p.full[1] + p.left[1]) * p.row;
    for (int64_t h = 0; h < p.size[1]; ++h, row += p.row, x += p.size[2]) {
      if (p.phases == 1) {
        copy_row(x, p.size[2], end, row + p.left[2]);
        continue;
      }
      for (int64_t phase = 0; phase < p.phases; ++phase) {
        const int64_t skip = (phase - p.left[2] % p.phases + p.phases) % p.phases;
        T* line = row + phase * p.pitch + (p.left[2] + skip) / p.phases;
        for (int64_t i = skip; i < p.size[2]; i += p.phases) *line++ = x[i];
      }
    }
  }
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
