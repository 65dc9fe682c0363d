#pragma once
#include <cmath>
#include <cstdint>

#include <cutaway/core/math/philox.h>

namespace cutaway::haste {

// Random numbers one at a time, from one stream of the library's counter-based generator.
class Draws {
 public:
  explicit Draws(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint64_t bits() {
    if (next_ == 4) {
      block_ = math::philox4x64(seed_, stream_, count_++);
      next_ = 0;
    }
    return block_.word[next_++];
  }
  double uniform() { return math::uniform_f64(bits()); }  // in [0, 1)
  // 0 … n−1; n ≥ 1.
  int64_t below(int64_t n) { return int64_t(math::detail::mul_high(bits(), uint64_t(n))); }
  // Counts with a small mean, by products of uniforms.
  int64_t poisson(double mean) {
    const double limit = std::exp(-mean);
    int64_t count = 0;
    for (double product = uniform(); product > limit; product *= uniform()) ++count;
    return count;
  }

 private:
  uint64_t seed_, stream_, count_ = 0;
  math::Philox4x64 block_{};
  int next_ = 4;
};

}  // namespace cutaway::haste
