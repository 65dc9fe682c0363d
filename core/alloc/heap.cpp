#include <cutaway/core/alloc/heap.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <new>

namespace cutaway {
namespace {

constexpr int64_t kHeader = sizeof(HeapBlock);
constexpr int64_t kSmallPages = int64_t(8) << 20;  // the first bytes, without huge pages
constexpr int64_t kHugePage = int64_t(2) << 20;

int64_t rounded(int64_t bytes) { return (bytes + kHeader - 1) / kHeader * kHeader; }

// Bins grow by at most a quarter: all blocks of a higher bin are larger.
int bin_of(int64_t bytes) {
  const auto n = uint64_t(std::max<int64_t>(bytes, 4));
  const int power = std::bit_width(n) - 1;
  return 4 * power + int((n >> (power - 2)) & 3);
}

char* up_to(char* p, int64_t unit) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  return p + (uint64_t(unit) - at % uint64_t(unit)) % uint64_t(unit);
}

// Gives whole pages behind the header back to the system.
void drop_pages(HeapBlock* b) {
  static const int64_t page = std::max<int64_t>(sysconf(_SC_PAGESIZE), kHeader);
  char* const begin = up_to(reinterpret_cast<char*>(b + 1), page);
  char* const end = reinterpret_cast<char*>(b + 1) + b->bytes;
  const int64_t pages = (end - begin) / page * page;
  if (pages > 0) madvise(begin, size_t(pages), MADV_DONTNEED);
  b->resident = 0;
}

}  // namespace

Heap::Heap(int64_t bytes) {
  for (; bytes >= kHugePage; bytes /= 2) {
    void* p = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    base_ = top_ = static_cast<char*>(p);
    end_ = base_ + bytes;
    char* const huge = up_to(base_ + kSmallPages, kHugePage);
#ifdef MADV_HUGEPAGE
    if (huge < end_) madvise(huge, size_t(end_ - huge), MADV_HUGEPAGE);
#endif
    return;
  }
}

Heap::~Heap() {
  if (base_) munmap(base_, size_t(end_ - base_));
}

HeapBlock* Heap::right_of(const HeapBlock* b) const {
  char* const p = reinterpret_cast<char*>(const_cast<HeapBlock*>(b) + 1) + b->bytes;
  return p < top_ ? reinterpret_cast<HeapBlock*>(p) : nullptr;
}

void Heap::link(HeapBlock* b) noexcept {
  HeapBlock*& bin = bins_[bin_of(b->bytes)];
  b->free = true;
  b->prev = nullptr;
  b->next = bin;
  if (bin) bin->prev = b;
  bin = b;
  cached_ += b->resident;
}

void Heap::unlink(HeapBlock* b) noexcept {
  if (b->prev) b->prev->next = b->next;
  if (b->next) b->next->prev = b->prev;
  HeapBlock*& bin = bins_[bin_of(b->bytes)];
  if (bin == b) bin = b->next;
  b->free = false;
  cached_ -= b->resident;
}

// The smallest block that is large enough.
HeapBlock* Heap::find(int64_t bytes) const noexcept {
  HeapBlock* best = nullptr;
  for (int i = bin_of(bytes); i < kBins && !best; ++i) {
    for (HeapBlock* b = bins_[i]; b; b = b->next) {
      if (b->bytes == bytes) return b;
      if (b->bytes > bytes && (!best || b->bytes < best->bytes)) best = b;
    }
  }
  return best;
}

// A block at the top; a free block there becomes part of it.
HeapBlock* Heap::extend(int64_t bytes) noexcept {
  const bool joins = last_ && last_->free;
  const int64_t more = joins ? bytes - last_->bytes : kHeader + bytes;
  if (more > end_ - top_) return nullptr;
  if (joins) {
    unlink(last_);
    last_->bytes = bytes;
  } else {
    HeapBlock* const b = new (top_) HeapBlock{};
    b->bytes = bytes;
    b->left = last_;
    last_ = b;
  }
  top_ += more;
  return last_;
}

// Makes what a live block does not need a free one.
void Heap::cut(HeapBlock* b, int64_t bytes) noexcept {
  const int64_t rest = b->bytes - bytes - kHeader;
  if (rest <= 0) return;
  const bool last = b == last_;
  b->bytes = bytes;
  char* const end = reinterpret_cast<char*>(b + 1) + bytes;
  HeapBlock* const r = new (end) HeapBlock{};
  r->bytes = rest;
  r->left = b;
  r->resident = std::max<int64_t>(b->resident - bytes - kHeader, 0);
  if (last) {
    last_ = r;
  } else {
    right_of(r)->left = r;
  }
  link(r);
}

HeapBlock* Heap::take(int64_t bytes) noexcept {
  bytes = rounded(bytes);
  HeapBlock* b = find(bytes);
  if (!b) return extend(bytes);
  unlink(b);
  cut(b, bytes);
  return b;
}

void Heap::give(HeapBlock* b, bool keep) noexcept {
  b->resident = b->bytes;
  if (!keep) drop_pages(b);
  if (HeapBlock* const r = right_of(b); r && r->free) {
    unlink(r);
    b->bytes += kHeader + r->bytes;
    b->resident += kHeader + r->resident;
    if (r == last_) last_ = b;
  }
  if (HeapBlock* const l = b->left; l && l->free) {
    unlink(l);
    l->bytes += kHeader + b->bytes;
    l->resident += kHeader + b->resident;
    if (b == last_) last_ = l;
    b = l;
  }
  if (HeapBlock* const r = right_of(b)) r->left = b;
  link(b);
}

int64_t Heap::release() noexcept {
  int64_t freed = 0;
  for (HeapBlock* bin : bins_) {
    for (HeapBlock* b = bin; b; b = b->next) {
      if (b->resident == 0) continue;
      freed += b->resident;
      drop_pages(b);
    }
  }
  cached_ = 0;
  return freed;
}

int64_t Heap::largest_free() const noexcept {
  int64_t most = 0;
  for (const HeapBlock* bin : bins_) {
    for (const HeapBlock* b = bin; b; b = b->next) most = std::max(most, b->resident);
  }
  return most;
}

int64_t Heap::growth(int64_t bytes) const noexcept {
  bytes = rounded(bytes);
  const HeapBlock* b = find(bytes);
  if (!b && last_ && last_->free) b = last_;
  return bytes - (b ? std::min(bytes, b->resident) : 0);
}

}  // namespace cutaway
