#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include <cutaway/core/cpu/gemm_tile.h>
#include <cutaway/core/cpu/padded.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/kernels/conv.h>
#include <cutaway/core/parallel.h>

// Note: convolution by tiles. The matrix of im2col never exists as a whole. A sample is copied once
// with a border of zeros; from there, rows of that matrix are single runs of memory. The forward
// pass packs them panel by panel for the tiles of the matrix product; the weight gradient reads
// them in place. The input gradient of a stride of 1 is a forward pass over flipped weights.
#ifdef CUTAWAY_OWN_GEMM
namespace cutaway::cpu::CUTAWAY_VARIANT::tiles {

// The channels of one group of a sample, padded on both sides: [channels] planes.
struct Border {
  Padded plane;
  int64_t channels;
  int64_t stride[3], dilation[3], kernel[3];

  Border(const ConvArgs& a, int64_t phases)
      : plane(a.in, a.pad, a.pad, phases), channels(a.c / a.groups) {
    for (int d = 0; d < 3; ++d) {
      stride[d] = a.stride[d];
      dilation[d] = a.dilation[d];
      kernel[d] = a.kernel[d];
    }
  }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t rows() const { return channels * taps(); }

  // Where each row (channel, kernel position) of the im2col matrix begins.
  std::vector<int64_t> row_begins() const {
    std::vector<int64_t> begins;
    begins.reserve(size_t(rows()));
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t tap = 0; tap < taps(); ++tap) {
        begins.push_back(c * plane.volume + plane.at(tap / (kernel[2] * kernel[1]) * dilation[0],
                                                     tap / kernel[2] % kernel[1] * dilation[1],
                                                     tap % kernel[2] * dilation[2]));
      }
    }
    return begins;
  }
  // How much further output row `o` of `out` begins.
  int64_t output_row(const ConvArgs& a, int64_t o) const {
    return plane.at(o / a.out[1] * stride[0], o % a.out[1] * stride[1], 0);
  }
};

// A sample with its border, and room to read and write whole vectors at the end.
template <class T>
class Sample {
 public:
  explicit Sample(const Border& b)
      : border_(b), size_(b.channels * b.plane.volume + 2 * kVectorLanes<T>), memory_(size_) {
    std::fill(memory_.get(), memory_.get() + size_, T(0));
  }
  // Copies x [channels, in]; `end` is where readable memory ends.
  const T* fill(const T* x, const T* end) {
    const Padded& p = border_.plane;
    for (int64_t c = 0; c < border_.channels; ++c) {
      pad_plane(p, x, end, memory_.get() + c * p.volume);
      x += p.size[0] * p.size[1] * p.size[2];
    }
    return memory_.get();
  }

 private:
  const Border& border_;
  int64_t size_;
  Scratch<T> memory_;
};

// A run of output positions inside one output row.
struct Run {
  int64_t from;  // in the bordered sample, behind the beginning of a row
  int64_t to;    // column of the panel
  int vectors;
};

// Output positions [begin, begin + columns): whole output rows, or a part of one.
struct Panel {
  int64_t begin, columns;
  std::vector<Run> runs;
};

template <class T>
std::vector<Panel> cut_panels(const ConvArgs& a, const Border& b) {
  constexpr int64_t kMost = kTileColumns<T>;
  const int64_t width = a.out[2], rows = a.out[0] * a.out[1];
  const int64_t rows_each = std::max<int64_t>(1, kMost / width);
  std::vector<Panel> panels;
  for (int64_t o = 0; o < rows; o += rows_each) {
    const int64_t count = std::min(rows_each, rows - o);
    for (int64_t x = 0; x < width; x += kMost) {
      const int64_t length = std::min(kMost, width - x);
      Panel p{o * width + x, count * length, {}};
      for (int64_t r = 0; r < count; ++r) {
        p.runs.push_back({b.output_row(a, o + r) + x, r * length,
                          int((length + kVectorLanes<T> - 1) / kVectorLanes<T>)});
      }
      panels.push_back(std::move(p));
    }
  }
  return panels;
}

constexpr int64_t kDepth = 256;  // rows of the im2col matrix in one packed panel

