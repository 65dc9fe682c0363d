// Depthwise convolution on the CPU (one input channel a group). A plane is copied once, with its
// padding and with the columns of each remainder modulo the stride side by side; then every
// kernel position reads neighbouring elements, and a block of results stays in registers while
// the positions pass. The gradient of the input is the same walk over the gradient of the result.
#include <algorithm>
#include <cstring>
#include <vector>

#include <cutaway/core/cpu/conv_depthwise.h>
#include <cutaway/core/cpu/padded.h>
#include <cutaway/core/cpu/reduce_loop.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kFlushVectors = 64;  // f32 terms of one lane before they move to f64

constexpr int64_t kBatchBytes = 16384;

// Sizes that follow from the arguments.
struct Planes {
  int64_t k_group;            // results of one channel
  int64_t in_size, out_size;  // positions of one channel
  int64_t taps;               // kernel positions

  explicit Planes(const ConvArgs& a) {
    k_group = a.k / a.groups;
    in_size = a.in[0] * a.in[1] * a.in[2];
    out_size = a.out[0] * a.out[1] * a.out[2];
    taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  }
};

// Room for `planes` copies and a vector beyond, zero.
template <class T>
struct Copies : Scratch<T> {
  Copies(const Padded& p, int64_t planes) : Scratch<T>(planes * p.volume + 2 * kVectorLanes<T>) {
    std::fill(this->get(), this->get() + planes * p.volume + 2 * kVectorLanes<T>, T(0));
  }
};

// Planes copied together: what was just stored cannot be loaded at another alignment at once.
template <class T>
int64_t batch_of(const Padded& p) {
  return std::clamp<int64_t>(kBatchBytes / (p.volume * int64_t(sizeof(T)) + 1), 1, 16);
}

// Results of a walk: out[r][j] = start + Σ_t weight[t] · x[offset[t] + row offset(r) + j].
template <class T>
struct Correlation {
  const int64_t* offset;
  const T* weight;
  int64_t taps;
  int64_t sizes[3];          // of the results
  int64_t plane_step, step;  // from a row of results to the next, in x
  T start;
};

// kRows × kColumns vectors; column c begins at at[c].
template <int kRows, int kColumns, class T>
[[gnu::always_inline]] inline void correlate_block(const Correlation<T>& c, const T* x,
                                                   const int64_t* at, T* out, int64_t out_row) {
  Vector<T> sum[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < kColumns; ++k) sum[r][k] = Vector<T>{} + c.start;
  }
  for (int64_t t = 0; t < c.taps; ++t) {
    const T weight = c.weight[t];
    const T* from = x + c.offset[t];
    for (int r = 0; r < kRows; ++r) {
      for (int k = 0; k < kColumns; ++k)
        sum[r][k] += weight * load_vector(from + r * c.step + at[k]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < kColumns; ++k) store_vector(out + r * out_row + at[k], sum[r][k]);
  }
}

// kRows rows at least a vector wide: the last vector ends with the row.
template <int kRows, class T>
void correlate_wide(const Correlation<T>& c, const T* x, T* out, int64_t out_row) {
  constexpr int64_t kLanes = kVectorLanes<T>;
  const int64_t last = c.sizes[2] - kLanes;
  for (int64_t j = 0; j < c.sizes[2]; j += 2 * kLanes) {
    const int64_t at[2] = {std::min(j, last), std::min(j + kLanes, last)};
    if (j + kLanes >= c.sizes[2]) {
      correlate_block<kRows, 1>(c, x, at, out, out_row);
    } else {
      correlate_block<kRows, 2>(c, x, at, out, out_row);
    }
  }
}

// Rows narrower than a vector: what a row writes beyond its end the next one overwrites; `end` is
// where writable memory ends.
template <int kRows, class T>
void correlate_narrow(const Correlation<T>& c, const T* x, T* out, int64_t out_row, const T* end) {
  constexpr int64_t kLanes = kVectorLanes<T>;
  const int64_t at[1] = {0};
  if (out + (kRows - 1) * out_row + kLanes <= end) {
    return correlate_block<kRows, 1>(c, x, at, out, out_row);
  }
  T rows[kRows * kLanes];
  correlate_block<kRows, 1>(c, x, at, rows, kLanes);
  for (int r = 0; r < kRows; ++r) {
    std::copy(rows + r * kLanes, rows + r * kLanes + c.sizes[2], out + r * out_row);
  }
}

