#include <cutaway/cuda/emu/shadow.h>

#include <algorithm>

namespace cutaway::cuda::emu {
namespace {

// True if `before` is known to have happened before what `now` does.
bool ordered(const Stamp& before, const Stamp& now) {
  if (before.run != now.run) return true;
  if (before.block != now.block) return false;
  if (before.thread == now.thread || before.block_epoch < now.block_epoch) return true;
  return before.thread / 32 == now.thread / 32 && before.warp_epoch < now.warp_epoch;
}

bool clash(const Stamp& before, const Stamp& now) {
  return before.run != 0 && (before.bytes & now.bytes) != 0 && !(before.atomic && now.atomic) &&
         !ordered(before, now);
}

}  // namespace

Shadow::Shadow(int64_t bytes)
    : bytes_(bytes),
      written_(static_cast<size_t>(bytes), 0),
      chunks_(static_cast<size_t>(bytes / (kGranule * kChunk) + 1)) {}

bool Shadow::written(int64_t offset, int64_t bytes) const {
  const auto begin = written_.begin() + offset;
  return std::find(begin, begin + bytes, uint8_t{0}) == begin + bytes;
}

void Shadow::set_written(int64_t offset, int64_t bytes, bool value) {
  std::fill_n(written_.begin() + offset, bytes, uint8_t{value});
}

void Shadow::copy_written(int64_t offset, const Shadow& from, int64_t from_offset, int64_t bytes) {
  // Within one block the ranges may overlap, hence the copy.
  const std::vector<uint8_t> part(from.written_.begin() + from_offset,
                                  from.written_.begin() + from_offset + bytes);
  std::copy(part.begin(), part.end(), written_.begin() + offset);
}

Shadow::Cell& Shadow::cell(int64_t granule) {
  std::unique_ptr<Cell[]>& chunk = chunks_[static_cast<size_t>(granule / kChunk)];
  if (!chunk) chunk = std::make_unique<Cell[]>(kChunk);
  return chunk[static_cast<size_t>(granule % kChunk)];
}

// One of several readers that `read` does not name: in another warp if there is one.
Stamp Shadow::another_reader(const Cell& c) {
  Stamp reader = c.read;
  reader.thread = static_cast<uint16_t>(reader.thread ^ (c.several_warps ? 32 : 1));
  return reader;
}

const Stamp* Shadow::touch(int64_t offset, int bytes, AccessKind kind, const Stamp& who) {
  Stamp now = who;
  now.atomic = kind == AccessKind::atomic;
  for (int64_t at = offset; at < offset + bytes;) {
    const int64_t granule = at / kGranule;
    const int64_t end = std::min<int64_t>(offset + bytes, (granule + 1) * kGranule);
    const int low = static_cast<int>(at % kGranule), count = static_cast<int>(end - at);
    now.bytes = static_cast<uint8_t>(((1 << count) - 1) << low);
    Cell& c = cell(granule);
    if (clash(c.write, now)) return &c.write;
    if (kind == AccessKind::read) {
      const bool same =
          c.read.run == now.run && c.read.block == now.block && c.read.thread == now.thread;
      if (same || ordered(c.read, now)) {
        c.several_readers = c.several_readers && !ordered(another_reader(c), now);
        c.several_warps = c.several_warps && c.several_readers;
        c.read = now;
      } else {
        c.several_readers = true;
        c.several_warps =
            c.several_warps || c.read.block != now.block || c.read.thread / 32 != now.thread / 32;
      }
    } else {
      if (clash(c.read, now)) return &c.read;
      if (c.several_readers && clash(another_reader(c), now)) return &c.read;
      c.write = now;
    }
    at = end;
  }
  return nullptr;
}

}  // namespace cutaway::cuda::emu
