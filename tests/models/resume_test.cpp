// A killed run, resumed, ends with the same bytes as one never stopped.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/choices.h>
#include <cutaway/models/train/trainer.h>

namespace cutaway::train {
namespace {
namespace fs = std::filesystem;

std::string scratch(const std::string& name) {
  const std::string path =
      (fs::temp_directory_path() / fmt::format("cutaway_resume_{}_{}", ::getpid(), name)).string();
  fs::remove_all(path);
  return path;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

// Contents of the three files of the newest checkpoint.
std::string checkpoint_bytes(const std::string& run) {
  const std::string folder = latest_checkpoint(run + "/checkpoint");
  EXPECT_NE(folder, "");
  std::string all;
  for (const char* name : {"model.safetensors", "optim.safetensors", "state.json"}) {
    all += bytes_of(folder + "/" + name);
  }
  return all;
}

TrainConfig small_config() {
  TrainConfig c;
  c.model = "convnet";  // dropout: the generator's position matters
  c.data = "digits";
  c.epochs = 2;
  c.batch = 64;
  c.checkpoint_every = 3;
  c.log_every = 5;
  return c;
}

TEST(Resume, a_stopped_run_ends_with_the_same_bytes) {
  const std::string whole = scratch("whole"), parts = scratch("parts");
  train(small_config(), whole, false, {.quiet = true});
  EXPECT_FALSE(train(small_config(), parts, false, {.quiet = true, .stop_after = 7}).finished);
  EXPECT_FALSE(train({}, parts, true, {.quiet = true, .stop_after = 16}).finished);
  EXPECT_FALSE(train({}, parts, true, {.quiet = true, .stop_after = 1}).finished);
  EXPECT_TRUE(train({}, parts, true, {.quiet = true}).finished);
  EXPECT_EQ(checkpoint_bytes(whole), checkpoint_bytes(parts));
  fs::remove_all(whole);
  fs::remove_all(parts);
}

TEST(Resume, recorded_and_eager_steps_leave_the_same_bytes) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    TrainConfig c = small_config();
    c.optimizer = optimizer;
    c.clip = 0.5;
    c.epochs = 1;
    const std::string recorded = scratch("recorded"), eager = scratch("eager");
    train(c, recorded, false, {.quiet = true});
    train(c, eager, false, {.quiet = true, .record = false});
    EXPECT_EQ(checkpoint_bytes(recorded), checkpoint_bytes(eager)) << optimizer;
    fs::remove_all(recorded);
    fs::remove_all(eager);
  }
}

TEST(ResumeSlow, every_option_survives_a_stop) {
  const std::vector<std::pair<const char*, std::function<void(TrainConfig&)>>> options = {
      {"augment", [](TrainConfig& c) { c.augment = "crop:1,flip,rotate,mixup"; }},
      {"ema", [](TrainConfig& c) { c.ema = 0.9, c.label_smoothing = 0.1; }},
      {"plateau", [](TrainConfig& c) { c.schedule = "plateau", c.decay_all = false; }},
      {"accumulate", [](TrainConfig& c) { c.accumulate = 3, c.schedule = "one-cycle"; }},
      {"bf16", [](TrainConfig& c) { c.dtype = "bf16"; }},
      {"f16", [](TrainConfig& c) { c.dtype = "f16", c.clip = 1; }},
      {"lbfgs", [](TrainConfig& c) { c.optimizer = "lbfgs", c.model = "linear", c.batch = 240; }}};
  for (const auto& [name, change] : options) {
    TrainConfig c = small_config();
    c.model = "mlp";
    c.epochs = 1;
    change(c);
    const std::string whole = scratch("whole"), parts = scratch("parts");
    const TrainOutcome outcome = train(c, whole, false, {.quiet = true, .data_threads = 2});
    EXPECT_GT(outcome.test.accuracy, 0.2) << name;
    EXPECT_FALSE(train(c, parts, false, {.quiet = true, .stop_after = 4}).finished);
    EXPECT_TRUE(train({}, parts, true, {.quiet = true}).finished);
    EXPECT_EQ(checkpoint_bytes(whole), checkpoint_bytes(parts)) << name;
    for (const char* file : {"ema", "scaler", "plateau"}) {
      const auto bytes = [&](const std::string& run) {
        const std::string path = latest_checkpoint(run + "/checkpoint") + "/" + file;
        return bytes_of(path + ".safetensors");
      };
      EXPECT_EQ(bytes(whole), bytes(parts)) << name;
    }
    EXPECT_EQ(read_config(parts).augment, c.augment);
    EXPECT_EQ(read_config(parts).decay_all, c.decay_all);
    fs::remove_all(whole);
    fs::remove_all(parts);
  }
}

// What is tested at the end is what load_weights() gives.
TEST(Resume, the_averages_of_weights_are_what_is_kept) {
  TrainConfig c = small_config();
  c.model = "mlp";
  c.ema = 0.9;
  const std::string folder = scratch("ema");
  const TrainOutcome outcome = train(c, folder, false, {.quiet = true});
  const data::Dataset test = data::open("digits", "test");
  const auto model = zoo::make_model("mlp", task_of(test));
  load_weights(folder, *model);
  EXPECT_EQ(evaluate(*model, test).loss, outcome.test.loss);
  load_weights(latest_checkpoint(folder + "/checkpoint") + "/model.safetensors", *model);
  EXPECT_NE(evaluate(*model, test).loss, outcome.test.loss);
  fs::remove_all(folder);
}

TEST(Resume, parts_of_a_batch_have_the_gradient_of_the_batch) {
  TrainConfig c = small_config();
  c.model = "mlp";
  c.optimizer = "sgd";
  c.lr = 0.1;
  c.epochs = 1;
  const std::string whole = scratch("whole"), parts = scratch("parts");
  const double loss = train(c, whole, false, {.quiet = true}).test.loss;
  c.accumulate = 5;
  EXPECT_NEAR(train(c, parts, false, {.quiet = true}).test.loss, loss, 1e-4);
  fs::remove_all(whole);
  fs::remove_all(parts);
}

TEST(Resume, options_outside_their_range) {
  const auto refused = [](std::function<void(TrainConfig&)> change) {
    TrainConfig c = small_config();
    change(c);
    const std::string folder = scratch("refused");
    EXPECT_THROW(train(c, folder, false, {.quiet = true}), ValueError);
    EXPECT_FALSE(fs::exists(folder));
  };
  refused([](TrainConfig& c) { c.dtype = "f64"; });
  refused([](TrainConfig& c) { c.augment = "crops"; });
  refused([](TrainConfig& c) { c.label_smoothing = 2; });
  refused([](TrainConfig& c) { c.ema = 1; });
  refused([](TrainConfig& c) { c.accumulate = 0; });
  refused([](TrainConfig& c) { c.schedule = "cosin"; });
  for (const char* name : {"constant", "plateau", "step", "multi-step", "exponential", "cosine",
                           "cosine-restarts", "linear", "polynomial", "warmup-cosine", "one-cycle",
                           "inverse-sqrt", "cyclic", "warmup-stable-decay"}) {
    TrainConfig c = small_config();
    c.schedule = name;
    for (const int64_t steps : {1, 2, 7, 100}) {
      const sched::Schedule schedule = make_schedule(c, steps);
      for (int64_t i = 0; i < steps; ++i) {
        EXPECT_GE(schedule(i), 0) << name;
        EXPECT_LE(schedule(i), 1 + 1e-12) << name;
      }
    }
  }
  refused([](TrainConfig& c) { c.optimizer = "lbfgs", c.clip = 1; });
}

// Runs the training in a process of its own and kills it after `microseconds`.
void train_and_kill(const std::string& folder, bool resume, int microseconds) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      train(small_config(), folder, resume, {.quiet = true});
    } catch (...) {
      _exit(3);
    }
    _exit(0);
  }
  ::usleep(useconds_t(microseconds));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST(ResumeSlow, FC_9a73_twenty_kills_at_random_moments_lose_nothing) {
  set_num_threads(1);  // a fork does not take a team of threads along
  const std::string whole = scratch("unkilled");
  train(small_config(), whole, false, {.quiet = true});
  const std::string want = checkpoint_bytes(whole);
  fs::remove_all(whole);
  uint32_t state = 2024;
  for (int round = 0; round < 20; ++round) {
    const std::string folder = scratch(fmt::format("killed{}", round));
    state = state * 1664525u + 1013904223u;
    train_and_kill(folder, false, 20000 + int(state >> 8) % 400000);
    // Killed before the folder was complete: nothing to resume, the run begins again.
    const bool begun = fs::exists(folder + "/config.json");
    if (!begun) fs::remove_all(folder);
    EXPECT_TRUE(train(small_config(), folder, begun, {.quiet = true}).finished);
    EXPECT_EQ(checkpoint_bytes(folder), want) << "round " << round;
    fs::remove_all(folder);
  }
}