// Rows of out are out_row apart; nothing is written outside of [out, end).
template <class T>
void correlate(const Correlation<T>& c, const T* x, T* out, int64_t out_row, const T* end) {
  const bool wide = c.sizes[2] >= kVectorLanes<T>;
  for (int64_t d = 0; d < c.sizes[0]; ++d) {
    const T* from = x + d * c.plane_step;
    for (int64_t h = 0; h < c.sizes[1];) {
      if (h + 4 <= c.sizes[1]) {
        wide ? correlate_wide<4>(c, from, out, out_row)
             : correlate_narrow<4>(c, from, out, out_row, end);
        h += 4;
        from += 4 * c.step;
        out += 4 * out_row;
      } else {
        wide ? correlate_wide<1>(c, from, out, out_row)
             : correlate_narrow<1>(c, from, out, out_row, end);
        h += 1;
        from += c.step;
        out += out_row;
      }
    }
  }
}

// Runs body(first, last) on ranges of planes.
template <class F>
void for_planes(int64_t n, int64_t work, F&& body) {
  parallel_for(n, 1 + kGrain / (work + 1), body);
}

// The copy of the input that the forward walk and the gradient of the weight read.
Padded padded_input(const ConvArgs& a) {
  int64_t after[3];
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = (a.out[d] - 1) * a.stride[d] + (a.kernel[d] - 1) * a.dilation[d] + 1;
    after[d] = std::max<int64_t>(reach - a.in[d] - a.pad[d], 0);
  }
  return Padded(a.in, a.pad, after, a.stride[2]);
}

// Where each kernel position reads for result 0.
void tap_offsets(const ConvArgs& a, const Padded& p, int64_t* offset) {
  for (int64_t kd = 0; kd < a.kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < a.kernel[1]; ++kh) {
      for (int64_t kw = 0; kw < a.kernel[2]; ++kw) {
        *offset++ = p.at(kd * a.dilation[0], kh * a.dilation[1], kw * a.dilation[2]);
      }
    }
  }
}

// ---- gradient of the input

// In one dimension the places of dx with one remainder modulo the stride see the same kernel
// positions: place first + j · stride reads g[from + j − (tap · dilation − remainder) / stride].
struct Remainder {
  int64_t first, count;  // places of dx
  int64_t from;
};
Remainder remainder_of(const ConvArgs& a, int d, int64_t rest) {
  const int64_t s = a.stride[d], first = ((rest - a.pad[d]) % s + s) % s;
  return {first, first < a.in[d] ? ceil_div(a.in[d] - first, s) : 0, (first + a.pad[d] - rest) / s};
}

Padded padded_gradient(const ConvArgs& a) {
  int64_t before[3], after[3];
  for (int d = 0; d < 3; ++d) {
    const int64_t s = a.stride[d], reach = (a.kernel[d] - 1) * a.dilation[d];
    before[d] = std::max<int64_t>((reach - a.pad[d]) / s, 0);
    after[d] = std::max<int64_t>((a.in[d] - 1 + a.pad[d]) / s - (a.out[d] - 1), 0);
  }
  return Padded(a.out, before, after, 1);
}

// The places of dx that share their remainders: the kernel positions that they see, of all results
// of a channel, and where these read in the padded planes of g.
struct GradientWalk {
  Remainder place[3];
  int64_t* offset;
  int64_t* tap;
  int64_t taps = 0;

