#include <cutaway/cuda/device/mma.h>

#include <bit>

#include <cutaway/core/math/half.h>

namespace cutaway::cuda::emu {
namespace {

enum class Operand : uint8_t { bf16, f16, tf32 };

struct Part {
  float* d;
  const uint32_t *a, *b;
};

float number(Operand type, uint32_t bits) {
  switch (type) {
    case Operand::bf16:
      return math::detail::bf16_value(static_cast<uint16_t>(bits));
    case Operand::f16:
      return math::detail::f16_value(static_cast<uint16_t>(bits));
    case Operand::tf32:
      return std::bit_cast<float>(bits & 0xffffe000u);
  }
  return 0;
}

// Gathers the matrices from the lanes, multiplies, and hands the sums back.
template <Operand Type>
void complete(void* const* parts, uint32_t) {
  constexpr int kDepth = Type == Operand::tf32 ? 8 : 16;
  float a[16][kDepth] = {}, b[kDepth][8] = {}, d[16][8] = {};
  for (int lane = 0; lane < 32; ++lane) {
    const auto* part = static_cast<const Part*>(parts[lane]);
    if (!part) continue;
    const int g = lane / 4, t = lane % 4;
    for (int r = 0; r < 4; ++r) {
      if constexpr (Type == Operand::tf32) {
        a[g + 8 * (r % 2)][t + 4 * (r / 2)] = number(Type, part->a[r]);
      } else {
        for (int h = 0; h < 2; ++h) {
          a[g + 8 * (r % 2)][2 * t + 8 * (r / 2) + h] = number(Type, part->a[r] >> (16 * h));
        }
      }
      d[g + 8 * (r / 2)][2 * t + r % 2] = part->d[r];
    }
    for (int r = 0; r < 2; ++r) {
      if constexpr (Type == Operand::tf32) {
        b[t + 4 * r][g] = number(Type, part->b[r]);
      } else {
        for (int h = 0; h < 2; ++h) b[2 * t + 8 * r + h][g] = number(Type, part->b[r] >> (16 * h));
      }
    }
  }
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int k = 0; k < kDepth; ++k) d[i][j] += a[i][k] * b[k][j];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto* part = static_cast<const Part*>(parts[lane]);
    if (!part) continue;
    for (int e = 0; e < 4; ++e) part->d[e] = d[lane / 4 + 8 * (e / 2)][2 * (lane % 4) + e % 2];
  }
}

constexpr WarpOperation kBf16{"mma_bf16", &complete<Operand::bf16>, false};
constexpr WarpOperation kF16{"mma_f16", &complete<Operand::f16>, false};
constexpr WarpOperation kTf32{"mma_tf32", &complete<Operand::tf32>, false};

}  // namespace

void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              const std::source_location& at) {
  Part part{d, a, b};
  join_warp(kBf16, kAllLanes, &part, at);
}
void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
             const std::source_location& at) {
  Part part{d, a, b};
  join_warp(kF16, kAllLanes, &part, at);
}
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              const std::source_location& at) {
  Part part{d, a, b};
  join_warp(kTf32, kAllLanes, &part, at);
}
uint32_t to_tf32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  // Infinity and NaN stay as they are.
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & 0xffffe000u;
}

}  // namespace cutaway::cuda::emu
