#include <cutaway/cuda/recorded_draws.h>

#include <cutaway/core/error.h>

namespace cutaway::cuda {
namespace {

thread_local RecordedDraws* current = nullptr;

bool same_numbers(const Generator& a, uint64_t seed, uint64_t stream) {
  return a.seed == seed && a.stream == stream;
}

}  // namespace

RecordedDraws::RecordedDraws(Device device)
    : device_(device),
      start_(default_generator()),
      distance_(static_cast<uint64_t*>(
          backend(device.kind).allocate(device.index, int64_t(sizeof(uint64_t))))),
      outer_(current) {
  current = this;
}
RecordedDraws::~RecordedDraws() {
  if (current == this) current = outer_;
  backend(device_.kind).release(device_.index, distance_, int64_t(sizeof(uint64_t)));
}

void RecordedDraws::end() {
  current = outer_;
  blocks_ = default_generator().offset - start_.offset;
  default_generator() = start_;
}

void RecordedDraws::begin_replay() {
  if (blocks_ == 0) return;
  Generator& now = default_generator();
  if (!same_numbers(now, start_.seed, start_.stream)) {
    throw ValueError("graph",
                     "the default generator has another seed than when the step was recorded",
                     "record the step again after manual_seed");
  }
  const uint64_t distance = now.offset - start_.offset;
  backend(device_.kind).copy_from_host(device_.index, distance_, &distance, sizeof(distance));
  now.offset += blocks_;
}

const uint64_t* draw_distance(const RandomArgs& a) {
  if (!current) [[likely]]
    return nullptr;
  const Generator& start = current->start_;
  const bool of_default = same_numbers(start, a.seed, a.stream) && a.offset >= start.offset &&
                          a.offset < default_generator().offset;
  if (!of_default) {
    throw ValueError("graph",
                     "a recorded step draws from a generator of its own, whose numbers every "
                     "replay would repeat",
                     "draw from the default generator");
  }
  return current->distance_;
}

}  // namespace cutaway::cuda
