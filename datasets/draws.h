#pragma once
#include <cstdint>

namespace cutaway::data {

// Random numbers of one example or batch: a function of seed, stream and place, never of threads.
class Draws {
 public:
  // `place` up to 2^43: 2^20 blocks of numbers each.
  Draws(uint64_t seed, uint64_t stream, uint64_t place)
      : seed_(seed), stream_(stream), block_(place << 20) {}

  double uniform();  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n);  // 0 … n−1; 0 for n ≤ 1
  bool chance(double p) { return uniform() < p; }
  double normal();
  // Beta(a, b) from two gamma variates (Marsaglia & Tsang 2000).
  double beta(double a, double b);

 private:
  double gamma(double a);

  uint64_t seed_, stream_, block_;
  uint64_t words_[4] = {};
  int left_ = 0;
};

}  // namespace cutaway::data
