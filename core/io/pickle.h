#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::io::pickle {

enum class Kind : uint8_t { none, number, real, text, tuple, list, dict, global, storage, tensor };

// What a pickle builds. Values refer to each other by number, so that deep nesting costs no stack
// and a value that holds itself does no harm.
struct Value {
  Kind kind = Kind::none;
  int64_t number = 0;
  std::string_view text;        // of the pickle's bytes; a global as "module name"
  std::vector<uint32_t> items;  // of dictionaries: key, value, key, value, …
  Tensor tensor;                // of storages: all its elements, 1-d
};

// Runs the opcodes of protocols 2 to 5 that hold plain data and tensors; all else is refused.
class Machine {
 public:
  using Values = std::vector<Value>;
  // `storage` makes the tensor of a persistent id (the items of its tuple); `fail` throws.
  struct Hooks {
    std::function<Tensor(const Values& values, const Value& id)> storage;
    std::function<void(const std::string& rule)> fail;
  };
  Machine(std::span<const uint8_t> bytes, Hooks hooks) : bytes_(bytes), hooks_(std::move(hooks)) {}
  // The number of the value that the pickle stands for.
  uint32_t run();
  const Values& values() const { return values_; }

 private:
  [[noreturn]] void fail(const std::string& rule) const;
  std::string_view take(uint64_t n);
  uint64_t unsigned_number(int width);
  std::string_view line();
  uint32_t add(Value v);
  void push(Value v) { stack_.push_back(add(std::move(v))); }
  void push_text(uint64_t length) { push({.kind = Kind::text, .text = take(length)}); }
  uint32_t pop();
  uint32_t top() const;
  std::vector<uint32_t> pop_mark();
  void push_group(Kind kind, size_t n);
  void push_global(std::string_view module, std::string_view name);
  void append(const std::vector<uint32_t>& items, Kind kind);
  void remember(uint64_t at);
  void recall(uint64_t at);
  bool step(uint8_t op);
  bool step_value(uint8_t op);
  bool step_memo(uint8_t op);
  bool step_group(uint8_t op);
  void push_named_global();
  void reduce();
  void build();
  Tensor rebuild(const std::vector<uint32_t>& items) const;
  Shape numbers_of(uint32_t tuple, const char* what) const;

  std::span<const uint8_t> bytes_;
  Hooks hooks_;
  size_t at_ = 0;
  Values values_;
  std::vector<uint32_t> stack_, memo_;
  std::vector<size_t> marks_;
};

}  // namespace cutaway::io::pickle
