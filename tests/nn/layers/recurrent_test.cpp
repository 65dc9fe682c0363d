#include <cutaway/nn/layers/recurrent.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::nn {
namespace {

Tensor column(std::initializer_list<double> v) {
  return tensor(v, {int64_t(v.size()), 1}, {.dtype = DType::f64});
}
Tensor list(std::initializer_list<double> v) { return tensor(v, {.dtype = DType::f64}); }

TEST(Recurrent, FC_4024_LstmGateOrder) {
  LSTMCell cell({.input_size = 1, .hidden_size = 1});
  cell.to(DType::f64);
  cell.load_state_dict({{"weight_ih", column({1, 2, 3, 4})},
                        {"weight_hh", column({.1, .2, .3, .4})},
                        {"bias_ih", list({.1, .2, .3, .4})},
                        {"bias_hh", list({0, 0, 0, 0})}});
  const LSTMState s = cell(column({.5}), {column({.2}), column({.3})});
  EXPECT_NEAR(s.h.item(), 0.6386888240, 1e-10);
  EXPECT_NEAR(s.c.item(), 0.8521186593, 1e-10);
}

TEST(Recurrent, FC_d250_GruResetsAfterTheProduct) {
  GRUCell cell({.input_size = 1, .hidden_size = 1});
  cell.to(DType::f64);
  cell.load_state_dict({{"weight_ih", column({1, 2, 3})},
                        {"weight_hh", column({.5, .25, -1})},
                        {"bias_ih", list({.1, .2, .3})},
                        {"bias_hh", list({.4, .5, .6})}});
  EXPECT_NEAR(cell(column({.5}), column({.7})).item(), 0.7316366710, 1e-10);
}

TEST(Recurrent, FC_44c0_PaddingIsNeverRead) {
  GRU gru({.input_size = 2, .hidden_size = 3, .batch_first = true, .bidirectional = true});
  const auto run = [&](double pad) {
    const Tensor x = tensor({1, 2, 3, 4, 5, 6, -1, .5, 2, 1, pad, pad}, {2, 3, 2});
    return gru(x, {.lengths = {3, 2}});
  };
  const RecurrentResult both = run(99);
  const RecurrentResult first = gru(tensor({1, 2, 3, 4, 5, 6}, {1, 3, 2}));
  const RecurrentResult second = gru(tensor({-1, .5, 2, 1}, {1, 2, 2}));
  const auto near = [](const Tensor& a, const Tensor& b) {
    EXPECT_LE(amax(abs(a - b)).item(), 1e-6);
  };
  near(both.output[0], first.output[0]);
  near(both.output[1].slice(0, 0, 2), second.output[0]);
  near(both.h_n.slice(1, 0, 1), first.h_n);
  near(both.h_n.slice(1, 1, 2), second.h_n);
  EXPECT_EQ(amax(abs(both.output[1][2])).item(), 0);
  const RecurrentResult other = run(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(other.output.to_vector(), both.output.to_vector());
}

TEST(Recurrent, RnnIsElmans) {
  RNN rnn({.input_size = 1, .hidden_size = 1});
  rnn.to(DType::f64);
  rnn.load_state_dict({{"weight_ih_l0", column({2})},
                       {"weight_hh_l0", column({-.5})},
                       {"bias_ih_l0", list({.1})},
                       {"bias_hh_l0", list({.2})}});
  const double h = std::tanh(2 * .3 + .3), h2 = std::tanh(2 * -.4 + .3 - .5 * h);
  const Tensor y = rnn(tensor({.3, -.4}, {2, 1, 1}, {.dtype = DType::f64})).output;
  EXPECT_NEAR(y[0].item(), h, 1e-12);
  EXPECT_NEAR(y[1].item(), h2, 1e-12);
}

TEST(Recurrent, ProjectionMakesTheStateSmaller) {
  LSTM lstm(
      {.input_size = 2, .hidden_size = 5, .num_layers = 2, .bidirectional = true, .proj_size = 3});
  const RecurrentResult r = lstm(ones({4, 2, 2}));
  EXPECT_EQ(r.output.sizes(), (Shape{4, 2, 6}));
  EXPECT_EQ(r.h_n.sizes(), (Shape{4, 2, 3}));
  EXPECT_EQ(r.c_n.sizes(), (Shape{4, 2, 5}));
  EXPECT_THROW(GRU({.input_size = 2, .hidden_size = 5, .proj_size = 3}), ValueError);
}

TEST(Recurrent, CloneIsIndependentAndCopiesShare) {
  LSTM a({.input_size = 2, .hidden_size = 3});
  LSTM shared = a, own = clone(a);
  EXPECT_EQ(a.named_parameters().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(a.named_parameters()[i].value.is_same(shared.named_parameters()[i].value));
    EXPECT_FALSE(a.named_parameters()[i].value.is_same(own.named_parameters()[i].value));
  }
  EXPECT_EQ(a.named_parameters()[0].name, "weight_ih_l0");
}

TEST(Recurrent, RejectsWrongSizes) {
  GRU gru({.input_size = 2, .hidden_size = 3});
  EXPECT_THROW(gru(ones({4, 3})), ShapeError);
  EXPECT_THROW(gru(ones({4})), ShapeError);
  EXPECT_EQ(gru(ones({4, 2})).output.sizes(), (Shape{4, 3}));  // one sequence
  EXPECT_THROW(gru(ones({4, 2, 5})), ShapeError);
  EXPECT_THROW(gru(ones({4, 2, 2}), {.h0 = ones({1, 2, 4})}), ShapeError);
  EXPECT_THROW(gru(ones({4, 2, 2}), {.lengths = {4}}), ValueError);
  EXPECT_THROW(gru(ones({4, 2, 2}), {.lengths = {4, 5}}), ValueError);
}

}  // namespace
}  // namespace cutaway::nn
