#include <fmt/format.h>

#include <cutaway/autograd/ops.h>
#include <cutaway/autograd/ops/recurrent.h>
#include <cutaway/nn/onnx/node_call.h>

// RNN, GRU and LSTM. Gates of ONNX stand in the order z, r, h and i, o, f, c.
namespace cutaway::onnx {
namespace {

enum class Kind : uint8_t { rnn, gru, lstm };

struct Layer {
  Kind kind;
  bool relu = false;                  // RNN: instead of tanh
  bool reset_after = false;           // GRU: r scales what the state gives, not the state
  Tensor w, r, from_x, from_h, peep;  // of one direction; biases and peepholes may be undefined
};
struct State {
  Tensor h, c;
};

Tensor rows(const Tensor& t, int64_t k, int64_t parts) {
  const int64_t n = t.size(0) / parts;
  return slice(t, 0, k * n, (k + 1) * n);
}
Tensor columns(const Tensor& t, int64_t k, int64_t parts) {
  const int64_t n = t.size(1) / parts;
  return slice(t, 1, k * n, (k + 1) * n);
}

// `x` [N, gates·H] is what the input gives.
State step(const Layer& l, const Tensor& x, const State& s) {
  if (l.kind == Kind::rnn) {
    const Tensor sum = x + linear(s.h, l.r, l.from_h);
    return {l.relu ? relu(sum) : tanh(sum), {}};
  }
  if (l.kind == Kind::gru) {
    const auto part = [&](const Tensor& h, int64_t k) {
      return linear(h, rows(l.r, k, 3), l.from_h.defined() ? rows(l.from_h, k, 3) : Tensor());
    };
    const Tensor z = sigmoid(columns(x, 0, 3) + part(s.h, 0));
    const Tensor r = sigmoid(columns(x, 1, 3) + part(s.h, 1));
    const Tensor inner = l.reset_after ? r * part(s.h, 2) : part(r * s.h, 2);
    return {(1.0 - z) * tanh(columns(x, 2, 3) + inner) + z * s.h, {}};
  }
  const Tensor all = x + linear(s.h, l.r, l.from_h);
  const auto gate = [&](int64_t k, int64_t peephole, const Tensor& c) {
    const Tensor g = columns(all, k, 4);
    return sigmoid(l.peep.defined() ? g + rows(l.peep, peephole, 3) * c : g);
  };
  const Tensor i = gate(0, 0, s.c), f = gate(2, 2, s.c);
  const Tensor c = f * s.c + i * tanh(columns(all, 3, 4));
  return {gate(1, 1, c) * tanh(c), c};
}

// i, o, f, c → i, f, g, o, as lstm_sequence has them.
Tensor reordered(const Tensor& t) {
  return t.defined() ? cat({rows(t, 0, 4), rows(t, 2, 4), rows(t, 3, 4), rows(t, 1, 4)}, 0) : t;
}

// One direction over x [T,N,I]; `lengths` [N,1] may be undefined. Gives all h and moves `s`.
Tensor run(const Layer& l, const Tensor& x, bool reverse, const Tensor& lengths, State& s) {
  const int64_t steps = x.size(0);
  if (l.kind == Kind::lstm && !l.peep.defined() && !lengths.defined() && steps > 0 &&
      size_of(x.dtype()) >= 4) {
    const LstmSequence q = lstm_sequence(linear(x, reordered(l.w), reordered(l.from_x)), s.h, s.c,
                                         reordered(l.r), reordered(l.from_h), {.reverse = reverse});
    const int64_t last = reverse ? 0 : steps - 1;
    s = {select(q.h, 0, last), select(q.c, 0, last)};
    return q.h;
  }
  const Tensor given = linear(x, l.w, l.from_x);
  Tensors all(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = reverse ? steps - 1 - k : k;
    State next = step(l, select(given, 0, t), s);
    if (!lengths.defined()) {
      all[size_t(t)] = next.h;
      s = next;
      continue;
    }
    const Tensor valid = gt(lengths, t);
    all[size_t(t)] = where(valid, next.h, 0.0);
    s.h = where(valid, next.h, s.h);
    if (next.c.defined()) s.c = where(valid, next.c, s.c);
  }
  return steps > 0 ? stack(all, 0) : zeros({0, x.size(1), s.h.size(1)}, {.dtype = x.dtype()});
}

void read_activations(NodeCall& c, Layer& l) {
  const Attribute* a = c.attribute("activations", Attribute::Type::texts);
  const std::vector<std::string> usual = l.kind == Kind::rnn ? std::vector<std::string>{"Tanh"}
                                         : l.kind == Kind::gru
                                             ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                             : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  for (size_t i = 0; a && i < a->strings.size(); ++i) {
    const std::string& name = a->strings[i];
    if (l.kind == Kind::rnn && name == "Relu" && (i == 0 || l.relu)) {
      l.relu = true;
    } else if (name != usual[i % usual.size()] || l.relu) {
      c.fail(fmt::format("attribute 'activations': {} cannot be run", name));
    }
  }
}

void check_sizes(NodeCall& c, const Tensor& x, int64_t gates, int64_t directions) {
  const Tensor &w = c.in(1), &r = c.in(2);
  const bool fits = x.dim() == 3 && w.dim() == 3 && r.dim() == 3 && w.size(0) == directions &&
                    r.size(0) == directions && w.size(2) == x.size(2) &&
                    w.size(1) == gates * r.size(2) && r.size(1) == w.size(1);
  if (!fits) {
    c.fail(fmt::format("sizes do not fit; got X {}, W {}, R {}", to_string(x.sizes()),
                       to_string(w.sizes()), to_string(r.sizes())));
  }
}

void recurrent(NodeCall& c, Kind kind) {
  const int64_t gates = kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;
  const std::string direction = c.text("direction", "forward");
  const bool batch_first = c.integer("layout", 0) != 0;
  Layer l{.kind = kind};
  read_activations(c, l);
  if (kind == Kind::gru) l.reset_after = c.integer("linear_before_reset", 0) != 0;
  if (kind == Kind::lstm && c.integer("input_forget", 0) != 0) {
    c.fail("attribute 'input_forget' cannot be run");
  }
  c.ignore("output_sequence");
  const Tensor x = batch_first ? transpose(c.in(0), 0, 1) : c.in(0);
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  check_sizes(c, x, gates, directions);
  const int64_t hidden = c.integer("hidden_size", c.in(2).size(2)), batch = x.size(1);
  if (hidden != c.in(2).size(2)) c.fail("attribute 'hidden_size' is not that of R");
  const Tensor lengths = c.has(4) ? reshape(c.in(4).to(DType::i64), {batch, 1}) : Tensor();
  const auto start = [&](int i, int64_t d) {
    if (!c.has(i)) return zeros({batch, hidden}, {.dtype = x.dtype()});
    return select(c.in(i), batch_first ? 1 : 0, d).contiguous();
  };
  Tensors outputs, h_n, c_n;
  for (int64_t d = 0; d < directions; ++d) {
    l.w = select(c.in(1), 0, d);
    l.r = select(c.in(2), 0, d);
    if (c.has(3)) {
      const Tensor b = select(c.in(3), 0, d);
      l.from_x = rows(b, 0, 2);
      l.from_h = rows(b, 1, 2);
    }
    if (kind == Kind::lstm && c.has(7)) l.peep = select(c.in(7), 0, d);
    State s{start(5, d), kind == Kind::lstm ? start(6, d) : Tensor()};
    outputs.push_back(run(l, x, d == 1 || direction == "reverse", lengths, s));
    h_n.push_back(s.h);
    c_n.push_back(s.c);
  }
  const Tensor y = stack(outputs, 1);  // [T,D,N,H]
  c.give(batch_first ? permute(y, {2, 0, 1, 3}) : y);
  c.give(stack(h_n, batch_first ? 1 : 0));
  if (kind == Kind::lstm) c.give(stack(c_n, batch_first ? 1 : 0));
}

constexpr Operator kOperators[] = {
    {"GRU", [](NodeCall& c) { recurrent(c, Kind::gru); }, "linear, sigmoid, tanh"},
    {"LSTM", [](NodeCall& c) { recurrent(c, Kind::lstm); }, "lstm_sequence"},
    {"RNN", [](NodeCall& c) { recurrent(c, Kind::rnn); }, "linear, tanh"}};

}  // namespace

std::span<const Operator> recurrent_operators() { return kOperators; }

}  // namespace cutaway::onnx