// out [rows, width]. A run is copied in whole vectors; what it writes too much, the next run or
// the next row writes again, and the memory behind the last row is spare.
template <class T>
void pack(const T* sample, const int64_t* begins, int64_t rows, const Panel& p, int64_t width,
          T* out) {
  for (int64_t r = 0; r < rows; ++r, out += width) {
    const T* in = sample + begins[r];
    for (const Run& run : p.runs) {
      for (int v = 0; v < run.vectors; ++v) {
        store_vector(out + run.to + v * kVectorLanes<T>,
                     load_vector(in + run.from + v * kVectorLanes<T>));
      }
    }
  }
}

// y [k, positions] of one group of one sample = w [k, rows] · im2col, added to what y holds.
template <class T>
void multiply_panels(const Border& b, std::span<const Panel> panels,
                     const std::vector<int64_t>& begins, const T* sample, const T* w, int64_t k,
                     T* packed, T* y, int64_t positions) {
  const int64_t rows = b.rows();
  for (const Panel& p : panels) {
    const int vectors = int((p.columns + kVectorLanes<T> - 1) / kVectorLanes<T>);
    const int64_t width = vectors * kVectorLanes<T>;
    for (int64_t q = 0; q < rows; q += kDepth) {
      const int64_t depth = std::min(kDepth, rows - q);
      pack(sample, begins.data() + q, depth, p, width, packed);
      const int64_t most = kTileRows[vectors], strips = (k + most - 1) / most;
      Finish<T> f{nullptr, positions, T(1),
                  T(1),    nullptr,   int(p.columns - width + kVectorLanes<T>)};
      int64_t i = 0;
      for (int64_t s = 0; s < strips; ++s) {
        const int height = int((k - i + strips - s - 1) / (strips - s));
        f.c = y + i * positions + p.begin;
        find_tile<T>(height, vectors)(depth, w + i * rows + q, rows, 1, packed, width, f);
        i += height;
      }
    }
  }
}

template <class T>
void forward(const ConvArgs& a) {
  const Border b(a, a.stride[2]);
  const std::vector<Panel> panels = cut_panels<T>(a, b);
  const std::vector<int64_t> begins = b.row_begins();
  const int64_t positions = a.out[0] * a.out[1] * a.out[2], in_size = a.in[0] * a.in[1] * a.in[2];
  const int64_t k = a.k / a.groups;
  const T *x = static_cast<const T*>(a.x), *w = static_cast<const T*>(a.w),
          *bias = static_cast<const T*>(a.bias);
  // Few samples are cut into ranges of panels, so that every thread has some.
  const int64_t units = a.n * a.groups, count = int64_t(panels.size());
  const int64_t parts = std::clamp<int64_t>(num_threads() / units, 1, count);
  parallel_for(units * parts, 1, [&](int64_t first, int64_t last) {
    Sample<T> sample(b);
    const int64_t spare = std::min(kDepth, b.rows()) * kTileColumns<T> + kTileColumns<T>;
    const Scratch<T> packed(spare);
    std::fill(packed.get(), packed.get() + spare, T(0));
    for (int64_t task = first; task < last; ++task) {
      const int64_t i = task / parts, g = i % a.groups, part = task % parts;
      const std::span<const Panel> mine(panels.data() + count * part / parts,
                                        panels.data() + count * (part + 1) / parts);
      T* y = static_cast<T*>(a.result) + i * k * positions;
      for (int64_t o = 0; o < k; ++o) {
        std::fill(y + o * positions + mine.front().begin,
                  y + o * positions + mine.back().begin + mine.back().columns,
                  bias ? bias[g * k + o] : T(0));
      }
      const T* padded = sample.fill(x + i * b.channels * in_size, x + a.n * a.c * in_size);
      multiply_panels(b, mine, begins, padded, w + g * k * b.rows(), k, packed.get(), y, positions);
    }
  });
}

// Whether there is anything to sum.
inline bool usable(const ConvArgs& a) {
  return a.n > 0 && a.c > 0 && a.k > 0 && a.out[0] * a.out[1] * a.out[2] > 0 &&
         a.in[0] * a.in[1] * a.in[2] > 0 && a.kernel[0] * a.kernel[1] * a.kernel[2] > 0;
}

