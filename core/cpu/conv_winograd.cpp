// Convolution by Winograd's algorithm, with f32 sums. Tiles of the input go to their values at the
// points with one channel a lane, the products over channels are matrix products, one for each
// point, and what comes back is tiles of the result. All of it happens block by block of tiles.
#include <cutaway/core/cpu/conv_winograd.h>

#include <algorithm>
#include <vector>

#include <cutaway/core/cpu/gemm_tile.h>
#include <cutaway/core/cpu/planes.h>
#include <cutaway/core/cpu/scratch.h>
#include <cutaway/core/cpu/winograd_tile.h>
#include <cutaway/core/parallel.h>

namespace cutaway::cpu::CUTAWAY_VARIANT::winograd {

#ifdef CUTAWAY_OWN_GEMM
namespace {

constexpr int kL = kVectorLanes<float>;
constexpr int64_t kDepth = 128;  // channels in one sum; with longer ones the error grows

int64_t blocks_of(int64_t channels) { return (channels + kL - 1) / kL; }
int lanes_in(int64_t channels, int64_t block) {
  return int(std::min<int64_t>(kL, channels - block * kL));
}

// One group of a convolution y = x ⊛ w. x_sample and y_sample are distances between samples.
struct Problem {
  int64_t n, c, k, groups;
  int64_t in[2], out[2], pad[2];
  int64_t tiles[2];
  int64_t c_blocks, k_blocks;

  explicit Problem(const ConvArgs& a)
      : n(a.n), c(a.c / a.groups), k(a.k / a.groups), groups(a.groups) {
    for (int d = 0; d < 2; ++d) {
      in[d] = a.in[d + 1];
      out[d] = a.out[d + 1];
      pad[d] = a.pad[d + 1];
      tiles[d] = (out[d] + kTile - 1) / kTile;
    }
    c_blocks = blocks_of(c);
    k_blocks = blocks_of(k);
  }
  int64_t x_size() const { return in[0] * in[1]; }
  int64_t y_size() const { return out[0] * out[1]; }
  int64_t tile_rows() const { return n * tiles[0]; }
  // Positions of a row of patches and of a row of tiles.
  int64_t patch_row() const { return kTile * tiles[1] + kPatch - kTile; }
  int64_t tile_row() const { return kTile * tiles[1]; }
  // Floats of the kernels at one point. Points are a vector further apart than a multiple of the
  // row: those of a kernel do not meet in one set of a cache.
  int64_t kernel_point() const { return c * k_blocks * kL + kL; }
};

// Kernels as the products read them: the one from channel i to channel o of a group at
// w[o·out_step + i·in_step + tap].
template <class S>
struct Kernels {
  const S* w;
  int64_t out_step, in_step;
  bool flipped;
};

// Calls body(first block, blocks) for panels of blocks of output channels.
template <class F>
void for_panels(int64_t blocks, F&& body) {
  for (int64_t b = 0; b < blocks;) {
    const int64_t left = blocks - b;
    const int64_t v = left > kTileVectors && left < 2 * kTileVectors
                          ? (left + 1) / 2
                          : std::min<int64_t>(left, kTileVectors);
    body(b, v);
    b += v;
  }
}

// The kernels at the points: out [points][panels][c][lanes of the panel].
template <class S>
void kernels_to_points(const Problem& p, const Kernels<S>& w, float* out) {
  const int64_t point = p.kernel_point();
  for_panels(p.k_blocks, [&](int64_t first, int64_t count) {
    parallel_for(count * p.c, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i / count, block = first + i % count;
        const int lanes = lanes_in(p.k, block);
        alignas(kVectorBytes) float taps[9][kL] = {};
        const S* from = w.w + block * kL * w.out_step + c * w.in_step;
        for (int j = 0; j < lanes; ++j, from += w.out_step) {
          for (int t = 0; t < 9; ++t) taps[t][j] = float(from[w.flipped ? 8 - t : t]);
        }
        float* to = out + first * kL * p.c + c * count * kL + (block - first) * kL;
        in_both_directions<KernelToPoints>(
            [&](int y, int x) { return load_vector(taps[3 * y + x]); },
            [&](int y, int x, Lanes v) { store_vector(to + (kPatch * y + x) * point, v); });
      }
    });
  });
}

