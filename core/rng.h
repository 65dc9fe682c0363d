#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace cutaway {

// A random number generator as a value: 24 bytes that fix every number to come. Number i of a draw
// depends on (seed, stream, start of the draw, i) only, see core/math/philox.h; so copies continue
// alike, and the result of a draw does not change with threads, chunks, device or its length.
struct Generator {
  uint64_t seed = 0;
  uint64_t stream = 0;  // below 2^63; different streams never overlap
  uint64_t offset = 0;  // blocks of four elements already used

  // Sets n elements aside (n ≥ 0, rounded up to whole blocks) and returns the block they start at.
  uint64_t reserve(int64_t n) {
    const uint64_t start = offset;
    offset += (static_cast<uint64_t>(n) + 3) / 4;
    return start;
  }
  friend bool operator==(const Generator&, const Generator&) = default;
};

// The generator used by every random op that is given none: one for the process, seed 0 at the
// start. The reference itself is not locked: read or assign through it only while no other thread
// draws. manual_seed and draw are safe from any thread, but threads that draw from it at the same
// time get their numbers in an order that may change from run to run; give each thread a Generator
// of its own.
Generator& default_generator();

// Restarts the default generator: {seed, stream 0, offset 0}.
void manual_seed(uint64_t seed);

// Reserves n elements of the default generator and returns it as it stood before: the numbers of
// the draw start at the result's offset.
Generator draw(int64_t n);

// 24 bytes: seed, stream, offset, each little-endian; and back.
std::array<uint8_t, 24> to_bytes(const Generator& generator);
Generator generator_from_bytes(const std::array<uint8_t, 24>& bytes);

// A random order of 0 … n−1, each of the n! equally likely (Fisher and Yates); takes n elements of
// the generator. Raises ValueError for n < 0. O(n).
std::vector<int64_t> permutation(int64_t n, Generator& generator);

}  // namespace cutaway