// Whether the input gradient is a forward pass over the upstream gradient.
inline bool input_grad_is_forward(const ConvArgs& a) {
  for (int d = 0; d < 3; ++d) {
    if (a.stride[d] != 1 || a.pad[d] > a.dilation[d] * (a.kernel[d] - 1)) return false;
  }
  return true;
}

template <class T>
void input_grad(const ConvArgs& a) {
  const int64_t c = a.c / a.groups, k = a.k / a.groups;
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  const Scratch<T> flipped(a.k * c * taps);
  const T* w = static_cast<const T*>(a.w);
  for (int64_t g = 0; g < a.groups; ++g) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < c; ++j) {
        const T* from = w + ((g * k + i) * c + j) * taps;
        T* to = flipped.get() + ((g * c + j) * k + i) * taps;
        for (int64_t t = 0; t < taps; ++t) to[t] = from[taps - 1 - t];
      }
    }
  }
  ConvArgs b = a;
  b.c = a.k;
  b.k = a.c;
  for (int d = 0; d < 3; ++d) {
    b.in[d] = a.out[d];
    b.out[d] = a.in[d];
    b.pad[d] = a.dilation[d] * (a.kernel[d] - 1) - a.pad[d];
  }
  b.x = a.g;
  b.w = flipped.get();
  b.bias = nullptr;
  forward<T>(b);
}

// R rows of the im2col matrix, each with its own beginning, by V vectors of output channels:
// c[r] += Σ over `runs` runs of `length` positions.
template <class T, int R, int V>
void correlate(const T* x, const int64_t* begins, int64_t runs, int64_t length, int64_t step,
               int64_t jump, const T* g, int64_t g_step, T* c, int64_t c_row) {
  Vector<T> sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[r][v] = load_vector(c + r * c_row + v * kVectorLanes<T>);
  }
  int64_t at[R];
  for (int r = 0; r < R; ++r) at[r] = begins[r];
  for (int64_t i = 0; i < runs; ++i, x += jump - length * step) {
#pragma GCC unroll 1
    for (int64_t q = 0; q < length; ++q) {
      Vector<T> column[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) column[v] = load_vector(g + v * kVectorLanes<T>);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const T value = x[at[r]];
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) sum[r][v] += value * column[v];
      }
      x += step;
      g += g_step;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) store_vector(c + r * c_row + v * kVectorLanes<T>, sum[r][v]);
  }
}

// Rows of a tile of `vectors`: no more than addresses fit into registers.
inline int correlate_rows(int vectors) { return std::min(kTileRows[vectors], 8); }

template <class T>
using Correlate = void (*)(const T*, const int64_t*, int64_t, int64_t, int64_t, int64_t, const T*,
                           int64_t, T*, int64_t);

template <class T, int V, int... R>
Correlate<T> correlate_of(int rows, std::integer_sequence<int, R...>) {
  static constexpr Correlate<T> table[] = {&correlate<T, R + 1, V>...};
  return table[rows - 1];
}

template <class T, int V = kTileVectors>
Correlate<T> find_correlate(int rows, int vectors) {
  if constexpr (V > 1) {
    if (vectors < V) return find_correlate<T, V - 1>(rows, vectors);
  }
  constexpr int kMost = kTileRows[V] < 8 ? kTileRows[V] : 8;
  return correlate_of<T, V>(rows, std::make_integer_sequence<int, kMost>{});
}

// Output rows whose gradients stay in the second-level cache: the more, the less often the sums are
// fetched.
inline int64_t rows_at_a_time(int64_t length, int64_t width) {
  constexpr int64_t kElements = 1 << 16;
  return std::max<int64_t>(1, kElements / width / length);
}

