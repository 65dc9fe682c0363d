#pragma once
#include <cstdint>
#include <string_view>

namespace cutaway::haste {

// A number for a name, the same everywhere: FNV-1a (Fowler, Noll, Vo), then the finaliser of
// MurmurHash3 (Appleby), since FNV's high bits say little of short names. Decisions that must not
// depend on each other (what is kept, what is tested on) use different salts.
inline uint64_t hash_of(std::string_view name, uint64_t salt = 0) {
  uint64_t h = 0xCBF29CE484222325u ^ salt;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  h = (h ^ h >> 33) * 0xFF51AFD7ED558CCDu;
  h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53u;
  return h ^ h >> 33;
}
// Its place in [0, 1).
inline double share_of(std::string_view name) { return double(hash_of(name) >> 11) * 0x1p-53; }

}  // namespace cutaway::haste
