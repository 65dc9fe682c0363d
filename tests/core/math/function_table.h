#pragma once
#include <cstdint>
#include <span>

// The scalar functors as compiled functions: once per instruction set, in function_table_*.cpp, as
// a loop that the compiler vectorises and as a call for one value.

namespace cutaway::math_test {

struct Unary {
  const char* name;
  void (*loop)(const float* x, float* y, int64_t n);
  float (*one)(float x);
};
struct Binary {
  const char* name;
  void (*loop)(const float* a, const float* b, float* y, int64_t n);
  float (*one)(float a, float b);
};
struct Rows {  // rows.h
  void (*sin_row)(const float* x, float* y, int64_t n);
  void (*cos_row)(const float* x, float* y, int64_t n);
  void (*to_f16)(const float* x, uint16_t* y, int64_t n);
  void (*from_f16)(const uint16_t* x, float* y, int64_t n);
  void (*to_bf16)(const float* x, uint16_t* y, int64_t n);
  void (*from_bf16)(const uint16_t* x, float* y, int64_t n);
};
struct Variant {
  const char* name;
  std::span<const Unary> unary;
  std::span<const Binary> binary;
  Rows rows;
};

Variant base_variant();
Variant avx2_variant();
Variant avx512_variant();

// The variants that were compiled and that this CPU can run.
std::span<const Variant> variants();

}  // namespace cutaway::math_test
