#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/depth_law/search.h>

namespace cutaway::depth {
namespace {

TEST(DepthLaw, exact_units_sum_to_the_closed_form) {
  for (int64_t l : {1, 2, 5, 16}) {
    const double n = double(l);
    EXPECT_NEAR(exact_budget(l, true), 0.5 * (n + 1) * (n * n + n + 1) / 6, 1e-9) << l;
  }
}

TEST(DepthLaw, budget_of_a_wide_mlp_is_the_exact_law) {
  for (const bool is_relu : {true, false}) {
    const Budget b = measure_budget(
        {.depth = 3, .width = 256, .activation = is_relu ? Activation::relu : Activation::linear},
        {.draws = 200});
    EXPECT_NEAR(b.a / exact_budget(3, is_relu), 1, 5 * b.error / b.a);
    EXPECT_EQ(b.profile.size(), 3u);
  }
}

TEST(DepthLaw, jvp_is_the_finite_difference_for_every_architecture) {
  for (const Block block : {Block::post, Block::pre, Block::last, Block::both}) {
    const Spec s{.arch = Arch::resnet, .depth = 2, .width = 12, .block = block, .side = 4};
    EXPECT_LT(check_jvp(s, 3).difference, 1e-3) << int(block);
  }
  for (const Padding padding : {Padding::circular, Padding::zero, Padding::reflect}) {
    const Spec s{.arch = Arch::cnn, .depth = 3, .width = 8, .spatial = 1, .padding = padding};
    EXPECT_LT(check_jvp(s, 4).difference, 1e-3) << int(padding);
  }
  for (const bool post : {false, true}) {
    const Spec s{.arch = Arch::vit,
                 .depth = 4,
                 .width = 8,
                 .activation = Activation::gelu,
                 .post_norm = post,
                 .side = 8};
    EXPECT_LT(check_jvp(s, 5).difference, 1e-3) << post;
  }
}

TEST(DepthLaw, slope_is_that_of_a_power) {
  const SlopeFit fit = fit_slope({2, 4, 8}, {3, 3 * std::exp2(-1.5), 3 * std::exp2(-3)});
  EXPECT_NEAR(fit.slope, -1.5, 1e-12);
  EXPECT_NEAR(fit.at(2), 3, 1e-12);
  EXPECT_THROW(fit_slope({2, 4, 4}, {1, 1, 1}), ValueError);
}

TEST(DepthLaw, pathsum_counts_paths) {
  // K = 2: paths of length 1 (twice) and 2: 2 · 1 + 8 = 10; K = 1: 1.
  EXPECT_NEAR(pathsum_factor(1, 2), std::sqrt(1.0 / 10), 1e-12);
}

TEST(DepthSearch, same_table_for_every_thread_count_and_errors_that_say_what_to_do) {
  const TrainData data = load_data("synth-vec", Arch::mlp, 1);
  Spec spec{.depth = 2, .width = 32};
  fit_to_data(spec, data);
  SearchOptions o{.low = 1e-2, .high = 30, .points = 6, .refine = 3, .trials = 2, .batches = 8};
  const int before = num_threads();
  set_num_threads(1);
  const std::string one = csv_of({find_optimum(spec, data, o)});
  set_num_threads(3);
  EXPECT_EQ(one, csv_of({find_optimum(spec, data, o)}));
  set_num_threads(before);
  const auto message = [&] {
    try {
      find_optimum(spec, data, o);
    } catch (const ValueError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  o.high = 0.02;
  EXPECT_NE(message().find("extend the grid to 0.2"), std::string::npos) << message();
  o.low = 1e6;
  o.high = 1e8;
  EXPECT_NE(message().find("diverged at depth 2"), std::string::npos) << message();
  o = {.batch = 1000000};
  EXPECT_THROW(training_loss(spec, data, 0.1, 0, o), ValueError);
}

TEST(DepthSearch, transfer_rules_shrink_the_rate) {
  const std::vector<Rule> rules = transfer_rules({.depth = 4, .width = 64}, 16, 0.4, -1.2, 0);
  for (const Rule& rule : rules) {
    if (rule.name == "paper") {
      EXPECT_NEAR(rule.rate, 0.4 / 8, 1e-12);
    }
    if (rule.name == "measured") {
      EXPECT_NEAR(rule.rate, 0.4 * std::pow(4, -1.2), 1e-12);
    }
    if (rule.name == "layerwise") {
      EXPECT_EQ(rule.layer_rates.size(), 16u);
    }
  }
  EXPECT_EQ(rules.size(), 8u);
}

TEST(DepthData, cifar_batches_are_read_and_damaged_ones_refused) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("cutaway_cifar_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto save = [&](size_t bytes, char label) {
    std::ofstream out(folder + "/data_batch_1.bin", std::ios::binary);
    for (size_t i = 0; i < bytes; ++i) out.put(i % 3073 == 0 ? label : char(i % 251));
  };
  save(2 * 3073, 7);
  const TrainData d = load_data("cifar:" + folder, Arch::cnn, 0);
  EXPECT_EQ(d.x.sizes(), (Shape{2, 3, 32, 32}));
  EXPECT_EQ(d.y[1].item<int64_t>(), 7);
  save(3000, 7);
  EXPECT_THROW(load_data("cifar:" + folder, Arch::cnn, 0), IoError);
  save(3073, 11);
  EXPECT_THROW(load_data("cifar:" + folder, Arch::cnn, 0), IoError);
  std::filesystem::remove_all(folder);
  EXPECT_THROW(load_data("cifar:" + folder, Arch::cnn, 0), IoError);
  EXPECT_THROW(load_data("nothing", Arch::mlp, 0), ValueError);
}

TEST(DepthData, sequences_hold_their_answer) {
  for (const char* name : {"synth-seq", "synth-copy"}) {
    const TrainData d = load_data(name, Arch::vit, 1);
    ASSERT_EQ(d.x.sizes(), (Shape{6400, 16})) << name;
    const bool majority = std::string(name) == "synth-seq";
    for (int64_t i = 0; i < 50; ++i) {
      int64_t count[32] = {};
      const int64_t* words = d.x.data<int64_t>() + 16 * i;
      for (int64_t t = 0; t < 16; ++t) ++count[words[t]];
      const int64_t y = d.y.data<int64_t>()[i];
      if (majority) {
        EXPECT_EQ(count[y], 5);
        for (int64_t w = 0; w < 32; ++w) EXPECT_TRUE(w == y || count[w] <= 3);
      } else {
        EXPECT_EQ(words[0], y);
      }
    }
  }
  EXPECT_THROW(load_data("synth-seq", Arch::cnn, 1), ValueError);
}

TEST(DepthData, every_architecture_trains_on_its_data) {
  const struct {
    const char* data;
    Spec spec;
  } cases[] = {{"synth-seq", {.arch = Arch::vit, .depth = 2, .width = 16, .mean_field = false}},
               {"synth", {.arch = Arch::vit, .depth = 2, .width = 16, .mean_field = false}},
               {"synth", {.arch = Arch::cnn, .depth = 2, .width = 4, .batch_norm = true}},
               {"synth", {.arch = Arch::resnet, .depth = 2, .width = 4}}};
  for (const auto& c : cases) {
    const Arch arch = c.spec.arch;
    const TrainData d = load_data(c.data, arch, 1);
    Spec spec = c.spec;
    fit_to_data(spec, d);
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
      const SearchOptions o{.batches = 12, .batch = 32, .optimizer = optimizer};
      const double rate = optimizer == Optimizer::sgd ? 0.1 : 0.01;
      const double still = training_loss(spec, d, 1e-9, 0, o),
                   moving = training_loss(spec, d, rate, 0, o);
      EXPECT_LT(moving, still) << c.data << ' ' << int(arch) << ' ' << int(optimizer);
    }
  }
}

TEST(DepthData, sounds_are_read_and_damaged_ones_refused) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("cutaway_wav_" + std::to_string(::getpid()));
  const auto save = [&](const std::string& name, const std::string& samples, uint8_t bits = 16) {
    fs::create_directories((folder / name).parent_path());
    const auto little = [](uint32_t v, int bytes) {
      std::string s;
      for (int i = 0; i < bytes; ++i) s += char(v >> (8 * i) & 255);
      return s;
    };
    std::ofstream(folder / name, std::ios::binary)
        << "RIFF" << little(36 + uint32_t(samples.size()), 4) << "WAVEfmt " << little(16, 4)
        << little(1, 2) << little(2, 2) << little(8000, 4) << little(32000, 4) << little(4, 2)
        << little(bits, 2) << "data" << little(uint32_t(samples.size()), 4) << samples;
  };
  std::string ramp;  // two channels, equal
  for (int i = 0; i < 4096; ++i) {
    for (int c = 0; c < 2; ++c) ramp += {char(i & 255), char(i >> 8)};
  }
  save("a/one.wav", ramp);
  save("b/two.wav", std::string(400, '\1'));
  const std::string name = "wav:" + folder.string();
  const TrainData d = load_data(name, Arch::cnn, 0);
  EXPECT_EQ(d.x.sizes(), (Shape{2, 1, 1024}));
  EXPECT_EQ(d.y[1].item<int64_t>(), 1);
  const auto x = d.x.to_vector();
  // Means of four samples of a ramp, all scaled and moved by the same numbers.
  EXPECT_NEAR(x[11] - x[10], x[501] - x[500], 1e-4);
  EXPECT_GT(x[1023], x[0]);
  Spec spec{.arch = Arch::cnn, .depth = 2, .width = 4};
  fit_to_data(spec, d);
  EXPECT_EQ(spec.spatial, 1);
  EXPECT_TRUE(std::isfinite(training_loss(spec, d, 0.01, 0, {.batches = 1, .batch = 2})));
  save("b/two.wav", ramp, 24);
  EXPECT_THROW(load_data(name, Arch::cnn, 0), IoError);
  std::ofstream(folder / "b/two.wav") << "RIFF";
  EXPECT_THROW(load_data(name, Arch::cnn, 0), IoError);
  fs::remove_all(folder / "b");
  EXPECT_THROW(load_data(name, Arch::cnn, 0), IoError);
  fs::remove_all(folder);
  EXPECT_THROW(load_data(name, Arch::cnn, 0), IoError);
}

TEST(DepthLaw, networks_that_cannot_be_are_refused) {
  EXPECT_THROW(Network({.depth = 0}, 0), ValueError);
  EXPECT_THROW(Network({.arch = Arch::vit, .depth = 3, .width = 8}, 0), ValueError);
  EXPECT_EQ((Spec{.layer_scale = 0.1}).outside_of_law(), "LayerScale");
}

}  // namespace
}  // namespace cutaway::depth
