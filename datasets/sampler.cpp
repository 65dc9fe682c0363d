#include <cutaway/datasets/sampler.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/rng.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/draws.h>

namespace cutaway::data {
namespace {

// Streams of the kinds of draws; an epoch adds its number.
constexpr uint64_t kShuffle = 0x5A0FFE1, kWeighted = uint64_t(1) << 41,
                   kStratified = uint64_t(2) << 41, kBuckets = uint64_t(3) << 41;

[[noreturn]] void fail(const std::string& rule) { throw ValueError("sampler", rule); }

std::vector<int64_t> first_numbers(int64_t n) {
  std::vector<int64_t> list(static_cast<size_t>(n));
  std::iota(list.begin(), list.end(), int64_t(0));
  return list;
}

std::vector<int64_t> shuffle_of(int64_t n, uint64_t seed, uint64_t stream) {
  Generator generator{seed, stream, 0};
  return permutation(n, generator);
}

void check_weights(const std::vector<double>& weights, int64_t draws, bool replacement) {
  int64_t positive = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i])) {
      fail(fmt::format("weight {} must be finite and not negative; got {}", i, weights[i]));
    }
    positive += weights[i] > 0;
  }
  if (draws < 0) fail(fmt::format("draws must not be negative; got {}", draws));
  if (draws > 0 && positive == 0) fail("no weight is above 0");
  if (!replacement && draws > positive) {
    fail(fmt::format("{} draws without replacement need as many weights above 0; got {}", draws,
                     positive));
  }
}

std::vector<int64_t> draw_with_replacement(const std::vector<double>& sums, int64_t draws,
                                           Draws& random) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < draws; ++i) {
    // Rounded up it would be the sum itself, which no number is above.
    const double at = std::min(random.uniform() * sums.back(), std::nextafter(sums.back(), 0));
    order.push_back(std::upper_bound(sums.begin(), sums.end(), at) - sums.begin());
  }
  return order;
}

std::vector<int64_t> draw_without_replacement(const std::vector<double>& weights, int64_t draws,
                                              Draws& random) {
  std::vector<std::pair<double, int64_t>> keys;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double u = 1 - random.uniform();
    if (weights[i] > 0) keys.emplace_back(-std::log(u) / weights[i], int64_t(i));
  }
  std::partial_sort(keys.begin(), keys.begin() + draws, keys.end());
  std::vector<int64_t> order;
  for (int64_t i = 0; i < draws; ++i) order.push_back(keys[size_t(i)].second);
  return order;
}

}  // namespace

std::vector<int64_t> Sampler::order(int64_t epoch) const {
  std::vector<int64_t> list = order_(epoch);
  if (int64_t(list.size()) != size_) {
    fail(fmt::format("epoch {} has {} numbers; need {}", epoch, list.size(), size_));
  }
  return list;
}

Sampler Sampler::sequential(int64_t n) {
  return {n, [n](int64_t) { return first_numbers(n); }};
}

Sampler Sampler::shuffled(int64_t n, uint64_t seed) {
  // A stream of its own for each epoch: nothing else that draws numbers can change the order.
  return {n, [n, seed](int64_t epoch) { return shuffle_of(n, seed, kShuffle + uint64_t(epoch)); }};
}

Sampler Sampler::weighted(std::vector<double> weights, WeightedOptions o) {
  const int64_t draws = o.draws == 0 ? int64_t(weights.size()) : o.draws;
  check_weights(weights, draws, o.replacement);
  // Sums are exact enough: a number of weight 0 has the sum before it and is never the first above.
  std::vector<double> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  if (!sums.empty() && !std::isfinite(sums.back())) fail("the weights have no finite sum");
  return {draws, [weights = std::move(weights), sums = std::move(sums), draws, o](int64_t epoch) {
            Draws random(o.seed, kWeighted + uint64_t(epoch), 0);
            return o.replacement ? draw_with_replacement(sums, draws, random)
                                 : draw_without_replacement(weights, draws, random);
          }};
}

