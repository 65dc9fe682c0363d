#pragma once
#include <cstdint>

namespace cutaway {

struct ModuleScope;

// Header in front of a block of a Heap; its 64 bytes keep what follows aligned.
struct alignas(64) HeapBlock {
  int64_t bytes;     // usable, behind the header
  int64_t resident;  // of a free block: how many of its bytes may lie in memory
  HeapBlock* left;   // the neighbour in front, null for the first block
  HeapBlock* prev;   // in the list of live blocks, or of a bin of free ones
  HeapBlock* next;
  const char* op;  // who asked for it, and where
  const ModuleScope* module;
  bool free;
};
static_assert(sizeof(HeapBlock) == 64);

// One stretch of address space from which blocks are cut, best fit first. Free neighbours become
// one block, so that memory freed in one size serves requests of others. Freed pages stay in memory
// until release(). From the eighth megabyte on the system is asked for huge pages: small programs
// stay small, large ones save most of the page faults and of the misses of address translation.
// Not thread-safe.
class Heap {
 public:
  // Reserves up to `bytes` of addresses, less where the system does not grant so many.
  explicit Heap(int64_t bytes);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // A block for at least `bytes` > 0; null when the addresses are used up.
  HeapBlock* take(int64_t bytes) noexcept;
  // Takes a block back. Its pages stay in memory if `keep`, else the system gets them.
  void give(HeapBlock* b, bool keep = true) noexcept;
  // Gives the pages of free blocks back to the system; returns how many bytes.
  int64_t release() noexcept;

  int64_t cached() const { return cached_; }  // bytes of free blocks that may lie in memory
  int64_t largest_free() const noexcept;      // the most of them in one block
  // By how many bytes take() would let the memory of the process grow.
  int64_t growth(int64_t bytes) const noexcept;

 private:
  static constexpr int kBins = 4 * 48;  // four for each power of two

  HeapBlock* right_of(const HeapBlock* b) const;
  HeapBlock* find(int64_t bytes) const noexcept;
  HeapBlock* extend(int64_t bytes) noexcept;
  void link(HeapBlock* b) noexcept;
  void unlink(HeapBlock* b) noexcept;
  void cut(HeapBlock* b, int64_t bytes) noexcept;

  char* base_ = nullptr;
  char* top_ = nullptr;
  char* end_ = nullptr;
  HeapBlock* last_ = nullptr;  // the block that ends at top_
  HeapBlock* bins_[kBins] = {};
  int64_t cached_ = 0;
};

}  // namespace cutaway
