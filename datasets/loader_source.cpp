#include <cutaway/datasets/loader_source.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::data {
namespace {

// Streams of the draws of examples and of batches; an epoch adds its number.
constexpr uint64_t kExamples = uint64_t(4) << 41, kBatches = uint64_t(5) << 41;

template <class T>
void row_as_f32(const T* in, int64_t width, float a, float b, float* out) {
  for (int64_t i = 0; i < width; ++i) out[i] = float(in[i]) * a + b;
}

// Row `row` as f32: x · a + b.
void row_as_f32(const Tensor& from, int64_t row, float a, float b, float* out) {
  const int64_t width = from.numel() / from.size(0), at = row * width;
  switch (from.dtype()) {
    case DType::u8:
      return row_as_f32(from.data<uint8_t>() + at, width, a, b, out);
    case DType::f64:
      return row_as_f32(from.data<double>() + at, width, a, b, out);
    default:
      return row_as_f32(from.data<float>() + at, width, a, b, out);
  }
}

// Rows of any element, as they are.
void copy_rows(const Tensor& from, const std::vector<int64_t>& rows, Tensor& out) {
  const int64_t bytes = from.numel() / from.size(0) * size_of(from.dtype());
  char* to = static_cast<char*>(out.raw());
  for (const int64_t row : rows) {
    std::memcpy(to, static_cast<const char*>(from.raw()) + row * bytes, size_t(bytes));
    to += bytes;
  }
}

Shape with_rows(const Shape& sizes, int64_t n) {
  Shape s = sizes;
  s[0] = n;
  return s;
}

// Examples that have numbers: order, batches and positions.
class NumberedSource : public Loader::Source {
 public:
  NumberedSource(int64_t size, const LoaderOptions& options)
      : Source(options),
        size_(size),
        sampler_(options.sampler   ? *options.sampler
                 : options.shuffle ? Sampler::shuffled(size, options.seed)
                                   : Sampler::sequential(size)) {}

  int64_t batches() const override {
    const int64_t n = sampler_.size(), b = options_.batch;
    return n / b + (!options_.drop_last && n % b != 0);
  }
  std::vector<int64_t> order(int64_t epoch) const override {
    std::vector<int64_t> list = sampler_.order(epoch);
    for (const int64_t i : list) {
      if (i < 0 || i >= size_) {
        throw IndexError("loader",
                         fmt::format("the sampler gave the number {}; need 0 to {}", i, size_ - 1));
      }
    }
    return list;
  }
  void begin(Loader::Position p) override {
    if (epoch_ != p.epoch) order_ = order(p.epoch);
    epoch_ = p.epoch;
    next_ = p.batch;
  }
  bool take(Work& work) override {
    if (next_ >= batches()) return false;
    work.epoch = epoch_;
    work.batch = next_++;
    const int64_t first = work.batch * options_.batch;
    const int64_t n = std::min(options_.batch, int64_t(order_.size()) - first);
    work.rows.assign(order_.begin() + first, order_.begin() + first + n);
    return true;
  }

 private:
  int64_t size_;
  Sampler sampler_;
  std::vector<int64_t> order_;
  int64_t epoch_ = -1, next_ = 0;
};

class MemorySource : public NumberedSource {
 public:
  MemorySource(Dataset d, const LoaderOptions& options)
      : NumberedSource(d.size(), options), dataset_(std::move(d)) {}

  Batch make(Work& work) const override {
    const Dataset& d = dataset_;
    const int64_t n = int64_t(work.rows.size());
    Batch b;
    b.x = options_.augment.images.empty() ? plain_inputs(work) : augmented_inputs(work);
    b.y = empty(with_rows(d.targets.sizes(), n), {.dtype = d.targets.dtype()});
    copy_rows(d.targets, work.rows, b.y);
    augment_batch(b, work);
    return b;
  }

 private:
  Tensor plain_inputs(const Work& work) const {
    const Dataset& d = dataset_;
    const int64_t n = int64_t(work.rows.size()), width = d.inputs.numel() / d.inputs.size(0);
    if (d.inputs.dtype() == DType::i64) {  // token ids
      Tensor ids = empty(with_rows(d.inputs.sizes(), n), {.dtype = DType::i64});
      copy_rows(d.inputs, work.rows, ids);
      return ids;
    }
    Tensor x = empty(with_rows(d.inputs.sizes(), n));
    float* out = x.data<float>();
    const float a = float(d.scale / d.std), b = float(-d.mean / d.std);
    for (int64_t r = 0; r < n; ++r) {
      row_as_f32(d.inputs, work.rows[size_t(r)], a, b, out + r * width);
    }
    return x;
  }

