// What surrounds training: data that cannot be trained on, folders, full disks, locales.
#include <cutaway/models/train/trainer.h>

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/models/train/checkpoint.h>
#include <cutaway/models/train/run_folder.h>
#include <tests/comma_locale.h>
#include <tests/paths.h>

namespace cutaway::train {
namespace {
namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  const io::Bytes bytes = io::read_file(path);
  return {bytes.begin(), bytes.end()};
}

class Trainer : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / fmt::format("cutaway_trainer_{}", ::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string table = "a,b,class\n";
    for (int i = 0; i < 60; ++i) table += fmt::format("{},{},{}\n", i * 7 % 13, i * 5 % 11, i % 3);
    write("t.csv", table);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  TrainConfig config() const {
    TrainConfig c;
    c.model = "linear";
    c.data = path("t.csv");
    c.epochs = 2;
    c.batch = 16;
    c.log_every = 1;
    c.checkpoint_every = 2;
    return c;
  }
  // The text of the error that training on this table gives.
  std::string refusal(const std::string& table) {
    write("bad.csv", table);
    TrainConfig c = config();
    c.data = path("bad.csv");
    try {
      train(c, path("bad"), false, {.quiet = true});
      return {};
    } catch (const Error& e) {
      EXPECT_FALSE(fs::exists(path("bad")));
      return e.what();
    }
  }
  fs::path folder_;
};

TEST_F(Trainer, pictures_of_several_sizes_are_resized) {
  const std::string corpus = std::string(kSourceDir) + "/tests/fuzz/image/";
  for (const char* kind : {"grey", "filters"}) {  // 2×3 and 5×2
    fs::create_directories(path("set/") + kind);
    for (int i = 0; i < 5; ++i) {
      fs::copy_file(corpus + "good_" + kind + ".png", path(fmt::format("set/{}/{}.png", kind, i)));
    }
  }
  TrainConfig c = config();
  c.data = path("set");
  EXPECT_THROW(train(c, path("run"), false, {.quiet = true}), IoError);
  c.resize = "4x";
  EXPECT_THROW(train(c, path("run"), false, {.quiet = true}), ValueError);
  EXPECT_FALSE(fs::exists(path("run")));
  c.resize = "4x6";
  EXPECT_EQ(train(c, path("run"), false, {.quiet = true}).classes,
            (std::vector<std::string>{"filters", "grey"}));
  EXPECT_EQ(read_config(path("run")).resize, "4x6");
  c.data = path("t.csv");  // no pictures
  EXPECT_THROW(train(c, path("other"), false, {.quiet = true}), ValueError);
}

TEST_F(Trainer, targets_that_are_no_class_numbers) {
  const auto table = [](const std::string& target) { return "1,0\n2,1\n3," + target + "\n4,1\n"; };
  EXPECT_NE(refusal(table("70000")).find("class number 70000"), std::string::npos);
  for (const char* target : {"-1", "-100", "0.5", "1e300", "inf", "nan", "9e18"}) {
    EXPECT_NE(refusal(table(target)).find("bad.csv"), std::string::npos) << target;
  }
  EXPECT_NE(refusal("1\n2\n").find("needs at least one input column"), std::string::npos);
  EXPECT_NE(refusal("").find("has no rows"), std::string::npos);
  // IDX labels may be signed.
  data::Dataset d;
  d.name = "labels";
  d.inputs = zeros({2, 3});
  d.targets = tensor({1, -100}, {.dtype = DType::i64});
  EXPECT_THROW(task_of(d), ValueError);
}

TEST_F(Trainer, FC_41c0_two_runs_in_one_folder_and_a_full_disk) {
  ASSERT_FALSE(train(config(), path("run"), false, {.quiet = true, .stop_after = 2}).finished);
  {
    const RunFolder first = RunFolder::reopen(path("run"));
    try {
      train({}, path("run"), true, {.quiet = true});
      FAIL() << "the folder is in use";
    } catch (const IoError& e) {
      EXPECT_NE(std::string(e.what()).find("another process is working in"), std::string::npos);
    }
  }
  // Files of more than a few bytes cannot be written any more, as on a full disk.
  const std::string before = latest_checkpoint(path("run/checkpoint"));
  const std::string weights = text_of(before + "/model.safetensors");
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = limit;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    train({}, path("run"), true, {.quiet = true});
  } catch (const IoError& e) {
    message = e.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find(path("run")), std::string::npos) << message;
  EXPECT_EQ(latest_checkpoint(path("run/checkpoint")), before);
  EXPECT_EQ(text_of(before + "/model.safetensors"), weights);
  for (const auto& entry : fs::recursive_directory_iterator(path("run"))) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  EXPECT_TRUE(train({}, path("run"), true, {.quiet = true}).finished);
}

TEST_F(Trainer, FC_e60c_another_batch_size_on_resume_is_refused) {
  train(config(), path("run"), false, {.quiet = true, .stop_after = 4});
  std::string text = text_of(path("run/config.json"));
  const size_t at = text.find("\"batch\": 16");
  ASSERT_NE(at, std::string::npos);
  write("run/config.json", text.replace(at, 11, "\"batch\": 8"));
  try {
    train({}, path("run"), true, {.quiet = true});
    FAIL();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("another --batch"), std::string::npos) << e.what();
  }
}

TEST_F(Trainer, FC_4744_files_are_the_same_under_a_decimal_comma) {
  TrainConfig c = config();
  c.lr = 0.1;
  c.schedule = "constant";
  train(c, path("plain"), false, {.quiet = true});
  {
    const test::CommaLocale locale;
    train(c, path("comma"), false, {.quiet = true, .stop_after = 3});
    train({}, path("comma"), true, {.quiet = true});
    EXPECT_EQ(read_config(path("comma")).lr, 0.1);
    io::TensorFile file;
    file.tensors.emplace_back("t", full({1234567}, 0.5));
    file.metadata["lr"] = "0.1";
    io::save_safetensors(path("big.safetensors"), file);
    EXPECT_EQ(io::load_safetensors(path("big.safetensors")).at("t").numel(), 1234567);
  }
  for (const char* name : {"config.json", "checkpoint/step-000000006/state.json",
                           "checkpoint/step-000000006/model.safetensors"}) {
    EXPECT_EQ(text_of(path("comma/") + name), text_of(path("plain/") + name)) << name;
  }
  EXPECT_NE(text_of(path("comma/config.json")).find("\"lr\": 0.1,"), std::string::npos);
  std::istringstream metrics(text_of(path("comma/metrics.csv")));
  int rows = 0;
  for (std::string line; std::getline(metrics, line); ++rows) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 7) << line;
    if (line.find("train") != std::string::npos) {
      EXPECT_NE(line.find(",0.1,"), std::string::npos) << line;
    }
  }
  EXPECT_EQ(rows, 1 + 6 + 2);
  const std::string svg = text_of(path("comma/plots/loss.svg"));
  EXPECT_EQ(svg, text_of(path("plain/plots/loss.svg")));
}

}  // namespace
}  // namespace cutaway::train
