#include <cutaway/cuda/alloc/caching.h>

#include <algorithm>
#include <tuple>

#include <cutaway/core/error.h>

namespace cutaway::cuda {
namespace {

int64_t rounded(int64_t bytes, int64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

bool CachingAllocator::ByQueueAndSize::operator()(const Piece* a, const Piece* b) const {
  return std::tie(a->small, a->queue, a->bytes, a->begin) <
         std::tie(b->small, b->queue, b->bytes, b->begin);
}

CachingAllocator::~CachingAllocator() {
  for (Piece* p : waiting_) {
    for (void* mark : p->marks) source_.passed(mark, true);
  }
  for (const auto& [begin, piece] : pieces_) {
    if (!piece->before) source_.release(begin);
  }
}

void* CachingAllocator::allocate(int64_t bytes, void* queue, const char* tag) {
  std::lock_guard lock(mutex_);
  if (bytes < 0 || bytes > (int64_t{1} << 60)) throw_full(bytes);
  const int64_t size = std::max(rounded(bytes, kStep), kStep);
  const bool small = size <= kSmall;
  collect(false);
  Piece* p = take_free(size, small, queue);
  if (p) {
    ++stats_.reused;
  } else {
    p = new_segment(size, small, queue);
  }
  if (!p) throw_full(bytes);
  p->used = true;
  p->tag = tag;
  // What is left of a large piece is worth keeping apart when it can serve a large request.
  if (p->bytes - size >= (small ? kStep : kSmall)) split(p, size);
  ++stats_.allocations;
  ++stats_.blocks;
  stats_.live += p->bytes;
  stats_.peak = std::max(stats_.peak, stats_.live);
  return p->begin;
}

CachingAllocator::Piece* CachingAllocator::take_free(int64_t bytes, bool small, void* queue) {
  Piece wanted;
  wanted.small = small;
  wanted.queue = queue;
  wanted.bytes = bytes;
  const auto at = free_.lower_bound(&wanted);
  if (at == free_.end() || (*at)->small != small || (*at)->queue != queue) return nullptr;
  Piece* p = *at;
  free_.erase(at);
  return p;
}

CachingAllocator::Piece* CachingAllocator::new_segment(int64_t bytes, bool small, void* queue) {
  int64_t size = small                        ? kSmallSegment
                 : bytes <= kLargeSegment / 2 ? kLargeSegment
                                              : rounded(bytes, kSegmentStep);
  auto* data = static_cast<char*>(source_.allocate(size));
  if (!data) {  // again without what is kept, and no more than needed
    collect(true);
    trim_locked();
    // What came free may have been joined to a piece that fits.
    if (Piece* p = take_free(bytes, small, queue)) return p;
    size = small ? kSmallSegment : rounded(bytes, kSegmentStep);
    data = static_cast<char*>(source_.allocate(size));
  }
  if (!data) return nullptr;
  auto piece = std::make_unique<Piece>();
  piece->begin = data;
  piece->bytes = size;
  piece->queue = queue;
  piece->small = small;
  stats_.reserved += size;
  ++stats_.segments;
  return (pieces_[data] = std::move(piece)).get();
}

void CachingAllocator::split(Piece* p, int64_t bytes) {
  auto rest = std::make_unique<Piece>();
  rest->begin = p->begin + bytes;
  rest->bytes = p->bytes - bytes;
  rest->queue = p->queue;
  rest->small = p->small;
  rest->before = p;
  rest->after = p->after;
  if (p->after) p->after->before = rest.get();
  p->after = rest.get();
  p->bytes = bytes;
  free_.insert(rest.get());
  void* begin = rest->begin;
  pieces_[begin] = std::move(rest);
  ++stats_.splits;
}

void CachingAllocator::release(void* data) noexcept {
  if (!data) return;
  std::lock_guard lock(mutex_);
  const auto at = pieces_.find(data);
  if (at == pieces_.end() || !at->second->used) return;
  Piece* p = at->second.get();
  p->used = false;
  --stats_.blocks;
  stats_.live -= p->bytes;
  try {
    for (void* queue : p->others) p->marks.push_back(source_.mark(queue));
    p->others.clear();
    if (!p->marks.empty()) return waiting_.push_back(p);
    free_piece(p);
  } catch (const std::exception&) {
    // No memory for the books: the piece stays where it is.
  }
}

void CachingAllocator::free_piece(Piece* p) {
  const auto is_free = [this](Piece* q) { return q && !q->used && free_.count(q) > 0; };
  if (is_free(p->before)) {
    Piece* left = p->before;
    free_.erase(left);
    join(left, p);
    p = left;
  }
  if (is_free(p->after)) {
    free_.erase(p->after);
    join(p, p->after);
  }
  free_.insert(p);
}

void CachingAllocator::join(Piece* left, Piece* right) {
  left->bytes += right->bytes;
  left->after = right->after;
  if (right->after) right->after->before = left;
  ++stats_.merges;
  pieces_.erase(right->begin);
}

void CachingAllocator::note_use(void* data, void* queue) {
  std::lock_guard lock(mutex_);
  const auto at = pieces_.find(data);
  if (at == pieces_.end() || !at->second->used || at->second->queue == queue) return;
  auto& others = at->second->others;
  if (std::find(others.begin(), others.end(), queue) == others.end()) others.push_back(queue);
}

void CachingAllocator::collect(bool wait) {
  for (size_t i = 0; i < waiting_.size();) {
    Piece* p = waiting_[i];
    std::erase_if(p->marks, [&](void* mark) { return source_.passed(mark, wait); });
    if (p->marks.empty()) {
      waiting_.erase(waiting_.begin() + std::ptrdiff_t(i));
      free_piece(p);
    } else {
      ++i;
    }
  }
}

void CachingAllocator::bequeath(void* queue, void* heir) {
  std::lock_guard lock(mutex_);
  std::vector<Piece*> moved;
  for (auto at = free_.begin(); at != free_.end();) {
    if ((*at)->queue == queue) {
      moved.push_back(*at);
      at = free_.erase(at);
    } else {
      ++at;
    }
  }
  for (const auto& [begin, piece] : pieces_) {
    if (piece->queue == queue) piece->queue = heir;
  }
  free_.insert(moved.begin(), moved.end());
}

int64_t CachingAllocator::trim() {
  std::lock_guard lock(mutex_);
  collect(true);
  return trim_locked();
}

int64_t CachingAllocator::trim_locked() {
  int64_t bytes = 0;
  for (auto at = free_.begin(); at != free_.end();) {
    Piece* p = *at;
    if (p->before || p->after) {
      ++at;
      continue;
    }
    at = free_.erase(at);
    bytes += p->bytes;
    --stats_.segments;
    source_.release(p->begin);
    pieces_.erase(p->begin);
  }
  stats_.reserved -= bytes;
  return bytes;
}

CachingAllocator::Stats CachingAllocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::string CachingAllocator::table() const {
  std::lock_guard lock(mutex_);
  return table_locked();
}

std::string CachingAllocator::table_locked() const {
  struct Row {
    int64_t bytes = 0, blocks = 0;
  };
  std::map<std::string, Row> rows;
  for (const auto& [begin, piece] : pieces_) {
    if (!piece->used) continue;
    Row& row = rows[piece->tag ? piece->tag : "(no op)"];
    row.bytes += piece->bytes;
    ++row.blocks;
  }
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::string text;
  constexpr size_t kMostRows = 8;
  for (size_t i = 0; i < sorted.size() && i < kMostRows; ++i) {
    text += "    " + sorted[i].first + ": " + std::to_string(sorted[i].second.bytes) +
            " bytes in " + std::to_string(sorted[i].second.blocks) + " blocks\n";
  }
  return text;
}

void CachingAllocator::throw_full(int64_t bytes) const {
  const int64_t largest =
      free_.empty()
          ? 0
          : (*std::max_element(free_.begin(), free_.end(), [](const Piece* a, const Piece* b) {
              return a->bytes < b->bytes;
            }))->bytes;
  throw MemoryError("cuda",
                    "no room for " + std::to_string(bytes) + " bytes; " +
                        std::to_string(stats_.live) + " bytes in " + std::to_string(stats_.blocks) +
                        " blocks are in use, " + std::to_string(stats_.reserved - stats_.live) +
                        " kept (largest piece " + std::to_string(largest) + "), " + source_.room() +
                        "; in use by\n" + table_locked(),
                    "smaller batches, checkpoint() or 16-bit types need less memory");
}

}  // namespace cutaway::cuda
