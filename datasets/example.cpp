#include <cutaway/datasets/example.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include <cutaway/core/element.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway::data {
namespace {

constexpr const char kWho[] = "collate";

void check_types(const std::vector<Example>& examples, Tensor Example::*part, const char* name) {
  const Tensor& first = examples[0].*part;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Tensor& t = examples[i].*part;
    if (!t.defined()) throw ValueError(kWho, fmt::format("example {} has no {}", i, name));
    if (t.dtype() != first.dtype()) {
      throw DTypeError(kWho, fmt::format("{} of example {} is {}, of the first {}", name, i,
                                         name_of(t.dtype()), name_of(first.dtype())));
    }
    if (t.dim() != first.dim()) {
      throw ShapeError(kWho, fmt::format("{} of example {} is {}, of the first {}", name, i,
                                         to_string(t.sizes()), to_string(first.sizes())));
    }
  }
  if (first.dim() + 1 > kMaxRank) {
    throw ShapeError(kWho, fmt::format("{} has too many dimensions: {}", name, first.dim()));
  }
}

Shape batched(int64_t n, const Shape& sizes) {
  Shape s = sizes;
  s.insert(0, n);
  return s;
}

Tensor stacked(const std::vector<Example>& examples, Tensor Example::*part, const char* name) {
  check_types(examples, part, name);
  const Tensor& first = examples[0].*part;
  Tensor all = empty(batched(int64_t(examples.size()), first.sizes()), {.dtype = first.dtype()});
  const int64_t bytes = first.numel() * size_of(first.dtype());
  for (size_t i = 0; i < examples.size(); ++i) {
    const Tensor t = host_copy(kWho, examples[i].*part);
    if (t.sizes() != first.sizes()) {
      throw ShapeError(kWho,
                       fmt::format("{} of example {} is {}, of the first {}", name, i,
                                   to_string(t.sizes()), to_string(first.sizes())),
                       "pad_examples() puts different sizes together");
    }
    if (bytes > 0) {
      std::memcpy(static_cast<char*>(all.raw()) + int64_t(i) * bytes, t.raw(), size_t(bytes));
    }
  }
  return all;
}

// Copies rows of the last dimension of a row-major tensor to their places in a larger one.
void place(const Tensor& from, char* to, const Shape& whole) {
  const int rank = from.dim();
  const int64_t width = size_of(from.dtype());
  const char* in = static_cast<const char*>(from.raw());
  if (rank == 0) {
    std::memcpy(to, in, size_t(width));
    return;
  }
  const int64_t row = from.size(-1) * width;
  if (from.numel() == 0) return;
  for (int64_t r = 0; r < from.numel() / from.size(-1); ++r) {
    int64_t rest = r, at = 0, stride = whole[rank - 1] * width;
    for (int d = rank - 2; d >= 0; --d) {
      at += rest % from.size(d) * stride;
      rest /= from.size(d);
      stride *= whole[d];
    }
    std::memcpy(to + at, in + r * row, size_t(row));
  }
}

Tensor padded(const std::vector<Example>& examples, Tensor Example::*part, const char* name,
              double value) {
  check_types(examples, part, name);
  const Tensor& first = examples[0].*part;
  Shape largest = first.sizes();
  for (const Example& e : examples) {
    for (int d = 0; d < largest.rank(); ++d) {
      largest[d] = std::max(largest[d], (e.*part).size(d));
    }
  }
  const Shape sizes = batched(int64_t(examples.size()), largest);
  const bool floating = first.is_floating();
  Tensor all =
      full(sizes, floating ? Scalar(value) : Scalar(int64_t(value)), {.dtype = first.dtype()});
  const int64_t bytes = largest.numel() * size_of(first.dtype());
  for (size_t i = 0; i < examples.size(); ++i) {
    place(host_copy(kWho, examples[i].*part), static_cast<char*>(all.raw()) + int64_t(i) * bytes,
          largest);
  }
  return all;
}

}  // namespace

bool ExampleStream::skip(int64_t n) {
  Example ignored;
  while (n > 0 && next(ignored)) --n;
  return n == 0;
}

Batch stack_examples(const std::vector<Example>& examples) {
  if (examples.empty()) throw ValueError(kWho, "a batch needs at least one example");
  return {stacked(examples, &Example::x, "the input"),
          stacked(examples, &Example::y, "the target")};
}

Collate pad_examples(PadOptions o) {
  return [o](const std::vector<Example>& examples) {
    if (examples.empty()) throw ValueError(kWho, "a batch needs at least one example");
    Batch b{padded(examples, &Example::x, "the input", o.input),
            padded(examples, &Example::y, "the target", o.target)};
    if (examples[0].x.dim() > 0) {
      b.lengths = empty({int64_t(examples.size())}, {.dtype = DType::i64});
      for (size_t i = 0; i < examples.size(); ++i) {
        b.lengths.data<int64_t>()[i] = examples[i].x.size(0);
      }
    }
    return b;
  };
}

}  // namespace cutaway::data
