// Language models trained on text: data, numbers, resume, texts.
#include <cutaway/models/train/language.h>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/datasets/text/unicode.h>
#include <cutaway/models/train/checkpoint.h>

namespace cutaway::train {
namespace {
namespace fs = std::filesystem;

class Language : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("cutaway_language_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string text;
    for (int i = 0; i < 90; ++i)
      text += fmt::format("line {} of a text, né {}.\n", i % 7, i * 37 % 11);
    std::ofstream(path("t.txt"), std::ios::binary) << text;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string bytes(const std::string& name) const {
    const io::Bytes b = io::read_file(path(name));
    return {b.begin(), b.end()};
  }
  TrainConfig config(const std::string& model) const {
    TrainConfig c;
    c.model = model;
    c.data = path("t.txt");
    c.epochs = 2;
    c.batch = 8;
    c.context = 16;
    c.layers = 1;
    c.heads = 2;
    c.width = 16;
    c.dropout = 0.1;  // the generator's position matters
    c.checkpoint_every = 4;
    c.log_every = 3;
    c.clip = 1;
    return c;
  }
  std::string checkpoint(const std::string& run) const {
    const std::string folder = latest_checkpoint(path(run + "/checkpoint"));
    std::string all;
    for (const char* name : {"model.safetensors", "optim.safetensors", "state.json"}) {
      const io::Bytes b = io::read_file(folder + "/" + name);
      all.append(b.begin(), b.end());
    }
    return all;
  }
  fs::path folder_;
};

TEST_F(Language, FC_9a73_a_stopped_run_ends_with_the_same_bytes) {
  for (const char* model : {"gpt", "lstm"}) {
    const std::string whole = fmt::format("whole-{}", model),
                      parts = fmt::format("parts-{}", model);
    train(config(model), path(whole), false, {.quiet = true});
    EXPECT_FALSE(
        train(config(model), path(parts), false, {.quiet = true, .stop_after = 5}).finished);
    EXPECT_FALSE(train({}, path(parts), true, {.quiet = true, .stop_after = 10}).finished);
    EXPECT_TRUE(train({}, path(parts), true, {.quiet = true}).finished);
    EXPECT_EQ(checkpoint(whole), checkpoint(parts)) << model;
    const std::string eager = fmt::format("eager-{}", model);
    train(config(model), path(eager), false, {.quiet = true, .record = false});
    EXPECT_EQ(checkpoint(whole), checkpoint(eager)) << model;
  }
}

TEST_F(Language, losses_are_those_of_the_validation_text) {
  const TrainConfig c = config("gpt");
  const TrainOutcome outcome = train(c, path("run"), false, {.quiet = true});
  const RunData d = open_run_data(c, path("run"));
  auto model = zoo::make_model("gpt", task_of(c, d));
  load_weights(path("run"), *model);
  model->eval();
  NoGradGuard no_grad;
  double sum = 0;
  int64_t right = 0;
  for (int64_t i = 0; i < d.test.size(); ++i) {
    const Tensor p = log_softmax((*model)(d.test.inputs.slice(0, i, i + 1)), -1);
    for (int64_t t = 0; t < c.context; ++t) {
      const int64_t y = d.test.targets.data<int64_t>()[i * c.context + t];
      const std::vector<double> row = p.select(1, t).select(0, 0).to_vector();
      sum -= row[size_t(y)];
      right += std::max_element(row.begin(), row.end()) - row.begin() == y;
    }
  }
  const double n = double(d.test.targets.numel());
  EXPECT_NEAR(outcome.test.loss, sum / n, 1e-5);
  EXPECT_NEAR(outcome.test.accuracy, double(right) / n, 1e-12);
  ASSERT_TRUE(outcome.language);
  EXPECT_NEAR(outcome.language->perplexity, std::exp(sum / n), 1e-3);
  EXPECT_NEAR(outcome.language->nats_per_character, sum / n, 1e-5);  // a token is a character
  EXPECT_LT(outcome.test.loss, std::log(double(d.tokenizer->vocabulary())));
}

TEST_F(Language, bytes_of_two_a_character_count_as_one_character) {
  std::ofstream(path("u.txt")) << std::string(10, '\n');
  std::string text;
  for (int i = 0; i < 200; ++i) text += "é";
  std::ofstream(path("u.txt"), std::ios::binary) << text;
  TrainConfig c = config("gpt");
  c.data = path("u.txt");
  c.tokenizer = "byte";
  const RunData d = open_run_data(c);
  EXPECT_EQ(d.characters_per_token, 0.5);
  EXPECT_NEAR(language_result(0.25, d).nats_per_character, 0.5, 1e-15);
}

TEST_F(Language, a_run_keeps_its_tokenizer_and_shows_texts) {
  TrainConfig c = config("lstm");
  c.tokenizer = path("bpe.json");
  data::Tokenizer::train_bpe({bytes("t.txt")}, {.vocabulary = 270}).save(c.tokenizer);
  const TrainOutcome outcome = train(c, path("run"), false, {.quiet = true});
  EXPECT_EQ(bytes("run/tokenizer.json"), bytes("bpe.json"));
  fs::remove(path("bpe.json"));
  EXPECT_EQ(open_run_data(read_config(path("run")), path("run")).tokenizer->vocabulary(), 270);
  ASSERT_EQ(outcome.language->samples.size(), 3u);
  EXPECT_FALSE(outcome.language->samples[0].prompt.empty());
  const std::string report = bytes("run/report.html");
  EXPECT_NE(report.find("nats per character"), std::string::npos);
  EXPECT_NE(report.find("--tokenizer"), std::string::npos);
  EXPECT_NE(report.find("<pre><b>"), std::string::npos);
}

TEST_F(Language, a_seed_gives_one_text) {
  const TrainConfig c = config("gpt");
  train(c, path("run"), false, {.quiet = true});
  const RunData d = open_run_data(c, path("run"));
  auto model = zoo::make_model("gpt", task_of(c, d));
  load_weights(path("run"), *model);
  auto& gpt = dynamic_cast<zoo::LanguageModel&>(*model);
  const std::string a = continue_text(gpt, *d.tokenizer, "line", {.length = 40, .seed = 3});
  EXPECT_EQ(a, continue_text(gpt, *d.tokenizer, "line", {.length = 40, .seed = 3}));
  EXPECT_NE(a, continue_text(gpt, *d.tokenizer, "line", {.length = 40, .seed = 4}));
  EXPECT_TRUE(a.starts_with("line"));
  EXPECT_EQ(data::count_characters(continue_text(gpt, *d.tokenizer, "", {.length = 9})), 10);
  EXPECT_THROW(continue_text(gpt, *d.tokenizer, "日", {}), ValueError);
}

TEST_F(Language, what_cannot_be_trained_is_refused_before_a_folder_is_made) {
  const auto refused = [&](const TrainConfig& c) {
    EXPECT_THROW(train(c, path("bad"), false, {.quiet = true}), Error);
    EXPECT_FALSE(fs::exists(path("bad")));
  };
  TrainConfig c = config("gpt");
  c.data = "digits";
  refused(c);
  c = config("gpt");
  c.context = 100'000;
  refused(c);
  c = config("gpt");
  c.heads = 3;  // does not divide 16
  refused(c);
  c = config("gpt");
  c.tokenizer = path("t.txt");  // no [UNK]
  refused(c);
  c = config("gpt");
  c.dropout = 1;
  refused(c);
  c = config("convnet");  // text is no pictures
  refused(c);
}

}  // namespace
}  // namespace cutaway::train
