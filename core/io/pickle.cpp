#include <cutaway/core/io/pickle.h>

#include <fmt/format.h>
#include <algorithm>
#include <bit>

#include <cutaway/core/error.h>

namespace cutaway::io::pickle {
namespace {

// Bounds of what a hostile file may build; a checkpoint of 100 000 tensors stays below them.
constexpr size_t kMaxValues = size_t(1) << 21;
constexpr uint32_t kNothing = ~uint32_t(0);

constexpr std::string_view kOrdered = "collections OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils _rebuild_parameter";

bool is_storage_type(std::string_view global) {
  return global.starts_with("torch ") && global.ends_with("Storage") &&
         global.find('.') == std::string_view::npos;
}

}  // namespace

void Machine::fail(const std::string& rule) const {
  hooks_.fail(fmt::format("{} (byte {} of its pickle)", rule, at_));
  throw IoError("torch", rule);
}

std::string_view Machine::take(uint64_t n) {
  if (n > bytes_.size() - at_) fail("is cut off or claims a length beyond its end");
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, size_t(n));
  at_ += size_t(n);
  return text;
}

uint64_t Machine::unsigned_number(int width) {
  uint64_t value = 0;
  const std::string_view bytes = take(uint64_t(width));
  for (int i = 0; i < width; ++i) value |= uint64_t(uint8_t(bytes[size_t(i)])) << (8 * i);
  return value;
}

std::string_view Machine::line() {
  const auto begin = bytes_.begin() + int64_t(at_);
  const auto end = std::find(begin, bytes_.end(), uint8_t('\n'));
  if (end == bytes_.end()) fail("is cut off in a name");
  const std::string_view text = take(uint64_t(end - begin));
  take(1);
  return text;
}

uint32_t Machine::add(Value v) {
  if (values_.size() >= kMaxValues) fail(fmt::format("holds more than {} values", kMaxValues));
  values_.push_back(std::move(v));
  return uint32_t(values_.size() - 1);
}

uint32_t Machine::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("takes a value where none is");
  return stack_.back();
}

uint32_t Machine::pop() {
  const uint32_t id = top();
  stack_.pop_back();
  return id;
}

