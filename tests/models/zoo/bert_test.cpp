#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/torch_file.h>
#include <cutaway/models/zoo/bert.h>
#include <cutaway/nn/files.h>
#include <tests/models/zoo/one_thread.h>
#include <tests/paths.h>

namespace cutaway::zoo {
namespace {

const BertOptions kSmall{.vocabulary = 40,
                         .context = 12,
                         .types = 2,
                         .layers = 2,
                         .heads = 2,
                         .width = 8,
                         .hidden = 16,
                         .dropout = 0};

std::string file(const char* name) {
  return std::string(kSourceDir) + "/tests/golden/torch/" + name;
}
nn::NamedTensors load(const char* name) {
  nn::NamedTensors list;
  for (const auto& [key, value] : io::load_torch(file(name))) list.push_back({key, value});
  return list;
}
void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const std::vector<double> a = got.to_vector(), b = want.to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST(Bert, weights_of_torch_load_by_key_and_give_the_same_results) {
  const OneThread guard;
  std::map<std::string, Tensor> results;
  for (const nn::Named& t : load("bert_results.pt")) results[t.name] = t.value;
  Bert bert(kSmall);
  bert.load_state_dict(bert_state(load("bert.pt")));
  bert.eval();
  const BertInput input{results.at("tokens"), results.at("mask"), results.at("types")};
  const BertOutput out = bert(input);
  expect_near(out.hidden, results.at("hidden"));
  expect_near(out.pooled, results.at("pooled"));
  expect_near(bert.sentence_embeddings(input), results.at("sentences"));

  BertClassifier classifier(kSmall, 3);
  nn::load(classifier, file("bert.pt"), {.strict = false});
  classifier.eval();
  const Tensor logits = classifier.classifier(classifier.bert(input).pooled);
  expect_near(logits, results.at("logits"));
  // From tokens alone every type is 0; the second text has no other.
  expect_near(classifier(input.tokens)[1], results.at("logits")[1]);
}

TEST(Bert, padding_changes_nothing) {
  const OneThread guard;
  manual_seed(3);
  Bert bert(kSmall);
  bert.eval();
  const Tensor tokens = tensor({5, 9, 7}, {1, 3}, {.dtype = DType::i64});
  const Tensor wide = tensor({5, 9, 7, 30, 31}, {1, 5}, {.dtype = DType::i64});
  const Tensor mask = tensor({1, 1, 1, 0, 0}, {1, 5});
  expect_near(slice(bert({wide, mask, {}}).hidden, 1, 0, 3), bert({tokens, {}, {}}).hidden);
  expect_near(bert.sentence_embeddings({wide, mask, {}}), bert.sentence_embeddings({tokens}));
}

TEST(Bert, sizes_of_published_models) {
  const auto parameters = [](const char* name) {
    BertOptions o = bert_options(name);
    o.device = kMeta;
    return Bert(o).num_parameters();
  };
  EXPECT_EQ(parameters("bert-base"), 109482240);
  EXPECT_EQ(parameters("minilm-l6"), 22713216);
  EXPECT_EQ(parameters("minilm-l12"), 33360000);
  EXPECT_EQ(parameters("bert-tiny"), 4385920);
  EXPECT_THROW(bert_options("bert"), ValueError);
}

TEST(Bert, old_names_and_other_heads) {
  const Tensor t = zeros({1});
  const nn::NamedTensors state = bert_state({{"bert.embeddings.LayerNorm.gamma", t},
                                             {"bert.embeddings.LayerNorm.beta", t},
                                             {"bert.embeddings.position_ids", t},
                                             {"cls.predictions.bias", t},
                                             {"pooler.dense.bias", t}});
  ASSERT_EQ(state.size(), 3u);
  EXPECT_EQ(state[0].name, "embeddings.LayerNorm.weight");
  EXPECT_EQ(state[1].name, "embeddings.LayerNorm.bias");
  EXPECT_EQ(state[2].name, "pooler.dense.bias");
}

TEST(Bert, wrong_sizes_raise) {
  const OneThread guard;
  Bert bert(kSmall);
  EXPECT_THROW(bert({zeros({1, 13}, {.dtype = DType::i64}), {}, {}}), ShapeError);
  EXPECT_THROW(bert({zeros({1, 3}, {.dtype = DType::i64}), zeros({1, 2}), {}}), ShapeError);
  EXPECT_THROW(bert({full({1, 3}, 40, {.dtype = DType::i64}), {}, {}}), IndexError);
  EXPECT_THROW(Bert({.heads = 5}), ValueError);
  EXPECT_THROW(Bert({.vocabulary = 0}), ValueError);
}

}  // namespace
}  // namespace cutaway::zoo
