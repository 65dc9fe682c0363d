#include <cutaway/core/shape.h>

#include <algorithm>

#include <cutaway/core/error.h>

namespace cutaway {
namespace {

[[noreturn, gnu::cold]] void throw_rank(size_t rank) {
  throw ShapeError(
      "shape", "at most " + std::to_string(kMaxRank) + " dimensions; got " + std::to_string(rank),
      "join dimensions with reshape() or flatten()");
}

}  // namespace

Shape::Shape(std::span<const int64_t> v) {
  if (v.size() > size_t(kMaxRank)) throw_rank(v.size());
  rank_ = int32_t(v.size());
  std::copy(v.begin(), v.end(), v_);
}

Shape Shape::filled(int rank, int64_t value) {
  if (rank > kMaxRank) throw_rank(size_t(rank));
  Shape s;
  s.rank_ = rank;
  std::fill(s.v_, s.v_ + rank, value);
  return s;
}

// Not as a call of memcpy, which costs more than the few entries.
[[gnu::optimize("no-tree-loop-distribute-patterns")]] void Shape::assign(const Shape& o) {
  rank_ = o.rank_;
  for (int i = 0; i < rank_; ++i) v_[i] = o.v_[i];
}

void Shape::push_back(int64_t v) {
  if (rank_ == kMaxRank) throw_rank(size_t(kMaxRank + 1));
  v_[rank_++] = v;
}

void Shape::insert(int at, int64_t v) {
  push_back(v);
  std::rotate(v_ + at, v_ + rank_ - 1, v_ + rank_);
}

void Shape::erase(int at) {
  std::copy(v_ + at + 1, v_ + rank_, v_ + at);
  --rank_;
}

bool Shape::contains(int64_t v) const { return std::find(begin(), end(), v) != end(); }

Shape Shape::slice(int from, int to) const {
  return Shape(std::span<const int64_t>(v_ + from, size_t(to - from)));
}

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (int i = 0; i < shape.rank(); ++i) s += (i ? "," : "") + std::to_string(shape[i]);
  return s + "]";
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& other = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int shift = longer.rank() - other.rank();
  for (int i = 0; i < other.rank(); ++i) {
    int64_t& have = out[shift + i];
    const int64_t want = other[i];
    if (have == want || want == 1) continue;
    if (have != 1) {
      throw ShapeError(op, "sizes must be equal or 1, aligned at the last dimension; got " +
                               to_string(a) + " and " + to_string(b),
                       "insert dimensions of size 1 with unsqueeze()");
    }
    have = want;
  }
  return out;
}

int normalize_dim(const char* op, int64_t dim, int rank) {
  const int64_t n = rank == 0 ? 1 : rank;
  if (dim < -n || dim >= n) {
    throw IndexError(op, "dim " + std::to_string(dim) + " is out of range for " +
                             std::to_string(rank) + " dimensions; need " + std::to_string(-n) +
                             " … " + std::to_string(n - 1));
  }
  return int(dim < 0 ? dim + n : dim);
}

}  // namespace cutaway
