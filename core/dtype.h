#pragma once
#include <cstdint>
#include <string>

namespace cutaway {

// Element types. The order is the order of the kernel tables.
enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u8, i8, boolean };
inline constexpr int kNumDTypes = 9;

// Size of one element in bytes.
constexpr int64_t size_of(DType t) {
  constexpr int64_t bytes[kNumDTypes] = {8, 4, 2, 2, 8, 4, 1, 1, 1};
  return bytes[static_cast<int>(t)];
}
constexpr bool is_floating(DType t) { return t <= DType::f16; }
constexpr bool is_integer(DType t) { return t >= DType::i64 && t <= DType::i8; }
constexpr bool is_half(DType t) { return t == DType::bf16 || t == DType::f16; }

// Name as used in messages and files: "f32", "bool".
const char* name_of(DType t);
// The inverse of name_of; raises DTypeError for an unknown name.
DType dtype_from_name(const std::string& name);

// The type of a binary result: category first (bool < int < float), then width. bf16 with f16, and
// u8 with i8, meet in the next wider type of their category (f32, i32).
DType promote(DType a, DType b);

// Type of float-only functions (exp, division) for integer and bool input: f32.
inline constexpr DType kDefaultFloat = DType::f32;

// A set of element types, one bit each; says what an op accepts.
struct DTypeSet {
  uint16_t bits = 0;
  constexpr bool has(DType t) const { return bits >> static_cast<int>(t) & 1; }
  constexpr DTypeSet operator|(DTypeSet o) const { return {uint16_t(bits | o.bits)}; }
};
inline constexpr DTypeSet kFloating{0b000001111};
inline constexpr DTypeSet kIntegers{0b011110000};
inline constexpr DTypeSet kBoolOnly{0b100000000};
inline constexpr DTypeSet kNumbers{0b011111111};
inline constexpr DTypeSet kAllTypes{0b111111111};
inline constexpr DTypeSet kFullFloats{0b000000011};  // f64 and f32: linear algebra
std::string to_string(DTypeSet set);

}  // namespace cutaway
