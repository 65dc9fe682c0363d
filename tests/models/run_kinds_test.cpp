// Runs of models of pictures, graphs and texts: resume to the same bits, and the files of a run.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/run_data.h>
#include <cutaway/models/train/start.h>
#include <cutaway/models/train/trainer.h>
#include <cutaway/models/zoo/pictures.h>

namespace cutaway::train {
namespace {
namespace fs = std::filesystem;

class RunKinds : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("cutaway_kinds_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream out(path("t.jsonl"));
    for (int i = 0; i < 80; ++i) {
      const char* colour = i % 3 == 0 ? "a red rose" : i % 3 == 1 ? "the blue sea" : "green grass";
      out << fmt::format("{{\"text\": \"{} no. {}{}\", \"label\": {}}}\n", colour, i % 7,
                         i % 4 ? "" : ", and again and again and again and on and on", i % 3);
    }
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
    c.epochs = 2;
    c.checkpoint_every = 2;
    c.log_every = 2;
    switch (zoo::kind_of(model)) {
      case zoo::Kind::graph:
        c.data = "miles";
        c.batch = 8;
        break;
      case zoo::Kind::text:
        c.data = path("t.jsonl");
        c.tokenizer = "wordpiece";
        c.batch = 16;
        break;
      default:
        c.data = "digits";
        c.batch = 400;
    }
    return c;
  }
  // The newest checkpoint, and the best weights.
  std::string weights(const std::string& run) const {
    const fs::path newest = fs::relative(latest_checkpoint(path(run + "/checkpoint")), folder_);
    std::string all = bytes(run + "/best.safetensors");
    for (const char* name : {"model.safetensors", "optim.safetensors", "state.json"}) {
      all += bytes((newest / name).string());
    }
    return all;
  }
  fs::path folder_;
};

using RunKindsSlow = RunKinds;
TEST_F(RunKindsSlow, FC_9a73_a_stopped_run_ends_with_the_same_bytes) {
  for (const char* model : {"autoencoder", "vae", "unet", "gcn", "gat", "bert-tiny"}) {
    SCOPED_TRACE(model);
    const TrainConfig c = config(model);
    const auto run = [&](const char* name) { return fmt::format("{}-{}", name, model); };
    EXPECT_TRUE(train(c, path(run("whole")), false, {.quiet = true}).finished);
    EXPECT_FALSE(train(c, path(run("parts")), false, {.quiet = true, .stop_after = 3}).finished);
    EXPECT_FALSE(train({}, path(run("parts")), true, {.quiet = true, .stop_after = 2}).finished);
    EXPECT_TRUE(train({}, path(run("parts")), true, {.quiet = true}).finished);
    EXPECT_EQ(weights(run("whole")), weights(run("parts")));
    train(c, path(run("eager")), false, {.quiet = true, .record = false});
    EXPECT_EQ(weights(run("whole")), weights(run("eager")));
  }
}

TEST_F(RunKindsSlow, killed_runs_lose_nothing) {
  set_num_threads(1);  // a fork does not take a team of threads along
  const TrainConfig c = config("vae");
  train(c, path("whole"), false, {.quiet = true});
  const std::string want = weights("whole");
  for (int round = 0; round < 4; ++round) {
    const std::string name = fmt::format("killed{}", round);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        train(c, path(name), false, {.quiet = true});
      } catch (...) {
        _exit(3);
      }
      _exit(0);
    }
    ::usleep(useconds_t(20000 + 45000 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool begun = fs::exists(path(name + "/config.json"));
    if (!begun) fs::remove_all(path(name));
    EXPECT_TRUE(train(c, path(name), begun, {.quiet = true}).finished);
    EXPECT_EQ(weights(name), want) << round;
  }
}

TEST_F(RunKinds, pictures_leave_all_files_of_a_run) {
  const TrainOutcome outcome = train(config("unet"), path("run"), false, {.quiet = true});
  EXPECT_TRUE(std::isnan(outcome.test.accuracy));
  const std::string metrics = bytes("run/metrics.csv");
  EXPECT_NE(metrics.find("\n8,1,test,"), std::string::npos) << metrics;
  EXPECT_TRUE(bytes("run/plots/pictures.svg").starts_with("<svg"));
  EXPECT_TRUE(fs::exists(path("run/plots/loss.svg")));
  EXPECT_FALSE(fs::exists(path("run/plots/accuracy.svg")));
  const std::string report = bytes("run/report.html");
  EXPECT_NE(report.find("Test loss"), std::string::npos);
  EXPECT_EQ(report.find("accuracy"), std::string::npos);
  bool events = false;
  for (const auto& entry : fs::directory_iterator(path("run"))) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("events.out.tfevents.")) continue;
    events = bytes("run/" + name).find("loss/test") != std::string::npos;
  }
  EXPECT_TRUE(events);
}