  // Writes to offset and tap, which have room for all positions.
  GradientWalk(const ConvArgs& a, const Padded& p, const int64_t* rest, int64_t* offset_to,
               int64_t* tap_to)
      : offset(offset_to), tap(tap_to) {
    int64_t base[3];
    for (int d = 0; d < 3; ++d) {
      place[d] = remainder_of(a, d, rest[d]);
      base[d] = place[d].from + p.left[d];
    }
    const int64_t kernel = a.kernel[0] * a.kernel[1] * a.kernel[2];
    for (int64_t t = 0; t < a.k / a.groups * kernel; ++t) {
      const int64_t k = t % kernel, tap_at[3] = {k / (a.kernel[2] * a.kernel[1]),
                                                 k / a.kernel[2] % a.kernel[1], k % a.kernel[2]};
      int64_t at[3];
      bool seen = true;
      for (int d = 0; d < 3; ++d) {
        const int64_t shift = tap_at[d] * a.dilation[d] - rest[d];
        seen = seen && shift % a.stride[d] == 0;
        at[d] = base[d] - shift / a.stride[d];
      }
      if (!seen) continue;
      offset[taps] = t / kernel * p.volume + (at[0] * p.full[1] + at[1]) * p.row + at[2];
      tap[taps++] = t;
    }
  }
};

// All of them.
struct GradientWalks {
  Scratch<int64_t> offset, tap;
  std::vector<GradientWalk> list;

  GradientWalks(const ConvArgs& a, const Padded& p, int64_t taps) : offset(taps), tap(taps) {
    int64_t done = 0, rest[3];
    for (rest[0] = 0; rest[0] < a.stride[0]; ++rest[0]) {
      for (rest[1] = 0; rest[1] < a.stride[1]; ++rest[1]) {
        for (rest[2] = 0; rest[2] < a.stride[2]; ++rest[2]) {
          list.emplace_back(a, p, rest, offset.get() + done, tap.get() + done);
          done += list.back().taps;
        }
      }
    }
  }
};

// dx of one channel of one sample from padded planes g and weights w. `weight` has room for all of
// w, `part` for a plane whose rows end with a vector.
template <class T>
void input_grad_plane(const ConvArgs& a, const Padded& p, const GradientWalks& walks, const T* g,
                      const T* w, T* weight, T* part, T* dx) {
  for (const GradientWalk& walk : walks.list) {
    const int64_t n[3] = {walk.place[0].count, walk.place[1].count, walk.place[2].count};
    if (n[0] * n[1] * n[2] == 0) continue;
    for (int64_t t = 0; t < walk.taps; ++t) weight[t] = w[walk.tap[t]];
    const Correlation<T> c{.offset = walk.offset,
                           .weight = weight,
                           .taps = walk.taps,
                           .sizes = {n[0], n[1], n[2]},
                           .plane_step = p.full[1] * p.row,
                           .step = p.row,
                           .start = 0};
    if (walks.list.size() == 1) {
      correlate(c, g, dx, a.in[2], dx + a.in[0] * a.in[1] * a.in[2]);
      continue;
    }
    const int64_t width = std::max<int64_t>(n[2], kVectorLanes<T>), step = a.stride[2];
    correlate(c, g, part, width, part + n[0] * n[1] * width);
    const T* from = part;
    for (int64_t d = 0; d < n[0]; ++d) {
      for (int64_t h = 0; h < n[1]; ++h, from += width) {
        const int64_t at_d = walk.place[0].first + d * a.stride[0];
        const int64_t at_h = walk.place[1].first + h * a.stride[1];
        T* to = dx + (at_d * a.in[1] + at_h) * a.in[2] + walk.place[2].first;
        for (int64_t j = 0; j < n[2]; ++j) to[j * step] = from[j];
      }
    }
  }
}

// ---- gradient of the weight

// Sums of one kernel position, lane by lane: `near` in T for a while, `far` in f64.
template <class T>
struct TapSum {
  T near[kVectorLanes<T>];
  double far[kVectorLanes<T>];

  void flush() {
    for (int i = 0; i < kVectorLanes<T>; ++i) far[i] += double(near[i]);
    for (T& v : near) v = 0;
  }
  double total() const {
    double sum = 0;
    for (const double v : far) sum += v;
    return sum;
  }
};

