#include <cutaway/nn/layers/recurrent.h>

#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/ops/recurrent.h>
#include <cutaway/nn/init.h>
#include <cutaway/nn/layers/check.h>
#include <cutaway/nn/layers/dropout.h>

namespace cutaway::nn {
namespace {

// gates [N,4H] in the order i, f, g, o.
LSTMState lstm_step(const Tensor& gates, const Tensor& c) {
  const Tensors g = chunk(gates, 4, -1);
  const Tensor next = sigmoid(g[1]) * c + sigmoid(g[0]) * tanh(g[2]);
  return {sigmoid(g[3]) * tanh(next), next};
}

// What x and h give to the gates, [N,3H] in the order r, z, n.
Tensor gru_step(const Tensor& from_x, const Tensor& from_h, const Tensor& h) {
  const Tensors x = chunk(from_x, 3, -1), u = chunk(from_h, 3, -1);
  const Tensor r = sigmoid(x[0] + u[0]), z = sigmoid(x[1] + u[1]);
  const Tensor n = tanh(x[2] + r * u[2]);
  return n + z * (h - n);
}

Tensor fresh(const Shape& sizes, int64_t hidden) {
  const double bound = 1 / std::sqrt(double(hidden));
  return init::uniform_(empty(sizes), -bound, bound).set_requires_grad();
}

// Types that lstm_sequence takes: under autocast the gates have another one than the states.
bool one_wide_type(std::initializer_list<Tensor> list) {
  const DType t = list.begin()->dtype();
  return kFullFloats.has(t) &&
         std::all_of(list.begin(), list.end(), [t](const Tensor& x) { return x.dtype() == t; });
}

void check_sizes(const char* layer, const Tensor& t, const char* name, const Shape& need) {
  if (t.defined() && t.sizes() != need) {
    throw ShapeError(layer, fmt::format("{} has other sizes; got {}, need {}", name,
                                        to_string(t.sizes()), to_string(need)));
  }
}

}  // namespace

Recurrent::Recurrent(const char* name, Kind kind, const RecurrentOptions& o)
    : layer_(name), kind_(kind), options_(o) {
  require_at_least(name, "input_size", o.input_size, 1);
  require_at_least(name, "hidden_size", o.hidden_size, 1);
  require_at_least(name, "num_layers", o.num_layers, 1);
  require_share(name, "dropout", o.dropout);
  if (o.proj_size < 0 ||
      (o.proj_size > 0 && (kind != Kind::lstm || o.proj_size >= o.hidden_size))) {
    throw ValueError(
        name,
        fmt::format(".proj_size is for LSTM and must be below hidden_size; got {}", o.proj_size));
  }
  const int64_t gates = (kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1) * o.hidden_size;
  const int64_t directions = o.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    const int64_t in = layer == 0 ? o.input_size : directions * state_size();
    for (int64_t d = 0; d < directions; ++d) {
      Weights w;
      w.suffix = fmt::format("_l{}{}", layer, d ? "_reverse" : "");
      w.ih = fresh({gates, in}, o.hidden_size);
      w.hh = fresh({gates, state_size()}, o.hidden_size);
      if (o.bias) {
        w.bias_ih = fresh({gates}, o.hidden_size);
        w.bias_hh = fresh({gates}, o.hidden_size);
      }
      if (o.proj_size > 0) w.hr = fresh({o.proj_size, o.hidden_size}, o.hidden_size);
      weights_.push_back(std::move(w));
    }
  }
}

std::vector<std::pair<std::string, Tensor*>> Recurrent::heap_parameters() const {
  std::vector<std::pair<std::string, Tensor*>> list;
  for (Weights& w : const_cast<Recurrent*>(this)->weights_) {
    list.emplace_back("weight_ih" + w.suffix, &w.ih);
    list.emplace_back("weight_hh" + w.suffix, &w.hh);
    list.emplace_back("bias_ih" + w.suffix, &w.bias_ih);
    list.emplace_back("bias_hh" + w.suffix, &w.bias_hh);
    list.emplace_back("weight_hr" + w.suffix, &w.hr);
  }
  return list;
}

