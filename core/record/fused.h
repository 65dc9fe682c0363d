#pragma once
#include <array>
#include <string>
#include <vector>

#include <cutaway/core/kernels/pointwise.h>
#include <cutaway/core/record/recorder.h>

namespace cutaway::recording {

// First and last call that use a block; −1: none.
struct Uses {
  int first = -1, last = -1;
};

// Note: fused chains. Elementwise kernels that follow each other and walk the same number of
// elements in the same order run tile by tile: the first tile through all kernels, then the next.
// A tile stays in the first cache, and a value that only the chain reads lives in a buffer of one
// tile instead of memory of its own. Each element goes through the same arithmetic as before, so
// the bits are the same.
class FusedChain {
 public:
  static constexpr int64_t kTile = 2048;  // elements
  static constexpr size_t kMost = 16;     // kernels

  // Calls [begin, end) of the tape, which are moved from; uses[b] as they were before any was.
  FusedChain(Tape& tape, size_t begin, size_t end, const std::vector<Uses>& uses);
  FusedChain(FusedChain&&) = delete;

  // The call that stands for the chain.
  Call as_call();
  const std::vector<Call>& links() const { return links_; }
  // Whether a block lives in tiles only.
  bool inside(int block) const;

 private:
  struct Walk {
    int64_t step = 0;  // bytes from one element to the next; 0 repeats
    int slot = -1;     // tile buffer, or −1
  };
  void run() const;
  void run_range(int64_t begin, int64_t end) const;

  std::vector<Call> links_;
  std::vector<std::array<Walk, 4>> walks_;  // result and inputs of each
  std::vector<int> inside_;                 // blocks; the index is the slot
  int64_t elements_ = 0, tile_ = kTile;
};

// The uses of every block; one that outlives the calls has the number of calls as its last.
std::vector<Uses> uses_of(const Tape& tape);
// One behind the last call of the longest chain that begins at `begin`.
size_t chain_end(const Tape& tape, size_t begin);

}  // namespace cutaway::recording
