// Short trainings.
#include <gtest/gtest.h>

#include <cutaway/core/parallel.h>
#include <cutaway/models/grokking/run_files.h>

namespace cutaway::grokking {
namespace {

RunOptions small() {
  return {.task = "add",
          .p = 7,
          .train_fraction = 0.6,
          .weight_decay = 1,
          .d = 16,
          .heads = 2,
          .hidden = 32,
          .epochs = 40,
          .after = 0,
          .tuples = 20,
          .eval_tuples = 50};
}

TEST(GrokkingTrain, same_bits_for_any_number_of_threads_and_side_by_side) {
  const int before = num_threads();
  RunOptions o = small();
  o.prompt = "both";
  set_num_threads(1);
  const RunResult one = train(o);
  set_num_threads(2);
  const RunResult two = train(o);
  const auto many = train_all({o, o});
  set_num_threads(before);
  ASSERT_EQ(one.rows.size(), 4u);
  for (size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(one.rows[i].train_loss, two.rows[i].train_loss);
    EXPECT_EQ(one.rows[i].train_loss, many[1].rows[i].train_loss);
    EXPECT_EQ(one.rows[i].mean_violation(), many[0].rows[i].mean_violation());
  }
}

TEST(GrokkingTrain, every_prompt_and_optimiser_runs_and_changes_the_run) {
  const double plain = train(small()).rows.back().train_loss;
  for (const char* prompt :
       {"comm", "assoc", "both", "nuclear", "entropy", "lipschitz", "augment"}) {
    RunOptions o = small();
    o.prompt = prompt;
    const double loss = train(o).rows.back().train_loss;
    EXPECT_TRUE(std::isfinite(loss) && loss != plain) << prompt;
  }
  for (const auto& change : std::vector<std::function<void(RunOptions&)>>{
           [](RunOptions& o) { o.optimizer = "grokfast"; }, [](RunOptions& o) { o.model = "mlp"; },
           [](RunOptions& o) { o.prompt = "assoc", o.assoc = "soft"; },
           [](RunOptions& o) { o.prompt = "both", o.domain = "train"; },
           [](RunOptions& o) { o.embed_scale = 2; },
           [](RunOptions& o) { o.output_scale = 0.25; }}) {
    RunOptions o = small();
    change(o);
    const double loss = train(o).rows.back().train_loss;
    EXPECT_TRUE(std::isfinite(loss) && loss != plain);
  }
}

TEST(GrokkingTrain, every_family_learns) {
  for (const char* task :
       {"sub", "sq", "cube", "mul", "affine", "quad", "random", "graph:karate", "compare:3d"}) {
    RunOptions o = small();
    o.task = task;
    o.lr = 5e-3, o.epochs = 100;
    const RunResult r = train(o);
    EXPECT_LT(r.rows.back().train_loss, 0.9 * r.rows.front().train_loss) << task;
  }
  RunOptions o = small();
  o.task = "compare:3d", o.binary = true, o.prompt = "trans";
  EXPECT_GE(train(o).rows.back().train_accuracy, 0.6);
}

TEST(GrokkingTrain, symmetry_losses_generalise_sooner) {
  RunOptions o = preset("ci", "add");
  o.p = 23, o.epochs = 400, o.after = 0, o.d = 32, o.hidden = 128;
  const RunResult plain = train(o);
  o.prompt = "both";
  const RunResult prompted = train(o);
  EXPECT_LT(prompted.rows.back().mean_violation(), 0.3 * plain.rows.back().mean_violation());
  EXPECT_GT(prompted.rows.back().test_accuracy, plain.rows.back().test_accuracy + 0.1);
}

TEST(GrokkingTrain, options_and_runs_are_read_back) {
  const std::string folder = testing::TempDir() + "grok_run";
  RunOptions o = small();
  o.prompt = "both";
  const RunResult r = train(o);
  save_options(o, folder + "-config.json");
  const RunOptions back = load_options(folder + "-config.json");
  EXPECT_EQ(back.prompt, "both");
  EXPECT_EQ(back.train_fraction, 0.6);
  write_run(r, folder);
  save_options(o, folder + "/config.json");
  const Inspection found = inspect(folder);
  EXPECT_NE(found.text.find("worst of 50 instances of associativity"), std::string::npos);
  EXPECT_EQ(found.pictures.size(), 3u);
  EXPECT_EQ(read_log(folder + "/log.csv").size(), 4u);
}

}  // namespace
}  // namespace cutaway::grokking
