#include <gtest/gtest.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <cutaway/models/zoo/graph.h>
#include <cutaway/models/zoo/pictures.h>
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

// Data of the kind that the model is for.
Task task_for(const std::string& name) {
  switch (kind_of(name)) {
    case Kind::language:
      return {.input = {8}, .vocabulary = 7};
    case Kind::text:
      return {.input = {8}, .classes = 3, .vocabulary = 7};
    case Kind::graph:
      return {.input = {5}, .classes = 3};
    default:
      return {.input = {1, 12, 12}, .classes = 3};
  }
}

TEST(Zoo, every_known_model_can_be_made_and_run) {
  const OneThread guard;
  for (const auto& [name, about] : known_models()) {
    EXPECT_FALSE(about.empty());
    // Half a gigabyte each; and the same code as the smaller ones.
    if (name == "gpt2" || name == "bert-base" || name == "vit-base") continue;
    if (name.starts_with("minilm") || name == "vit-small" || name == "vit-tiny") continue;
    SCOPED_TRACE(name);
    const auto model = make_model(name, task_for(name));
    model->eval();
    NoGradGuard no_grad;
    const Tensor tokens = zeros({2, 8}, {.dtype = DType::i64}), images = zeros({2, 1, 12, 12});
    switch (kind_of(name)) {
      case Kind::classifier:
        EXPECT_EQ((*model)(images).sizes(), (Shape{2, 3}));
        break;
      case Kind::language:
        EXPECT_EQ((*model)(tokens).sizes(), (Shape{2, 8, 7}));
        break;
      case Kind::text:
        EXPECT_EQ((*model)(tokens).sizes(), (Shape{2, 3}));
        break;
      case Kind::pictures:
        EXPECT_EQ((*model)(images).sizes(), images.sizes());
        EXPECT_EQ(dynamic_cast<PictureModel&>(*model).loss(images).sizes(), Shape{});
        break;
      case Kind::graph: {
        const Edges pair{index_tensor(std::vector<int64_t>{0, 1}),
                         index_tensor(std::vector<int64_t>{1, 0}), 3};
        EXPECT_EQ(dynamic_cast<GraphModel&>(*model)(zeros({3, 5}), pair).sizes(), (Shape{3, 3}));
      }
    }
  }
}

TEST(Zoo, classes_are_asked_for_where_they_are_told) {
  EXPECT_THROW(make_model("vit", {.input = {1, 12, 12}}), ValueError);
  EXPECT_THROW(make_model("bert-tiny", {.input = {8}, .vocabulary = 7}), ValueError);
  EXPECT_THROW(make_model("vae", {.input = {8}}), ValueError);
}

}  // namespace
}  // namespace cutaway::zoo
