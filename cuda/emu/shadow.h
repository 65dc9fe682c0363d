#pragma once
#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

namespace cutaway::cuda::emu {

// Who touched a place last: enough to say whether a barrier lies between.
struct Stamp {
  uint64_t run = 0;  // launch (global memory) or block (shared memory); 0: nobody
  uint32_t block = 0;
  uint16_t thread = 0;
  uint8_t bytes = 0;  // of the granule, a bit each
  bool atomic = false;
  uint32_t block_epoch = 0;  // barriers of the block passed so far
  uint32_t warp_epoch = 0;   // __syncwarp passed so far
  std::source_location at;
};

enum class AccessKind : uint8_t { read, write, atomic };

// What is known of each byte of a buffer: whether it was written, and by whom it was last used.
// Memory for it is taken as places are touched.
class Shadow {
 public:
  explicit Shadow(int64_t bytes);

  // True if all bytes have been written.
  bool written(int64_t offset, int64_t bytes) const;
  void set_written(int64_t offset, int64_t bytes, bool value = true);
  // A copy on the device: target bytes are as much written as their sources.
  void copy_written(int64_t offset, const Shadow& from, int64_t from_offset, int64_t bytes);
  // Notes an access. Returns the earlier one it races with, or null.
  const Stamp* touch(int64_t offset, int bytes, AccessKind kind, const Stamp& who);

 private:
  static constexpr int64_t kGranule = 4, kChunk = 1024;  // bytes, granules
  struct Cell {
    Stamp write, read;
    bool several_readers = false;  // not only `read`, without an order between them
    bool several_warps = false;    // some of them in another warp than `read`
  };
  Cell& cell(int64_t granule);
  static Stamp another_reader(const Cell& c);

  int64_t bytes_;
  std::vector<uint8_t> written_;
  std::vector<std::unique_ptr<Cell[]>> chunks_;
};

}  // namespace cutaway::cuda::emu
