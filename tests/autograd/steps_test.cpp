#include <cutaway/autograd/steps.h>

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/print.h>

namespace cutaway {
namespace {

TEST(Steps, each_op_shows_what_came_in_and_what_went_out) {
  const Tensor x = tensor({1, 2, 3}, {.requires_grad = true}), w = tensor({4, 5, 6});
  const Tensor loss = sum(square(x * w));
  std::vector<BackwardStep> steps;
  step_backward(loss, [&](const BackwardStep& s) { steps.push_back(s); });
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].op, "sum");
  EXPECT_EQ(steps[1].op, "square");
  EXPECT_EQ(steps[1].formula, "dx = 2 g ⊙ x");
  EXPECT_NE(steps[1].site.find("steps_test.cpp:"), std::string::npos) << steps[1].site;
  EXPECT_EQ(steps[1].upstream[0].to_vector(), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(steps[1].gradients[0].to_vector(), (std::vector<double>{8, 20, 36}));
  EXPECT_EQ(steps[2].op, "mul");
  EXPECT_FALSE(steps[2].gradients[1].defined());  // w wants none
  EXPECT_EQ(steps[3].op, "leaf");
  EXPECT_EQ(steps[3].upstream[0].to_vector(), (std::vector<double>{32, 100, 216}));
  EXPECT_EQ(x.grad().to_vector(), (std::vector<double>{32, 100, 216}));

  const std::string text = to_string(steps[2]);
  EXPECT_TRUE(text.starts_with("mul ")) << text;
  EXPECT_NE(text.find("  got  [3] 8 20 36\n  gave [3] 32 100 216\n  gave none\n"),
            std::string::npos)
      << text;
}

TEST(Steps, a_later_pass_is_not_watched_and_errors_end_the_pass) {
  const Tensor x = tensor({1, 2}, {.requires_grad = true});
  const Tensor loss = sum(exp(x));
  int calls = 0;
  EXPECT_THROW(step_backward(loss,
                             [&](const BackwardStep&) {
                               ++calls;
                               throw std::runtime_error("stop");
                             }),
               std::runtime_error);
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(x.grad().defined());
  sum(exp(x)).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(step_backward(tensor({1}), [](const BackwardStep&) {}), AutogradError);
}

TEST(Steps, gradients_have_the_bits_of_an_ordinary_pass) {
  const Tensor a = randn({7, 20}, {.requires_grad = true}), b = randn({20, 3});
  sum(tanh(matmul(a, b))).backward();
  const std::vector<double> plain = a.grad().to_vector();
  Tensor(a).zero_grad();
  step_backward(sum(tanh(matmul(a, b))),
                [](const BackwardStep& s) { EXPECT_FALSE(to_string(s).empty()); });
  EXPECT_EQ(a.grad().to_vector(), plain);
}

TEST(Print, values_go_to_streams) {
  std::ostringstream out;
  out << tensor({1, 2}) << " " << Tensor() << " " << Shape{2, 3} << " " << DType::bf16 << " "
      << kCpu;
  EXPECT_EQ(out.str(), "[1, 2]  [2] f32 cpu (undefined) [2,3] bf16 cpu");
}

}  // namespace
}  // namespace cutaway