// Room for a block of tiles: values [points][tiles][channels].
class Values {
 public:
  Values(int64_t tiles, int64_t blocks)
      : row_(blocks * kL), point_(tiles * row_ + kL), memory_(kPoints * point_) {}
  // A point's values lie a vector further than a multiple of the row, so that those of a tile do
  // not meet in one set of a cache.
  float* at(int64_t point, int64_t tile, int64_t block) const {
    return memory_.get() + point * point_ + tile * row_ + block * kL;
  }
  int64_t row() const { return row_; }
  int64_t point() const { return point_; }

 private:
  int64_t row_, point_;
  Scratch<float> memory_;
};

// Rows of tiles of one sample: tile row `row` … of sample `sample`, tiles from `tile` on in the
// block.
struct Segment {
  int64_t sample, row, count, tile;
};

// Cuts tile rows [begin, end) of the whole batch into segments.
template <class F>
void for_segments(const Problem& p, int64_t begin, int64_t end, F&& body) {
  for (int64_t r = begin; r < end;) {
    const int64_t row = r % p.tiles[0], count = std::min(end - r, p.tiles[0] - row);
    body(Segment{r / p.tiles[0], row, count, (r - begin) * p.tiles[1]});
    r += count;
  }
}

// The values at the points of one block of channels in a segment. x: the block's first plane.
template <class S>
void input_to_points(const Problem& p, const Segment& s, int lanes, const S* x, const S* end,
                     float* patches, const Values& values, int64_t block) {
  const int64_t row = p.patch_row(), first = s.row * kTile - p.pad[0];
  const PlaneRows rows{lanes, p.in[0], p.in[1], first, first + s.count * kTile + kPatch - kTile};
  planes_to_lanes(rows, x, end, p.pad[1], row, patches);
  for (int64_t i = 0; i < s.count; ++i) {
    for (int64_t j = 0; j < p.tiles[1]; ++j) {
      const float* from = patches + (i * kTile * row + j * kTile) * kL;
      float* to = values.at(0, s.tile + i * p.tiles[1] + j, block);
      in_both_directions<InputToPoints>(
          [&](int y, int x) { return load_vector(from + (y * row + x) * kL); },
          [&](int y, int x, Lanes v) { store_vector(to + (kPatch * y + x) * values.point(), v); });
    }
  }
}

// The tiles of the result of one block of channels in a segment. y: the block's first plane.
template <class S>
void points_to_output(const Problem& p, const Segment& s, int lanes, const Values& values,
                      int64_t block, Lanes bias, float* tiles, S* y) {
  const int64_t row = p.tile_row();
  for (int64_t i = 0; i < s.count; ++i) {
    for (int64_t j = 0; j < p.tiles[1]; ++j) {
      const float* from = values.at(0, s.tile + i * p.tiles[1] + j, block);
      float* to = tiles + (i * kTile * row + j * kTile) * kL;
      in_both_directions<PointsToOutput>(
          [&](int y, int x) { return load_vector(from + (kPatch * y + x) * values.point()); },
          [&](int y, int x, Lanes v) { store_vector(to + (y * row + x) * kL, v + bias); });
    }
  }
  const PlaneRows rows{lanes, p.out[0], p.out[1], s.row * kTile, (s.row + s.count) * kTile};
  lanes_to_planes(rows, tiles, row, y);
}

// results = values · kernels at every point, for the first `tiles` tiles.
void multiply(const Problem& p, int64_t tiles, const Values& values, const float* kernels,
              const Values& results) {
  for (int64_t point = 0; point < kPoints; ++point) {
    for_panels(p.k_blocks, [&](int64_t first, int64_t count) {
      const int64_t most = kTileRows[count], strips = (tiles + most - 1) / most;
      const int64_t width = count * kL;
      for (int64_t q = 0; q < p.c; q += kDepth) {
        const float* b = kernels + point * p.kernel_point() + first * kL * p.c + q * width;
        const int64_t depth = std::min(kDepth, p.c - q);
        int64_t i = 0;
        for (int64_t s = 0; s < strips; ++s) {
          const int height = int((tiles - i + strips - s - 1) / (strips - s));
          const Finish<float> f{results.at(point, i, first), results.row(), 1,
                                q == 0 ? 0.0f : 1.0f,        nullptr,       kL};
          find_tile<float>(height, int(count))(depth, values.at(point, i, 0) + q, values.row(), 1,
                                               b, width, f);
          i += height;
        }
      }
    });
  }
}

