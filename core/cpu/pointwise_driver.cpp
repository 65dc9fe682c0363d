#include <cutaway/core/cpu/pointwise_loop.h>

#include <algorithm>

#include <cutaway/core/cpu/stream.h>
#include <cutaway/core/math/rows.h>

namespace cutaway::cpu::CUTAWAY_VARIANT {
namespace {

constexpr int64_t kBlock = 512;   // elements handed to a loop at a time when operands are copied
constexpr int64_t kLongRow = 64;  // rows at least so long are walked one by one

struct alignas(64) Buffer {
  char bytes[kBlock * 8];
};

// Copies n elements of an operand into a contiguous array of the loop's type.
template <class S>
void load(int64_t n, const S* from, int64_t stride, Compute<S>* to) {
  if (stride == 0) {
    const Compute<S> value = Compute<S>(from[0]);
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else if (stride == 1) {
    if constexpr (requires { math::convert_row(from, to, n); }) {
      math::convert_row(from, to, n);
    } else {
      std::copy(from, from + n, to);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = Compute<S>(from[i * stride]);
  }
}
template <class S>
void store(int64_t n, const Compute<S>* from, S* to, int64_t stride) {
  if (stride == 1) {
    if constexpr (requires { math::convert_row(from, to, n); }) {
      math::convert_row(from, to, n);
    } else {
      std::copy(from, from + n, to);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * stride] = S(from[i]);
  }
}

void load_row(Operand o, int64_t n, const char* from, int64_t stride, char* to) {
  if (o.half == Storage16::bf16) {
    return load(n, reinterpret_cast<const BFloat16*>(from), stride, reinterpret_cast<float*>(to));
  }
  if (o.half == Storage16::f16) {
    return load(n, reinterpret_cast<const Float16*>(from), stride, reinterpret_cast<float*>(to));
  }
  switch (o.bytes) {
    case 1:
      return load(n, reinterpret_cast<const uint8_t*>(from), stride,
                  reinterpret_cast<uint8_t*>(to));
    case 2:
      return load(n, reinterpret_cast<const uint16_t*>(from), stride,
                  reinterpret_cast<uint16_t*>(to));
    case 4:
      return load(n, reinterpret_cast<const uint32_t*>(from), stride,
                  reinterpret_cast<uint32_t*>(to));
    default:
      return load(n, reinterpret_cast<const uint64_t*>(from), stride,
                  reinterpret_cast<uint64_t*>(to));
  }
}
void store_row(Operand o, int64_t n, const char* from, char* to, int64_t stride) {
  if (o.half == Storage16::bf16) {
    return store(n, reinterpret_cast<const float*>(from), reinterpret_cast<BFloat16*>(to), stride);
  }
  if (o.half == Storage16::f16) {
    return store(n, reinterpret_cast<const float*>(from), reinterpret_cast<Float16*>(to), stride);
  }
  switch (o.bytes) {
    case 1:
      return store(n, reinterpret_cast<const uint8_t*>(from), reinterpret_cast<uint8_t*>(to),
                   stride);
    case 2:
      return store(n, reinterpret_cast<const uint16_t*>(from), reinterpret_cast<uint16_t*>(to),
                   stride);
    case 4:
      return store(n, reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to),
                   stride);
    default:
      return store(n, reinterpret_cast<const uint64_t*>(from), reinterpret_cast<uint64_t*>(to),
                   stride);
  }
}

int64_t loop_bytes(Operand o) { return o.half == Storage16::none ? o.bytes : 4; }

// One thread's part of the work: elements [begin, end) in row-major order.
class Walk {
 public:
  Walk(const PointwiseArgs& a, const Plan& plan) : a_(a), plan_(plan) {
    rank_ = std::max(a.rank, 1);
    for (int d = 0; d < rank_; ++d) sizes_[d] = a.rank ? a.sizes[d] : 1;
    for (int k = 0; k <= plan.inputs; ++k) {
      int64_t dense = 1;
      linear_[k] = plan.operand[k].half == Storage16::none;
      for (int d = rank_ - 1; d >= 0; --d) {
        strides_[k][d] = a.rank ? a.strides[k][d] : 1;
        linear_[k] = linear_[k] && (sizes_[d] == 1 || strides_[k][d] == dense);
        dense *= sizes_[d];
      }
      base_[k] = k == 0 ? static_cast<char*>(a.out)
                        : const_cast<char*>(static_cast<const char*>(a.in[k - 1]));
    }
  }

  void run(int64_t begin, int64_t end) {
    bool all = true;
    for (int k = 0; k <= plan_.inputs; ++k) all = all && linear_[k];
    if (all && streams()) return piece_streamed(begin, end);
    if (all) return piece_direct(begin, end - begin);
    const int64_t row = sizes_[rank_ - 1];
    const bool by_rows = row >= kLongRow;
    int64_t index[kMaxRank];
    int64_t rest = begin;
    for (int d = rank_ - 1; d >= 0; --d) {
      index[d] = rest % sizes_[d];
      rest /= sizes_[d];
    }
    for (int64_t i = begin; i < end;) {
      int64_t n = std::min(kBlock, end - i);
      if (by_rows) n = std::min(n, row - index[rank_ - 1]);
      piece(i, n, index, by_rows);
      i += n;
      advance(index, n);
    }
  }

 private:
  void advance(int64_t* index, int64_t n) const {
    for (int d = rank_ - 1; d >= 0 && n; --d) {
      const int64_t sum = index[d] + n;
      n = sum / sizes_[d];
      index[d] = sum - n * sizes_[d];
    }
  }

  void piece_direct(int64_t begin, int64_t n) const {
    const void* in[3];
    for (int k = 1; k <= plan_.inputs; ++k) in[k - 1] = base_[k] + begin * plan_.operand[k].bytes;
    plan_.loop(n, base_[0] + begin * plan_.operand[0].bytes, in, a_);
  }

  // Whether the result is too large for a cache to keep, and none of the operands.
  bool streams() const {
    if (a_.numel * plan_.operand[0].bytes < kStreamedBytes) return false;
    for (int k = 1; k <= plan_.inputs; ++k) {
      if (base_[k] == base_[0]) return false;
    }
    return true;
  }

  // Whole lines of the result go through a buffer, the rest at both ends directly.
  void piece_streamed(int64_t begin, int64_t end) {
    const int64_t size = plan_.operand[0].bytes, line = 64 / size;
    const auto at = int64_t(reinterpret_cast<uintptr_t>(base_[0] + begin * size) % 64);
    const int64_t ahead = std::min((64 - at) % 64 / size, end - begin);
    if (at % size != 0) return piece_direct(begin, end - begin);
    piece_direct(begin, ahead);
    int64_t i = begin + ahead;
    for (int64_t n = 0; end - i >= line; i += n) {
      n = std::min(kBlock, (end - i) / line * line);
      const void* in[3];
      for (int k = 1; k <= plan_.inputs; ++k) in[k - 1] = base_[k] + i * plan_.operand[k].bytes;
      plan_.loop(n, buffer_[0].bytes, in, a_);
      stream_lines(base_[0] + i * size, buffer_[0].bytes, n / line);
    }
    stream_fence();
    piece_direct(i, end - i);
  }

  int64_t offset(int k, const int64_t* index) const {
    int64_t sum = 0;
    for (int d = 0; d < rank_; ++d) sum += index[d] * strides_[k][d];
    return sum;
  }

  // Calls fn(row start in memory, elements, elements already done) for the rows of a piece.
  template <class F>
  void rows(int k, int64_t n, const int64_t* from, F&& fn) const {
    int64_t index[kMaxRank];
    std::copy(from, from + rank_, index);
    const int last = rank_ - 1;
    for (int64_t done = 0; done < n;) {
      const int64_t m = std::min(n - done, sizes_[last] - index[last]);
      fn(base_[k] + offset(k, index) * plan_.operand[k].bytes, m, done);
      done += m;
      advance(index, m);
    }
  }

  void piece(int64_t begin, int64_t n, const int64_t* index, bool one_row) {
    const void* in[3];
    for (int k = 1; k <= plan_.inputs; ++k) in[k - 1] = operand(k, begin, n, index, one_row);
    const Operand o = plan_.operand[0];
    const int64_t stride = strides_[0][rank_ - 1];
    const bool plain = o.half == Storage16::none;
    if (linear_[0]) return plan_.loop(n, base_[0] + begin * o.bytes, in, a_);
    if (one_row && plain && stride == 1) {
      return plan_.loop(n, base_[0] + offset(0, index) * o.bytes, in, a_);
    }
    char* y = buffer_[0].bytes;
    plan_.loop(n, y, in, a_);
    rows(0, n, index, [&](char* row, int64_t m, int64_t done) {
      store_row(o, m, y + done * loop_bytes(o), row, stride);
    });
  }

  const void* operand(int k, int64_t begin, int64_t n, const int64_t* index, bool one_row) {
    const Operand o = plan_.operand[k];
    const int64_t stride = strides_[k][rank_ - 1];
    if (linear_[k]) return base_[k] + begin * o.bytes;
    char* x = buffer_[k].bytes;
    if (one_row) {
      const char* row = base_[k] + offset(k, index) * o.bytes;
      if (o.half == Storage16::none && stride == 1) return row;
      if (stride == 0) {  // one value for the whole row, often for all rows
        if (repeated_[k] == row && repeated_n_[k] >= n) return x;
        repeated_[k] = row;
        repeated_n_[k] = n;
      }
      load_row(o, n, row, stride, x);
      return x;
    }
    rows(k, n, index, [&](const char* row, int64_t m, int64_t done) {
      load_row(o, m, row, stride, x + done * loop_bytes(o));
    });
    return x;
  }

  const PointwiseArgs& a_;
  const Plan& plan_;
  int rank_;
  bool linear_[4];  // contiguous over all dimensions and of the loop's type
  int64_t sizes_[kMaxRank];
  int64_t strides_[4][kMaxRank];
  char* base_[4];
  const char* repeated_[4] =
      {};  // what the buffer of an operand with inner stride 0 is filled with
  int64_t repeated_n_[4] = {};
  Buffer buffer_[4];
};

}  // namespace

void run_plan(const PointwiseArgs& a, const Plan& plan) {
  parallel_for(a.numel, kGrain, [&](int64_t begin, int64_t end) { Walk(a, plan).run(begin, end); });
}

}  // namespace cutaway::cpu::CUTAWAY_VARIANT