// Adds Σ g · x of kTaps kernel positions over rows [begin, end) of g; `last` is where readable
// memory of g ends.
template <int kTaps, class T>
void dot_rows(const ConvArgs& a, const Padded& p, const T* x, const T* g, const T* last,
              const int64_t* offset, int64_t begin, int64_t end, TapSum<T>* sums) {
  constexpr int64_t kLanes = kVectorLanes<T>;
  using Mask = typename VectorOf<T>::Mask;
  const int64_t width = a.out[2], whole = width / kLanes * kLanes;
  const Mask keep = first_lanes<T>(width - whole);
  Vector<T> sum[kTaps];
  for (int t = 0; t < kTaps; ++t) sum[t] = load_vector(sums[t].near);
  int64_t d = begin / a.out[1], h = begin % a.out[1];
  const T* from = g + begin * width;
  for (int64_t r = begin; r < end; ++r, from += width) {
    const T* row = x + (d * a.stride[0] * p.full[1] + h * a.stride[1]) * p.row;
    if (++h == a.out[1]) h = 0, ++d;
    for (int64_t j = 0; j < whole; j += kLanes) {
      const Vector<T> v = load_vector(from + j);
      for (int t = 0; t < kTaps; ++t) sum[t] += v * load_vector(row + offset[t] + j);
    }
    if (whole == width) continue;
    Vector<T> v{};
    if (last - (from + whole) >= kLanes) {
      v = load_vector(from + whole);
    } else {
      std::memcpy(&v, from + whole, size_t(width - whole) * sizeof(T));
    }
    v = keep ? v : Vector<T>{};
    for (int t = 0; t < kTaps; ++t) {
      const Vector<T> u = load_vector(row + offset[t] + whole);
      sum[t] += v * (keep ? u : Vector<T>{});  // what lies beyond may be infinite
    }
  }
  for (int t = 0; t < kTaps; ++t) store_vector(sums[t].near, sum[t]);
}

// All kernel positions, nine, three or one in registers at a time.
template <class T>
void dot_plane(const ConvArgs& a, const Padded& p, const T* x, const T* g, const T* last,
               const int64_t* offset, TapSum<T>* sums) {
  const int64_t rows = a.out[0] * a.out[1], taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  const int64_t per_row = ceil_div(a.out[2], kVectorLanes<T>);
  const int64_t step = std::max<int64_t>(kFlushVectors / per_row, 1);
  for (int64_t r = 0; r < rows; r += step) {
    const int64_t end = std::min(r + step, rows);
    int64_t t = 0;
    for (; t + 9 <= taps; t += 9) dot_rows<9>(a, p, x, g, last, offset + t, r, end, sums + t);
    for (; t + 3 <= taps; t += 3) dot_rows<3>(a, p, x, g, last, offset + t, r, end, sums + t);
    for (; t < taps; ++t) dot_rows<1>(a, p, x, g, last, offset + t, r, end, sums + t);
    for (t = 0; t < taps; ++t) sums[t].flush();
  }
}

}  // namespace

template <class T>
void depthwise_forward(const ConvArgs& a) {
  const Planes q(a);
  if (q.out_size == 0) return;
  const T *x = static_cast<const T*>(a.x), *w = static_cast<const T*>(a.w),
          *bias = static_cast<const T*>(a.bias);
  T* y = static_cast<T*>(a.result);
  const T* x_end = x + a.n * a.c * q.in_size;
  const Padded p = padded_input(a);
  Scratch<int64_t> offset(q.taps);
  tap_offsets(a, p, offset.get());
  const int64_t batch = batch_of<T>(p);
  for_planes(a.n * a.c, q.out_size * q.k_group * q.taps / 8, [&](int64_t begin, int64_t end) {
    Copies<T> copy(p, batch);
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t at = (plane - begin) % batch, i = plane / a.c, c = plane % a.c;
      for (int64_t b = 0; at == 0 && b < std::min(batch, end - plane); ++b) {
        pad_plane(p, x + (plane + b) * q.in_size, x_end, copy.get() + b * p.volume);
      }
      for (int64_t k = c * q.k_group; k < (c + 1) * q.k_group; ++k) {
        const Correlation<T> walk{.offset = offset.get(),
                                  .weight = w + k * q.taps,
                                  .taps = q.taps,
                                  .sizes = {a.out[0], a.out[1], a.out[2]},
                                  .plane_step = a.stride[0] * p.full[1] * p.row,
                                  .step = a.stride[1] * p.row,
                                  .start = bias ? bias[k] : T(0)};
        T* out = y + (i * a.k + k) * q.out_size;
        correlate(walk, copy.get() + at * p.volume, out, a.out[2], out + q.out_size);
      }
    }
  });
}