// Tile rows in one block: values and results stay in the second-level cache as long as the kernels
// do, too; larger kernels come from further away once a block.
int64_t rows_in_block(const Problem& p) {
  constexpr int64_t kCache = int64_t{1} << 19, kMany = 64;
  const int64_t tile_bytes = kPoints * (p.c_blocks + p.k_blocks) * kVectorBytes;
  const int64_t kernel_bytes = kPoints * p.kernel_point() * int64_t(sizeof(float));
  const int64_t tiles = kernel_bytes <= kCache * 3 / 2 ? kCache / tile_bytes : kMany;
  const int64_t rows = std::max<int64_t>(1, tiles / p.tiles[1]);
  // As many blocks for every thread.
  const int64_t threads = num_threads(), total = p.tile_rows();
  const int64_t blocks = ((total + rows - 1) / rows + threads - 1) / threads * threads;
  return std::max<int64_t>(1, (total + blocks - 1) / blocks);
}

template <class S>
struct Operands {
  const S *x, *x_end, *bias;
  S* y;
  int64_t x_sample, y_sample;
};

// One group.
template <class S>
void convolve(const Problem& p, const Operands<S>& o, const Kernels<S>& w) {
  const Scratch<float> kernels(kPoints * p.kernel_point());
  kernels_to_points(p, w, kernels.get());
  const int64_t rows = rows_in_block(p), blocks = (p.tile_rows() + rows - 1) / rows;
  const int64_t most = std::min(rows, p.tiles[0]);  // in one segment
  parallel_for(blocks, 1, [&](int64_t first_block, int64_t last_block) {
    const Values values(rows * p.tiles[1], p.c_blocks), results(rows * p.tiles[1], p.k_blocks);
    const Scratch<float> patches((most * kTile + kPatch - kTile) * p.patch_row() * kL);
    const Scratch<float> tiles(most * kTile * p.tile_row() * kL);
    for (int64_t block = first_block; block < last_block; ++block) {
      const int64_t begin = block * rows, end = std::min(begin + rows, p.tile_rows());
      for_segments(p, begin, end, [&](const Segment& s) {
        for (int64_t b = 0; b < p.c_blocks; ++b) {
          input_to_points(p, s, lanes_in(p.c, b), o.x + s.sample * o.x_sample + b * kL * p.x_size(),
                          o.x_end, patches.get(), values, b);
        }
      });
      multiply(p, (end - begin) * p.tiles[1], values, kernels.get(), results);
      for_segments(p, begin, end, [&](const Segment& s) {
        for (int64_t b = 0; b < p.k_blocks; ++b) {
          const int lanes = lanes_in(p.k, b);
          Lanes bias{};
          for (int j = 0; o.bias && j < lanes; ++j) bias[j] = float(o.bias[b * kL + j]);
          points_to_output(p, s, lanes, results, b, bias, tiles.get(),
                           o.y + s.sample * o.y_sample + b * kL * p.y_size());
        }
      });
    }
  });
}

// The convolution of the upstream gradient with flipped kernels that gives the input gradient.
ConvArgs of_the_gradient(const ConvArgs& a) {
  ConvArgs b = a;
  b.c = a.k;
  b.k = a.c;
  for (int d = 1; d < 3; ++d) {
    b.in[d] = a.out[d];
    b.out[d] = a.in[d];
    b.pad[d] = 2 - a.pad[d];
  }
  return b;
}

// The values of four by four gradients of one block of channels in a segment, like those of the
// input.
template <class S>
void grad_to_points(const Problem& p, const Segment& s, int lanes, const S* g, const S* end,
                    float* tiles, const Values& values, int64_t block) {
  const int64_t row = p.tile_row();
  const PlaneRows rows{lanes, p.out[0], p.out[1], s.row * kTile, (s.row + s.count) * kTile};
  planes_to_lanes(rows, g, end, 0, row, tiles);
  for (int64_t i = 0; i < s.count; ++i) {
    for (int64_t j = 0; j < p.tiles[1]; ++j) {
      const float* from = tiles + (i * kTile * row + j * kTile) * kL;
      float* to = values.at(0, s.tile + i * p.tiles[1] + j, block);
      in_both_directions<GradToPoints>(
          [&](int y, int x) { return load_vector(from + (y * row + x) * kL); },
          [&](int y, int x, Lanes v) { store_vector(to + (kPatch * y + x) * values.point(), v); });
    }
  }
}