std::vector<uint32_t> Machine::pop_mark() {
  if (marks_.empty()) fail("ends a group that did not begin");
  const auto begin = stack_.begin() + int64_t(marks_.back());
  std::vector<uint32_t> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

void Machine::push_group(Kind kind, size_t n) {
  std::vector<uint32_t> items(n);
  for (size_t i = n; i > 0; --i) items[i - 1] = pop();
  push({.kind = kind, .items = std::move(items)});
}

void Machine::push_global(std::string_view module, std::string_view name) {
  // Both stand in the pickle, so that their joined text must be kept by one of the known names.
  const std::string full = fmt::format("{} {}", module, name);
  for (const std::string_view known : {kOrdered, kRebuildTensor, kRebuildParameter}) {
    if (full == known) return push({.kind = Kind::global, .text = known});
  }
  if (is_storage_type(full)) return push({.kind = Kind::global, .text = name});
  fail(fmt::format("refuses the global {}.{}: only tensors and plain data are read",
                   module.substr(0, 200), name.substr(0, 200)));
}

void Machine::append(const std::vector<uint32_t>& items, Kind kind) {
  Value& to = values_[top()];
  if (to.kind != kind || (kind == Kind::dict && items.size() % 2)) {
    fail(kind == Kind::dict ? "sets items of what is no dictionary" : "appends to what is no list");
  }
  to.items.insert(to.items.end(), items.begin(), items.end());
}

void Machine::remember(uint64_t at) {
  // Pickles number their memo from 0 upwards; a far number would only ask for memory.
  if (at > memo_.size() + 4096 || at > kMaxValues) {
    fail(fmt::format("uses memo place {} after {} others", at, memo_.size()));
  }
  if (at >= memo_.size()) memo_.resize(size_t(at) + 1, kNothing);
  memo_[size_t(at)] = top();
}

void Machine::recall(uint64_t at) {
  if (at >= memo_.size() || memo_[size_t(at)] == kNothing) {
    fail(fmt::format("reads memo place {}, which is empty", at));
  }
  stack_.push_back(memo_[size_t(at)]);
}

// Opcodes that push a number, text or constant.
bool Machine::step_value(uint8_t op) {
  const auto number = [&](int64_t v) { push({.kind = Kind::number, .number = v}); };
  switch (op) {
    case 'N':
      push({});
      return true;
    case 0x88:
      number(1);
      return true;
    case 0x89:
      number(0);
      return true;
    case 'K':
      number(int64_t(unsigned_number(1)));
      return true;
    case 'M':
      number(int64_t(unsigned_number(2)));
      return true;
    case 'J':
      number(int32_t(uint32_t(unsigned_number(4))));
      return true;
    case 0x8a: {  // little-endian two's complement
      const auto width = int(unsigned_number(1));
      if (width > 8) fail(fmt::format("has a whole number of {} bytes; at most 8", width));
      uint64_t v = unsigned_number(width);
      if (width > 0 && width < 8 && v >> (8 * width - 1)) v |= ~uint64_t(0) << (8 * width);
      number(int64_t(v));
      return true;
    }
    case 'G':
      take(8);
      push({.kind = Kind::real});
      return true;
    case 'X':
    case 'B':
    case 'T':
      push_text(unsigned_number(4));
      return true;
    case 0x8c:
    case 'C':
    case 'U':
      push_text(unsigned_number(1));
      return true;
    case 0x8d:
    case 0x8e:
      push_text(unsigned_number(8));
      return true;
    default:
      return false;
  }
}

bool Machine::step_memo(uint8_t op) {
  switch (op) {
    case 'q':
      remember(unsigned_number(1));
      return true;
    case 'r':
      remember(unsigned_number(4));
      return true;
    case 0x94:
      remember(memo_.size());
      return true;
    case 'h':
      recall(unsigned_number(1));
      return true;
    case 'j':
      recall(unsigned_number(4));
      return true;
    default:
      return false;
  }
}

// Opcodes of tuples, lists and dictionaries.
bool Machine::step_group(uint8_t op) {
  switch (op) {
    case '}':
      push({.kind = Kind::dict});
      return true;
    case ']':
      push({.kind = Kind::list});
      return true;
    case ')':
      push({.kind = Kind::tuple});
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      push_group(Kind::tuple, size_t(op - 0x84));
      return true;
    case 't':
    case 'l':
    case 'd': {
      std::vector<uint32_t> items = pop_mark();
      if (op == 'd' && items.size() % 2) fail("has a dictionary with a key without a value");
      push({.kind = op == 't'   ? Kind::tuple
                    : op == 'l' ? Kind::list
                                : Kind::dict,
            .items = std::move(items)});
      return true;
    }
    case 'a':
      append({pop()}, Kind::list);
      return true;
    case 'e':
      append(pop_mark(), Kind::list);
      return true;
    case 's': {
      const uint32_t value = pop(), key = pop();
      append({key, value}, Kind::dict);
      return true;
    }
    case 'u':
      append(pop_mark(), Kind::dict);
      return true;
    default:
      return false;
  }
}

void Machine::push_named_global() {
  const uint32_t name = pop(), module = pop();
  if (values_[name].kind != Kind::text || values_[module].kind != Kind::text) {
    fail("names a global by what is no text");
  }
  push_global(values_[module].text, values_[name].text);
}

// One opcode; false for the one that ends the pickle.
bool Machine::step(uint8_t op) {
  if (step_value(op) || step_memo(op) || step_group(op)) return true;
  switch (op) {
    case '.':
      return false;
    case 0x80:
      if (const uint64_t protocol = unsigned_number(1); protocol < 2 || protocol > 5) {
        fail(fmt::format("is of protocol {}; need 2 to 5", protocol));
      }
      return true;
    case 0x95:
      take(8);
      return true;  // frames only help readers of streams
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      pop();
      return true;
    case '1':
      pop_mark();
      return true;
    case '2':
      stack_.push_back(top());
      return true;
    case 'c': {
      const std::string_view module = line();
      push_global(module, line());
      return true;
    }
    case 0x93:
      push_named_global();
      return true;
    case 'Q': {
      const uint32_t id = pop();
      push({.kind = Kind::storage, .tensor = hooks_.storage(values_, values_[id])});
      return true;
    }
    case 'R':
      reduce();
      return true;
    case 'b':
      build();
      return true;
    default:
      fail(fmt::format("refuses the opcode 0x{:02x}", op));
  }
}

uint32_t Machine::run() {
  for (;;) {
    const uint64_t op = unsigned_number(1);
    if (!step(uint8_t(op))) return pop();
  }
}

void Machine::reduce() {
  const uint32_t arguments = pop(), function = pop();
  const Value& f = values_[function];
  if (f.kind != Kind::global || values_[arguments].kind != Kind::tuple) {
    fail("calls what is no known function");
  }
  const std::vector<uint32_t>& items = values_[arguments].items;
  if (f.text == kRebuildTensor) {
    push({.kind = Kind::tensor, .tensor = rebuild(items)});
  } else if (f.text == kRebuildParameter) {
    if (items.empty() || values_[items[0]].kind != Kind::tensor) {
      fail("has a parameter without a tensor");
    }
    stack_.push_back(items[0]);
  } else if (f.text == kOrdered) {
    if (!items.empty()) fail("makes an OrderedDict of arguments; need none");
    push({.kind = Kind::dict});
  } else {
    fail(fmt::format("calls torch.{}", f.text));
  }
}

// The attributes of an OrderedDict (a state dictionary has the versions of its modules there).
void Machine::build() {
  pop();
  if (values_[top()].kind != Kind::dict) fail("sets attributes of what is no dictionary");
}

Shape Machine::numbers_of(uint32_t tuple, const char* what) const {
  const Value& v = values_[tuple];
  if (v.kind != Kind::tuple) fail(fmt::format("has a tensor whose {} is no tuple", what));
  if (v.items.size() > size_t(kMaxRank)) {
    fail(fmt::format("has a tensor of {} dimensions; at most {} are supported", v.items.size(),
                     kMaxRank));
  }
  Shape out;
  for (const uint32_t id : v.items) {
    if (values_[id].kind != Kind::number || values_[id].number < 0) {
      fail(fmt::format("has a tensor whose {} is not of whole numbers ≥ 0", what));
    }
    out.push_back(values_[id].number);
  }
  return out;
}

Tensor Machine::rebuild(const std::vector<uint32_t>& items) const {
  if (items.size() < 4 || values_[items[0]].kind != Kind::storage ||
      values_[items[1]].kind != Kind::number || values_[items[1]].number < 0) {
    fail("has a tensor without storage, offset, size and stride");
  }
  const Tensor& base = values_[items[0]].tensor;
  const Layout layout{.sizes = numbers_of(items[2], "size"),
                      .strides = numbers_of(items[3], "stride"),
                      .offset = values_[items[1]].number};
  if (layout.sizes.rank() != layout.strides.rank())
    fail("has a tensor with other strides than sizes");
  int64_t last = layout.offset, numel = 1;
  bool overflow = false;
  for (int d = 0; d < layout.sizes.rank(); ++d) {
    int64_t reach = 0;
    const int64_t n = std::max<int64_t>(layout.sizes[d], 1);
    overflow = __builtin_mul_overflow(numel, n, &numel) || overflow;
    overflow = __builtin_mul_overflow(n - 1, layout.strides[d], &reach) || overflow;
    overflow = __builtin_add_overflow(last, reach, &last) || overflow;
  }
  int64_t bytes = 0;
  overflow = __builtin_mul_overflow(numel, int64_t(8), &bytes) || overflow;
  const bool nothing = layout.sizes.contains(0);
  if (overflow || (nothing ? layout.offset > base.numel() : last >= base.numel())) {
    fail(fmt::format(
        "has a tensor of sizes {}, strides {} and offset {} in a storage of {} elements",
        to_string(layout.sizes), to_string(layout.strides), layout.offset, base.numel()));
  }
  if (nothing) return empty(layout.sizes, {.dtype = base.dtype()});
  return make_view(base, layout);
}

}  // namespace cutaway::io::pickle