Sampler Sampler::stratified(const Tensor& classes, StratifiedOptions o) {
  if (classes.dtype() != DType::i64) {
    throw DTypeError("sampler", fmt::format("classes must be whole numbers (i64); got {}",
                                            name_of(classes.dtype())));
  }
  if (classes.dim() != 1) {
    throw ShapeError("sampler",
                     fmt::format("classes must be [N]; got {}", to_string(classes.sizes())));
  }
  const Tensor c = contiguous_raw(classes);
  std::map<int64_t, std::vector<int64_t>> members;
  for (int64_t i = 0; i < c.numel(); ++i) members[c.data<int64_t>()[i]].push_back(i);
  return {c.numel(), [members = std::move(members), n = c.numel(), o](int64_t epoch) {
            // Member j of n of a shuffled class stands at (j + u)/n of the epoch.
            std::vector<std::pair<double, int64_t>> places;
            uint64_t number = 0;
            for (const auto& [name, list] : members) {
              Draws random(o.seed, kStratified + uint64_t(epoch), number);
              const double u = random.uniform();
              const uint64_t stream = (kStratified << 8) + (uint64_t(epoch) << 20) + number++;
              const auto order = shuffle_of(int64_t(list.size()), o.seed, stream);
              for (size_t j = 0; j < list.size(); ++j) {
                places.emplace_back((double(j) + u) / double(list.size()), list[size_t(order[j])]);
              }
            }
            std::sort(places.begin(), places.end());
            std::vector<int64_t> all;
            for (const auto& [place, index] : places) all.push_back(index);
            return all;
          }};
}

Sampler Sampler::distributed(const Sampler& all, DistributedOptions o) {
  if (o.world < 1 || o.rank < 0 || o.rank >= o.world) {
    fail(fmt::format("rank must be 0 to world − 1; got rank {} of {}", o.rank, o.world));
  }
  const int64_t n = all.size();
  const int64_t share = n / o.world + (!o.drop_last && n % o.world != 0);
  return {share, [all, share, o](int64_t epoch) {
            const std::vector<int64_t> whole = all.order(epoch);
            std::vector<int64_t> mine;
            for (int64_t i = 0; i < share; ++i) {
              mine.push_back(whole[size_t((i * o.world + o.rank) % int64_t(whole.size()))]);
            }
            return mine;
          }};
}

Sampler Sampler::bucketed(std::vector<int64_t> lengths, BucketOptions o) {
  int64_t span = 0;
  if (o.batch < 1 || o.window < 1 || __builtin_mul_overflow(o.batch, o.window, &span)) {
    fail(fmt::format("batch and window must be at least 1; got {} and {}", o.batch, o.window));
  }
  const int64_t n = int64_t(lengths.size());
  return {n, [lengths = std::move(lengths), n, span, o](int64_t epoch) {
            const uint64_t stream = kBuckets + 2 * uint64_t(epoch);
            std::vector<int64_t> order =
                o.shuffle ? shuffle_of(n, o.seed, stream) : first_numbers(n);
            const auto shorter = [&](int64_t a, int64_t b) {
              return lengths[size_t(a)] < lengths[size_t(b)];
            };
            for (int64_t first = 0; first < n; first += std::min(span, n - first)) {
              const auto begin = order.begin() + first;
              std::stable_sort(begin, begin + std::min(span, n - first), shorter);
            }
            // Only whole batches move: the last one may have fewer examples.
            const int64_t whole = n / o.batch;
            const auto batches =
                o.shuffle ? shuffle_of(whole, o.seed, stream + 1) : first_numbers(whole);
            std::vector<int64_t> all;
            for (const int64_t b : batches) {
              const auto begin = order.begin() + b * o.batch;
              all.insert(all.end(), begin, begin + o.batch);
            }
            all.insert(all.end(), order.begin() + whole * o.batch, order.end());
            return all;
          }};
}

}  // namespace cutaway::data
