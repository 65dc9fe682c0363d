#include <cutaway/autograd/ops/recurrent.h>

#include <fmt/format.h>

#include <cutaway/autograd/onnx_rule.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/kernels/lstm.h>
#include <cutaway/core/kernels/matmul.h>
#include <cutaway/core/tensor_ops.h>

namespace cutaway {

// Samples: recurrent_samples.cpp.
void lstm_sequence_samples(SampleList&);

namespace {

enum Input { kGates, kH, kC, kWeight, kBias };

void check_sequence(const Call& c) {
  const char* op = "lstm_sequence";
  const Shape& x = c.in(kGates).sizes();
  for (int i = 0; i < c.num_inputs; ++i) c.require_dtype(i);
  c.require_same_device();
  if (x.rank() != 3 || x[0] < 1 || x[2] % 4 != 0) {
    throw ShapeError(op, fmt::format("gates must have sizes [T,N,4H] with T of at least 1; got {}",
                                     to_string(x)));
  }
  const int64_t n = x[1], width = x[2] / 4;
  const Shape need[] = {x, {n, width}, {n, width}, {4 * width, width}, {4 * width}};
  const char* names[] = {"gates", "h", "c", "weight", "bias"};
  for (int i = 1; i < c.num_inputs; ++i) {
    if (c.in(i).sizes() != need[i]) {
      throw ShapeError(op,
                       fmt::format("{} has other sizes; got {}, need {} for gates {}", names[i],
                                   to_string(c.in(i).sizes()), to_string(need[i]), to_string(x)));
    }
    if (c.in(i).dtype() != c.in(0).dtype()) {
      throw DTypeError(op,
                       fmt::format("operands must have one type; got gates {}, {} {}",
                                   name_of(c.in(0).dtype()), names[i], name_of(c.in(i).dtype())));
    }
  }
}

// Places in arrays of T steps.
struct Steps {
  int64_t count, rows, width, bytes;  // bytes of an element
  bool reverse;
  explicit Steps(const Tensor& h, bool backwards)
      : count(h.size(0)),
        rows(h.size(1)),
        width(h.size(2)),
        bytes(int64_t(size_of(h.dtype()))),
        reverse(backwards) {}
  // Step number k in the order of the recurrence.
  int64_t at(int64_t k) const { return reverse ? count - 1 - k : k; }
  char* state(const Tensor& t, int64_t k) const { return place(t, k, 1); }
  char* gates(const Tensor& t, int64_t k) const { return place(t, k, 4); }