TEST(Resume, FC_f672_metrics_have_rising_steps_after_a_resume) {
  const std::string folder = scratch("metrics");
  train(small_config(), folder, false, {.quiet = true, .stop_after = 20});
  {
    std::ofstream out(folder + "/metrics.csv", std::ios::app);
    out << "35,0,train,0.5,0.5,0.001,1,1\n40,0,tr";  // a later row and a partial line of a killed
                                                     // run
  }
  train({}, folder, true, {.quiet = true});
  std::ifstream in(folder + "/metrics.csv");
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "step,epoch,split,loss,accuracy,lr,examples_per_s,seconds");
  int64_t before = 0;
  int rows = 0;
  std::string last;
  while (std::getline(in, line)) {
    ++rows;
    const int64_t step = std::stoll(line);
    // The last step of an epoch has a row of each split; nothing stands twice.
    const std::string key = line.substr(0, line.find(',', line.find(',', line.find(',') + 1) + 1));
    EXPECT_GE(step, before);
    EXPECT_NE(key, last);
    last = key;
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 7) << line;
    before = step;
  }
  EXPECT_EQ(before, 46);
  EXPECT_GE(rows, 10);
  fs::remove_all(folder);
}

TEST(Resume, FC_41c0_an_occupied_or_impossible_folder_is_refused) {
  const std::string folder = scratch("occupied"), file = scratch("file");
  train(small_config(), folder, false, {.quiet = true, .stop_after = 1});
  EXPECT_THROW(train(small_config(), folder, false, {.quiet = true}), IoError);
  std::ofstream(file) << "x";
  EXPECT_THROW(train(small_config(), file, false, {.quiet = true}), IoError);
  EXPECT_THROW(train({}, scratch("nothing"), true, {.quiet = true}), IoError);
  fs::remove_all(folder);
  fs::remove_all(file);
}

TEST(Resume, a_damaged_checkpoint_gives_one_clear_error) {
  const std::string folder = scratch("damaged");
  train(small_config(), folder, false, {.quiet = true, .stop_after = 4});
  const std::string newest = latest_checkpoint(folder + "/checkpoint");
  const std::string model = newest + "/model.safetensors", state = newest + "/state.json";
  const std::string good_model = bytes_of(model), good_state = bytes_of(state);
  const auto put = [](const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  };
  for (size_t cut : {size_t(0), size_t(7), size_t(200), good_model.size() - 1}) {
    put(model, good_model.substr(0, cut));
    EXPECT_THROW(train({}, folder, true, {.quiet = true}), Error) << cut;
  }
  put(model, good_model);
  for (const char* text :
       {"", "{", "[]", "{\"format\":1}", "{\"format\":\"x\"}", "{\"format\":99}"}) {
    put(state, text);
    EXPECT_THROW(train({}, folder, true, {.quiet = true}), IoError) << text;
  }
  put(state, good_state);
  EXPECT_TRUE(train({}, folder, true, {.quiet = true}).finished);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace cutaway::train