template <class T>
void depthwise_input_grad(const ConvArgs& a) {
  const Planes q(a);
  if (q.in_size == 0) return;
  const T *grad = static_cast<const T*>(a.g), *w = static_cast<const T*>(a.w);
  T* dx = static_cast<T*>(a.result);
  const T* g_end = grad + a.n * a.k * q.out_size;
  const Padded p = padded_gradient(a);
  const GradientWalks walks(a, p, q.k_group * q.taps);
  const int64_t part_size = a.in[0] * a.in[1] * std::max<int64_t>(a.in[2], kVectorLanes<T>);
  const int64_t batch = batch_of<T>(p);
  for_planes(a.n * a.c, q.in_size * q.k_group * q.taps / 8, [&](int64_t begin, int64_t end) {
    Copies<T> copy(p, batch * q.k_group);
    Scratch<T> part(part_size), weight(q.k_group * q.taps);
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t at = (plane - begin) % batch;
      for (int64_t b = 0; at == 0 && b < std::min(batch, end - plane) * q.k_group; ++b) {
        pad_plane(p, grad + (plane * q.k_group + b) * q.out_size, g_end, copy.get() + b * p.volume);
      }
      input_grad_plane(a, p, walks, copy.get() + at * q.k_group * p.volume,
                       w + plane % a.c * q.k_group * q.taps, weight.get(), part.get(),
                       dx + plane * q.in_size);
    }
  });
}

template <class T>
void depthwise_weight_grad(const ConvArgs& a) {
  const Planes q(a);
  const T *x = static_cast<const T*>(a.x), *grad = static_cast<const T*>(a.g);
  T* dw = static_cast<T*>(a.result);
  const T *x_end = x + a.n * a.c * q.in_size, *g_end = grad + a.n * a.k * q.out_size;
  const Padded p = padded_input(a);
  Scratch<int64_t> offset(q.taps);
  tap_offsets(a, p, offset.get());
  const int64_t batch = batch_of<T>(p), samples = q.out_size > 0 ? a.n : 0;
  for_planes(a.c, a.n * q.out_size * q.k_group * q.taps / 8, [&](int64_t begin, int64_t end) {
    Copies<T> copy(p, batch);
    const int64_t taps = q.k_group * q.taps;
    Scratch<TapSum<T>> sums(batch * taps);
    for (int64_t c = begin; c < end; c += batch) {
      const int64_t channels = std::min(batch, end - c);
      std::fill(sums.get(), sums.get() + channels * taps, TapSum<T>{});
      for (int64_t i = 0; i < samples; ++i) {
        for (int64_t b = 0; b < channels; ++b) {
          pad_plane(p, x + (i * a.c + c + b) * q.in_size, x_end, copy.get() + b * p.volume);
        }
        for (int64_t m = 0; m < channels * q.k_group; ++m) {
          const T* g = grad + (i * a.k + c * q.k_group + m) * q.out_size;
          dot_plane(a, p, copy.get() + m / q.k_group * p.volume, g, g_end, offset.get(),
                    sums.get() + m * q.taps);
        }
      }
      for (int64_t t = 0; t < channels * taps; ++t) dw[c * taps + t] = T(sums[t].total());
    }
  });
}

template void depthwise_forward<float>(const ConvArgs&);
template void depthwise_forward<double>(const ConvArgs&);
template void depthwise_input_grad<float>(const ConvArgs&);
template void depthwise_input_grad<double>(const ConvArgs&);
template void depthwise_weight_grad<float>(const ConvArgs&);
template void depthwise_weight_grad<double>(const ConvArgs&);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