// The weight gradient of some output channels in one sample, transposed: dw [rows, width] +=
// im2col · gᵀ, with g [k, positions] and width = k rounded up to whole vectors, one panel at most.
template <class T>
void add_weight_grad(const ConvArgs& a, const Border& b, const std::vector<int64_t>& begins,
                     const T* sample, const T* g, int64_t k, int64_t width, T* columns, T* dw) {
  constexpr int kL = kVectorLanes<T>;
  const int64_t length = a.out[2], rows = b.rows(), out_rows = a.out[0] * a.out[1];
  const int64_t positions = out_rows * length;
  const int64_t step = rows_at_a_time(length, width);
  const int vectors = int(width / kL);
  const int64_t most = correlate_rows(vectors), strips = (rows + most - 1) / most;
  for (int64_t o = 0; o < out_rows;) {
    const int64_t count = std::min({step, out_rows - o, a.out[1] - o % a.out[1]});
    const int64_t depth = count * length;
    for (int64_t j = 0; j < k; j += kL) {
      const int lanes = int(std::min<int64_t>(kL, k - j));
      const T* from = g + j * positions + o * length;
      int64_t q = 0;
      for (; q + kL <= depth; q += kL) {
        transpose_square(from + q, positions, lanes, columns + q * width + j, width);
      }
      for (; q < depth; ++q) {
        for (int i = 0; i < kL; ++i) {
          columns[q * width + j + i] = i < lanes ? from[i * positions + q] : T(0);
        }
      }
    }
    const T* x = sample + b.output_row(a, o);
    int64_t r = 0;
    for (int64_t s = 0; s < strips; ++s) {
      const int height = int((rows - r + strips - s - 1) / (strips - s));
      find_correlate<T>(height, vectors)(x, begins.data() + r, count, length, b.stride[2],
                                         b.stride[1] * b.plane.row, columns, width, dw + r * width,
                                         width);
      r += height;
    }
    o += count;
  }
}

constexpr int64_t kParts = 8;  // of the work; fixed, so that the sums do not depend on threads

// Parts of the work are panels of output channels by ranges of samples, each with its own sums.
template <class T>
void weight_grad(const ConvArgs& a) {
  constexpr int kL = kVectorLanes<T>;
  const Border b(a, 1);
  const std::vector<int64_t> begins = b.row_begins();
  const int64_t positions = a.out[0] * a.out[1] * a.out[2], in_size = a.in[0] * a.in[1] * a.in[2];
  const int64_t k = a.k / a.groups, columns_each = kTileColumns<T>;
  const int64_t panels = (k + columns_each - 1) / columns_each;
  const int64_t width = std::min((k + kL - 1) / kL * kL, columns_each), size = b.rows() * width;
  const int64_t units = a.groups * panels;
  const int64_t chunks = std::clamp<int64_t>(kParts / units, 1, a.n);
  const Scratch<T> partial(units * chunks * size);
  const T *x = static_cast<const T*>(a.x), *g = static_cast<const T*>(a.g);
  parallel_chunks(units * chunks, [&](int64_t part) {
    const int64_t chunk = part % chunks, unit = part / chunks, group = unit / panels;
    const int64_t first = unit % panels * columns_each, count = std::min(columns_each, k - first);
    const int64_t vectors = (count + kL - 1) / kL;
    T* sums = partial.get() + part * size;
    std::fill(sums, sums + size, T(0));
    Sample<T> sample(b);
    const int64_t most = std::min(rows_at_a_time(a.out[2], vectors * kL), a.out[1]);
    const Scratch<T> columns(most * a.out[2] * vectors * kL);
    for (int64_t n = a.n * chunk / chunks; n < a.n * (chunk + 1) / chunks; ++n) {
      const int64_t i = n * a.groups + group;
      const T* padded = sample.fill(x + i * b.channels * in_size, x + a.n * a.c * in_size);
      add_weight_grad(a, b, begins, padded, g + (i * k + first) * positions, count, vectors * kL,
                      columns.get(), sums);
    }
  });
  T* dw = static_cast<T*>(a.result);
  parallel_for(a.k, 1 + kGrain / (b.rows() * chunks), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t o = i % k, unit = i / k * panels + o / columns_each;
      const int64_t count = std::min(columns_each, k - o / columns_each * columns_each);
      const int64_t row = (count + kL - 1) / kL * kL;
      const T* from = partial.get() + unit * chunks * size + o % columns_each;
      for (int64_t r = 0; r < b.rows(); ++r) {
        T sum = 0;
        for (int64_t c = 0; c < chunks; ++c) sum += from[c * size + r * row];
        dw[i * b.rows() + r] = sum;
      }
    }
  });
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT::tiles
#endif
