#include <cutaway/core/record/program.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include <cutaway/core/alloc/pool.h>
#include <cutaway/core/record/fused.h>

namespace cutaway::recording {

using Access = ArgumentVisitor::Access;

void Program::run_checked(const RecordedCall& call) {
  const Checked& c = *static_cast<const Checked*>(call.args);
  for (const Call::Result& r : *c.results) std::memcpy(r.place, r.before.data(), r.before.size());
  c.inner.run(c.inner);
  for (const Call::Result& r : *c.results) {
    if (std::memcmp(r.place, r.after.data(), r.after.size()) != 0) throw ReplayStopped{};
  }
}

void Program::run_renewed(const RecordedCall& call) {
  const Renewed& c = *static_cast<const Renewed*>(call.args);
  if ((*c.renew)(c.inner.args)) c.inner.run(c.inner);
}

void Program::run_host(const RecordedCall& call) {
  const Call& c = *static_cast<const Call*>(call.args);
  c.host(static_cast<const void* const*>(c.call.args));
}

void Program::run_draw(const RecordedCall& call) {
  const Call& c = *static_cast<const Call*>(call.args);
  const Generator at = cutaway::draw(c.draw_elements);
  for (size_t i = 0; i < c.states.size(); i += 3) {
    *c.states[i] = at.seed;
    *c.states[i + 1] = at.stream;
    *c.states[i + 2] = at.offset;
  }
}

Program::Program(std::unique_ptr<Tape> tape, const ProgramOptions& options)
    : tape_(std::move(tape)) {
  move_checks_forward();
  if (options.fuse) fuse_chains();
  note_lifetimes();
  place_blocks();
  link();
}

Program::~Program() {
  if (arena_) pool_free(arena_, arena_bytes_);
}

// Checks of what was there before the step run before anything is written, where nothing of the
// step reaches them.
void Program::move_checks_forward() {
  std::vector<Call>& calls = tape_->calls;
  std::vector<bool> written(tape_->blocks.size());
  std::vector<Call> first, rest;
  for (Call& c : calls) {
    const bool early =
        !c.results.empty() && std::all_of(c.operands.begin(), c.operands.end(), [&](auto& o) {
          return o.access == Access::read && !written[size_t(o.block)] &&
                 tape_->blocks[size_t(o.block)].kind != Block::Kind::temporary;
        });
    for (const Operand& o : c.operands) {
      if (o.access != Access::read) written[size_t(o.block)] = true;
    }
    (early ? first : rest).push_back(std::move(c));
  }
  std::move(rest.begin(), rest.end(), std::back_inserter(first));
  calls = std::move(first);
}

void Program::fuse_chains() {
  std::vector<Call>& calls = tape_->calls;
  const std::vector<Uses> uses = uses_of(*tape_);
  std::vector<Call> out;
  for (size_t i = 0; i < calls.size();) {
    const size_t end = chain_end(*tape_, i);
    if (end - i < 2) {
      out.push_back(std::move(calls[i++]));
      continue;
    }
    fused_calls_ += int64_t(end - i);
    fused_.emplace_back(*tape_, i, end, uses);
    out.push_back(fused_.back().as_call());
    i = end;
  }
  calls = std::move(out);
}

void Program::note_lifetimes() {
  for (size_t i = 0; i < tape_->calls.size(); ++i) {
    for (const Operand& o : tape_->calls[i].operands) {
      Block& b = tape_->blocks[size_t(o.block)];
      if (b.first < 0) b.first = int(i);
      b.last = int(i);
    }
  }
}

void Program::place_blocks() {
  std::vector<Block>& blocks = tape_->blocks;
  std::vector<int> order;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& b = blocks[i];
    if (b.kind == Block::Kind::temporary && b.first >= 0 && b.bytes > 0) order.push_back(int(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return blocks[size_t(a)].bytes > blocks[size_t(b)].bytes; });
  std::vector<int> placed;  // by offset
  for (const int index : order) {
    Block& b = blocks[size_t(index)];
    const int64_t bytes = (b.bytes + 63) / 64 * 64;
    int64_t at = 0;
    for (const int other : placed) {
      const Block& p = blocks[size_t(other)];
      if (p.last < b.first || p.first > b.last) continue;
      if (p.place >= at + bytes) break;
      at = std::max(at, p.place + (p.bytes + 63) / 64 * 64);
    }
    b.place = at;
    arena_bytes_ = std::max(arena_bytes_, at + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                   [&](int x, int y) {
                                     return blocks[size_t(x)].place < blocks[size_t(y)].place;
                                   }),
                  index);
  }
  if (arena_bytes_ == 0) return;
  trim_memory();  // what the step needed without a plan lies in the cache now
  arena_ = static_cast<char*>(pool_allocate(arena_bytes_));
}

RecordedCall Program::wrapped(Call& c) {
  if (c.kind == Call::Kind::host) return {&run_host, nullptr, &c};
  if (c.kind == Call::Kind::draw) return {&run_draw, nullptr, &c};
  RecordedCall call = c.call;
  if (c.renew) {
    renewed_.push_back({call, &c.renew});
    call = {&run_renewed, nullptr, &renewed_.back()};
  }
  if (!c.results.empty()) {
    checked_.push_back({call, &c.results});
    call = {&run_checked, nullptr, &checked_.back()};
  }
  return call;
}

// Writes the final addresses into the arguments and makes the list.
void Program::link() {
  uses_.resize(tape_->blocks.size());
  for (Call& c : tape_->calls) {
    for (const Operand& o : c.operands) {
      Block& b = tape_->blocks[size_t(o.block)];
      if (b.kind == Block::Kind::input || b.kind == Block::Kind::result) {
        uses_[size_t(o.block)].push_back(&o);
      }
      if (b.kind != Block::Kind::temporary || b.place < 0) continue;
      char* address = arena_ + b.place + o.offset;
      std::memcpy(o.at, &address, sizeof address);
    }
    list_.push_back(wrapped(c));
  }
  for (const Block& b : tape_->blocks) {
    if (b.kind == Block::Kind::outside && b.changed) changed_outside_.push_back(b.storage);
  }
}

void Program::bind(int block, char* base) {
  Block& b = tape_->blocks[size_t(block)];
  if (b.base == base) return;
  b.base = base;
  for (const Operand* o : uses_[size_t(block)]) {
    char* address = base + o->offset;
    std::memcpy(o->at, &address, sizeof address);
  }
}

void Program::give_storage(int block, Storage* taken) {
  Block& b = tape_->blocks[size_t(block)];
  b.storage->drop();
  b.storage = taken;
  bind(block, static_cast<char*>(taken->data));
}

void Program::bump_versions() {
  for (Storage* s : changed_outside_) s->bump("recorded step");
}

int Program::find_result(const Storage* storage) const {
  for (size_t i = 0; i < tape_->blocks.size(); ++i) {
    const Block& b = tape_->blocks[i];
    if (b.kind == Block::Kind::result && b.storage == storage) return int(i);
  }
  return -1;
}

int64_t Program::result_bytes() const {
  int64_t sum = 0;
  for (const Block& b : tape_->blocks) sum += b.kind == Block::Kind::result ? b.bytes : 0;
  return sum;
}

}  // namespace cutaway::recording