// sums [c][k] += valuesᵀ · gradients at one point, over `tiles` tiles.
void add_products(const Problem& p, int64_t tiles, const Values& values, const Values& gradients,
                  int64_t point, bool first_block, float* sums) {
  for_panels(p.k_blocks, [&](int64_t first, int64_t count) {
    const int64_t most = kTileRows[count], strips = (p.c + most - 1) / most;
    int64_t i = 0;
    for (int64_t s = 0; s < strips; ++s) {
      const int height = int((p.c - i + strips - s - 1) / (strips - s));
      const Finish<float> f{sums + i * gradients.row() + first * kL,
                            gradients.row(),
                            1,
                            first_block ? 0.0f : 1.0f,
                            nullptr,
                            kL};
      find_tile<float>(height, int(count))(tiles, values.at(point, 0, 0) + i, 1, values.row(),
                                           gradients.at(point, 0, first), gradients.row(), f);
      i += height;
    }
  });
}

// dw [k][c][3·3] from the sums at the points.
template <class S>
void points_to_kernels(const Problem& p, const float* sums, S* dw) {
  const int64_t row = p.k_blocks * kL, point = p.kernel_point();
  parallel_for(p.k_blocks * p.c, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / p.c, c = i % p.c;
      const float* from = sums + c * row + block * kL;
      alignas(kVectorBytes) float taps[9][kL];
      in_both_directions<PointsToKernel>(
          [&](int y, int x) { return load_vector(from + (kPatch * y + x) * point); },
          [&](int y, int x, Lanes v) { store_vector(taps[3 * y + x], v); });
      S* to = dw + (block * kL * p.c + c) * 9;
      for (int j = 0; j < lanes_in(p.k, block); ++j, to += p.c * 9) {
        for (int t = 0; t < 9; ++t) to[t] = S(taps[t][j]);
      }
    }
  });
}

template <class S>
struct GradOperands {
  const S *x, *x_end, *g, *g_end;
  S* dw;
  int64_t x_sample, g_sample;
};

// The weight gradient of one group. Threads share the transformations of a block of tiles, then
// the points, so that every sum runs through the tiles in one order and there is only one.
template <class S>
void correlate(const Problem& p, const GradOperands<S>& o) {
  constexpr int64_t kTiles = 64;  // values and sums pass through the second-level cache
  const int64_t rows = std::min(p.tile_rows(), std::max<int64_t>(1, kTiles / p.tiles[1]));
  const Values values(rows * p.tiles[1], p.c_blocks), gradients(rows * p.tiles[1], p.k_blocks);
  const Scratch<float> sums(kPoints * p.kernel_point());
  const int64_t room = (std::min(rows, p.tiles[0]) * kTile + kPatch - kTile) * p.patch_row() * kL;
  const int64_t blocks = p.c_blocks + p.k_blocks;
  std::vector<Segment> segments;
  for (int64_t begin = 0; begin < p.tile_rows(); begin += rows) {
    const int64_t end = std::min(begin + rows, p.tile_rows());
    segments.clear();
    for_segments(p, begin, end, [&](const Segment& s) { segments.push_back(s); });
    parallel_for(int64_t(segments.size()) * blocks, 1, [&](int64_t first, int64_t last) {
      const Scratch<float> patches(room);
      for (int64_t i = first; i < last; ++i) {
        const Segment& s = segments[size_t(i / blocks)];
        const int64_t b = i % blocks, k = b - p.c_blocks;
        if (k < 0) {
          input_to_points(p, s, lanes_in(p.c, b), o.x + s.sample * o.x_sample + b * kL * p.x_size(),
                          o.x_end, patches.get(), values, b);
        } else {
          grad_to_points(p, s, lanes_in(p.k, k), o.g + s.sample * o.g_sample + k * kL * p.y_size(),
                         o.g_end, patches.get(), gradients, k);
        }
      }
    });
    parallel_for(kPoints, 1, [&](int64_t first, int64_t last) {
      for (int64_t point = first; point < last; ++point) {
        add_products(p, (end - begin) * p.tiles[1], values, gradients, point, begin == 0,
                     sums.get() + point * p.kernel_point());
      }
    });
  }
  points_to_kernels(p, sums.get(), o.dw);
}

