#include <cutaway/nn/layers/packed.h>

#include <algorithm>
#include <numeric>

#include <cutaway/autograd/ops.h>
#include <cutaway/nn/layers/check.h>

namespace cutaway::nn {

std::vector<int64_t> PackedSequence::lengths() const {
  std::vector<int64_t> list(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t steps = 0;
    while (steps < int64_t(batch_sizes.size()) && int64_t(i) < batch_sizes[size_t(steps)]) ++steps;
    list[size_t(order[i])] = steps;
  }
  return list;
}

PackedSequence pack_padded_sequence(const Tensor& given, const std::vector<int64_t>& lengths,
                                    PackOptions o) {
  const char* op = "pack_padded_sequence";
  if (given.dim() < 2) {
    throw ShapeError(op, "x must be [T,N,…]; got " + to_string(given.sizes()));
  }
  const Tensor x = o.batch_first ? transpose(given, 0, 1) : given;
  const int64_t steps = x.size(0), batch = x.size(1);
  if (int64_t(lengths.size()) != batch) {
    throw ValueError(
        op, fmt::format("one length a sequence; got {} for a batch of {}", lengths.size(), batch));
  }
  for (size_t n = 0; n < lengths.size(); ++n) {
    if (lengths[n] < 1 || lengths[n] > steps) {
      throw ValueError(op, fmt::format("lengths must lie in [1,{}]; got {}", steps, lengths[n]));
    }
    if (o.enforce_sorted && n > 0 && lengths[n] > lengths[n - 1]) {
      throw ValueError(
          op, fmt::format("lengths must not grow; got {} after {}", lengths[n], lengths[n - 1]),
          "enforce_sorted = false takes any order");
    }
  }
  PackedSequence p;
  p.order.resize(lengths.size());
  std::iota(p.order.begin(), p.order.end(), 0);
  std::stable_sort(p.order.begin(), p.order.end(),
                   [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  std::vector<int64_t> rows;
  for (int64_t t = 0; !lengths.empty() && t < lengths[size_t(p.order[0])]; ++t) {
    int64_t count = 0;
    for (const int64_t n : p.order) {
      if (lengths[size_t(n)] <= t) break;
      rows.push_back(t * batch + n);
      ++count;
    }
    p.batch_sizes.push_back(count);
  }
  p.data = index_select(flatten(x, 0, 1), 0, index_tensor(rows).to(x.device()));
  return p;
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) lengths.push_back(s.dim() > 0 ? s.size(0) : 0);
  return pack_padded_sequence(pad_sequence(sequences), lengths, {.enforce_sorted = enforce_sorted});
}

PaddedSequence pad_packed_sequence(const PackedSequence& p, UnpackOptions o) {
  const int64_t longest = int64_t(p.batch_sizes.size()), batch = int64_t(p.order.size());
  if (o.total_length != 0 && o.total_length < longest) {
    throw ValueError("pad_packed_sequence",
                     fmt::format("total_length must be at least the longest sequence, {}; got {}",
                                 longest, o.total_length));
  }
  const int64_t steps = std::max(longest, o.total_length), padding = p.data.size(0);
  std::vector<int64_t> rows(size_t(steps * batch), padding);
  int64_t at = 0;
  for (int64_t t = 0; t < longest; ++t) {
    for (int64_t i = 0; i < p.batch_sizes[size_t(t)]; ++i) {
      rows[size_t(t * batch + p.order[size_t(i)])] = at++;
    }
  }
  Shape one = p.data.sizes();
  one[0] = 1;
  const Tensor filler = full(one, o.padding_value, {p.data.dtype(), p.data.device()});
  const Tensor all = index_select(cat({p.data, filler}), 0, index_tensor(rows).to(p.data.device()));
  const Tensor x = unflatten(all, 0, {steps, batch});
  return {o.batch_first ? transpose(x, 0, 1) : x, p.lengths()};
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, PadSequenceOptions o) {
  if (sequences.empty()) throw ValueError("pad_sequence", "needs at least one sequence");
  int64_t longest = 0;
  for (const Tensor& s : sequences) {
    if (s.dim() < 1) throw ShapeError("pad_sequence", "a sequence must be [T,…]; got a number");
    longest = std::max(longest, s.size(0));
  }
  Tensors padded;
  for (const Tensor& s : sequences) {
    Shape pads = Shape::filled(2 * s.dim(), 0);
    pads[pads.rank() - 1] = longest - s.size(0);
    padded.push_back(pad(s, pads, {.value = o.padding_value}));
  }
  return stack(padded, o.batch_first ? 0 : 1);
}

}  // namespace cutaway::nn
