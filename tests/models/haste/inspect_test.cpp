#include <cutaway/models/haste/inspect.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>

#include <cutaway/core/error.h>
#include <cutaway/models/haste/sets.h>

namespace cutaway::haste {
namespace {

// Labels 0–2 go with words 0 and 1, labels 3–5 with words 2 and 3; word 4 is everywhere.
XmcData two_topics() {
  std::string text = "6 5 6\n";
  for (int l = 0; l < 6; ++l) {
    const int w = l < 3 ? 0 : 2;
    text +=
        std::to_string(l) + " " + std::to_string(w) + ":1 " + std::to_string(w + 1) + ":1 4:2\n";
  }
  return {data::parse_xmc("x", text)};
}

TEST(HasteInspect, words_of_a_group_are_those_that_others_lack) {
  const XmcData data = two_topics();
  const GroupingOptions options{.group = 3, .head_ratio = 0};
  const LabelOrder order = order_labels(data, options);
  const auto views = view_groups(data, order, {0, 1}, 2);
  ASSERT_EQ(views.size(), 2u);
  for (const GroupView& v : views) {
    const bool first = v.labels[0] < 3;
    ASSERT_EQ(v.words.size(), 2u);
    for (const auto& w : v.words) {
      EXPECT_EQ(w.feature / 2, first ? 0 : 1);
      EXPECT_EQ(w.labels, 3);
    }
    for (const int32_t l : v.labels) EXPECT_EQ(l < 3, first);
    EXPECT_NEAR(v.cohesion, 1.0, 1e-6);
    EXPECT_EQ(v.frequency, (std::vector<int64_t>{1, 1, 1}));
  }
  EXPECT_THROW(view_groups(data, order, {2}), IndexError);
}

TEST(HasteInspect, cohesion_of_an_order_is_that_of_its_groups) {
  const XmcData data = two_topics();
  const GroupingOptions options{.group = 3, .head_ratio = 0};
  EXPECT_NEAR(order_cohesion(data, order_labels(data, options), options).mean, 1.0, 1e-5);
}

TEST(HasteInspect, shared_features_are_those_of_the_group_with_the_words_that_raise_them) {
  RunOptions o;
  o.hidden = 32;
  o.features = "shared";
  o.fan_in = 16;
  o.group = 4;
  Model model(o, {.words = 10, .labels = 12, .head = 4, .prior = std::vector<double>(12, 0.1)});
  const auto shared = shared_features(model, 10, {1}, 5, 2);
  ASSERT_EQ(shared[0].size(), 5u);
  Csr each;
  each.cols = 10;
  for (int32_t w = 0; w < 10; ++w) {
    each.index.push_back(w);
    each.value.push_back(1.f);
    each.start.push_back(w + 1);
  }
  const std::vector<int64_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Tensor x = model.features(make_batch(each, all)).tail.contiguous();
  const int32_t* slots = model.tail().index().data<int32_t>() + 16;
  double before = 1e9;
  for (const SharedFeature& f : shared[0]) {
    const auto at = std::find(slots, slots + 16, f.feature);
    ASSERT_NE(at, slots + 16);
    double mean = 0;  // of |W| over the rows 4 … 7 of the tail
    for (int64_t l = 4; l < 8; ++l) {
      mean += std::fabs(model.tail().weight().data<float>()[l * 16 + (at - slots)]) / 4;
    }
    EXPECT_NEAR(f.score, mean, 1e-6);
    EXPECT_LE(f.score, before);
    before = f.score;
    const float* row = x.data<float>() + f.feature * 10;
    ASSERT_EQ(f.words.size(), 2u);
    EXPECT_EQ(row[f.words[0]], *std::max_element(row, row + 10));
  }
  EXPECT_THROW(shared_features(model, 10, {2}), IndexError);
  o.layer = "dense";
  Model dense(o, {.words = 10, .labels = 12, .head = 4, .prior = std::vector<double>(12, 0.1)});
  EXPECT_THROW(shared_features(dense, 10, {0}), ValueError);
}

TEST(HasteConvert, every_layout_reads_back_as_the_set) {
  const XmcSet set = open_set({.name = "debian-sample", .debian = {.limit = 400}});
  const std::string folder =
      (std::filesystem::temp_directory_path() / "cutaway_haste_convert").string();
  for (const FolderFormat format : {FolderFormat::sparse, FolderFormat::raw, FolderFormat::json}) {
    for (const bool packed : {false, true}) {
      std::filesystem::remove_all(folder);
      write_folder(set, folder, format, packed);
      const XmcSet back = open_set({.name = folder});
      EXPECT_EQ(back.train.labels.index, set.train.labels.index);
      EXPECT_EQ(back.test.labels.start, set.test.labels.start);
      EXPECT_EQ(back.train.features.index, set.train.features.index);
      EXPECT_EQ(back.test.features.value, set.test.features.value);
      EXPECT_EQ(back.train.words, set.train.words);
      EXPECT_EQ(back.train.label_names, set.train.label_names);
    }
  }
  std::filesystem::remove_all(folder);
  const XmcSet synth = make_synth({.train = 20, .test = 5, .labels = 32, .words = 50});
  EXPECT_THROW(write_folder(synth, folder, FolderFormat::raw), ValueError);
}

}  // namespace
}  // namespace cutaway::haste