bool fits(const ConvArgs& a) {
  bool fits = a.n > 0 && a.c > 0 && a.k > 0 && a.in[0] == 1 && a.kernel[0] == 1 && a.pad[0] == 0;
  for (int d = 1; d < 3; ++d) {
    fits = fits && a.kernel[d] == 3 && a.stride[d] == 1 && a.dilation[d] == 1 && a.in[d] > 0 &&
           a.out[d] > 0;
  }
  return fits && a.stride[0] == 1;
}

}  // namespace

// Counts vector instructions of both ways; those of the transformations are measured. Direct sums
// reach nine tenths of the processor's rate.
bool forward_wins(const ConvArgs& a) {
  if (!fits(a)) return false;
  constexpr double kTransforms = 180, kKernel = 250;
  const Problem p(a);
  const double c = double(p.c), blocks = double(p.k_blocks);
  const double products = double(kPoints) / 2 * c * blocks;
  const double each = products + kTransforms * double(p.c_blocks + p.k_blocks);
  const double tiles = double(p.tile_rows() * p.tiles[1]);
  const double direct = double(p.n * p.y_size() * p.k) * c * 9 / (2 * kL) / 0.9;
  return tiles * each + kKernel * c * blocks < direct;
}

bool input_grad_wins(const ConvArgs& a) {
  return a.pad[1] <= 2 && a.pad[2] <= 2 && forward_wins(of_the_gradient(a));
}

template <class S>
void forward(const ConvArgs& a) {
  const Problem p(a);
  const S *x = static_cast<const S*>(a.x), *w = static_cast<const S*>(a.w),
          *bias = static_cast<const S*>(a.bias);
  for (int64_t g = 0; g < a.groups; ++g) {
    convolve(p,
             Operands<S>{.x = x + g * p.c * p.x_size(),
                         .x_end = x + a.n * a.c * p.x_size(),
                         .bias = bias ? bias + g * p.k : nullptr,
                         .y = static_cast<S*>(a.result) + g * p.k * p.y_size(),
                         .x_sample = a.c * p.x_size(),
                         .y_sample = a.k * p.y_size()},
             Kernels<S>{w + g * p.k * p.c * 9, p.c * 9, 9, false});
  }
}

template <class S>
void input_grad(const ConvArgs& a) {
  const Problem p(of_the_gradient(a));
  const S *g = static_cast<const S*>(a.g), *w = static_cast<const S*>(a.w);
  for (int64_t group = 0; group < a.groups; ++group) {
    convolve(p,
             Operands<S>{.x = g + group * p.c * p.x_size(),
                         .x_end = g + a.n * a.k * p.x_size(),
                         .bias = nullptr,
                         .y = static_cast<S*>(a.result) + group * p.k * p.y_size(),
                         .x_sample = a.k * p.x_size(),
                         .y_sample = a.c * p.y_size()},
             Kernels<S>{w + group * p.c * p.k * 9, 9, p.k * 9, true});
  }
}

template <class S>
void weight_grad(const ConvArgs& a) {
  const Problem p(a);
  const S *x = static_cast<const S*>(a.x), *g = static_cast<const S*>(a.g);
  for (int64_t group = 0; group < a.groups; ++group) {
    correlate(p, GradOperands<S>{.x = x + group * p.c * p.x_size(),
                                 .x_end = x + a.n * a.c * p.x_size(),
                                 .g = g + group * p.k * p.y_size(),
                                 .g_end = g + a.n * a.k * p.y_size(),
                                 .dw = static_cast<S*>(a.result) + group * p.k * p.c * 9,
                                 .x_sample = a.c * p.x_size(),
                                 .g_sample = a.k * p.y_size()});
  }
}

#else

bool forward_wins(const ConvArgs&) { return false; }
bool input_grad_wins(const ConvArgs&) { return false; }
template <class S>
void forward(const ConvArgs&) {}
template <class S>
void input_grad(const ConvArgs&) {}
template <class S>
void weight_grad(const ConvArgs&) {}

#endif

template void forward<float>(const ConvArgs&);
template void forward<BFloat16>(const ConvArgs&);
template void input_grad<float>(const ConvArgs&);
template void input_grad<BFloat16>(const ConvArgs&);
template void weight_grad<float>(const ConvArgs&);
template void weight_grad<BFloat16>(const ConvArgs&);

}  // namespace cutaway::cpu::CUTAWAY_VARIANT::winograd
