#include <cutaway/datasets/loader.h>

#include <fmt/format.h>
#include <cstring>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::data {
namespace {

template <class T>
void rows_as_f32(const Tensor& from, const int64_t* rows, int64_t n, double scale, double mean,
                 double std, float* out) {
  const int64_t width = from.numel() / from.size(0);
  const T* in = from.data<T>();
  const float a = float(scale / std), b = float(-mean / std);
  for (int64_t r = 0; r < n; ++r) {
    const T* row = in + rows[r] * width;
    for (int64_t i = 0; i < width; ++i) *out++ = float(row[i]) * a + b;
  }
}

// Rows of any element, as they are.
void copy_rows(const Tensor& from, const int64_t* rows, int64_t n, Tensor& out) {
  const int64_t bytes = from.numel() / from.size(0) * size_of(from.dtype());
  for (int64_t r = 0; r < n; ++r) {
    std::memcpy(static_cast<char*>(out.raw()) + r * bytes,
                static_cast<const char*>(from.raw()) + rows[r] * bytes, size_t(bytes));
  }
}

Shape with_rows(const Shape& sizes, int64_t n) {
  Shape s = sizes;
  s[0] = n;
  return s;
}

}  // namespace

Loader::Loader(Dataset dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(options) {
  if (options_.batch < 1) {
    throw ValueError("loader", fmt::format("batch must be at least 1; got {}", options_.batch));
  }
  if (!dataset_.inputs.defined() || dataset_.inputs.dim() == 0 || !dataset_.targets.defined() ||
      dataset_.targets.dim() == 0 || dataset_.inputs.size(0) != dataset_.targets.size(0)) {
    throw ShapeError("loader", "inputs and targets need the same number of examples");
  }
  dataset_.inputs = contiguous_raw(dataset_.inputs);
  dataset_.targets = contiguous_raw(dataset_.targets);
  const DType t = dataset_.inputs.dtype();
  const bool tokens = dataset_.vocabulary > 0 && t == DType::i64;
  if (!tokens && t != DType::u8 && t != DType::f32 && t != DType::f64) {
    dataset_.inputs = cast_raw(dataset_.inputs, DType::f32);
  }
}

Loader::~Loader() { stop_worker(); }

int64_t Loader::batches_per_epoch() const {
  const int64_t n = dataset_.size(), b = options_.batch;
  return n / b + (!options_.drop_last && n % b != 0);
}

std::vector<int64_t> Loader::order(int64_t epoch) const {
  if (options_.shuffle) {
    // A stream of its own for each epoch: nothing else that draws numbers can change the order.
    Generator generator{options_.seed, uint64_t(0x5A0FFE1) + uint64_t(epoch), 0};
    return permutation(dataset_.size(), generator);
  }
  std::vector<int64_t> list(size_t(dataset_.size()));
  for (size_t i = 0; i < list.size(); ++i) list[i] = int64_t(i);
  return list;
}

void Loader::seek(Position p) {
  if (p.epoch < 0 || p.batch < 0 || p.batch > batches_per_epoch()) {
    throw ValueError("loader", fmt::format("there is no batch {} in epoch {}; an epoch has {}",
                                           p.batch, p.epoch, batches_per_epoch()));
  }
  stop_worker();
  position_ = p;
}

Batch Loader::make_batch(const std::vector<int64_t>& order, int64_t index) const {
  const int64_t first = index * options_.batch;
  const int64_t n = std::min(options_.batch, int64_t(order.size()) - first);
  const int64_t* rows = order.data() + first;
  Batch b;
  const Dataset& d = dataset_;
  const bool tokens = d.inputs.dtype() == DType::i64;
  b.x = empty(with_rows(d.inputs.sizes(), n), {.dtype = tokens ? DType::i64 : DType::f32});
  float* out = tokens ? nullptr : b.x.data<float>();
  switch (d.inputs.dtype()) {
    case DType::u8:
      rows_as_f32<uint8_t>(d.inputs, rows, n, d.scale, d.mean, d.std, out);
      break;
    case DType::f64:
      rows_as_f32<double>(d.inputs, rows, n, d.scale, d.mean, d.std, out);
      break;
    case DType::i64:
      copy_rows(d.inputs, rows, n, b.x);
      break;
    default:
      rows_as_f32<float>(d.inputs, rows, n, d.scale, d.mean, d.std, out);
  }
  b.y = empty(with_rows(d.targets.sizes(), n), {.dtype = d.targets.dtype()});
  copy_rows(d.targets, rows, n, b.y);
  return b;
}

void Loader::work() {
  for (int64_t index = position_.batch; index < batches_per_epoch(); ++index) {
    Slot slot{index, {}, nullptr};
    try {
      slot.batch = make_batch(order_, index);
    } catch (...) {
      slot.error = std::current_exception();
    }
    const bool failed = slot.error != nullptr;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || int(ready_.size()) < options_.prefetch; });
    if (stop_) return;
    ready_.push_back(std::move(slot));
    changed_.notify_all();
    if (failed) return;
  }
}

void Loader::start_worker() {
  stop_ = false;
  worker_ = std::thread([this] { work(); });
}

void Loader::stop_worker() {
  if (!worker_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  worker_.join();
  ready_.clear();
}

bool Loader::next(Batch& batch) {
  if (position_.batch >= batches_per_epoch()) {
    stop_worker();
    position_ = {position_.epoch + 1, 0};
    return false;
  }
  if (order_epoch_ != position_.epoch) {
    stop_worker();
    order_ = order(position_.epoch);
    order_epoch_ = position_.epoch;
  }
  if (options_.prefetch <= 0) {
    batch = make_batch(order_, position_.batch);
    ++position_.batch;  // only when there is a batch
    return true;
  }
  if (!worker_.joinable()) start_worker();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty(); });
  Slot slot = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  lock.unlock();
  if (slot.error) {
    stop_worker();
    std::rethrow_exception(slot.error);
  }
  batch = std::move(slot.batch);
  ++position_.batch;
  return true;
}

Loader::Iterator::Iterator(Loader* loader) : loader_(loader) { ++*this; }
Loader::Iterator& Loader::Iterator::operator++() {
  if (!loader_->next(batch_)) loader_ = nullptr;
  return *this;
}
Loader::Iterator Loader::begin() { return Iterator(this); }

}  // namespace cutaway::data
