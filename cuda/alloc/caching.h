#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace cutaway::cuda {

// Keeps device memory for reuse in the order of streams. Memory comes from a source in segments,
// which are cut into pieces and joined again. A freed piece serves the next request of the same
// queue at once, since work of a queue runs in order; pieces that other queues used as well wait
// until those have come past the time of the release. Small and large requests have segments of
// their own. Knows nothing of CUDA, so it is tested on host memory. All functions may be called by
// any thread.
class CachingAllocator {
 public:
  static constexpr int64_t kStep = 512;       // pieces are multiples of it
  static constexpr int64_t kSmall = 1 << 20;  // requests up to here are small
  static constexpr int64_t kSmallSegment = 2 << 20;
  static constexpr int64_t kLargeSegment = 20 << 20;  // for requests up to half of it
  static constexpr int64_t kSegmentStep = 2 << 20;

  // Where memory comes from, and how the time of a queue is told.
  struct Source {
    std::function<void*(int64_t bytes)> allocate;       // null when there is no room
    std::function<void(void*)> release;                 // when all queues are done with it
    std::function<void*(void* queue)> mark;             // a point in time of a queue
    std::function<bool(void* mark, bool wait)> passed;  // a mark that has passed is gone
    std::function<std::string()> room;                  // "3 of 80 GB free", for messages
  };
  struct Stats {
    int64_t live = 0, peak = 0;  // bytes of pieces in use
    int64_t reserved = 0;        // bytes of segments
    int64_t blocks = 0, segments = 0;
    int64_t allocations = 0, reused = 0;  // so far; reused ones needed no new segment
    int64_t splits = 0, merges = 0;
  };

  explicit CachingAllocator(Source source) : source_(std::move(source)) {}
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Memory for work of `queue`. `tag` names who asks. Raises MemoryError with a table of what is in
  // use when there is no room, also for negative sizes.
  void* allocate(int64_t bytes, void* queue, const char* tag = nullptr);
  // Takes a piece back; pointers it does not know are ignored.
  void release(void* data) noexcept;
  // Another queue uses the piece too.
  void note_use(void* data, void* queue);
  // From now on the memory of `queue`, which works no more, serves `heir`.
  void bequeath(void* queue, void* heir);
  // Gives segments of which nothing is in use back to the source; returns how many bytes.
  int64_t trim();
  Stats stats() const;
  // What is in use, by tag, largest first; a line each.
  std::string table() const;

 private:
  struct Piece {
    char* begin = nullptr;
    int64_t bytes = 0;
    void* queue = nullptr;
    bool small = false, used = false;
    const char* tag = nullptr;
    Piece *before = nullptr, *after = nullptr;  // neighbours in the segment
    std::vector<void*> others;                  // other queues that use it
    std::vector<void*> marks;                   // not passed yet
  };
  struct ByQueueAndSize {
    bool operator()(const Piece* a, const Piece* b) const;
  };
  Piece* take_free(int64_t bytes, bool small, void* queue);
  Piece* new_segment(int64_t bytes, bool small, void* queue);
  void split(Piece* piece, int64_t bytes);
  void free_piece(Piece* piece);
  void join(Piece* left, Piece* right);
  void collect(bool wait);
  int64_t trim_locked();
  std::string table_locked() const;
  [[noreturn]] void throw_full(int64_t bytes) const;

  Source source_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::unique_ptr<Piece>> pieces_;  // all, by begin
  std::set<Piece*, ByQueueAndSize> free_;
  std::vector<Piece*> waiting_;  // released, but other queues may still use them
  Stats stats_;
};

}  // namespace cutaway::cuda
