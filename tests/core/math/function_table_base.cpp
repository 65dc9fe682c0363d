#include <cmath>
#include <limits>

#include <tests/core/math/function_table.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")
#endif
#define CUTAWAY_VARIANT test_base
#include <tests/core/math/function_table_body.h>

namespace cutaway::math_test {

Variant base_variant() { return variant_of("base"); }

std::span<const Variant> variants() {
  static const struct List {
    Variant item[3];
    size_t count = 0;
    List() {
      item[count++] = base_variant();
#if defined(__x86_64__)
      if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        item[count++] = avx2_variant();
      }
      if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        item[count++] = avx512_variant();
      }
#endif
    }
  } list;
  return {list.item, list.count};
}

}  // namespace cutaway::math_test