// Test noise is the same each time, and training does not notice the test.
TEST_F(RunKinds, a_test_draws_the_same_and_leaves_the_generator) {
  const TrainConfig c = config("unet");
  const RunData d = open_run_data(c);
  const auto model = zoo::make_model(c.model, task_of(c, d));
  manual_seed(5);
  const double first = evaluate(*model, d.test).loss;
  EXPECT_EQ(default_generator(), (Generator{.seed = 5}));
  EXPECT_EQ(evaluate(*model, d.test).loss, first);
  EXPECT_TRUE(model->training());
}

TEST_F(RunKinds, the_best_weights_are_those_of_the_best_test) {
  TrainConfig c = config("autoencoder");
  c.epochs = 3;
  c.optimizer = "sgd";
  c.schedule = "linear";
  c.lr = 0.05;
  const TrainOutcome outcome = train(c, path("run"), false, {.quiet = true});
  const RunData d = open_run_data(c);
  const auto model = zoo::make_model(c.model, task_of(c, d));
  load_weights(path("run/best.safetensors"), *model);
  const double best = evaluate(*model, d.test).loss;
  // The least of the test rows of metrics.csv.
  std::ifstream in(path("run/metrics.csv"));
  double least = INFINITY;
  int rows = 0;
  for (std::string line; std::getline(in, line);) {
    const size_t at = line.find(",test,");
    if (at == std::string::npos) continue;
    ++rows;
    least = std::min(least, std::stod(line.substr(at + 6)));
  }
  EXPECT_EQ(rows, 3);
  EXPECT_DOUBLE_EQ(best, least);
  EXPECT_LE(best, outcome.test.loss);
}

TEST_F(RunKinds, nodes_are_examples_with_numbers) {
  const TrainConfig c = config("gcn");
  const RunData d = open_run_data(c);
  EXPECT_EQ(d.train.size(), 20);
  EXPECT_EQ(d.test.size(), 108);
  const auto model = zoo::make_model("gcn", task_of(c, d));
  model->eval();
  auto& gcn = dynamic_cast<zoo::GraphModel&>(*model);
  const Tensor all = gcn(d.graph->features, d.graph->edges);
  const Tensor some = (*model)(d.test.inputs);
  EXPECT_EQ(some.sizes(), (Shape{108, 4}));
  EXPECT_EQ(some.to_vector(), index_select(all, 0, d.test.inputs).to_vector());
  EXPECT_THROW(gcn.keep(*d.graph), ValueError);
  EXPECT_THROW(zoo::Gcn({.in = 3, .classes = 2}).forward(d.test.inputs), ValueError);
  // Files have the layers alone.
  EXPECT_EQ(model->state_dict().size(), 4u);
}

TEST_F(RunKinds, texts_are_padded_and_cut) {
  TrainConfig c = config("bert-tiny");
  const RunData d = open_run_data(c);
  EXPECT_EQ(d.train.size(), 64);
  EXPECT_EQ(d.test.size(), 16);
  EXPECT_EQ(d.train.classes, (std::vector<std::string>{"0", "1", "2"}));
  const int64_t width = d.train.inputs.size(1);
  EXPECT_GT(width, 16);
  const std::vector<int64_t> lengths = text_lengths(d.train.inputs);
  EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), width);
  const Tensor one = d.train.inputs.slice(0, 1, 2);  // a short one
  EXPECT_EQ(without_padding(one).size(1), 16);
  // Padding changes nothing.
  const auto model = zoo::make_model("bert-tiny", task_of(c, d));
  model->eval();
  const std::vector<double> a = (*model)(one).to_vector(),
                            b = (*model)(without_padding(one)).to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
  c.context = 6;
  EXPECT_EQ(open_run_data(c).train.inputs.size(1), 6);
  c.tokenizer = "byte";  // its token 0 is a byte
  EXPECT_THROW(open_run_data(c), ValueError);
}

