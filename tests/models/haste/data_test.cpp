#include <cutaway/models/haste/data.h>

#include <gtest/gtest.h>
#include <cmath>
#include <filesystem>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/core/parallel.h>

namespace cutaway::haste {
namespace {

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("cutaway_haste_" + name)).string();
}

void same(const Csr& a, const Csr& b) {
  EXPECT_EQ(a.cols, b.cols);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.value, b.value);
}

TEST(HasteCsr, transposing_twice_gives_the_matrix_back) {
  const XmcSet set = make_synth({.train = 40, .test = 1, .labels = 32, .words = 100});
  const Csr t = transpose(set.train.features);
  EXPECT_EQ(t.rows(), 100);
  same(transpose(t), set.train.features);
  const auto first = set.train.features.row(0);
  EXPECT_EQ(t.row(first[0])[0], 0);
}

TEST(HasteCsr, broken_matrices_are_refused) {
  XmcData d{data::parse_xmc("x", "1 4 5\n1,2 0:1 3:2\n")};
  EXPECT_NO_THROW(check_data(d, "x"));
  XmcData bad = d;
  bad.features.index = {3, 0};
  EXPECT_THROW(check_data(bad, "x"), ValueError);
  bad = d;
  bad.features.value[1] = NAN;
  EXPECT_THROW(check_data(bad, "x"), ValueError);
  bad = d;
  bad.labels.cols = 2;
  EXPECT_THROW(check_data(bad, "x"), ValueError);
  bad = d;
  bad.texts = {"a", "b"};
  EXPECT_THROW(check_data(bad, "x"), ValueError);
}

TEST(HasteSynth, is_the_same_for_every_thread_count_and_follows_the_seed) {
  const int before = num_threads();
  set_num_threads(1);
  const SynthOptions o{.train = 3000, .test = 100, .labels = 512, .words = 700};
  const XmcSet one = make_synth(o);
  set_num_threads(2);
  const XmcSet two = make_synth(o);
  set_num_threads(before);
  same(one.train.features, two.train.features);
  same(one.test.labels, two.test.labels);
  SynthOptions other = o;
  other.seed = 2;
  EXPECT_NE(make_synth(other).train.labels.index, one.train.labels.index);
}

TEST(HasteSynth, has_the_statistics_of_its_description) {
  const XmcSet set = make_synth();
  EXPECT_EQ(set.train.rows(), 20000);
  EXPECT_EQ(set.test.rows(), 4000);
  check_data(set.train, "train");
  check_data(set.test, "test");
  // 1 + Poisson(2) labels less those drawn twice, often the most frequent one of a cluster.
  const double mean = double(set.train.labels.entries()) / 20000;
  EXPECT_GT(mean, 2.0);
  EXPECT_LT(mean, 2.5);
  std::vector<int64_t> count(8192);
  for (const int32_t l : set.train.labels.index) ++count[size_t(l)];
  std::sort(count.rbegin(), count.rend());
  // A head and a long tail: rank^−0.9, flatter since a label drawn twice in a sample counts once.
  EXPECT_GT(count[0], 40 * count[2000]);
  EXPECT_NEAR(std::log10(double(count[9]) / double(count[99])), 0.75, 0.1);
  EXPECT_NEAR(std::log10(double(count[99]) / double(count[999])), 0.75, 0.1);
  // Rows have length 1.
  for (int64_t r = 0; r < 100; ++r) {
    double squares = 0;
    for (const float v : set.train.features.values(r)) squares += double(v) * v;
    EXPECT_NEAR(squares, 1.0, 1e-5);
  }
  // Labels of one sample share its cluster far more often than chance would have it.
  int64_t pairs = 0, near = 0;
  for (int64_t r = 0; r < set.train.rows(); ++r) {
    const auto row = set.train.labels.row(r);
    for (size_t i = 1; i < row.size(); ++i) ++pairs, near += row[i] / 16 == row[i - 1] / 16;
  }
  EXPECT_GT(near * 2, pairs);
}

TEST(HasteSynth, sizes_that_make_no_set_are_refused) {
  EXPECT_THROW(make_synth({.train = 0}), ValueError);
  EXPECT_THROW(make_synth({.words = 5}), ValueError);
  EXPECT_THROW(make_synth({.labels = -1}), ValueError);
}

TEST(HasteTfIdf, words_are_cut_and_lowered) {
  EXPECT_EQ(words_of("Lib-Foo2 (a C++ \xC3\xA9t)"),
            (std::vector<std::string>{"lib", "foo2", "a", "c", "\xC3\xA9t"}));
  EXPECT_TRUE(words_of(" .-").empty());
}

TEST(HasteTfIdf, weights_follow_the_formula_and_survive_a_file) {
  const std::vector<std::string> texts = {"red red fish", "red bird", "red fish blue"};
  const Vectorizer v = fit_vectorizer(texts, 2);
  ASSERT_EQ(v.words, (std::vector<std::string>{"red", "fish"}));
  EXPECT_FLOAT_EQ(v.idf[0], 1.f);
  EXPECT_FLOAT_EQ(v.idf[1], float(std::log(1.5) + 1));
  const Csr x = v.vectors({"fish red red unknown", "nothing"});
  const double a = 2.0, b = std::log(1.5) + 1, n = std::sqrt(a * a + b * b);
  ASSERT_EQ(x.index, (std::vector<int32_t>{0, 1}));
  EXPECT_NEAR(x.value[0], a / n, 1e-6);
  EXPECT_NEAR(x.value[1], b / n, 1e-6);
  EXPECT_TRUE(x.row(1).empty());
  const std::string path = temporary("vectorizer.tsv");
  save_vectorizer(v, path);
  const Vectorizer back = load_vectorizer(path);
  EXPECT_EQ(back.words, v.words);
  EXPECT_EQ(back.idf, v.idf);
  io::write_file_atomic(path, "red\tnan\n");
  EXPECT_THROW(load_vectorizer(path), IoError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cutaway::haste
