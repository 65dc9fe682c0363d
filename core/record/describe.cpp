#include <fmt/format.h>

#include <cutaway/core/record/program.h>
#include <cutaway/core/text.h>

namespace cutaway::recording {
namespace {

using Access = ArgumentVisitor::Access;

// Collects the sizes that a kernel's arguments name.
class SizesText : public ArgumentVisitor {
 public:
  std::string text;
  void numbers(std::initializer_list<Number> list) override {
    for (const Number& n : list) add(fmt::format("{} {}", n.first, n.second));
  }
  void sizes(const int64_t* sizes, int rank) override {
    std::string s;
    for (int d = 0; d < rank; ++d) s += fmt::format("{}{}", d ? "," : "", sizes[d]);
    add("[" + s + "]");
  }

 protected:
  void pointer(void*, Access) override {}
  const void* host_copy(const void* list, size_t) override { return list; }
  void* host_place(void* result, size_t) override { return result; }

 private:
  void add(const std::string& s) { text += (text.empty() ? "" : "  ") + s; }
};

std::string sizes_text(const Call& c) {
  if (c.kind == Call::Kind::draw) return fmt::format("n {}", c.draw_elements);
  if (c.kind != Call::Kind::kernel) return {};
  SizesText visitor;
  c.info->visit(visitor, c.call.args);
  return visitor.text;
}

// "+1024" in the arena, "in0", "result", "given" for what was there before, "tile".
std::string place_text(const Program& p, const Operand& o, const FusedChain* chain) {
  const Block& b = p.blocks()[size_t(o.block)];
  std::string s;
  switch (b.kind) {
    case Block::Kind::temporary:
      if (chain && chain->inside(o.block)) return fmt::format("tile#{}", o.block);
      return fmt::format("+{}", b.place + o.offset);
    case Block::Kind::constant:
      s = "constant";
      break;
    case Block::Kind::result:
      s = fmt::format("result#{}", o.block);
      break;
    case Block::Kind::input:
      s = fmt::format("input{}", b.input);
      break;
    case Block::Kind::outside:
      s = fmt::format("given#{}", o.block);
      break;
  }
  return o.offset ? fmt::format("{}+{}", s, o.offset) : s;
}

std::string line_of(const Program& p, const Call& c, const FusedChain* chain) {
  std::string out, in;
  for (const Operand& o : c.operands) {
    const std::string s = place_text(p, o, chain);
    if (o.access != Access::read) out += (out.empty() ? "" : " ") + s;
    if (o.access != Access::write) in += (in.empty() ? "" : " ") + s;
  }
  std::string line =
      fmt::format("{:<22} {:<5} {:<32}", c.name,
                  c.kind == Call::Kind::kernel ? name_of(c.dtype) : "", sizes_text(c));
  if (!out.empty() || !in.empty()) line += " " + (out.empty() ? "-" : out) + " <- " + in;
  if (c.renew) line += "  (arguments renewed)";
  if (!c.results.empty()) line += "  (result checked)";
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

std::string Program::describe() const {
  std::string text = fmt::format(
      "{} calls, {} of them in {} fused chains; arena {}, results {}, without a plan {}\n",
      tape_->calls.size() + size_t(fused_calls_) - fused_.size(), fused_calls_, fused_.size(),
      bytes_text(arena_bytes_), bytes_text(result_bytes()), bytes_text(tape_->eager_peak));
  int number = 0;
  for (const Call& c : tape_->calls) {
    if (c.kind != Call::Kind::fused) {
      text += fmt::format("{:>4}  {}\n", number++, line_of(*this, c, nullptr));
      continue;
    }
    const auto& chain = *static_cast<const FusedChain*>(c.call.args);
    text += fmt::format("{:>4}  fused, {} kernels tile by tile\n", number++, chain.links().size());
    for (const Call& link : chain.links()) {
      text += fmt::format("        {}\n", line_of(*this, link, &chain));
    }
  }
  return text;
}

}  // namespace cutaway::recording
