#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/lstm_lm.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::zoo {
namespace {

Tensor ids(std::initializer_list<double> values, const Shape& sizes) {
  return tensor(values, sizes, {.dtype = DType::i64});
}
Tensor some_tokens() { return ids({3, 1, 4, 1, 5, 6, 2, 6, 5, 0}, {2, 5}); }

TEST(LstmLmModel, the_output_layer_is_the_table) {
  manual_seed(1);
  LstmLm net({.vocabulary = 7, .width = 4});
  std::vector<std::string> names;
  for (const nn::Named& p : net.named_parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"encoder.weight", "rnn.weight_ih_l0",
                                             "rnn.weight_hh_l0", "rnn.bias_ih_l0", "rnn.bias_hh_l0",
                                             "rnn.weight_ih_l1", "rnn.weight_hh_l1",
                                             "rnn.bias_ih_l1", "rnn.bias_hh_l1", "decoder.bias"}));
  EXPECT_EQ(net.num_parameters(), 7 * 4 + 7 + 2 * (2 * 16 * 4 + 2 * 16));
  EXPECT_LE(amax(abs(net.encoder.weight)).item(), 0.1);
  EXPECT_EQ(net(some_tokens()).sizes(), (Shape{2, 5, 7}));
  LstmLm copy = nn::clone(net);
  copy.to(DType::f64);
  EXPECT_TRUE(copy.decoder.weight.is_same(copy.encoder.weight));
  EXPECT_FALSE(copy.encoder.weight.is_same(net.encoder.weight));
}

TEST(LstmLmModel, later_tokens_do_not_matter) {
  manual_seed(2);
  LstmLm net({.vocabulary = 7, .width = 8});
  const Tensor a = net(ids({1, 2, 3, 4, 5}, {1, 5})), b = net(ids({1, 2, 3, 6, 0}, {1, 5}));
  EXPECT_EQ(slice(a, 1, 0, 3).to_vector(), slice(b, 1, 0, 3).to_vector());
  EXPECT_NE(a[0][3].to_vector(), b[0][3].to_vector());
  EXPECT_NE(net(ids({2, 1, 3}, {1, 3}))[0][2].to_vector(), a[0][2].to_vector());
}

TEST(LstmLmModel, gradients_agree_with_differences) {
  manual_seed(3);
  LstmLm net({.vocabulary = 4, .layers = 1, .width = 3});
  net.to(DType::f64);
  const nn::NamedTensors parameters = net.named_parameters();
  Tensors inputs;
  for (const nn::Named& p : parameters) {
    inputs.push_back(randn(p.value.sizes(), {.dtype = DType::f64, .requires_grad = true}));
  }
  const Tensor tokens = ids({0, 3, 3, 1, 2, 0}, {2, 3});
  const auto report = gradcheck(
      [&](const Tensors& in) {
        nn::NamedTensors values{{"decoder.weight", in[0]}};  // tied to the first parameter
        for (size_t i = 0; i < parameters.size(); ++i)
          values.push_back({parameters[i].name, in[i]});
        return Tensors{nn::functional_call(net, values, tokens)};
      },
      inputs);
  EXPECT_TRUE(report.ok) << report.message;
}

TEST(LstmLmModel, learns_a_small_batch) {
  manual_seed(4);
  LstmLm net({.vocabulary = 7, .width = 16, .dropout = 0.05});
  optim::AdamW adam(net.parameters(), {.lr = 0.02});
  const Tensor tokens = some_tokens(), next = ids({1, 4, 1, 5, 0, 2, 6, 5, 0, -100}, {2, 5});
  EXPECT_NEAR(net.loss(tokens, next).item(), std::log(7.0), 0.1);
  for (int step = 0; step < 100; ++step) {
    net.loss(tokens, next).backward();
    adam.step_and_zero();
  }
  net.eval();
  EXPECT_LT(net.loss(tokens, next).item(), 0.2);
}

TEST(LstmLmModel, generates_with_kept_states) {
  manual_seed(5);
  LstmLm net({.vocabulary = 7, .width = 8});
  nn::init::normal_(net.encoder.weight);
  const Tensor start = some_tokens(), text = net.generate(start, 6, {.temperature = 0});
  ASSERT_EQ(text.sizes(), (Shape{2, 11}));
  for (int64_t end = 5; end < 11; ++end) {
    const Tensor likeliest = argmax(select(net(slice(text, 1, 0, end)), 1, -1), -1);
    EXPECT_EQ(select(text, 1, end).to_vector(), likeliest.to_vector()) << end;
  }
  const Tensor drawn = net.generate(start, 20, {.seed = 1});
  EXPECT_EQ(drawn.to_vector(), net.generate(start, 20, {.seed = 1}).to_vector());
  EXPECT_NE(drawn.to_vector(), net.generate(start, 20, {.seed = 2}).to_vector());
}

TEST(LstmLmModel, errors_say_what_is_wrong) {
  EXPECT_THROW(LstmLm({}), ValueError);
  EXPECT_THROW(LstmLm({.vocabulary = 3, .layers = 0}), ValueError);
  LstmLm net({.vocabulary = 7, .width = 4});
  EXPECT_THROW(net(ids({1, 2}, {2})), ShapeError);
  EXPECT_THROW(net(ids({7}, {1, 1})), IndexError);
  EXPECT_THROW(net.generate(zeros({1, 0}, {.dtype = DType::i64}), 1), ShapeError);
}

}  // namespace
}  // namespace cutaway::zoo
