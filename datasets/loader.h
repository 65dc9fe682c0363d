#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>

#include <cutaway/datasets/dataset.h>

namespace cutaway::data {

// x: inputs of the batch as f32, scaled as the data set says (token ids stay i64); y: its targets.
struct Batch {
  Tensor x;
  Tensor y;
};

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;
  int prefetch = 2;  // batches prepared ahead by a thread of its own; 0: none
};

// Batches of a data set. Iterating gives the rest of the current epoch and moves on to the next:
//
//   for (const auto& [x, y] : loader) { … }
//
// The order of an epoch is a function of (seed, epoch) only, so a position is two numbers. An error
// while a batch is prepared is raised where the batch is asked for.
class Loader {
 public:
  Loader(Dataset dataset, LoaderOptions options = {});
  ~Loader();
  Loader(const Loader&) = delete;

  struct Position {
    int64_t epoch = 0;
    int64_t batch = 0;  // next batch of the epoch
    friend bool operator==(const Position&, const Position&) = default;
  };
  Position position() const { return position_; }
  // Continues there; raises ValueError when the epoch has no such batch.
  void seek(Position position);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const { return dataset_; }
  // Indices of the examples of an epoch, in order.
  std::vector<int64_t> order(int64_t epoch) const;

  class Iterator {
   public:
    using value_type = Batch;
    const Batch& operator*() const { return batch_; }
    Iterator& operator++();
    bool operator!=(std::default_sentinel_t) const { return loader_ != nullptr; }

   private:
    friend class Loader;
    explicit Iterator(Loader* loader);
    Loader* loader_;
    Batch batch_;
  };
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class Iterator;
  bool next(Batch& batch);  // false at the end of the epoch, which begins the next one
  Batch make_batch(const std::vector<int64_t>& order, int64_t index) const;
  void start_worker();
  void stop_worker();
  void work();

  Dataset dataset_;
  LoaderOptions options_;
  Position position_;
  std::vector<int64_t> order_;
  int64_t order_epoch_ = -1;

  // Filled by the worker for the epoch of position_.
  struct Slot {
    int64_t index;
    Batch batch;
    std::exception_ptr error;
  };
  std::thread worker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot> ready_;
  bool stop_ = false;
};

}  // namespace cutaway::data
