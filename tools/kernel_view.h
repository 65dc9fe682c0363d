#pragma once
#include <string>
#include <vector>

#include <cutaway/cuda/emu/counters.h>

// What launches did to memory, for people: tables and pictures of the emulator's counters.
namespace cutaway::tools {

// A table of one launch: its totals, and a line for each line of the kernel that touches memory,
// with the text of that line where the sources are at hand.
std::string launch_table(const cuda::emu::LaunchCounters& launch);

// The requests of the first warp as a picture (SVG): lanes down, time to the right. Global memory:
// the grey tells the cache line (128 bytes) a lane touches; shared memory: the pass over the banks
// that serves it. White lanes are idle, dashed lines are barriers.
std::string warp_picture(const cuda::emu::Collected& launch);

}  // namespace cutaway::tools
