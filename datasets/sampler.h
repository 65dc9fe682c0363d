#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::data {

struct WeightedOptions {
  int64_t draws = 0;        // numbers an epoch; 0: as many as there are weights
  bool replacement = true;  // false: no number twice in an epoch
  uint64_t seed = 0;
};
struct StratifiedOptions {
  uint64_t seed = 0;
};
struct DistributedOptions {
  int64_t rank = 0, world = 1;
  bool drop_last = false;  // instead of giving first numbers twice, so that shares are equal
};
struct BucketOptions {
  int64_t batch = 32;
  int64_t window = 50;  // batches that are sorted together: more pad less, fewer mix more
  bool shuffle = true;
  uint64_t seed = 0;
};

// Which examples an epoch has, in which order: a function of seed and epoch only.
class Sampler {
 public:
  using Order = std::function<std::vector<int64_t>(int64_t epoch)>;
  // A sampler of one's own: `size` numbers an epoch.
  Sampler(int64_t size, Order order) : size_(size), order_(std::move(order)) {}

  int64_t size() const { return size_; }
  // Raises ValueError when there are not size() numbers.
  std::vector<int64_t> order(int64_t epoch) const;

  static Sampler sequential(int64_t n);
  static Sampler shuffled(int64_t n, uint64_t seed);
  // Draws with probability in proportion to weight; without replacement by the keys log(u)/w of
  // Efraimidis & Spirakis (2006). Raises ValueError for weights that are negative, not finite or
  // all 0, and when there are too few above 0.
  static Sampler weighted(std::vector<double> weights, WeightedOptions options = {});
  // A shuffle in which every run of numbers has each class in its share of the whole. classes: i64
  // [N]; raises DTypeError or ShapeError otherwise.
  static Sampler stratified(const Tensor& classes, StratifiedOptions options = {});
  // Every world-th number of another sampler, from the rank-th. Raises ValueError for a rank
  // outside the world.
  static Sampler distributed(const Sampler& all, DistributedOptions options);
  // Batches of examples of similar length: windows of a shuffle are sorted by length, cut into
  // batches, and the batches are shuffled. The loader must have the same batch size. Raises
  // ValueError for options below 1.
  static Sampler bucketed(std::vector<int64_t> lengths, BucketOptions options = {});

 private:
  int64_t size_;
  Order order_;
};

}  // namespace cutaway::data
