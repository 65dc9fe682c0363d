#include <cutaway/cuda/emu/arena.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <new>

namespace cutaway::cuda::emu {
namespace {

constexpr int64_t kReturned = int64_t(1) << 20;  // free pieces from here on go back to the system

void return_pages(char* piece, int64_t bytes) noexcept {
  const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  const uintptr_t from = (uintptr_t(piece) + page - 1) / page * page;
  const uintptr_t to = (uintptr_t(piece) + uintptr_t(bytes)) / page * page;
  if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace

bool Arena::reserve(int64_t bytes) noexcept {
  for (; bytes >= int64_t(1) << 24; bytes /= 2) {
    void* p = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    begin_ = used_end_ = static_cast<char*>(p);
    capacity_ = bytes;
    return true;
  }
  return false;
}

void Arena::add_free(char* piece, int64_t bytes) {
  free_by_size_.emplace(bytes, piece);
  free_.emplace(piece, bytes);
}

void Arena::remove_free(char* piece, int64_t bytes) {
  free_by_size_.erase({bytes, piece});
  free_.erase(piece);
}

char* Arena::take(int64_t bytes) {
  bytes = (bytes + kStep - 1) / kStep * kStep;
  const auto fit = free_by_size_.lower_bound({bytes, nullptr});
  if (fit != free_by_size_.end()) {
    const auto [size, piece] = *fit;
    remove_free(piece, size);
    if (size > bytes) add_free(piece + bytes, size - bytes);
    return piece;
  }
  if (bytes > capacity_ - (used_end_ - begin_)) return nullptr;
  char* piece = used_end_;
  used_end_ += bytes;
  return piece;
}

void Arena::give(char* piece, int64_t bytes) noexcept {
  bytes = (bytes + kStep - 1) / kStep * kStep;
  try {
    auto after = free_.lower_bound(piece);
    if (after != free_.end() && after->first == piece + bytes) {
      const int64_t more = after->second;
      remove_free(piece + bytes, more);
      bytes += more;
    }
    after = free_.lower_bound(piece);
    if (after != free_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == piece) {
        remove_free(before, size);
        piece = before;
        bytes += size;
      }
    }
    if (bytes >= kReturned) return_pages(piece, bytes);
    add_free(piece, bytes);
  } catch (const std::bad_alloc&) {
    // The piece is lost to the arena; the program goes on.
  }
}

}  // namespace cutaway::cuda::emu
