#include <cmath>

#include <cutaway/autograd/ops/recurrent.h>
#include <cutaway/autograd/reference.h>

namespace cutaway {
namespace {

Tensors sequence_reference(const Tensors& in, bool reverse) {
  const Ref x(in[0]), h0(in[1]), c0(in[2]), w(in[3]);
  const std::vector<double> bias = in.size() > 4 ? in[4].to_vector() : std::vector<double>();
  const int64_t count = x.sizes[0], rows = x.sizes[1], width = x.sizes[2] / 4;
  Ref h(Shape{count, rows, width}), c(h.sizes);
  std::vector<double> last_h = h0.v, last_c = c0.v;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int64_t k = 0; k < count; ++k) {
    const int64_t t = reverse ? count - 1 - k : k;
    const std::vector<double> before = last_h;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        double gate[4];
        for (int64_t q = 0; q < 4; ++q) {
          const int64_t o = q * width + j;
          gate[q] = x.v[size_t((t * rows + r) * 4 * width + o)];
          if (!bias.empty()) gate[q] += bias[size_t(o)];
          for (int64_t p = 0; p < width; ++p) {
            gate[q] += before[size_t(r * width + p)] * w.v[size_t(o * width + p)];
          }
        }
        double& state = last_c[size_t(r * width + j)];
        state = sigmoid(gate[1]) * state + sigmoid(gate[0]) * std::tanh(gate[2]);
        const size_t at = size_t((t * rows + r) * width + j);
        c.v[at] = state;
        h.v[at] = last_h[size_t(r * width + j)] = sigmoid(gate[3]) * std::tanh(state);
      }
    }
  }
  return {h.tensor(), c.tensor()};
}

Sample& add_sequence(SampleList& list, const char* label, int64_t steps, int64_t rows,
                     int64_t width, bool bias, bool reverse) {
  Tensors in{list.randn({steps, rows, 4 * width}), list.randn({rows, width}),
             list.randn({rows, width}), list.randn({4 * width, width})};
  if (bias) in.push_back(list.randn({4 * width}));
  return list.add(
      label, std::move(in),
      [=](const Tensors& t) {
        const LstmSequence s = lstm_sequence(t[0], t[1], t[2], t[3], t.size() > 4 ? t[4] : Tensor(),
                                             {.reverse = reverse});
        return Tensors{s.h, s.c};
      },
      [=](const Tensors& t) { return sequence_reference(t, reverse); });
}

}  // namespace

void lstm_sequence_samples(SampleList& list) {
  add_sequence(list, "three steps", 3, 2, 2, true, false);
  add_sequence(list, "backwards", 3, 2, 2, true, true);
  add_sequence(list, "no bias", 2, 1, 3, false, false);
  add_sequence(list, "one step", 1, 2, 2, true, false);
  add_sequence(list, "no rows", 2, 0, 2, true, false);
  Sample& wide = add_sequence(list, "wide", 3, 5, 21, true, true);
  wide.grad = wide.grad_grad = false;
  list.error(
      "no steps",
      [] {
        lstm_sequence(zeros({0, 1, 4}), zeros({1, 1}), zeros({1, 1}), zeros({4, 1}));
      },
      "[lstm_sequence] gates must have sizes [T,N,4H] with T of at least 1; got [0,1,4]");
  list.error(
      "sizes",
      [] {
        lstm_sequence(zeros({2, 1, 8}), zeros({1, 2}), zeros({1, 2}), zeros({8, 3}));
      },
      "[lstm_sequence] weight has other sizes; got [8,3], need [8,2] for gates [2,1,8]");
  list.error(
      "types",
      [] {
        lstm_sequence(zeros({2, 1, 8}), zeros({1, 2}), zeros({1, 2}, {.dtype = DType::f64}),
                      zeros({8, 2}));
      },
      "[lstm_sequence] operands must have one type; got gates f32, c f64");
}

}  // namespace cutaway