void Recurrent::check(const Tensor& x, const RecurrentStart& start) const {
  if (x.dim() != 3 || x.size(2) != options_.input_size) {
    throw ShapeError(
        layer_,
        fmt::format("x has other sizes; got {}, need {} with {} inputs", to_string(x.sizes()),
                    options_.batch_first ? "[N,T,input]" : "[T,N,input]", options_.input_size));
  }
  const int64_t batch = x.size(options_.batch_first ? 0 : 1), steps = x.size(options_.batch_first);
  if (steps == 0) throw ShapeError(layer_, "needs at least one step; got " + to_string(x.sizes()));
  const int64_t states = int64_t(weights_.size());
  check_sizes(layer_, start.h0, "h0", {states, batch, state_size()});
  check_sizes(layer_, start.c0, "c0", {states, batch, options_.hidden_size});
  if (!start.lengths.empty() && int64_t(start.lengths.size()) != batch) {
    throw ValueError(layer_, fmt::format("one length a sequence; got {} for a batch of {}",
                                         start.lengths.size(), batch));
  }
  for (const int64_t n : start.lengths) {
    if (n < 0 || n > steps) {
      throw ValueError(layer_, fmt::format("lengths must lie in [0,{}]; got {}", steps, n));
    }
  }
}

Recurrent::State Recurrent::step(const Weights& w, const Tensor& projected,
                                 const State& state) const {
  const Tensor from_h = linear(state.h, w.hh, w.bias_hh);
  if (kind_ == Kind::gru) return {gru_step(projected, from_h, state.h), {}};
  if (kind_ == Kind::rnn) {
    const Tensor sum = projected + from_h;
    return {options_.relu ? relu(sum) : tanh(sum), {}};
  }
  const LSTMState next = lstm_step(projected + from_h, state.c);
  return {w.hr.defined() ? linear(next.h, w.hr) : next.h, next.c};
}

// One direction of one layer over x [T,N,in]; `valid` says for each step which sequences have it
// (undefined: all). Moves `state` to the end.
Tensor Recurrent::run(const Weights& w, const Tensor& x, bool reverse,
                      const std::vector<Tensor>& valid, State& state) const {
  const Tensor gates = linear(x, w.ih, w.bias_ih);
  const bool all_steps =
      std::none_of(valid.begin(), valid.end(), [](const Tensor& t) { return t.defined(); });
  if (kind_ == Kind::lstm && all_steps && one_wide_type({gates, state.h, state.c, w.hh}) &&
      !w.hr.defined()) {
    const LstmSequence s =
        lstm_sequence(gates, state.h, state.c, w.hh, w.bias_hh, {.reverse = reverse});
    const int64_t last = reverse ? 0 : x.size(0) - 1;
    state = {select(s.h, 0, last), select(s.c, 0, last)};
    return s.h;
  }
  const Tensors steps = unbind(gates, 0);
  Tensors outputs(steps.size());
  for (size_t k = 0; k < steps.size(); ++k) {
    const size_t t = reverse ? steps.size() - 1 - k : k;
    State next = step(w, steps[t], state);
    if (!valid[t].defined()) {
      outputs[t] = next.h;
      state = std::move(next);
      continue;
    }
    outputs[t] = where(valid[t], next.h, 0.0);
    state.h = where(valid[t], next.h, state.h);
    if (next.c.defined()) state.c = where(valid[t], next.c, state.c);
  }
  return stack(outputs, 0);
}

