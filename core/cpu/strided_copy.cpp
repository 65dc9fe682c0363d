// Copies between arrays of different strides: runs that lie side by side in both move as blocks,
// and where the neighbours of one are far apart in the other, square tiles are transposed.
#include <cutaway/core/cpu/strided_copy.h>

#include <algorithm>
#include <cstring>

#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/cpu/vector.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

// A run of whole blocks, or more than one block: the last one ends with the run.
template <int64_t kBlock>
[[gnu::always_inline]] inline void copy_blocks(char* to, const char* from, int64_t bytes) {
  for (int64_t i = 0; i + kBlock < bytes; i += kBlock) __builtin_memcpy(to + i, from + i, kBlock);
  __builtin_memcpy(to + bytes - kBlock, from + bytes - kBlock, kBlock);
}
void copy_run(char* to, const char* from, int64_t bytes) {
  if (bytes > 1024) {
    std::memcpy(to, from, size_t(bytes));
  } else if (bytes >= 64) {
    copy_blocks<64>(to, from, bytes);
  } else if (bytes >= 16) {
    copy_blocks<16>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_blocks<4>(to, from, bytes);
  } else {
    for (int64_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

// The dimensions that are walked: all but `left_out`. Strides are bytes.
struct Outer {
  int rank = 0;
  int64_t count = 1, sizes[kMaxRank], to[kMaxRank], from[kMaxRank];

  Outer(const PointwiseArgs& a, int64_t bytes, int left_out, int left_out_too) {
    for (int d = 0; d < a.rank; ++d) {
      if (d == left_out || d == left_out_too) continue;
      sizes[rank] = a.sizes[d];
      to[rank] = a.strides[0][d] * bytes;
      from[rank++] = a.strides[1][d] * bytes;
      count *= a.sizes[d];
    }
  }
};

// The last dimension is a run, the one before it a loop.
void copy_runs(const PointwiseArgs& a, int64_t bytes) {
  const int last = a.rank - 1;
  const int64_t run = a.sizes[last] * bytes, rows = a.sizes[last - 1];
  const int64_t to_row = a.strides[0][last - 1] * bytes, from_row = a.strides[1][last - 1] * bytes;
  const Outer o(a, bytes, last, last - 1);
  parallel_for(o.count * rows, 1 + 4 * kGrain / run, [&](int64_t begin, int64_t end) {
    Odometer to(o.rank, o.sizes, o.to, begin / rows), from(o.rank, o.sizes, o.from, begin / rows);
    for (int64_t i = begin; i < end; to.next(), from.next()) {
      const int64_t first = i % rows, n = std::min(rows - first, end - i);
      char* y = static_cast<char*>(a.out) + to.offset + first * to_row;
      const char* x = static_cast<const char*>(a.in[0]) + from.offset + first * from_row;
      for (int64_t j = 0; j < n; ++j) copy_run(y + j * to_row, x + j * from_row, run);
      i += n;
    }
  });
}

typedef uint32_t Eight __attribute__((vector_size(32)));
typedef uint32_t LooseEight __attribute__((vector_size(32), aligned(4), may_alias));

// 8 × 8 elements of 4 bytes.
[[gnu::always_inline]] inline void transpose_eight(const uint32_t* x, int64_t x_row, uint32_t* y,
                                                   int64_t y_row) {
  Eight rows[8];
  for (int i = 0; i < 8; ++i) rows[i] = *reinterpret_cast<const LooseEight*>(x + i * x_row);
  transpose_rows(rows);
  for (int i = 0; i < 8; ++i) *reinterpret_cast<LooseEight*>(y + i * y_row) = rows[i];
}

// y[j][i] = x[i][j] for i < rows, j < columns.
template <class T>
void transpose_tile(const T* x, int64_t x_row, T* y, int64_t y_row, int64_t rows, int64_t columns) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    for (; i + 8 <= rows; i += 8) {
      int64_t j = 0;
      for (; j + 8 <= columns; j += 8) {
        transpose_eight(x + i * x_row + j, x_row, y + j * y_row + i, y_row);
      }
      for (; j < columns; ++j) {
        for (int64_t k = i; k < i + 8; ++k) y[j * y_row + k] = x[k * x_row + j];
      }
    }
  }
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) y[j * y_row + i] = x[i * x_row + j];
  }
}

// Neighbours in `in` lie along `near`, those in `out` along the last dimension.
template <class T>
void transpose(const PointwiseArgs& a, int near) {
  constexpr int64_t kTile = 16;
  const int last = a.rank - 1;
  const int64_t rows = a.sizes[last], columns = a.sizes[near];
  const int64_t x_row = a.strides[1][last], y_row = a.strides[0][near];
  const int64_t across = (columns + kTile - 1) / kTile;
  const Outer o(a, sizeof(T), last, near);
  parallel_for(o.count * across, 1 + kGrain / (kTile * rows), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const Odometer to(o.rank, o.sizes, o.to, t / across),
          from(o.rank, o.sizes, o.from, t / across);
      const int64_t j = t % across * kTile, width = std::min(kTile, columns - j);
      const char* x = static_cast<const char*>(a.in[0]) + from.offset;
      char* y = static_cast<char*>(a.out) + to.offset;
      for (int64_t i = 0; i < rows; i += kTile) {
        transpose_tile(reinterpret_cast<const T*>(x) + i * x_row + j, x_row,
                       reinterpret_cast<T*>(y) + j * y_row + i, y_row, std::min(kTile, rows - i),
                       width);
      }
    }
  });
}

}  // namespace

bool copy_strided(const PointwiseArgs& a, int64_t bytes) {
  const int last = a.rank - 1;
  if (last < 1 || a.numel == 0 || a.strides[0][last] != 1) return false;
  if (a.strides[1][last] == 1) {
    copy_runs(a, bytes);
    return true;
  }
  for (int d = 0; d < last; ++d) {
    if (a.strides[1][d] != 1 || a.sizes[d] < 4 || a.sizes[last] < 4) continue;
    switch (bytes) {
      case 1:
        transpose<uint8_t>(a, d);
        break;
      case 2:
        transpose<uint16_t>(a, d);
        break;
      case 4:
        transpose<uint32_t>(a, d);
        break;
      default:
        transpose<uint64_t>(a, d);
    }
    return true;
  }
  return false;
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
