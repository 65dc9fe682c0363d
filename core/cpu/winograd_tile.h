#pragma once
#include <cutaway/core/cpu/vector.h>

// Note: Winograd's minimal filtering F(4×4, 3×3), one channel a lane (Winograd, "Arithmetic
// complexity of computations", 1980; Lavin and Gray, "Fast algorithms for convolutional neural
// networks", 2016). A tile of 6×6 inputs and a kernel of 3×3 become polynomials known by their
// values at 0, ±p, ±q and ∞ (in each direction); there a convolution is 36 products. The usual
// points ±1 and ±2 lose two more bits than these, which were found by measuring: the error of f32
// is about three times that of direct sums.
namespace cutaway::cpu::CUTAWAY_VARIANT::winograd {

using Lanes = Vector<float>;

inline constexpr int kTile = 4, kPatch = 6;  // outputs and inputs of a tile in one direction
inline constexpr int kPoints = kPatch * kPatch;
inline constexpr float kP = 0.625f, kQ = 1.5f, kPP = kP * kP, kQQ = kQ * kQ;
// 1 / Π (point − other points).
inline constexpr float kScaleZero = 1 / (kPP * kQQ), kScaleP = 1 / (2 * kPP * (kPP - kQQ)),
                       kScaleQ = 1 / (2 * kQQ * (kQQ - kPP));

// Values of six inputs at the points.
struct InputToPoints {
  static constexpr int kFrom = kPatch, kTo = kPatch;
  [[gnu::always_inline]] static void run(const Lanes* d, Lanes* v) {
    const Lanes even_p = d[4] - kQQ * d[2], odd_p = d[3] - kQQ * d[1];
    const Lanes even_q = d[4] - kPP * d[2], odd_q = d[3] - kPP * d[1];
    v[0] = d[4] - (kPP + kQQ) * d[2] + kPP * kQQ * d[0];
    v[1] = even_p + kP * odd_p;
    v[2] = even_p - kP * odd_p;
    v[3] = even_q + kQ * odd_q;
    v[4] = even_q - kQ * odd_q;
    v[5] = d[5] - (kPP + kQQ) * d[3] + kPP * kQQ * d[1];
  }
};

// Values of three weights at the points, scaled.
struct KernelToPoints {
  static constexpr int kFrom = 3, kTo = kPatch;
  [[gnu::always_inline]] static void run(const Lanes* g, Lanes* v) {
    const Lanes even_p = kScaleP * (g[0] + kPP * g[2]), odd_p = kScaleP * kP * g[1];
    const Lanes even_q = kScaleQ * (g[0] + kQQ * g[2]), odd_q = kScaleQ * kQ * g[1];
    v[0] = kScaleZero * g[0];
    v[1] = even_p + odd_p;
    v[2] = even_p - odd_p;
    v[3] = even_q + odd_q;
    v[4] = even_q - odd_q;
    v[5] = g[2];
  }
};

// Four outputs from products at the points.
struct PointsToOutput {
  static constexpr int kFrom = kPatch, kTo = kTile;
  [[gnu::always_inline]] static void run(const Lanes* m, Lanes* y) {
    const Lanes even_p = m[1] + m[2], odd_p = m[1] - m[2];
    const Lanes even_q = m[3] + m[4], odd_q = m[3] - m[4];
    y[0] = m[0] + even_p + even_q;
    y[1] = kP * odd_p + kQ * odd_q;
    y[2] = kPP * even_p + kQQ * even_q;
    y[3] = m[5] + kP * kPP * odd_p + kQ * kQQ * odd_q;
  }
};

// Its adjoint: values of four output gradients at the points.
struct GradToPoints {
  static constexpr int kFrom = kTile, kTo = kPatch;
  [[gnu::always_inline]] static void run(const Lanes* g, Lanes* v) {
    const Lanes even_p = g[0] + kPP * g[2], odd_p = g[1] + kPP * g[3];
    const Lanes even_q = g[0] + kQQ * g[2], odd_q = g[1] + kQQ * g[3];
    v[0] = g[0];
    v[1] = even_p + kP * odd_p;
    v[2] = even_p - kP * odd_p;
    v[3] = even_q + kQ * odd_q;
    v[4] = even_q - kQ * odd_q;
    v[5] = g[3];
  }
};

// The adjoint of KernelToPoints: three weight gradients.
struct PointsToKernel {
  static constexpr int kFrom = kPatch, kTo = 3;
  [[gnu::always_inline]] static void run(const Lanes* m, Lanes* w) {
    const Lanes even_p = kScaleP * (m[1] + m[2]), odd_p = kScaleP * kP * (m[1] - m[2]);
    const Lanes even_q = kScaleQ * (m[3] + m[4]), odd_q = kScaleQ * kQ * (m[3] - m[4]);
    w[0] = kScaleZero * m[0] + even_p + even_q;
    w[1] = odd_p + odd_q;
    w[2] = m[5] + kPP * even_p + kQQ * even_q;
  }
};

// A step in both directions: load(y, x) gives the inputs, store(y, x, value) takes the results.
template <class Step, class Load, class Store>
[[gnu::always_inline]] inline void in_both_directions(Load&& load, Store&& store) {
  constexpr int kFrom = Step::kFrom, kTo = Step::kTo;
  Lanes between[kTo][kFrom];
#pragma GCC unroll 6
  for (int x = 0; x < kFrom; ++x) {
    Lanes in[kFrom], out[kTo];
#pragma GCC unroll 6
    for (int y = 0; y < kFrom; ++y) in[y] = load(y, x);
    Step::run(in, out);
#pragma GCC unroll 6
    for (int y = 0; y < kTo; ++y) between[y][x] = out[y];
  }
#pragma GCC unroll 6
  for (int y = 0; y < kTo; ++y) {
    Lanes out[kTo];
    Step::run(between[y], out);
#pragma GCC unroll 6
    for (int x = 0; x < kTo; ++x) store(y, x, out[x]);
  }
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT::winograd
