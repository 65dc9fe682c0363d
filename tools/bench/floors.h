#pragma once
#include <cstdint>

#include <cutaway/core/dtype.h>

namespace cutaway::tools {

// What the machine can do at most, measured once for each argument.

// Floating-point operations a second of multiply-adds on registers alone, with the instructions of
// the CPU variant in use; bf16 with dot products of pairs where the CPU has them.
double peak_flops(DType dtype, int threads);
// Bytes a second, read and written, of copying `bytes / 2` bytes: the caches count as they do for a
// workload of that size.
double copy_rate(double bytes, int threads);
// The time below which no program can do that much, in milliseconds.
double floor_ms(DType dtype, double flops, double bytes, int threads);
// Milliseconds of one recorded op on one element: what a call costs beside its arithmetic.
double call_cost_ms();

}  // namespace cutaway::tools
