#pragma once
#include <type_traits>

#include <cutaway/core/math/half.h>
#include <cutaway/cuda/device/language.h>
#include <cutaway/cuda/lib/attention.h>

namespace cutaway::cuda::CUTAWAY_TARGET {

// Left to the library where that was chosen and it has a plan.
template <class T>
bool by_library(AttentionPass pass, const AttentionArgs& x) {
  constexpr DType kType = std::is_same_v<T, BFloat16> ? DType::bf16 : DType::f16;
  if (attention_by() == AttentionBy::own || !attend(pass, kType, x)) return false;
  count_library_attention_pass();
  return true;
}
}  // namespace cutaway::cuda::CUTAWAY_TARGET
