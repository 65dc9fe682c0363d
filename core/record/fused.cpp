#include <cutaway/core/record/fused.h>

#include <algorithm>

#include <cutaway/core/parallel.h>

namespace cutaway::recording {
namespace {

using Access = ArgumentVisitor::Access;

constexpr int64_t kScratch = 65536;  // bytes of all tile buffers, on the stack of each thread

// Kernels whose results are booleans, and those whose first input is.
bool gives_booleans(const char* name) {
  namespace k = kernels;
  static const char* const names[] = {k::eq.name,          k::ne.name,          k::lt.name,
                                      k::le.name,          k::eq_scalar.name,   k::ne_scalar.name,
                                      k::lt_scalar.name,   k::le_scalar.name,   k::gt_scalar.name,
                                      k::ge_scalar.name,   k::logical_and.name, k::logical_or.name,
                                      k::logical_xor.name, k::logical_not.name, k::isnan.name,
                                      k::isinf.name,       k::isfinite.name};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}
bool takes_mask(const char* name) {
  return name == kernels::where.name || name == kernels::masked_fill.name;
}

const PointwiseArgs& args_of(const Call& c) {
  return *static_cast<const PointwiseArgs*>(c.call.args);
}

// Bytes of an element of the result (0) or of input k − 1.
int64_t element_bytes(const Call& c, int k) {
  if (k == 0 && gives_booleans(c.name)) return 1;
  if (k == 1 && takes_mask(c.name)) return 1;
  if (k == 1 && c.name == kernels::copy.name) return size_of(args_of(c).other);
  return size_of(c.dtype);
}

// Which argument an operand stands for: 0 the result, k an input.
int argument_of(const Call& c, const Operand& o) {
  const PointwiseArgs& a = args_of(c);
  for (int k = 0; k < 3; ++k) {
    if (o.at == reinterpret_cast<const char*>(&a.in[k])) return k + 1;
  }
  return 0;
}

int64_t step_of(const Call& c, int k) { return args_of(c).strides[k][0] * element_bytes(c, k); }

bool can_join(const Call& c) {
  if (c.kind != Call::Kind::kernel || c.info != &detail::kArgsInfo<PointwiseArgs>) return false;
  if (c.renew || !c.results.empty()) return false;
  const PointwiseArgs& a = args_of(c);
  if (a.rank != 1 || a.numel <= FusedChain::kTile || a.strides[0][0] != 1) return false;
  for (int k = 0; k < 3; ++k) {
    if (a.in[k] && a.strides[k + 1][0] != 0 && a.strides[k + 1][0] != 1) return false;
  }
  return true;
}

// Do two uses of a block meet element by element?
bool in_step(const Call& a, const Operand& x, const Call& b, const Operand& y) {
  const int i = argument_of(a, x), k = argument_of(b, y);
  return x.offset == y.offset && step_of(a, i) == step_of(b, k) &&
         element_bytes(a, i) == element_bytes(b, k);
}

// Whether `c` may run tile by tile behind the calls [begin, end).
bool fits(const Tape& tape, size_t begin, size_t end, const Call& c) {
  for (size_t i = begin; i < end; ++i) {
    const Call& before = tape.calls[i];
    for (const Operand& x : before.operands) {
      for (const Operand& y : c.operands) {
        const bool written = x.access != Access::read || y.access != Access::read;
        if (x.block == y.block && written && !in_step(before, x, c, y)) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<Uses> uses_of(const Tape& tape) {
  std::vector<Uses> uses(tape.blocks.size());
  for (size_t i = 0; i < tape.calls.size(); ++i) {
    for (const Operand& o : tape.calls[i].operands) {
      Uses& u = uses[size_t(o.block)];
      if (u.first < 0) u.first = int(i);
      u.last = int(i);
    }
  }
  for (size_t b = 0; b < uses.size(); ++b) {
    if (tape.blocks[b].kind != Block::Kind::temporary) uses[b].last = int(tape.calls.size());
  }
  return uses;
}

size_t chain_end(const Tape& tape, size_t begin) {
  const std::vector<Call>& calls = tape.calls;
  size_t end = begin;
  while (end < calls.size() && end - begin < FusedChain::kMost && can_join(calls[end]) &&
         args_of(calls[end]).numel == args_of(calls[begin]).numel &&
         fits(tape, begin, end, calls[end])) {
    ++end;
  }
  return end;
}

FusedChain::FusedChain(Tape& tape, size_t begin, size_t end, const std::vector<Uses>& uses)
    : elements_(args_of(tape.calls[begin]).numel) {
  int64_t width = 1;
  for (size_t i = begin; i < end; ++i) {
    const Call& c = tape.calls[i];
    for (const Operand& o : c.operands) {
      const Block& b = tape.blocks[size_t(o.block)];
      const int64_t bytes = element_bytes(c, argument_of(c, o));
      // Made here, as a whole, and gone at the end of the chain.
      const bool made = o.access == Access::write && o.offset == 0 && b.bytes == elements_ * bytes;
      if (made && uses[size_t(o.block)].first == int(i) && uses[size_t(o.block)].last < int(end) &&
          !inside(o.block)) {
        inside_.push_back(o.block);
        width = std::max(width, bytes);
      }
    }
  }
  if (!inside_.empty()) {
    const int64_t room = kScratch / (width * int64_t(inside_.size())) / 64 * 64;
    tile_ = std::min(kTile, room);
  }
  for (size_t i = begin; i < end; ++i) {
    Call& c = tape.calls[i];
    std::array<Walk, 4> walk;
    for (const Operand& o : c.operands) {
      const int k = argument_of(c, o);
      const auto slot = std::find(inside_.begin(), inside_.end(), o.block);
      walk[size_t(k)] = {step_of(c, k), slot == inside_.end() ? -1 : int(slot - inside_.begin())};
    }
    walks_.push_back(walk);
    links_.push_back(std::move(c));
  }
}

bool FusedChain::inside(int block) const {
  return std::find(inside_.begin(), inside_.end(), block) != inside_.end();
}

Call FusedChain::as_call() {
  Call c{.kind = Call::Kind::fused, .name = "fused"};
  c.call = {[](const RecordedCall& call) { static_cast<const FusedChain*>(call.args)->run(); },
            nullptr, this};
  for (const Call& link : links_) {
    for (const Operand& o : link.operands) {
      if (!inside(o.block)) c.operands.push_back(o);
    }
  }
  return c;
}

void FusedChain::run() const {
  parallel_for(elements_, kGrain, [this](int64_t begin, int64_t end) { run_range(begin, end); });
}

void FusedChain::run_range(int64_t begin, int64_t end) const {
  alignas(64) char scratch[kScratch];
  const int64_t room = inside_.empty() ? 0 : kScratch / int64_t(inside_.size()) / 64 * 64;
  PointwiseArgs args[kMost];
  for (size_t l = 0; l < links_.size(); ++l) args[l] = args_of(links_[l]);
  for (int64_t at = begin; at < end; at += tile_) {
    const int64_t n = std::min(tile_, end - at);
    for (size_t l = 0; l < links_.size(); ++l) {
      const PointwiseArgs& whole = args_of(links_[l]);
      PointwiseArgs& a = args[l];
      const std::array<Walk, 4>& walk = walks_[l];
      a.numel = a.sizes[0] = n;
      a.out = walk[0].slot >= 0 ? scratch + walk[0].slot * room
                                : static_cast<char*>(whole.out) + at * walk[0].step;
      for (size_t k = 0; k < 3; ++k) {
        if (!whole.in[k]) continue;
        a.in[k] = walk[k + 1].slot >= 0
                      ? scratch + walk[k + 1].slot * room
                      : static_cast<const char*>(whole.in[k]) + at * walk[k + 1].step;
      }
      const RecordedCall& call = links_[l].call;
      call.run({call.run, call.fn, &a});
    }
  }
}

}  // namespace cutaway::recording
