#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <cutaway/datasets/dataset.h>
#include <cutaway/datasets/example.h>
#include <cutaway/datasets/sampler.h>
#include <cutaway/datasets/transforms.h>

namespace cutaway::data {

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;               // of shuffle and augment
  int prefetch = 2;                // batches prepared ahead by threads of their own; 0: none
  int threads = 1;                 // that prepare them
  std::optional<Sampler> sampler;  // in the place of shuffle
  Augmentation augment;
  Collate collate;  // of map and iterable data sets; empty: stack_examples
};

// Batches of a data set. Iterating gives the rest of the current epoch and moves on to the next:
//
//   for (const auto& [x, y] : loader) { … }
//
// The order of an epoch, and what augment does, are functions of (seed, epoch) only, whatever the
// number of threads, so a position is two numbers. An error while a batch is prepared is raised
// where the batch is asked for. Time in which the caller waits is a range "wait for data" of the
// trace.
class Loader {
 public:
  struct Position {
    int64_t epoch = 0;
    int64_t batch = 0;  // next batch of the epoch
    friend bool operator==(const Position&, const Position&) = default;
  };

  // x: inputs of the batch as f32, scaled as the data set says (token ids stay i64), y: its
  // targets. Images are augmented before mean and deviation are applied.
  Loader(Dataset dataset, LoaderOptions options = {});
  // augment.images change the inputs of examples.
  Loader(std::shared_ptr<const MapDataset> dataset, LoaderOptions options = {});
  // Raises ValueError for shuffle and sampler: the stream has its own order.
  Loader(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options = {});
  ~Loader();
  Loader(const Loader&) = delete;

  Position position() const { return position_; }
  // Continues there; raises ValueError when the epoch has no such batch (an iterable data set tells
  // only when it is read).
  void seek(Position position);

  // −1 for an iterable data set, whose length is not known.
  int64_t batches_per_epoch() const;
  // Indices of the examples of an epoch, in order; empty for an iterable data set.
  std::vector<int64_t> order(int64_t epoch) const;
  // Seconds that callers have waited for batches.
  double waited() const { return waited_; }

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

  // Where examples come from; see loader_sources.cpp.
  class Source;

 private:
  friend class Iterator;
  Loader(std::unique_ptr<Source> source, LoaderOptions options);
  bool next(Batch& batch);  // false at the end of the epoch, which begins the next one
  bool take(Batch& batch);
  bool make_here(Batch& batch);
  void begin_epoch();
  void start_workers();
  void stop_workers();
  void work();

  LoaderOptions options_;
  std::unique_ptr<Source> source_;
  Position position_;
  bool begun_ = false;  // the source stands at position_, or workers take from it
  double waited_ = 0;

  struct Slot {
    Batch batch;
    std::exception_ptr error;
  };
  std::vector<std::thread> workers_;
  std::mutex claiming_;  // held by the worker that takes the next piece of work, in order
  int64_t claimed_ = 0;  // next batch to be taken; under claiming_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Slot> ready_;  // under mutex_, as what follows
  int64_t end_ = -1;               // batches of the epoch, once known
  bool stop_ = false;
};

}  // namespace cutaway::data
