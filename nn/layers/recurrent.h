#pragma once
#include <cutaway/nn/layers/packed.h>
#include <cutaway/nn/module.h>

namespace cutaway::nn {

struct RecurrentOptions {
  int64_t input_size = 0, hidden_size = 0, num_layers = 1;
  bool bias = true;
  bool batch_first = false;  // x [N,T,input] instead of [T,N,input]
  double dropout = 0;        // between layers, in training
  bool bidirectional = false;
  int64_t proj_size = 0;  // LSTM only: h is projected to this size
  bool relu = false;      // RNN only: instead of tanh
};

// Where a call of a recurrent layer starts.
struct RecurrentStart {
  Tensor h0, c0;  // [num_layers · directions, N, H]; undefined: zeros. c0: LSTM only
  std::vector<int64_t> lengths;  // of the N sequences; empty: all T
};
// What it gives.
struct RecurrentResult {
  Tensor output;    // [T,N,directions·H], or [N,T,…]; 0 beyond the end of a sequence
  Tensor h_n, c_n;  // states after the last step of each sequence, like h0; c_n: LSTM only
};

// The same for packed sequences; states in the order of the batch.
struct PackedResult {
  PackedSequence output;
  Tensor h_n, c_n;
};

// Base of recurrent layers. Parameters are named as in PyTorch (weight_ih_l0, …, with _reverse for
// the backward direction) and uniform in ±1/√hidden_size. A backward direction starts at the end of
// each sequence, not in its padding, and padding is never read. x and states may lack the batch
// dimension. Raises ShapeError, and ValueError for lengths outside [0, T].
class Recurrent : public Module {
 public:
  RecurrentResult operator()(const Tensor& x, const RecurrentStart& start = {});
  // Lengths are those of the sequences; start.lengths must be empty.
  PackedResult operator()(const PackedSequence& x, const RecurrentStart& start = {});
  // The output alone, from zero states.
  Tensor forward(const Tensor& x) override;

 protected:
  enum class Kind : uint8_t { rnn, gru, lstm };
  Recurrent(const char* name, Kind kind, const RecurrentOptions& options);
  std::vector<std::pair<std::string, Tensor*>> heap_parameters() const override;

 private:
  struct Weights {
    std::string suffix;  // "_l0_reverse"
    Tensor ih, hh, bias_ih, bias_hh, hr;
  };
  struct State {
    Tensor h, c;
  };
  State step(const Weights& w, const Tensor& projected, const State& state) const;
  Tensor run(const Weights& w, const Tensor& x, bool reverse, const std::vector<Tensor>& valid,
             State& state) const;
  RecurrentResult call(const Tensor& x, const RecurrentStart& start);
  RecurrentResult call_batch(const Tensor& x, const RecurrentStart& start);
  void check(const Tensor& x, const RecurrentStart& start) const;
  int64_t state_size() const {
    return options_.proj_size > 0 ? options_.proj_size : options_.hidden_size;
  }

  const char* layer_;
  Kind kind_;
  RecurrentOptions options_;
  std::vector<Weights> weights_;  // layer by layer, forward before backward
};

// h' = tanh(W x + b + U h + b'), or relu (Elman 1990).
class RNN : public Recurrent {
 public:
  explicit RNN(const RecurrentOptions& options) : Recurrent("RNN", Kind::rnn, options) {}
};
// r, z = σ(…), n = tanh(W x + b + r ⊙ (U h + b')), h' = (1 − z) n + z h; rows of the weights in the
// order r, z, n (Cho et al. 2014).
class GRU : public Recurrent {
 public:
  explicit GRU(const RecurrentOptions& options) : Recurrent("GRU", Kind::gru, options) {}
};
// i, f, o = σ(…), g = tanh(…), c' = f c + i g, h' = o tanh(c'); rows in the order i, f, g, o
// (Hochreiter & Schmidhuber 1997).
class LSTM : public Recurrent {
 public:
  explicit LSTM(const RecurrentOptions& options) : Recurrent("LSTM", Kind::lstm, options) {}
};

struct CellOptions {
  int64_t input_size = 0, hidden_size = 0;
  bool bias = true;
};
// One step of a GRU: x [N,input], h [N,hidden] or undefined (zeros) → h' [N,hidden].
class GRUCell : public Module {
 public:
  explicit GRUCell(const CellOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& h = {});
  Tensor forward(const Tensor& x) override { return run(x, {}); }

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 private:
  Tensor run(const Tensor& x, const Tensor& h) const;
};
struct RNNCellOptions {
  int64_t input_size = 0, hidden_size = 0;
  bool bias = true;
  bool relu = false;  // instead of tanh
};
// One step of an RNN: x [N,input], h [N,hidden] or undefined (zeros) → h' [N,hidden].
class RNNCell : public Module {
 public:
  explicit RNNCell(const RNNCellOptions& options);
  Tensor operator()(const Tensor& x, const Tensor& h = {});
  Tensor forward(const Tensor& x) override { return run(x, {}); }

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 private:
  Tensor run(const Tensor& x, const Tensor& h) const;

  bool relu_;
};
struct LSTMState {
  Tensor h, c;
};
// One step of an LSTM.
class LSTMCell : public Module {
 public:
  explicit LSTMCell(const CellOptions& options);
  LSTMState operator()(const Tensor& x, const LSTMState& state = {});

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

}  // namespace cutaway::nn
