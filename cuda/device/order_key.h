#pragma once
#include <cutaway/cuda/device/numbers.h>

// Unsigned keys in the order of the elements: −0 equals +0, NaN is greater than everything and all
// NaN are equal.
namespace cutaway::cuda::CUTAWAY_TARGET {

template <class T>
inline constexpr int kKeyBits = static_cast<int>(sizeof(T)) * 8;

// From the bit pattern of a floating number with `Bits` bits, whose infinity is `inf`.
template <int Bits, class K>
DEVICE K floating_key(K pattern, K inf) {
  constexpr K kSign = K{1} << (Bits - 1), kAll = kSign | (kSign - 1);
  const K magnitude = pattern & (kSign - 1);
  if (magnitude > inf) return kAll;
  if (magnitude == 0) return kSign;
  return pattern & kSign ? pattern ^ kAll : pattern | kSign;
}
DEVICE uint32_t key_of(float x) {
  return floating_key<32, uint32_t>(math::detail::bits(x), 0x7f800000u);
}
DEVICE uint64_t key_of(double x) {
  return floating_key<64, uint64_t>(math::detail::bits(x), 0x7ff0000000000000u);
}
DEVICE uint32_t key_of(BFloat16 x) { return floating_key<16, uint32_t>(x.bits, 0x7f80u); }
DEVICE uint32_t key_of(Float16 x) { return floating_key<16, uint32_t>(x.bits, 0x7c00u); }
DEVICE uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ 0x8000000000000000u; }
DEVICE uint32_t key_of(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
DEVICE uint32_t key_of(int8_t x) { return static_cast<uint32_t>(static_cast<int32_t>(x) + 128); }
DEVICE uint32_t key_of(uint8_t x) { return x; }

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

}  // namespace cutaway::cuda::CUTAWAY_TARGET
