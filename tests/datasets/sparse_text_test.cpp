// Lines of sparse features with values written here; hostile files are in tests/fuzz.
#include <gtest/gtest.h>

#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/datasets/sparse_text.h>
#include <cutaway/datasets/targets.h>
#include <tests/datasets/scratch.h>

namespace cutaway::data {
namespace {

using Values = std::vector<double>;
using Floats = std::vector<float>;
using Indices = std::vector<int32_t>;
using Starts = std::vector<int64_t>;
using Names = std::vector<std::string>;

void xmc_refused(const std::string& text, const std::string& need) {
  const std::string message = refusal([&] { parse_xmc("set.txt", text); });
  EXPECT_NE(message.find(need), std::string::npos) << message;
}
void svm_refused(const std::string& text, const std::string& need,
                 const LibsvmOptions& options = {}) {
  const std::string message = refusal([&] { parse_libsvm("set.svm", text, options); });
  EXPECT_NE(message.find(need), std::string::npos) << message;
}

TEST(Xmc, reads_labels_and_features) {
  const MultiLabelRows d = parse_xmc("x", "3 4 5\n4,1 0:0.5 3:-2\n 2:1e-3\n0\n");
  EXPECT_EQ(d.rows(), 3);
  EXPECT_EQ(d.features.cols, 4);
  EXPECT_EQ(d.labels.index, (Indices{1, 4, 0}));
  EXPECT_EQ(d.labels.start, (Starts{0, 2, 2, 3}));
  EXPECT_EQ(d.features.index, (Indices{0, 3, 2}));
  EXPECT_EQ(d.features.value, (Floats{0.5f, -2.f, 1e-3f}));
}

TEST(Xmc, refuses_what_is_wrong_with_line_and_value) {
  xmc_refused("", "is empty");
  xmc_refused("2 4\n", "set.txt:1: the first line needs three counts");
  xmc_refused("1 4 5 6\n", "more than three counts");
  xmc_refused("2 4 5\n0 0:1\n", "ends after 1 samples, the header gives 2");
  xmc_refused("1 4 5\n0 0:1\n1 0:1\n", "set.txt:3: more lines than the 1 samples");
  xmc_refused("1 4 5\n5 0:1\n", "set.txt:2: label 5 is out of range");
  xmc_refused("1 4 5\n-1 0:1\n", "label -1 is out of range");
  xmc_refused("1 4 5\n1 4:1\n", "feature 4 is out of range; the header gives 4");
  xmc_refused("1 4 5\n1 2:nan\n", "feature 2 needs a finite value index:value; got \"2:nan\"");
  xmc_refused("1 4 5\n1 2:1e99\n", "finite value");
  xmc_refused("1 4 5\n1 2\n", "finite value");
  xmc_refused("1 4 5\n1 2:1 2:1\n", "feature 2 is there twice");
  xmc_refused("1 4 5\n1,1 2:1\n", "label 1 is there twice");
  xmc_refused("1 4 5\n2:1\n", "begins with a feature");
  xmc_refused("1 4 5\n1,x 2:1\n", "label \"x\" is not a whole number");
}

TEST(Xmc, written_files_read_back_exactly) {
  const Scratch s;
  const MultiLabelRows d = parse_xmc("x", "4 9 5\n4,1 0:0.1 3:-2e-30\n 2:1e-3\n0\n \n");
  for (const char* name : {"set.txt", "set.txt.gz"}) {
    save_xmc(d, s.path(name));
    const MultiLabelRows back = load_xmc(s.path(name));
    EXPECT_EQ(back.features.index, d.features.index);
    EXPECT_EQ(back.features.start, d.features.start);
    EXPECT_EQ(back.features.value, d.features.value);
    EXPECT_EQ(back.features.cols, 9);
    EXPECT_EQ(back.labels.index, d.labels.index);
    EXPECT_EQ(back.labels.start, d.labels.start);
    EXPECT_EQ(back.labels.cols, 5);
  }
  MultiLabelRows bad = d;
  bad.labels.start.pop_back();
  EXPECT_THROW(save_xmc(bad, s.path("bad.txt")), ValueError);
}

TEST(Xmc, folders_and_files_are_data_sets) {
  const Scratch s;
  s.put("set/train.txt", "2 3 2\n1 0:0.5 2:-2\n 1:3\n");
  s.put("set/test.txt", "1 3 2\n0,1 1:1\n");
  const Dataset train = open(s.path("set"), "train"), test = open(s.path("set"), "test");
  EXPECT_EQ(train.inputs.sizes(), (Shape{2, 3}));
  EXPECT_EQ(train.inputs.to_vector(), (Values{0.5, 0, -2, 0, 3, 0}));
  EXPECT_EQ(train.targets.to_vector(), (Values{0, 1, 0, 0}));
  EXPECT_EQ(test.targets.to_vector(), (Values{1, 1}));
  EXPECT_EQ(open(s.path("set/train.txt"), "test").targets.to_vector(), (Values{1, 1}));
  s.put("novel.txt", "It was a\n");
  EXPECT_FALSE(is_xmc(s.path("novel.txt")));
  EXPECT_NE(refusal<ValueError>([&] { open(s.path("novel.txt"), "train"); }).find("is text"),
            std::string::npos);
}

TEST(Libsvm, targets_features_notes_and_queries) {
  const LibsvmRows d = parse_libsvm("x", "# note\n+1 1:0.5 4:-2 # n\r\n\n-2.5\t2:1e-3\n0\n");
  EXPECT_EQ(d.targets, (Values{1, -2.5, 0}));
  EXPECT_FALSE(d.multi_label());
  EXPECT_EQ(d.features.cols, 4);  // 1 … 4
  EXPECT_EQ(d.features.index, (Indices{0, 3, 1}));
  EXPECT_EQ(d.features.start, (Starts{0, 2, 3, 3}));
  EXPECT_EQ(d.features.value, (Floats{0.5f, -2.f, 1e-3f}));
  EXPECT_TRUE(d.queries.empty());
  EXPECT_EQ(parse_libsvm("x", "2 qid:7 1:1\n1 qid:9 3:1\n").queries, (Starts{7, 9}));
}

TEST(Libsvm, where_indices_begin) {
  using First = LibsvmOptions::First;
  EXPECT_EQ(parse_libsvm("x", "1 0:1 2:1\n").features.index, (Indices{0, 2}));
  EXPECT_EQ(parse_libsvm("x", "1 1:1 2:1\n").features.index, (Indices{0, 1}));
  EXPECT_EQ(parse_libsvm("x", "1 1:1 2:1\n", {.first = First::zero}).features.index,
            (Indices{1, 2}));
  EXPECT_EQ(parse_libsvm("x", "1 2:1\n", {.features = 10}).features.cols, 10);
  svm_refused("1 0:1\n", "has a feature 0", {.first = First::one});
  svm_refused("1 12:1\n", "has 12 features; 10 were said", {.features = 10});
}

TEST(Libsvm, sets_of_labels) {
  const LibsvmRows d = parse_libsvm("x", "2,0 1:1\n 2:1\n1 3:1\n");
  EXPECT_TRUE(d.multi_label());
  EXPECT_EQ(d.labels.cols, 3);
  EXPECT_EQ(d.labels.index, (Indices{0, 2, 1}));
  EXPECT_EQ(d.labels.start, (Starts{0, 2, 2, 3}));
  svm_refused("1 1:1\n1,2.5 1:1\n", "set.svm:2: label \"2.5\" is not a whole number");
  svm_refused("-1 1:1\n1,2 1:1\n", "set.svm:1: label -1 is out of range");
}

TEST(Libsvm, parts_share_classes_and_columns) {
  const Scratch s;
  s.put("a9a", "-1 3:1\n+1 1:1\n");  // LIBSVM's sets have no ending
  s.put("a9a.t", "+1 5:2\n");
  const Dataset train = open(s.path("a9a"), "train"), test = open(s.path("a9a"), "test");
  EXPECT_EQ(train.classes, (Names{"-1", "1"}));
  EXPECT_EQ(train.targets.dtype(), DType::i64);
  EXPECT_EQ(train.targets.to_vector(), (Values{0, 1}));
  EXPECT_EQ(test.targets.to_vector(), (Values{1}));
  EXPECT_EQ(train.inputs.to_vector(), (Values{0, 0, 1, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(test.inputs.to_vector(), (Values{0, 0, 0, 0, 2}));
  // An index 0 in one part counts for both.
  s.put("train.svm", "0 1:1\n1 2:1\n");
  s.put("test.svm", "1 0:1\n");
  EXPECT_EQ(open(s.path("train.svm"), "train").inputs.to_vector(), (Values{0, 1, 0, 0, 0, 1}));
  s.put("test.svm", "1,2 0:1\n");
  EXPECT_NE(refusal([&] { open(s.path("train.svm"), "train"); }).find("sets of labels"),
            std::string::npos);
  s.put("one.svm", "0.5 1:1\n1 1:2\n2 1:3\n3 1:4\n4 1:5\n5 1:6\n");
  const Dataset fifth = open(s.path("one.svm"), "test");
  EXPECT_EQ(fifth.targets.dtype(), DType::f32);  // not all are whole numbers
  EXPECT_EQ(fifth.inputs.to_vector(), (Values{5}));
  EXPECT_EQ(open(s.path("one.svm"), "train").size(), 5);
}

TEST(Csr, a_dense_tensor_of_too_many_columns_is_refused) {
  Csr m;
  m.cols = kMostColumns;
  m.start.assign(20001, 0);
  EXPECT_NE(refusal([&] { dense(m, "set"); }).find("set: 20000 rows of 134217728 columns"),
            std::string::npos);
}

TEST(MakeTargets, whole_numbers_are_classes) {
  const Targets from_zero = make_targets(Values{2, 0, 5});
  EXPECT_EQ(from_zero.values.to_vector(), (Values{2, 0, 5}));
  EXPECT_TRUE(from_zero.classes.empty());
  const Targets others = make_targets(Values{7, -3, 7});
  EXPECT_EQ(others.values.to_vector(), (Values{1, 0, 1}));
  EXPECT_EQ(others.classes, (Names{"-3", "7"}));
  const Targets values = make_targets(Values{1, 0.5});
  EXPECT_EQ(values.values.dtype(), DType::f32);
  EXPECT_EQ(make_targets(Values{7, 3}, {.renumber = false}).values.to_vector(), (Values{7, 3}));
  EXPECT_EQ(make_targets(Values{7, -3}, {.renumber = false}).values.dtype(), DType::f32);
  EXPECT_EQ(make_targets(Values{1, NAN}).values.dtype(), DType::f32);
}

}  // namespace
}  // namespace cutaway::data
