#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace cutaway::cuda::emu {

// One range of addresses, reserved at once, from which pieces are cut and into which they are
// joined again: smallest fitting piece first. Not safe for several threads at a time.
class Arena {
 public:
  static constexpr int64_t kStep = 64;  // pieces are multiples of it and aligned to it

  // Reserves at most `bytes` of address space; less when the system refuses. Says whether it
  // worked.
  bool reserve(int64_t bytes) noexcept;
  // Null when no free piece is large enough.
  char* take(int64_t bytes);
  void give(char* piece, int64_t bytes) noexcept;

  char* begin() const { return begin_; }
  char* used_end() const { return used_end_; }  // nothing beyond was ever handed out
  int64_t capacity() const { return capacity_; }

 private:
  void add_free(char* piece, int64_t bytes);
  void remove_free(char* piece, int64_t bytes);

  char* begin_ = nullptr;
  char* used_end_ = nullptr;
  int64_t capacity_ = 0;
  std::map<char*, int64_t> free_;                     // by address
  std::set<std::pair<int64_t, char*>> free_by_size_;  // the same
};

}  // namespace cutaway::cuda::emu