// Names of weights as Hugging Face's older files have them, under BertModel's own names.
TEST_F(RunKinds, a_run_starts_from_published_weights) {
  TrainConfig c = config("bert-tiny");
  const RunData d = open_run_data(c);
  manual_seed(77);
  const auto model = zoo::make_model("bert-tiny", task_of(c, d));
  io::TensorFile file, other;
  for (const nn::Named& n : model->state_dict()) {
    if (n.name.starts_with("classifier.")) {
      file.tensors.emplace_back(n.name, randn({7, 3}));  // of another task
      continue;
    }
    std::string name = n.name.substr(5);
    const size_t norm = name.find("LayerNorm.weight");
    if (norm != std::string::npos) name.replace(norm, 16, "LayerNorm.gamma");
    file.tensors.emplace_back(name, n.value);
  }
  c.init = path("w.safetensors");
  io::save_safetensors(c.init, file);
  c.epochs = 0;
  train(c, path("run"), false, {.quiet = true});
  const auto start = zoo::make_model("bert-tiny", task_of(c, d));
  load_weights(path("run"), *start);
  for (const nn::Named& n : model->state_dict()) {
    for (const nn::Named& m : start->state_dict()) {
      if (m.name == n.name && !n.name.starts_with("classifier.")) {
        EXPECT_EQ(m.value.to_vector(), n.value.to_vector()) << n.name;
      }
    }
  }
  EXPECT_EQ(read_config(path("run")).init, c.init);
  const Taken taken = start_from(*start, c.init);
  EXPECT_EQ(taken.fresh, (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
  // A start that was stopped ends as one that was not; the file is not needed to go on.
  c.epochs = 2;
  train(c, path("whole"), false, {.quiet = true});
  train(c, path("parts"), false, {.quiet = true, .stop_after = 3});
  fs::remove(c.init);
  train({}, path("parts"), true, {.quiet = true});
  EXPECT_EQ(weights("whole"), weights("parts"));
  // Other sizes, and other names.
  other.tensors.emplace_back("embeddings.word_embeddings.weight", randn({5, 128}));
  io::save_safetensors(path("other.safetensors"), other);
  EXPECT_THROW(start_from(*start, path("other.safetensors")), ShapeError);
  other.tensors[0].first = "x";
  io::save_safetensors(path("other.safetensors"), other);
  EXPECT_THROW(start_from(*start, path("other.safetensors")), ValueError);
}

TEST_F(RunKinds, what_does_not_suit_the_model_is_refused_before_a_folder_is_made) {
  const auto refused = [&](const char* model, auto change, const char* piece) {
    TrainConfig c = config(model);
    change(c);
    try {
      train(c, path("bad"), false, {.quiet = true});
      ADD_FAILURE() << "taken: " << piece;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(piece), std::string::npos) << e.what();
    }
    EXPECT_FALSE(fs::exists(path("bad")));
  };
  refused(
      "gcn", [](TrainConfig& c) { c.data = "digits"; }, "known are:\n    miles");
  refused(
      "bert-tiny", [](TrainConfig& c) { c.data = "digits"; }, "known are:\n    glosses");
  refused(
      "unet", [](TrainConfig& c) { c.data = "digit"; }, "known are:\n    fashion-mnist");
  refused(
      "vae", [](TrainConfig& c) { c.label_smoothing = 0.1; }, "label smoothing is for classes");
  refused(
      "gat", [](TrainConfig& c) { c.augment = "flip"; }, "augment changes images");
}

}  // namespace
}  // namespace cutaway::train
