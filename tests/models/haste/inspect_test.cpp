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
  return parse_sparse("x", text);
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