RecurrentResult Recurrent::call(const Tensor& x, const RecurrentStart& start) {
  if (x.dim() != 2) return call_batch(x, start);
  const int batch = options_.batch_first ? 0 : 1;
  const auto with_batch = [](const Tensor& t) { return t.defined() ? unsqueeze(t, 1) : t; };
  RecurrentResult r =
      call_batch(unsqueeze(x, batch), {with_batch(start.h0), with_batch(start.c0), start.lengths});
  return {squeeze(r.output, batch), squeeze(r.h_n, 1),
          r.c_n.defined() ? squeeze(r.c_n, 1) : Tensor()};
}

RecurrentResult Recurrent::call_batch(const Tensor& given, const RecurrentStart& start) {
  check(given, start);
  Tensor x = options_.batch_first ? transpose(given, 0, 1) : given;
  const int64_t steps = x.size(0), batch = x.size(1);
  std::vector<Tensor> valid(static_cast<size_t>(steps));
  if (!start.lengths.empty()) {
    const Tensor lengths = reshape(index_tensor(start.lengths), {batch, 1});
    const int64_t shortest = *std::min_element(start.lengths.begin(), start.lengths.end());
    for (int64_t t = shortest; t < steps; ++t) {
      valid[size_t(t)] = gt(lengths, t).to(x.device());
    }
    // Padding is replaced before anything is computed from it: it may hold NaN.
    const Tensor mask = lt(reshape(arange(0, steps), {steps, 1}), reshape(lengths, {1, batch}));
    x = where(unsqueeze(mask, 2).to(x.device()), x, 0.0);
  }
  const int64_t directions = options_.bidirectional ? 2 : 1;
  const Opts opts{x.dtype(), x.device()};
  Tensors h_n, c_n;
  for (size_t i = 0; i < weights_.size(); i += size_t(directions)) {
    if (i > 0 && training() && options_.dropout > 0) {
      Dropout drop({.p = options_.dropout});
      x = drop.forward(x);
    }
    Tensors outputs;
    for (size_t d = 0; d < size_t(directions); ++d) {
      const int64_t at = int64_t(i + d);
      State state;
      state.h = start.h0.defined() ? select(start.h0, 0, at) : zeros({batch, state_size()}, opts);
      if (kind_ == Kind::lstm) {
        state.c = start.c0.defined() ? select(start.c0, 0, at)
                                     : zeros({batch, options_.hidden_size}, opts);
      }
      outputs.push_back(run(weights_[i + d], x, d == 1, valid, state));
      h_n.push_back(state.h);
      if (kind_ == Kind::lstm) c_n.push_back(state.c);
    }
    x = directions == 2 ? cat(outputs, 2) : outputs[0];
  }
  return {options_.batch_first ? transpose(x, 0, 1) : x, stack(h_n, 0),
          c_n.empty() ? Tensor() : stack(c_n, 0)};
}

RecurrentResult Recurrent::operator()(const Tensor& x, const RecurrentStart& start) {
  Scope scope(*this);
  RecurrentResult result = call(x, start);
  scope.done(result.output);
  return result;
}
PackedResult Recurrent::operator()(const PackedSequence& x, const RecurrentStart& start) {
  Scope scope(*this);
  if (!start.lengths.empty()) {
    throw ValueError(layer_,
                     "packed sequences have their own lengths; start.lengths must be empty");
  }
  const bool batch_first = options_.batch_first;
  const PaddedSequence padded = pad_packed_sequence(x, {.batch_first = batch_first});
  const RecurrentResult r = call(padded.x, {start.h0, start.c0, padded.lengths});
  const PackOptions o{.batch_first = batch_first, .enforce_sorted = false};
  PackedResult result{pack_padded_sequence(r.output, padded.lengths, o), r.h_n, r.c_n};
  scope.done(result.output.data);
  return result;
}
Tensor Recurrent::forward(const Tensor& x) { return call(x, {}).output; }

