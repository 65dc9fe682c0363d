#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/zoo.h>
#include <tests/models/zoo/one_thread.h>

namespace cutaway::zoo {
namespace {

TEST(Zoo, language_models_want_tokens) {
  const OneThread guard;
  const auto gpt = make_model("gpt", {.input = {16}, .vocabulary = 65});
  EXPECT_EQ((*gpt)(zeros({2, 16}, {.dtype = DType::i64})).sizes(), (Shape{2, 16, 65}));
  try {
    make_model("gpt", {.input = {1, 28, 28}, .classes = 10});
    FAIL() << "images went into gpt";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find(
                  "gpt reads sequences of tokens [T]; got inputs [1,28,28] in 10 classes"),
              std::string::npos)
        << e.what();
  }
  EXPECT_THROW(make_model("mlp", {.input = {16}, .vocabulary = 65}), ValueError);
  EXPECT_THROW(make_model("no-such-model", {.input = {16}, .classes = 2}), ValueError);
}

TEST(Zoo, every_known_model_can_be_made_and_run) {
  const OneThread guard;
  for (const auto& [name, about] : known_models()) {
    if (name == "gpt2") continue;  // half a gigabyte
    const bool language = name == "gpt" || name == "lstm";
    const Task task =
        language ? Task{.input = {8}, .vocabulary = 7} : Task{.input = {1, 12, 12}, .classes = 3};
    const auto model = make_model(name, task);
    model->eval();
    NoGradGuard no_grad;
    const Tensor y =
        language ? (*model)(zeros({2, 8}, {.dtype = DType::i64})) : (*model)(zeros({2, 1, 12, 12}));
    EXPECT_EQ(y.sizes(), language ? (Shape{2, 8, 7}) : (Shape{2, 3})) << name;
    EXPECT_FALSE(about.empty());
  }
}

}  // namespace
}  // namespace cutaway::zoo
