#include <cutaway/datasets/loader.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::data {
namespace {

// n examples whose input and target are their own number.
Dataset counting(int64_t n) {
  Dataset d;
  d.inputs = arange(0, n).reshape({n, 1});
  d.targets = arange(0, n);
  return d;
}

// Targets of the rest of the loader's epoch.
std::vector<double> rest_of_epoch(Loader& loader) {
  std::vector<double> seen;
  for (const auto& [x, y] : loader) {
    EXPECT_EQ(x.to_vector(), y.to_vector());
    for (double v : y.to_vector()) seen.push_back(v);
  }
  return seen;
}

TEST(Loader, FC_8683_shuffling) {
  const auto two_epochs = [](int prefetch, bool draw) {
    manual_seed(1);
    Loader loader(counting(5), {.batch = 2, .shuffle = true, .seed = 3, .prefetch = prefetch});
    std::vector<double> all = rest_of_epoch(loader);
    if (draw) randn({100});  // an augmentation that draws random numbers
    for (double v : rest_of_epoch(loader)) all.push_back(v);
    return all;
  };
  const std::vector<double> order = two_epochs(0, false);
  ASSERT_EQ(order.size(), 10u);
  const std::vector<double> first(order.begin(), order.begin() + 5),
      second(order.begin() + 5, order.end());
  EXPECT_NE(first, second);
  for (const auto& epoch : {first, second}) {
    EXPECT_EQ(std::set<double>(epoch.begin(), epoch.end()), (std::set<double>{0, 1, 2, 3, 4}));
  }
  EXPECT_EQ(two_epochs(0, true), order);
  EXPECT_EQ(two_epochs(1, false), order);
  EXPECT_EQ(two_epochs(4, true), order);
  Loader one(counting(1), {.batch = 4, .shuffle = true});
  EXPECT_EQ(rest_of_epoch(one), (std::vector<double>{0}));
  Loader other(counting(5), {.batch = 2, .shuffle = true, .seed = 4});
  EXPECT_NE(rest_of_epoch(other), first);
}

TEST(Loader, FC_e60c_resuming_in_the_middle_of_an_epoch) {
  const LoaderOptions options = {.batch = 32, .shuffle = true, .seed = 9, .prefetch = 4};
  Loader whole(counting(1000), options);
  whole.seek({2, 0});
  const std::vector<double> want = rest_of_epoch(whole);
  EXPECT_EQ(whole.position(), (Loader::Position{3, 0}));

  Loader stopped(counting(1000), options);
  stopped.seek({2, 0});
  std::vector<double> seen;
  for (const auto& [x, y] : stopped) {
    for (double v : y.to_vector()) seen.push_back(v);
    if (stopped.position().batch == 13) break;  // the thread has prepared more than that
  }
  EXPECT_EQ(stopped.position(), (Loader::Position{2, 13}));
  Loader resumed(counting(1000), options);
  resumed.seek(stopped.position());
  for (double v : rest_of_epoch(resumed)) seen.push_back(v);
  EXPECT_EQ(seen, want);
  EXPECT_EQ(std::set<double>(seen.begin(), seen.end()).size(), 1000u);
  // The stopped loader itself goes on as well.
  EXPECT_EQ(rest_of_epoch(stopped), std::vector<double>(want.begin() + 13 * 32, want.end()));
  EXPECT_THROW(resumed.seek({2, 33}), ValueError);
  EXPECT_THROW(resumed.seek({-1, 0}), ValueError);
}

TEST(Loader, FC_f625_errors_and_early_stops_leave_no_thread) {
  for (int prefetch : {0, 1, 3}) {
    Dataset broken = counting(40);
    broken.inputs = empty({40, 1}, {.device = kMeta});  // its values cannot be read
    Loader loader(broken, {.batch = 4, .prefetch = prefetch});
    EXPECT_THROW(rest_of_epoch(loader), Error) << prefetch;
    EXPECT_THROW(rest_of_epoch(loader), Error) << "a second time, not a hang";
    EXPECT_EQ(loader.position(), (Loader::Position{0, 0}));
  }
  for (int round = 0; round < 20; ++round) {
    Loader loader(counting(1000), {.batch = 1, .prefetch = 1 + round % 3});
    int64_t taken = 0;
    for ([[maybe_unused]] const data::Batch& batch : loader) {
      if (++taken > round) break;  // the queue is full or filling when the loader goes
    }
    EXPECT_EQ(loader.position().batch, taken);
  }
}

TEST(Loader, last_batch_sizes_and_huge_batches) {
  Loader keeps(counting(5), {.batch = 2});
  EXPECT_EQ(keeps.batches_per_epoch(), 3);
  Loader drops(counting(5), {.batch = 2, .drop_last = true});
  EXPECT_EQ(drops.batches_per_epoch(), 2);
  EXPECT_EQ(rest_of_epoch(drops), (std::vector<double>{0, 1, 2, 3}));
  Loader all(counting(5), {.batch = INT64_MAX});
  EXPECT_EQ(all.batches_per_epoch(), 1);
  EXPECT_EQ(rest_of_epoch(all).size(), 5u);
  Loader none(counting(0), {.batch = 2, .shuffle = true});
  EXPECT_EQ(none.batches_per_epoch(), 0);
  EXPECT_EQ(rest_of_epoch(none).size(), 0u);
  EXPECT_THROW(Loader(counting(5), {.batch = 0}), ValueError);
}

}  // namespace
}  // namespace cutaway::data
