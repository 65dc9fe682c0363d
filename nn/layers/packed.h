#pragma once
#include <cstdint>
#include <vector>

#include <cutaway/core/tensor.h>

namespace cutaway::nn {

// Sequences of different lengths without padding, as torch.nn.utils.rnn.PackedSequence: all first
// steps, then all second steps, …, the longest sequence first.
struct PackedSequence {
  Tensor data;                       // [Σ lengths, …]
  std::vector<int64_t> batch_sizes;  // how many sequences have step t
  std::vector<int64_t> order;        // order[i]: which sequence of the batch is the i-th longest

  std::vector<int64_t> lengths() const;  // in the order of the batch
};

struct PackOptions {
  bool batch_first = false;    // [N,T,…] instead of [T,N,…]
  bool enforce_sorted = true;  // lengths must not grow (ValueError), as the ONNX format wants it
};
// x [T,N,…] with lengths of its N sequences. Raises ShapeError, ValueError for lengths outside
// [1,T].
PackedSequence pack_padded_sequence(const Tensor& x, const std::vector<int64_t>& lengths,
                                    PackOptions options = {});
// Sequences [T_i,…]. Raises ValueError for none or an empty one, ShapeError.
PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted = true);

struct UnpackOptions {
  bool batch_first = false;
  double padding_value = 0;
  int64_t total_length = 0;  // steps of the result; 0: of the longest sequence
};
struct PaddedSequence {
  Tensor x;  // [T,N,…], or [N,T,…]
  std::vector<int64_t> lengths;
};
// The inverse. Raises ValueError for a total_length below the longest sequence.
PaddedSequence pad_packed_sequence(const PackedSequence& packed, UnpackOptions options = {});

struct PadSequenceOptions {
  bool batch_first = false;
  double padding_value = 0;
};
// Sequences [T_i,…] → [T,N,…], or [N,T,…]. Raises ValueError for none, ShapeError.
Tensor pad_sequence(const std::vector<Tensor>& sequences, PadSequenceOptions options = {});

}  // namespace cutaway::nn