 private:
  char* place(const Tensor& t, int64_t k, int64_t times) const {
    return static_cast<char*>(t.raw()) + at(k) * rows * times * width * bytes;
  }
};

// c [m,n] = a [m,k] · b [k,n] + beta c; row-major but for transposed a or b.
struct Operand {
  const void* data;
  bool transposed = false;
};
void product(const Tensor& like, int64_t m, int64_t n, int64_t k, Operand a, Operand b, void* out,
             double beta = 0, const void* bias = nullptr) {
  MatmulArgs args;
  args.m = m, args.n = n, args.k = k;
  args.a = a.data, args.b = b.data, args.c = out, args.bias = bias, args.beta = beta;
  args.a_row = a.transposed ? 1 : k, args.a_column = a.transposed ? m : 1;
  args.b_row = b.transposed ? 1 : n, args.b_column = b.transposed ? k : 1;
  args.c_row = n;
  kernels::matmul(like.device(), like.dtype(), args);
}

void sequence_forward(Call& c) {
  check_sequence(c);
  const Tensor& in = c.in(kGates);
  const Shape sizes{in.size(0), in.size(1), in.size(2) / 4};
  const Tensor h = c.out(0, sizes, in.dtype()), state = c.out(1, sizes, in.dtype());
  if (c.meta()) return;
  const Opts opts{.dtype = in.dtype(), .device = in.device()};
  const Steps s(h, c.attrs<LstmOptions>().reverse);
  const Tensor x = contiguous_raw(in), h0 = contiguous_raw(c.in(kH)), c0 = contiguous_raw(c.in(kC));
  const Tensor weight = contiguous_raw(c.in(kWeight));
  const Tensor bias = c.has(kBias) ? contiguous_raw(c.in(kBias)) : Tensor();
  const Tensor from_h = empty({s.rows, 4 * s.width}, opts);
  const Tensor gates = c.record ? empty(in.sizes(), opts) : from_h;
  c.save(gates);
  if (h.numel() == 0) return;
  for (int64_t k = 0; k < s.count; ++k) {
    product(h, s.rows, 4 * s.width, s.width, {k > 0 ? s.state(h, k - 1) : h0.raw()},
            {weight.raw(), true}, from_h.raw(), 0, bias.defined() ? bias.raw() : nullptr);
    kernels::lstm_cell(h.device(), h.dtype(),
                       {.rows = s.rows,
                        .width = s.width,
                        .from_x = s.gates(x, k),
                        .from_h = from_h.raw(),
                        .c = k > 0 ? s.state(state, k - 1) : c0.raw(),
                        .gates = c.record ? s.gates(gates, k) : from_h.raw(),
                        .state = s.state(state, k),
                        .h = s.state(h, k)});
  }
}

// Gradient of the weight: all steps in one product, and the first.
void weight_grad(const Steps& s, const Tensor& h, const Tensor& h0, const Tensor& gates_grad,
                 const Tensor& grad) {
  const int64_t later = (s.count - 1) * s.rows;
  const auto first = [&](int64_t k, int64_t last) { return s.reverse ? last : k; };
  if (later > 0) {
    // Steps 1 … T−1 and the outputs before them lie together, in either direction.
    product(h, 4 * s.width, s.width, later, {s.gates(gates_grad, first(1, s.count - 1)), true},
            {s.state(h, first(0, s.count - 2))}, grad.raw());
  }
  product(h, 4 * s.width, s.width, s.rows, {s.gates(gates_grad, 0), true}, {h0.raw()}, grad.raw(),
          later > 0 ? 1 : 0);
}

// The same by kernels alone.
void sequence_fast_backward(Backward& b) {
  const Tensor h = b.output(0), state = b.output(1), gates = b.extra(0);
  const Tensor h0 = contiguous_raw(b.input(kH)), c0 = contiguous_raw(b.input(kC));
  const Tensor weight = contiguous_raw(b.input(kWeight));
  const Opts opts{.dtype = h.dtype(), .device = h.device()};
  const Steps s(h, b.attrs<LstmOptions>().reverse);
  const auto upstream = [&](int i) {
    return b.has_upstream(i) ? contiguous_raw(b.upstream(i)) : Tensor();
  };
  const Tensor h_grad = upstream(0), state_grad = upstream(1);
  const Tensor gates_grad = empty({s.count, s.rows, 4 * s.width}, opts);
  Tensor carried = zeros({s.rows, s.width}, opts), carried_c = zeros({s.rows, s.width}, opts);
  for (int64_t k = s.count - 1; k >= 0 && h.numel() > 0; --k) {
    const Tensor c_grad = empty({s.rows, s.width}, opts);
    kernels::lstm_cell_backward(
        h.device(), h.dtype(),
        {.rows = s.rows,
         .width = s.width,
         .c = k > 0 ? s.state(state, k - 1) : c0.raw(),
         .gates = s.gates(gates, k),
         .state = s.state(state, k),
         .h_grad = h_grad.defined() ? s.state(h_grad, k) : nullptr,
         .h_carried = carried.raw(),
         .state_grad = state_grad.defined() ? s.state(state_grad, k) : nullptr,
         .state_carried = carried_c.raw(),
         .gates_grad = s.gates(gates_grad, k),
         .c_grad = c_grad.raw()});
    carried_c = c_grad;
    if (k > 0 || b.needs(kH)) {
      carried = empty({s.rows, s.width}, opts);
      product(h, s.rows, s.width, 4 * s.width, {s.gates(gates_grad, k)}, {weight.raw()},
              carried.raw());
    }
  }
  if (b.needs(kGates)) b.set(kGates, gates_grad);
  if (b.needs(kH)) b.set(kH, carried);
  if (b.needs(kC)) b.set(kC, carried_c);
  const bool any = h.numel() > 0;
  if (b.needs(kWeight)) {
    const Shape sizes{4 * s.width, s.width};
    const Tensor grad = any ? empty(sizes, opts) : zeros(sizes, opts);
    if (any) weight_grad(s, h, h0, gates_grad, grad);
    b.set(kWeight, grad);
  }
  if (b.num_inputs() > kBias && b.needs(kBias)) {
    const Tensor grad = any ? empty({4 * s.width}, opts) : zeros({4 * s.width}, opts);
    if (any) {
      kernels::column_sums(h.device(), h.dtype(),
                           {.rows = s.count * s.rows,
                            .columns = 4 * s.width,
                            .in = gates_grad.raw(),
                            .out = grad.raw()});
    }
    b.set(kBias, grad);
  }
}

// One step in public ops: what backward needs of it.
struct Step {
  Tensor h, c, i, f, g, o, state_tanh;  // h, c: before the step
};

// Steps made again in public ops, for every order.
void sequence_backward(Backward& b) {
  const Tensor weight = b.input(kWeight);
  const Tensor bias = b.num_inputs() > kBias ? b.input(kBias) : Tensor();
  const Tensors x = unbind(b.input(kGates), 0);
  const int64_t count = int64_t(x.size());
  const bool reverse = b.attrs<LstmOptions>().reverse;
  const auto at = [&](int64_t k) { return size_t(reverse ? count - 1 - k : k); };
  std::vector<Step> steps;
  Tensor h = b.input(kH), c = b.input(kC);
  for (int64_t k = 0; k < count; ++k) {
    const Tensors p = chunk(x[at(k)] + linear(h, weight, bias), 4, -1);
    Step s{h, c, sigmoid(p[0]), sigmoid(p[1]), tanh(p[2]), sigmoid(p[3]), {}};
    c = s.f * c + s.i * s.g;
    s.state_tanh = tanh(c);
    h = s.o * s.state_tanh;
    steps.push_back(std::move(s));
  }
  const Tensors up_h = unbind(b.upstream(0), 0), up_c = unbind(b.upstream(1), 0);
  Tensors grads(x.size());
  Tensor carried = zeros_like(h), carried_c = zeros_like(c), weight_sum;
  for (int64_t k = count - 1; k >= 0; --k) {
    const Step& s = steps[size_t(k)];
    const Tensor dh = up_h[at(k)] + carried;
    const Tensor dc = up_c[at(k)] + carried_c + dh * s.o * (1.0 - s.state_tanh * s.state_tanh);
    const Tensor d = cat({dc * s.g * s.i * (1.0 - s.i), dc * s.c * s.f * (1.0 - s.f),
                          dc * s.i * (1.0 - s.g * s.g), dh * s.state_tanh * s.o * (1.0 - s.o)},
                         -1);
    carried = matmul(d, weight);
    carried_c = dc * s.f;
    const Tensor part = matmul(d, s.h, {.transpose_a = true});
    weight_sum = weight_sum.defined() ? weight_sum + part : part;
    grads[at(k)] = d;
  }
  const Tensor all = stack(grads, 0);
  if (b.needs(kGates)) b.set(kGates, all);
  if (b.needs(kH)) b.set(kH, carried);
  if (b.needs(kC)) b.set(kC, carried_c);
  if (b.needs(kWeight)) b.set(kWeight, weight_sum);
  if (b.num_inputs() > kBias && b.needs(kBias)) b.set(kBias, all);  // summed to [4H] by the engine
}

// ---- as a node of ONNX

// Rows i, f, g, o → i, o, f, g with a direction in front: [1,4H] or [1,4H,n].
std::string onnx_gates(OnnxCall& c, const std::string& t) {
  const auto p = c.nodes("Split", {t}, 4, {{"axis", 0}});
  const std::string all = c.node("Concat", {p[0], p[3], p[1], p[2]}, {{"axis", 0}});
  return c.node("Unsqueeze", {all, c.list({0})});
}
// LSTM multiplies the input with its weights itself: they are those of the linear op that made the
// gates, or else the identity.
void onnx_lstm(OnnxCall& c) {
  const int64_t width = c.in(kGates).size(2);
  const Opts opts{.dtype = c.type()};
  const Tensors* made = c.made_by(kGates, "linear");
  const std::string zero = c.constant(zeros({width}, opts));
  const std::string x = made ? c.value((*made)[0]) : c.name(kGates);
  const std::string w = made ? c.value((*made)[1]) : c.constant(eye(width, opts));
  const bool biased = made && made->size() > 2 && (*made)[2].defined();
  const std::string from_x = onnx_gates(c, biased ? c.value((*made)[2]) : zero);
  const std::string from_h = onnx_gates(c, c.has(kBias) ? c.name(kBias) : zero);
  const std::string b = c.node("Concat", {from_x, from_h}, {{"axis", 1}});
  const std::string front = c.list({0});
  const std::string h = c.node("Unsqueeze", {c.name(kH), front});
  const std::string cell = c.node("Unsqueeze", {c.name(kC), front});
  const bool reverse = c.attrs<LstmOptions>().reverse;
  const std::string y =
      c.node("LSTM", {x, onnx_gates(c, w), onnx_gates(c, c.name(kWeight)), b, "", h, cell},
             {{"hidden_size", width / 4}, {"direction", reverse ? "reverse" : "forward"}});
  c.result(0, c.node("Squeeze", {y, c.list({1})}));
  c.no_result(1, "ONNX gives the state c of the last step only");
}

const OpRecord kLstmSequence{
    .name = "lstm_sequence",
    .signature = "lstm_sequence(gates, h, c, weight, bias?, {reverse}) → h, c",
    .meaning =
        "All steps of one direction of an LSTM layer, from what its input gives to the gates.",
    .formula =
        "(i, f, g, o)_t = gates_t + h_{t-1} weightᵀ + bias;  c_t = σ(f) c_{t-1} + σ(i) tanh(g);"
        "  h_t = σ(o) tanh(c_t)",
    .shapes = "gates [T,N,4H]   h, c [N,H]   weight [4H,H]   bias [4H]   results [T,N,H]",
    .dtypes = kFullFloats,
    .outputs = 2,
    .save_inputs = 0b11111,
    .save_outputs = 0b11,
    .forward = sequence_forward,
    .backward_text =
        "the steps in reverse: dgates_t from dh_t and dc_t, dh_{t-1} += dgates_t weight,"
        "  dc_{t-1} = dc_t σ(f);  dweight = Σ dgates_tᵀ h_{t-1}",
    .backward = sequence_backward,
    .fast_backward = sequence_fast_backward,
    .samples = lstm_sequence_samples,
    .onnx = onnx_lstm,
};

}  // namespace

LstmSequence lstm_sequence(TensorArg gates, TensorArg h, TensorArg c, TensorArg weight,
                           TensorArg bias, LstmOptions options) {
  Tensors in{*gates, *h, *c, *weight};
  if (bias->defined()) in.push_back(*bias);
  Tensors out = run_many(kLstmSequence, in, options, gates.site);
  return {std::move(out[0]), std::move(out[1])};
}

void register_recurrent_ops(std::vector<const OpRecord*>& list) { list.push_back(&kLstmSequence); }

}  // namespace cutaway
