#include <cmath>
#include <limits>

#include <tests/core/math/function_table.h>

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")
#pragma GCC target("avx2,fma,f16c")
#endif
#define CUTAWAY_VARIANT test_avx2
#include <tests/core/math/function_table_body.h>

namespace cutaway::math_test {
Variant avx2_variant() { return variant_of("avx2"); }
}  // namespace cutaway::math_test
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
