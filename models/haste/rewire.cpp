#include <cutaway/models/haste/rewire.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/philox.h>
#include <cutaway/core/parallel.h>

namespace cutaway::haste {
namespace {

float at(const float* p, int64_t i) { return p[i]; }
float at(const BFloat16* p, int64_t i) { return float(p[i]); }

// Calls body(pointer) with the element type of `t`.
template <class Body>
void typed(const Tensor& t, Body body) {
  if (t.dtype() == DType::bf16) return body(t.data<BFloat16>());
  body(t.data<float>());
}

// Numbers of a generator, one after the other.
class Words {
 public:
  explicit Words(const Generator& g) : g_(g) {}
  uint32_t next() { return math::random_u32(g_.seed, g_.stream, g_.offset, i_++); }
  int64_t below(int64_t n) { return int64_t((uint64_t(next()) * uint64_t(n)) >> 32); }
  float uniform(float bound) { return (2 * math::uniform_f32(next()) - 1) * bound; }

 private:
  Generator g_;
  uint64_t i_ = 0;
};

// The slots to prune, ascending.
std::vector<int64_t> pruned(const std::vector<float>& scores, const RewireOptions& o) {
  std::vector<int64_t> order;
  if (o.threshold >= 0) {
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] < o.threshold) order.push_back(int64_t(i));
    }
    return order;
  }
  const auto count = int64_t(std::floor(o.fraction * double(scores.size())));
  order.resize(scores.size());
  std::iota(order.begin(), order.end(), int64_t(0));
  const auto less = [&](int64_t a, int64_t b) {
    const float x = scores[size_t(a)], y = scores[size_t(b)];
    return x < y || (x == y && a < b);
  };
  if (count < int64_t(order.size())) {
    std::nth_element(order.begin(), order.begin() + count, order.end(), less);
    order.resize(size_t(count));
  }
  std::sort(order.begin(), order.end());
  return order;
}

// Draws a feature that no entry of `used` marks and that is not `old`. In a group that has nearly
// all features, `old` again, then any.
int64_t draw_feature(const std::vector<uint8_t>& used, int64_t old, Words& words) {
  const auto n = int64_t(used.size());
  for (int tries = 0; tries < 64; ++tries) {
    const int64_t f = words.below(n);
    if (!used[size_t(f)] && f != old) return f;
  }
  const int64_t start = words.below(n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t f = (start + i) % n;
    if (!used[size_t(f)] && f != old) return f;
  }
  return old;
}

// Empties column j of the rows of group k.
void reset_column(const Slots& s, int64_t slot, const RewireOptions& o, Words& words) {
  const int64_t F = s.index.size(1), k = slot / F, j = slot % F;
  const int64_t last = std::min((k + 1) * s.group, s.weight.size(0));
  const float bound = 1 / std::sqrt(float(F));
  typed(s.weight, [&](auto* w) {
    using T = std::remove_pointer_t<decltype(w)>;
    for (int64_t row = k * s.group; row < last; ++row) {
      w[row * F + j] = T(o.uniform_init ? words.uniform(bound) : 0.0f);
    }
  });
  if (!s.momentum.defined() || o.keep_momentum) return;
  float* m = s.momentum.data<float>();
  for (int64_t row = k * s.group; row < last; ++row) m[row * F + j] = 0;
}

}  // namespace

std::vector<float> slot_scores(const Slots& s, SlotScore score) {
  if (score == SlotScore::grad && !s.momentum.defined()) {
    throw ValueError("rewire", "scores by gradient need the momentum of the layer");
  }
  const int64_t K = s.index.size(0), F = s.index.size(1), L = s.weight.size(0);
  std::vector<float> scores(size_t(K * F));
  const float* m = score == SlotScore::grad ? s.momentum.data<float>() : nullptr;
  typed(s.weight, [&](const auto* w) {
    parallel_for(K, std::max<int64_t>(1, kGrain / (F * s.group)), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        float* out = &scores[size_t(k * F)];
        const int64_t first = k * s.group, last = std::min(first + s.group, L);
        for (int64_t row = first; row < last; ++row) {
          for (int64_t j = 0; j < F; ++j) {
            const float a = std::fabs(at(w, row * F + j) * (m ? m[row * F + j] : 1.0f));
            out[j] = score == SlotScore::max ? std::max(out[j], a) : out[j] + a;
          }
        }
        if (score == SlotScore::max) continue;
        for (int64_t j = 0; j < F; ++j) out[j] /= float(last - first);
      }
    });
  });
  return scores;
}

std::vector<int64_t> rewire(const Slots& s, const RewireOptions& o, Generator random) {
  const int64_t F = s.index.size(1);
  const std::vector<int64_t> slots = pruned(slot_scores(s, o.score), o);
  Words words(random);
  std::vector<uint8_t> used(size_t(s.features), 0);
  int32_t* index = s.index.data<int32_t>();
  for (size_t from = 0; from < slots.size();) {
    const int64_t k = slots[from] / F;
    size_t to = from;
    while (to < slots.size() && slots[to] / F == k) ++to;
    int32_t* row = index + k * F;
    if (!o.replace) {
      for (int64_t j = 0; j < F; ++j) used[size_t(row[j])] = 1;
      for (size_t i = from; i < to; ++i) used[size_t(row[slots[i] % F])] = 0;
    }
    for (size_t i = from; i < to; ++i) {
      int32_t& place = row[slots[i] % F];
      place = int32_t(draw_feature(used, place, words));
      if (!o.replace) used[size_t(place)] = 1;
      reset_column(s, slots[i], o, words);
    }
    for (int64_t j = 0; j < F; ++j) used[size_t(row[j])] = 0;
    from = to;
  }
  return slots;
}

double rewire_threshold(double progress) {
  constexpr double kFrom = 0.01, kTo = 1e-4;
  const double t = std::clamp(progress, 0.0, 1.0);
  return kTo + (kFrom - kTo) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

bool rewires_at(const RunOptions& o, int64_t step, int64_t epoch) {
  if (o.rewire_mode == "none" || step % o.rewire_interval != 0) return false;
  return epoch < int64_t(std::floor(0.66 * double(o.epochs)));
}

}  // namespace cutaway::haste
