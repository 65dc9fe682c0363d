#pragma once
#include <cutaway/cuda/device/language.h>

// Products on tensor cores: one warp multiplies small matrices that are spread over its lanes
// ("fragments"). The maps are those of the PTX instruction mma.sync (PTX ISA, "Warp-level matrix
// instructions"), with g = lane / 4 and t = lane % 4:
//   16-bit types, 16×8×16: A register r holds row g + 8·(r % 2), columns 2t + 8·(r / 2) + {0, 1};
//                          B register r holds rows 2t + 8·r + {0, 1}, column g
//   tf32, 16×8×8:          A register r holds row g + 8·(r % 2), column t + 4·(r / 2);
//                          B register r holds row t + 4·r, column g
//   sums (both):           element e holds row g + 8·(e / 2), column 2t + e % 2
// Products are exact, sums are f32. How a GPU rounds inside one instruction is not specified; the
// emulator adds in order of k.
namespace cutaway::cuda::CUTAWAY_TARGET {

// Two 16-bit numbers, the one of the lower index in the lower half.
DEVICE_HOST uint32_t pack16(uint16_t low, uint16_t high) {
  return static_cast<uint32_t>(low) | (static_cast<uint32_t>(high) << 16);
}

#if defined(__CUDACC__)
// d += a · b with bf16 operands.
DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The same with f16 operands.
DEVICE void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The same for 16×8×8 with operands in tf32 (see to_tf32).
DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// f32 rounded to tf32: 10 bits of fraction, to nearest, ties away from zero.
DEVICE uint32_t to_tf32(float x) {
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
#else
void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              const std::source_location& at = std::source_location::current());
void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
             const std::source_location& at = std::source_location::current());
void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              const std::source_location& at = std::source_location::current());
uint32_t to_tf32(float x);
#endif

}  // namespace cutaway::cuda::CUTAWAY_TARGET
