#include <cutaway/datasets/draws.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <cutaway/core/math/philox.h>

namespace cutaway::data {

double Draws::uniform() {
  if (left_ == 0) {
    const math::Philox4x64 r = math::philox4x64(seed_, stream_, block_++);
    std::copy_n(r.word, 4, words_);
    left_ = 4;
  }
  return double(words_[--left_] >> 11) * 0x1p-53;
}

int64_t Draws::below(int64_t n) {
  if (n <= 1) return 0;
  return std::min(int64_t(uniform() * double(n)), n - 1);
}

double Draws::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Draws::gamma(double a) {
  if (a < 1) {
    const double boost = std::pow(1 - uniform(), 1 / a);
    return gamma(a + 1) * boost;
  }
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double Draws::beta(double a, double b) {
  const double x = gamma(a), y = gamma(b);
  return x + y > 0 ? x / (x + y) : 0.5;
}

}  // namespace cutaway::data
