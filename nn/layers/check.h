#pragma once
#include <fmt/format.h>

#include <cutaway/core/error.h>

// For sources of layers only.
namespace cutaway::nn {

// Options that count something must be at least `least`.
inline void require_at_least(const char* layer, const char* option, int64_t got, int64_t least) {
  if (got < least) {
    throw ValueError(layer, fmt::format(".{} must be at least {}; got {}", option, least, got));
  }
}
// A share, in [0, 1].
inline double require_share(const char* layer, const char* option, double got) {
  if (!(got >= 0 && got <= 1)) {
    throw ValueError(layer, fmt::format(".{} must lie in [0, 1]; got {}", option, got));
  }
  return got;
}

}  // namespace cutaway::nn
