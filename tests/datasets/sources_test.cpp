// Map and iterable data sets, padding, several threads, augmentation.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/trace.h>
#include <cutaway/datasets/loader.h>

namespace cutaway::data {
namespace {

// Example i: i % 4 + 1 times the number i.
Example example(int64_t i) { return {full({i % 4 + 1}, double(i)), full({}, double(i))}; }

struct Rows : MapDataset {
  int64_t n, broken;
  explicit Rows(int64_t size, int64_t broken_row = -1) : n(size), broken(broken_row) {}
  int64_t size() const override { return n; }
  Example get(int64_t i) const override {
    if (i == broken) throw IoError("rows", "row " + std::to_string(i) + " is damaged");
    return example(i);
  }
};

struct Counting : IterableDataset {
  int64_t n, broken;
  explicit Counting(int64_t size, int64_t broken_row = -1) : n(size), broken(broken_row) {}
  struct Stream : ExampleStream {
    int64_t at = 0, n, broken;
    Stream(int64_t size, int64_t broken_row) : n(size), broken(broken_row) {}
    bool next(Example& e) override {
      if (at == broken) throw IoError("stream", "example " + std::to_string(at) + " is damaged");
      if (at == n) return false;
      e = example(at++);
      return true;
    }
  };
  std::unique_ptr<ExampleStream> open(int64_t epoch) const override {
    return std::make_unique<Stream>(n + epoch, broken);
  }
};

using Numbers = std::vector<double>;
Numbers rest_of_epoch(Loader& loader) {
  Numbers all;
  for (const auto& [x, y] : loader) {
    for (const double v : y.to_vector()) all.push_back(v);
  }
  return all;
}
LoaderOptions options(int threads) {
  return {.batch = 4,
          .seed = 3,
          .prefetch = threads == 0 ? 0 : 2 * threads,
          .threads = std::max(threads, 1),
          .collate = pad_examples({.input = -1})};
}

TEST(Sources, FC_8683_order_and_resume_for_any_number_of_threads) {
  for (const int threads : {0, 1, 2, 5}) {
    LoaderOptions o = options(threads);
    o.shuffle = true;
    Loader rows(std::make_shared<Rows>(103), o);
    EXPECT_EQ(rows.batches_per_epoch(), 26);
    const auto order = rows.order(0);
    EXPECT_EQ(rest_of_epoch(rows), Numbers(order.begin(), order.end())) << threads;
    rows.seek({1, 7});
    const auto second = rows.order(1);
    EXPECT_EQ(rest_of_epoch(rows), Numbers(second.begin() + 28, second.end())) << threads;

    Loader stream(std::make_shared<Counting>(103), options(threads));
    EXPECT_EQ(stream.batches_per_epoch(), -1);
    EXPECT_EQ(rest_of_epoch(stream).size(), 103u) << threads;
    EXPECT_EQ(stream.position(), (Loader::Position{1, 0}));
    stream.seek({1, 20});
    const Numbers rest = rest_of_epoch(stream);
    ASSERT_EQ(rest.size(), 24u);
    EXPECT_EQ(rest[0], 80);
    stream.seek({0, 27});
    EXPECT_THROW(rest_of_epoch(stream), ValueError);
  }
}

TEST(Sources, padding_and_lengths) {
  Loader loader(std::make_shared<Rows>(6), options(2));
  std::vector<Batch> batches;
  for (const Batch& b : loader) batches.push_back(b);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].x.sizes(), (Shape{4, 4}));
  EXPECT_EQ(batches[0].x.to_vector(),
            (Numbers{0, -1, -1, -1, 1, 1, -1, -1, 2, 2, 2, -1, 3, 3, 3, 3}));
  EXPECT_EQ(batches[0].lengths.to_vector(), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(batches[1].x.sizes(), (Shape{2, 2}));
  const std::vector<Example> tables = {{ones({2, 1}), zeros({})}, {ones({1, 3}), zeros({})}};
  EXPECT_EQ(pad_examples()(tables).x.to_vector(), (Numbers{1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0}));
  EXPECT_THROW(stack_examples(tables), ShapeError);
  EXPECT_THROW(stack_examples({}), ValueError);
  EXPECT_THROW(stack_examples({{ones({2}), Tensor()}}), ValueError);
  EXPECT_THROW(pad_examples()({{ones({2}), zeros({})}, {ones({2, 2}), zeros({})}}), ShapeError);
  EXPECT_THROW(
      pad_examples()({{ones({2}), zeros({})}, {ones({2}, {.dtype = DType::f64}), zeros({})}}),
      DTypeError);
}

TEST(Sources, FC_f625_a_broken_example_is_an_error_where_its_batch_is_asked_for) {
  const std::vector<std::shared_ptr<const MapDataset>> rows = {std::make_shared<Rows>(100, 37)};
  for (const int threads : {0, 1, 3}) {
    for (const bool stream : {false, true}) {
      auto loader =
          stream ? std::make_unique<Loader>(std::make_shared<Counting>(100, 37), options(threads))
                 : std::make_unique<Loader>(std::make_shared<Rows>(100, 37), options(threads));
      for (int round = 0; round < 2; ++round) {  // not a hang the second time
        try {
          rest_of_epoch(*loader);
          FAIL();
        } catch (const IoError& e) {
          EXPECT_NE(std::string(e.what()).find("37 is damaged"), std::string::npos);
        }
        EXPECT_EQ(loader->position(), (Loader::Position{0, 9}));
      }
    }
  }
}

TEST(Sources, early_stops_leave_no_thread) {
  for (int round = 0; round < 12; ++round) {
    Loader loader(std::make_shared<Counting>(1000), options(1 + round % 4));
    int taken = 0;
    for ([[maybe_unused]] const Batch& b : loader) {
      if (++taken > round) break;
    }
    EXPECT_EQ(loader.position().batch, taken);
  }
}

Dataset pictures(int64_t n) {
  Dataset d;
  d.inputs = empty({n, 1, 6, 6}, {.dtype = DType::u8});
  for (int64_t i = 0; i < n * 36; ++i) d.inputs.data<uint8_t>()[i] = uint8_t(i % 256);
  d.targets = empty({n}, {.dtype = DType::i64});
  for (int64_t i = 0; i < n; ++i) d.targets.data<int64_t>()[i] = i % 10;
  d.scale = 1.0 / 255, d.mean = 0.3, d.std = 0.4;
  return d;
}

TEST(Sources, augmentation_is_the_same_for_any_number_of_threads_and_after_a_resume) {
  const auto run = [](int threads, Loader::Position from) {
    LoaderOptions o = {.batch = 8,
                       .shuffle = true,
                       .seed = 9,
                       .prefetch = 2 * threads,
                       .threads = std::max(threads, 1),
                       .augment = parse_augmentation("crop:1,flip,affine,color,erase,mixup", 10)};
    Loader loader(pictures(50), o);
    loader.seek(from);
    std::vector<Numbers> all;
    for (const auto& [x, y] : loader) {
      all.push_back(x.to_vector());
      all.push_back(y.to_vector());
    }
    return all;
  };
  const auto want = run(0, {1, 0});
  EXPECT_EQ(run(1, {1, 0}), want);
  EXPECT_EQ(run(4, {1, 0}), want);
  EXPECT_NE(run(1, {2, 0}), want);
  EXPECT_EQ(run(2, {1, 5}), decltype(want)(want.begin() + 10, want.end()));
  // Without random changes the pictures are those of the plain path, up to rounding.
  Loader plain(pictures(4), {.batch = 4}),
      zero(pictures(4), {.batch = 4, .augment = parse_augmentation("crop:0", 10)});
  const Numbers a = (*plain.begin()).x.to_vector(), b = (*zero.begin()).x.to_vector();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(Sources, samplers_choose_and_the_trace_shows_waits) {
  trace::clear();
  trace::start();
  Loader loader(pictures(50),
                {.batch = 5, .sampler = Sampler::weighted(Numbers(50, 1.0), {.draws = 20})});
  EXPECT_EQ(rest_of_epoch(loader).size(), 20u);
  trace::stop();
  int waits = 0;
  trace::for_each_span(
      [&](const trace::Span& s) { waits += !s.op && std::string(s.name) == "wait for data"; });
  EXPECT_EQ(waits, 5);  // four batches and the end
  EXPECT_GT(loader.waited(), 0);
  trace::clear();
  Loader wrong(pictures(3), {.sampler = Sampler::sequential(4)});
  EXPECT_THROW(rest_of_epoch(wrong), IndexError);
  EXPECT_THROW(Loader(std::make_shared<Counting>(3), {.shuffle = true}), ValueError);
  EXPECT_THROW(Loader(pictures(3), {.threads = 0}), ValueError);
}

}  // namespace
}  // namespace cutaway::data