GRUCell::GRUCell(const CellOptions& o) {
  require_at_least("GRUCell", "input_size", o.input_size, 1);
  require_at_least("GRUCell", "hidden_size", o.hidden_size, 1);
  weight_ih = fresh({3 * o.hidden_size, o.input_size}, o.hidden_size);
  weight_hh = fresh({3 * o.hidden_size, o.hidden_size}, o.hidden_size);
  if (o.bias) {
    bias_ih = fresh({3 * o.hidden_size}, o.hidden_size);
    bias_hh = fresh({3 * o.hidden_size}, o.hidden_size);
  }
  add("weight_ih", weight_ih);
  add("weight_hh", weight_hh);
  add("bias_ih", bias_ih);
  add("bias_hh", bias_hh);
}
Tensor GRUCell::operator()(const Tensor& x, const Tensor& h) {
  Scope scope(*this);
  return scope.done(run(x, h));
}
Tensor GRUCell::run(const Tensor& x, const Tensor& h) const {
  const Shape need{x.size(0), weight_hh.size(1)};
  check_sizes("GRUCell", h, "h", need);
  const Tensor from = h.defined() ? h : zeros(need, {x.dtype(), x.device()});
  return gru_step(linear(x, weight_ih, bias_ih), linear(from, weight_hh, bias_hh), from);
}

RNNCell::RNNCell(const RNNCellOptions& o) : relu_(o.relu) {
  require_at_least("RNNCell", "input_size", o.input_size, 1);
  require_at_least("RNNCell", "hidden_size", o.hidden_size, 1);
  weight_ih = fresh({o.hidden_size, o.input_size}, o.hidden_size);
  weight_hh = fresh({o.hidden_size, o.hidden_size}, o.hidden_size);
  if (o.bias) {
    bias_ih = fresh({o.hidden_size}, o.hidden_size);
    bias_hh = fresh({o.hidden_size}, o.hidden_size);
  }
  add("weight_ih", weight_ih);
  add("weight_hh", weight_hh);
  add("bias_ih", bias_ih);
  add("bias_hh", bias_hh);
}
Tensor RNNCell::operator()(const Tensor& x, const Tensor& h) {
  Scope scope(*this);
  return scope.done(run(x, h));
}
Tensor RNNCell::run(const Tensor& x, const Tensor& h) const {
  const Shape need{x.size(0), weight_hh.size(1)};
  check_sizes("RNNCell", h, "h", need);
  const Tensor from = h.defined() ? h : zeros(need, {x.dtype(), x.device()});
  const Tensor sum = linear(x, weight_ih, bias_ih) + linear(from, weight_hh, bias_hh);
  return relu_ ? relu(sum) : tanh(sum);
}

LSTMCell::LSTMCell(const CellOptions& o) {
  require_at_least("LSTMCell", "input_size", o.input_size, 1);
  require_at_least("LSTMCell", "hidden_size", o.hidden_size, 1);
  weight_ih = fresh({4 * o.hidden_size, o.input_size}, o.hidden_size);
  weight_hh = fresh({4 * o.hidden_size, o.hidden_size}, o.hidden_size);
  if (o.bias) {
    bias_ih = fresh({4 * o.hidden_size}, o.hidden_size);
    bias_hh = fresh({4 * o.hidden_size}, o.hidden_size);
  }
  add("weight_ih", weight_ih);
  add("weight_hh", weight_hh);
  add("bias_ih", bias_ih);
  add("bias_hh", bias_hh);
}
LSTMState LSTMCell::operator()(const Tensor& x, const LSTMState& state) {
  Scope scope(*this);
  const Shape need{x.size(0), weight_hh.size(1)};
  check_sizes("LSTMCell", state.h, "h", need);
  check_sizes("LSTMCell", state.c, "c", need);
  const Opts opts{x.dtype(), x.device()};
  const Tensor h = state.h.defined() ? state.h : zeros(need, opts);
  const Tensor c = state.c.defined() ? state.c : zeros(need, opts);
  LSTMState next = lstm_step(linear(x, weight_ih, bias_ih) + linear(h, weight_hh, bias_hh), c);
  scope.done(next.h);
  return next;
}

}  // namespace cutaway::nn