  // Transforms see greys from 0 to 1; mean and deviation come last.
  Tensor augmented_inputs(const Work& work) const {
    const Dataset& d = dataset_;
    const Shape sizes = d.inputs.sizes().slice(1, d.inputs.dim());
    std::vector<Example> examples;
    for (const int64_t row : work.rows) {
      Tensor x = empty(sizes);
      row_as_f32(d.inputs, row, float(d.scale), 0, x.data<float>());
      x = augmented(std::move(x), work.epoch, row);
      examples.push_back({x, x});
    }
    const Tensor all = stack_examples(examples).x;
    row_as_f32(all.data<float>(), all.numel(), float(1 / d.std), float(-d.mean / d.std),
               all.data<float>());
    return all;
  }

  Dataset dataset_;
};

class MapSource : public NumberedSource {
 public:
  MapSource(std::shared_ptr<const MapDataset> d, const LoaderOptions& options)
      : NumberedSource(d->size(), options), dataset_(std::move(d)) {}

  Batch make(Work& work) const override {
    for (const int64_t row : work.rows) work.examples.push_back(dataset_->get(row));
    return collated(work);
  }

 private:
  std::shared_ptr<const MapDataset> dataset_;
};

class StreamSource : public Loader::Source {
 public:
  StreamSource(std::shared_ptr<const IterableDataset> d, const LoaderOptions& options)
      : Source(options), dataset_(std::move(d)) {}

  int64_t batches() const override { return -1; }
  std::vector<int64_t> order(int64_t) const override { return {}; }
  void begin(Loader::Position p) override {
    stream_ = dataset_->open(p.epoch);
    at_ = p;
    int64_t examples = 0;
    if (__builtin_mul_overflow(p.batch, options_.batch, &examples) || !stream_->skip(examples)) {
      throw ValueError("loader", fmt::format("there is no batch {} in epoch {}", p.batch, p.epoch));
    }
  }
  bool take(Work& work) override {
    work.epoch = at_.epoch;
    work.batch = at_.batch;
    Example e;
    while (int64_t(work.examples.size()) < options_.batch && stream_->next(e)) {
      work.rows.push_back(at_.batch * options_.batch + int64_t(work.examples.size()));
      work.examples.push_back(std::move(e));
    }
    const int64_t n = int64_t(work.examples.size());
    if (n == 0 || (options_.drop_last && n < options_.batch)) return false;
    ++at_.batch;
    return true;
  }
  Batch make(Work& work) const override { return collated(work); }

 private:
  std::shared_ptr<const IterableDataset> dataset_;
  std::unique_ptr<ExampleStream> stream_;
  Loader::Position at_;
};

}  // namespace

Tensor Loader::Source::augmented(Tensor x, int64_t epoch, int64_t number) const {
  Draws draws(options_.seed, kExamples + uint64_t(epoch), uint64_t(number));
  for (const Transform& t : options_.augment.images) x = t(x, draws);
  return x;
}

void Loader::Source::augment_batch(Batch& batch, const Work& work) const {
  Draws draws(options_.seed, kBatches + uint64_t(work.epoch), uint64_t(work.batch));
  for (const BatchTransform& t : options_.augment.batches) t(batch, draws);
}

Batch Loader::Source::collated(Work& work) const {
  for (size_t i = 0; i < work.examples.size() && !options_.augment.images.empty(); ++i) {
    work.examples[i].x = augmented(work.examples[i].x, work.epoch, work.rows[i]);
  }
  Batch b = options_.collate ? options_.collate(work.examples) : stack_examples(work.examples);
  augment_batch(b, work);
  return b;
}

std::unique_ptr<Loader::Source> source_of(Dataset d, const LoaderOptions& options) {
  if (!d.inputs.defined() || d.inputs.dim() == 0 || !d.targets.defined() || d.targets.dim() == 0 ||
      d.inputs.size(0) != d.targets.size(0)) {
    throw ShapeError("loader", "inputs and targets need the same number of examples");
  }
  if (d.vocabulary > 0 && !options.augment.empty()) {
    throw ValueError("loader", "augment changes images; the data set holds tokens");
  }
  d.inputs = contiguous_raw(d.inputs);
  d.targets = contiguous_raw(d.targets);
  const DType t = d.inputs.dtype();
  const bool tokens = d.vocabulary > 0 && t == DType::i64;
  if (!tokens && t != DType::u8 && t != DType::f32 && t != DType::f64) {
    d.inputs = cast_raw(d.inputs, DType::f32);
  }
  return std::make_unique<MemorySource>(std::move(d), options);
}

std::unique_ptr<Loader::Source> source_of(std::shared_ptr<const MapDataset> d,
                                          const LoaderOptions& options) {
  if (!d) throw ValueError("loader", "there is no data set");
  return std::make_unique<MapSource>(std::move(d), options);
}

std::unique_ptr<Loader::Source> source_of(std::shared_ptr<const IterableDataset> d,
                                          const LoaderOptions& options) {
  if (!d) throw ValueError("loader", "there is no data set");
  if (options.shuffle || options.sampler) {
    throw ValueError("loader",
                     "an iterable data set has its own order; leave shuffle and sampler "
                     "out");
  }
  return std::make_unique<StreamSource>(std::move(d), options);
}

}  // namespace cutaway::data
