#include <cutaway/core/rng.h>

#include <fmt/format.h>

#include <mutex>
#include <numeric>
#include <utility>

#include <cutaway/core/error.h>
#include <cutaway/core/math/philox.h>
#include <cutaway/core/record/hook.h>

namespace cutaway {
namespace {

constinit Generator shared_generator;
constinit std::mutex shared_mutex;

[[noreturn, gnu::cold, gnu::noinline]] void throw_negative(int64_t n) {
  throw ValueError("permutation", fmt::format("the length must not be negative; got {}", n));
}

}  // namespace

Generator& default_generator() { return shared_generator; }

void manual_seed(uint64_t seed) {
  const std::lock_guard lock(shared_mutex);
  shared_generator = {.seed = seed};
}

Generator draw(int64_t n) {
  Generator at;
  {
    const std::lock_guard lock(shared_mutex);
    at = shared_generator;
    at.offset = shared_generator.reserve(n);
  }
  if (recording_somewhere()) [[unlikely]] detail::record_draw(at, n);
  return at;
}

std::array<uint8_t, 24> to_bytes(const Generator& generator) {
  const uint64_t fields[3] = {generator.seed, generator.stream, generator.offset};
  std::array<uint8_t, 24> bytes;
  for (size_t i = 0; i < 24; ++i) bytes[i] = static_cast<uint8_t>(fields[i / 8] >> 8 * (i % 8));
  return bytes;
}

Generator generator_from_bytes(const std::array<uint8_t, 24>& bytes) {
  uint64_t fields[3] = {};
  for (size_t i = 0; i < 24; ++i) fields[i / 8] |= uint64_t{bytes[i]} << 8 * (i % 8);
  return {.seed = fields[0], .stream = fields[1], .offset = fields[2]};
}

std::vector<int64_t> permutation(int64_t n, Generator& generator) {
  if (n < 0) throw_negative(n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const uint64_t start = generator.reserve(n);
  for (uint64_t i = static_cast<uint64_t>(n); i-- > 1;) {
    const uint64_t j = math::bounded_u64(generator.seed, generator.stream, start, i, i + 1);
    std::swap(order[i], order[j]);
  }
  return order;
}

}  // namespace cutaway
