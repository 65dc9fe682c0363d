#include <cutaway/core/dtype.h>

#include <cutaway/core/error.h>

namespace cutaway {
namespace {

constexpr const char* kNames[kNumDTypes] = {"f64", "f32", "bf16", "f16", "i64",
                                            "i32", "u8",  "i8",   "bool"};

int category(DType t) { return is_floating(t) ? 2 : is_integer(t) ? 1 : 0; }

}  // namespace

const char* name_of(DType t) { return kNames[static_cast<int>(t)]; }

DType dtype_from_name(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kNames[i]) return DType(i);
  }
  throw DTypeError("dtype",
                   "unknown type name \"" + name + "\"; need one of " + to_string(kAllTypes));
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_half(a) && is_half(b)) return DType::f32;
  if (size_of(a) == size_of(b)) return DType::i32;  // u8 with i8
  return size_of(a) > size_of(b) ? a : b;
}

std::string to_string(DTypeSet set) {
  std::string s;
  for (int i = 0; i < kNumDTypes; ++i) {
    if (set.has(DType(i))) s += (s.empty() ? "" : " ") + std::string(kNames[i]);
  }
  return s;
}

}  // namespace cutaway
