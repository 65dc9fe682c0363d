#include <cutaway/cuda/emu/limits.h>

#include <fmt/format.h>

#include <numeric>

#include <cutaway/cuda/emu/fault.h>

namespace cutaway::cuda::emu {

void check_limits(const Launch& l) {
  const auto bad = [&](const std::string& what) {
    throw KernelFault(l.name, FaultKind::bad_launch, l.at, what, "see the limits in docs/cuda.md");
  };
  const uint64_t threads = uint64_t{l.block.x} * l.block.y * l.block.z;
  if (threads == 0 || threads > kMaxThreads || l.block.z > 64) {
    bad(fmt::format("blocks of {} x {} x {} threads; need 1 to {}", l.block.x, l.block.y, l.block.z,
                    kMaxThreads));
  }
  if (l.grid.x == 0 || l.grid.y == 0 || l.grid.z == 0 || l.grid.x > 0x7fffffffu ||
      l.grid.y > 65535 || l.grid.z > 65535) {
    bad(fmt::format("a grid of {} x {} x {} blocks; need 1 to 2^31-1, 65535, 65535", l.grid.x,
                    l.grid.y, l.grid.z));
  }
  if (l.shared < 0 || l.shared > kShared) {
    bad(fmt::format("{} bytes of dynamic shared memory; need 0 to {}", l.shared, kShared));
  }
}

int64_t block_at(int64_t position, int64_t blocks, const Options& o) {
  if (o.order == Order::forward) return position;
  if (o.order == Order::reverse) return blocks - 1 - position;
  // A walk with a step that has no divisor in common with the number visits each once.
  int64_t step = int64_t(o.seed % 1000003u) + blocks / 2 + 1;
  while (std::gcd(step, blocks) != 1) ++step;
  return int64_t((__int128(position) * step + int64_t(o.seed % uint64_t(blocks))) % blocks);
}

}  // namespace cutaway::cuda::emu
