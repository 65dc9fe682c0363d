#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace cutaway {

inline constexpr int kMaxRank = 8;

// A short list of integers held in place: sizes, strides, dimension lists. At most kMaxRank
// entries; a longer one raises ShapeError.
class Shape {
 public:
  constexpr Shape() = default;
  Shape(std::initializer_list<int64_t> v) : Shape(std::span(v.begin(), v.size())) {}
  explicit Shape(std::span<const int64_t> v);
  static Shape filled(int rank, int64_t value);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int i) const { return v_[i]; }
  int64_t& operator[](int i) { return v_[i]; }
  int64_t back() const { return v_[rank_ - 1]; }
  const int64_t* begin() const { return v_; }
  const int64_t* end() const { return v_ + rank_; }
  int64_t* begin() { return v_; }
  int64_t* end() { return v_ + rank_; }
  operator std::span<const int64_t>() const { return {v_, size_t(rank_)}; }

  // Takes the entries of `o`, one by one: faster than `=` when `o` has just been written, since a
  // wide load would have to wait for the narrow stores.
  void assign(const Shape& o);
  void push_back(int64_t v);
  void insert(int at, int64_t v);
  void erase(int at);
  // Product of the entries (1 for an empty list).
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= v_[i];
    return n;
  }
  bool contains(int64_t v) const;
  // Entries [from, to).
  Shape slice(int from, int to) const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.v_[i] != b.v_[i]) return false;
    }
    return true;
  }

 private:
  int32_t rank_ = 0;
  int64_t v_[kMaxRank] = {};
};

// "[2,3]".
std::string to_string(const Shape& shape);

// Result shape of two operands by right-aligned broadcasting; raises ShapeError in the name of
// `op`.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

// `dim` counted from the end when negative, checked against `rank`; raises IndexError. A 0-d
// operand accepts -1 and 0.
int normalize_dim(const char* op, int64_t dim, int rank);

}  // namespace cutaway
