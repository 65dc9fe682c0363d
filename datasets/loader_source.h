#pragma once
#include <memory>
#include <vector>

#include <cutaway/datasets/loader.h>

namespace cutaway::data {

// What a loader asks for. Work is taken in order by one thread at a time and done by any.
class Loader::Source {
 public:
  struct Work {
    int64_t epoch = 0, batch = 0;
    std::vector<int64_t> rows;      // numbers of the examples
    std::vector<Example> examples;  // of streams: the examples themselves
  };
  explicit Source(const LoaderOptions& options) : options_(options) {}
  virtual ~Source() = default;

  virtual int64_t batches() const = 0;
  virtual std::vector<int64_t> order(int64_t epoch) const = 0;
  // The next take() gives the work of the batch at this position.
  virtual void begin(Position position) = 0;
  virtual bool take(Work& work) = 0;
  virtual Batch make(Work& work) const = 0;

 protected:
  // The input of an example after augment.images.
  Tensor augmented(Tensor x, int64_t epoch, int64_t number) const;
  void augment_batch(Batch& batch, const Work& work) const;
  Batch collated(Work& work) const;

  const LoaderOptions options_;
};

std::unique_ptr<Loader::Source> source_of(Dataset dataset, const LoaderOptions& options);
std::unique_ptr<Loader::Source> source_of(std::shared_ptr<const MapDataset> dataset,
                                          const LoaderOptions& options);
std::unique_ptr<Loader::Source> source_of(std::shared_ptr<const IterableDataset> dataset,
                                          const LoaderOptions& options);

}  // namespace cutaway::data
