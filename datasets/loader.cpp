#include <cutaway/datasets/loader.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>

#include <cutaway/core/error.h>
#include <cutaway/core/trace.h>
#include <cutaway/datasets/loader_source.h>

namespace cutaway::data {

Loader::Loader(std::unique_ptr<Source> source, LoaderOptions options)
    : options_(std::move(options)), source_(std::move(source)) {
  if (options_.batch < 1 || options_.threads < 1) {
    throw ValueError("loader", fmt::format("batch and threads must be at least 1; got {} and {}",
                                           options_.batch, options_.threads));
  }
}
Loader::Loader(Dataset dataset, LoaderOptions options)
    : Loader(source_of(std::move(dataset), options), options) {}
Loader::Loader(std::shared_ptr<const MapDataset> dataset, LoaderOptions options)
    : Loader(source_of(std::move(dataset), options), options) {}
Loader::Loader(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options)
    : Loader(source_of(std::move(dataset), options), options) {}
Loader::~Loader() { stop_workers(); }

int64_t Loader::batches_per_epoch() const { return source_->batches(); }
std::vector<int64_t> Loader::order(int64_t epoch) const { return source_->order(epoch); }

void Loader::seek(Position p) {
  const int64_t batches = batches_per_epoch();
  if (p.epoch < 0 || p.batch < 0 || (batches >= 0 && p.batch > batches)) {
    throw ValueError("loader", fmt::format("there is no batch {} in epoch {}; an epoch has {}",
                                           p.batch, p.epoch, batches));
  }
  stop_workers();
  position_ = p;
}

void Loader::work() {
  for (;;) {
    int64_t index = 0;
    Slot slot;
    Source::Work piece;
    bool there = false;
    {
      const std::lock_guard claim(claiming_);
      index = claimed_;
      {
        std::unique_lock lock(mutex_);
        const auto room = [&] { return index < position_.batch + options_.prefetch; };
        changed_.wait(lock, [&] { return stop_ || end_ >= 0 || room(); });
        if (stop_ || end_ >= 0) return;
      }
      try {
        there = source_->take(piece);
      } catch (...) {
        slot.error = std::current_exception();
      }
      ++claimed_;
      if (!there) {  // nobody takes any more
        const std::lock_guard lock(mutex_);
        end_ = index + (slot.error != nullptr);
        if (slot.error) ready_.emplace(index, std::move(slot));
        changed_.notify_all();
        return;
      }
    }
    try {
      slot.batch = source_->make(piece);
    } catch (...) {
      slot.error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    ready_.emplace(index, std::move(slot));
    changed_.notify_all();
  }
}

void Loader::begin_epoch() {
  source_->begin(position_);
  claimed_ = position_.batch;
  begun_ = true;
}

void Loader::start_workers() {
  begin_epoch();
  stop_ = false;
  end_ = -1;
  const int threads = std::min(options_.threads, options_.prefetch);
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

void Loader::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& t : workers_) t.join();
  workers_.clear();
  ready_.clear();
  begun_ = false;
}

bool Loader::make_here(Batch& batch) {
  if (!begun_) begin_epoch();
  Source::Work piece;
  begun_ = false;  // an error leaves the source behind the batch that was asked for
  if (!source_->take(piece)) return false;
  batch = source_->make(piece);
  begun_ = true;
  ++position_.batch;
  return true;
}

// False when there are no more.
bool Loader::take(Batch& batch) {
  const int64_t batches = batches_per_epoch();
  if (batches >= 0 && position_.batch >= batches) return false;
  if (options_.prefetch <= 0) return make_here(batch);
  if (workers_.empty()) start_workers();
  std::unique_lock lock(mutex_);
  const int64_t index = position_.batch;
  changed_.wait(lock, [&] { return ready_.contains(index) || (end_ >= 0 && index >= end_); });
  const auto found = ready_.find(index);
  if (found == ready_.end()) return false;
  Slot slot = std::move(found->second);
  ready_.erase(found);
  if (!slot.error) ++position_.batch;
  changed_.notify_all();
  lock.unlock();
  if (slot.error) {
    stop_workers();
    std::rethrow_exception(slot.error);
  }
  batch = std::move(slot.batch);
  return true;
}

bool Loader::next(Batch& batch) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  bool there = false;
  {
    const trace::Range range("wait for data");
    there = take(batch);
  }
  waited_ += std::chrono::duration<double>(Clock::now() - begin).count();
  if (there) return true;
  stop_workers();
  position_ = {position_.epoch + 1, 0};
  return false;
}

Loader::Iterator::Iterator(Loader* loader) : loader_(loader) { ++*this; }
Loader::Iterator& Loader::Iterator::operator++() {
  if (!loader_->next(batch_)) loader_ = nullptr;
  return *this;
}
Loader::Iterator Loader::begin() { return Iterator(this); }

}  // namespace cutaway::data
