#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::data {

// One example: input and target, without a dimension for the batch.
struct Example {
  Tensor x, y;
};

// What a model is given at once: x [N,…] and y [N,…]. `const auto& [x, y] = batch` binds these two.
struct Batch {
  Tensor x, y;
  Tensor lengths = {};  // i64 [N], when inputs were padded: sizes of their first dimension
};

// Examples that can be had by number. get() is called from several threads at once and must give
// the same example for the same number each time.
class MapDataset {
 public:
  virtual ~MapDataset() = default;
  virtual int64_t size() const = 0;
  virtual Example get(int64_t index) const = 0;
};

// Examples that can only be had one after the other.
class ExampleStream {
 public:
  virtual ~ExampleStream() = default;
  // False at the end.
  virtual bool next(Example& example) = 0;
  // Passes over n examples; false when there are fewer. Reads them unless overridden.
  virtual bool skip(int64_t n);
};
class IterableDataset {
 public:
  virtual ~IterableDataset() = default;
  // The examples of an epoch from the first; their order is a function of the epoch only.
  virtual std::unique_ptr<ExampleStream> open(int64_t epoch) const = 0;
};

// Makes a batch of examples.
using Collate = std::function<Batch(const std::vector<Example>&)>;
// Puts equal sizes together along a new first dimension. Raises ShapeError or DTypeError naming the
// example that differs from the first.
Batch stack_examples(const std::vector<Example>& examples);
struct PadOptions {
  double input = 0, target = 0;  // what stands behind shorter inputs and targets
};
// Puts inputs and targets of different sizes together: each dimension becomes the largest of the
// batch, the rest is filled. Batch::lengths holds the sizes before. Raises ShapeError unless all
// have as many dimensions, DTypeError unless all have one type.
Collate pad_examples(PadOptions options = {});

template <size_t I>
const Tensor& get(const Batch& batch) {
  static_assert(I < 2);
  if constexpr (I == 0) return batch.x;
  if constexpr (I == 1) return batch.y;
}
template <size_t I>
Tensor& get(Batch& batch) {
  return const_cast<Tensor&>(get<I>(std::as_const(batch)));
}
template <size_t I>
Tensor&& get(Batch&& batch) {  // of `auto [x, y] = …`
  return std::move(get<I>(batch));
}

}  // namespace cutaway::data

template <>
struct std::tuple_size<cutaway::data::Batch> : std::integral_constant<size_t, 2> {};
template <size_t I>
struct std::tuple_element<I, cutaway::data::Batch> {
  using type = cutaway::Tensor;
};
