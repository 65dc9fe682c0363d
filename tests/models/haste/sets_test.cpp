#include <cutaway/models/haste/sets.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/core/io/pack.h>
#include <cutaway/models/haste/grouping.h>
#include <cutaway/models/haste/metrics.h>
#include <tests/paths.h>

namespace cutaway::haste {
namespace {
namespace fs = std::filesystem;

struct Folder {
  fs::path path;
  explicit Folder(const std::string& name)
      : path(fs::temp_directory_path() / ("cutaway_haste_" + name)) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  void put(const std::string& name, const std::string& text) const {
    io::write_text((path / name).string(), text);
  }
};

template <class F>
void refused(F&& call, const std::string& need) {
  try {
    call();
    ADD_FAILURE() << "accepted; need " << need;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(need), std::string::npos) << e.what();
  }
}

std::string sample_file() {
  return std::string(kSourceDir) + "/datasets/samples/xmc/debian_packages.gz";
}

TEST(HasteDebian, reads_the_fields_of_a_paragraph) {
  const auto records = parse_packages("x",
                                      "Package: liba1-dev\nSource: a (1.2)\nVersion: 1\n"
                                      "Depends: libc6 (>= 2.3), x | y, python3:any, libc6 (<< 3)\n"
                                      "Pre-Depends: dpkg\nDescription: tools of a\n"
                                      "Tag: a::b, c::{d,e},\n f::g\n\nPackage: b\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].source, "a");
  EXPECT_EQ(records[0].depends, (std::vector<std::string>{"libc6", "x", "python3", "dpkg"}));
  EXPECT_EQ(records[0].tags, (std::vector<std::string>{"a::b", "c::d", "c::e", "f::g"}));
  EXPECT_EQ(records[1].source, "b");
  EXPECT_TRUE(records[1].depends.empty());
  const auto back = parse_packages("y", packages_text(records));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].depends, records[0].depends);
  EXPECT_EQ(back[0].tags, records[0].tags);
  EXPECT_EQ(back[0].description, "tools of a");
}

TEST(HasteDebian, texts_are_the_words_of_the_name_and_the_description) {
  const auto docs = debian_documents(
      parse_packages("x", "Package: liba1.2-dev\nDepends: b\nDescription: Tools\n\nPackage: c\n"));
  ASSERT_EQ(docs.size(), 1u);  // c depends on nothing
  EXPECT_EQ(words_of(docs[0].text), (std::vector<std::string>{"liba", "dev", "tools"}));
}

TEST(HasteDebian, splits_keep_sources_together_or_not) {
  const auto records = read_packages(sample_file());
  EXPECT_EQ(records.size(), 5000u);
  std::map<std::string, std::string> source;
  for (const auto& r : records) source[r.package] = r.source;
  for (const Split split : {Split::source, Split::name}) {
    std::map<std::string, std::set<bool>> sides;
    int64_t test = 0, all = 0;
    for (const Document& d : debian_documents(records, {.split = split})) {
      sides[source[d.name]].insert(d.test);
      test += d.test;
      ++all;
    }
    EXPECT_NEAR(double(test) / double(all), 0.2, 0.03);
    const auto mixed = std::count_if(sides.begin(), sides.end(),
                                     [](const auto& s) { return s.second.size() == 2; });
    EXPECT_EQ(mixed > 0, split == Split::name);
  }
  // The limit does not change which side a package is on.
  int64_t test = 0;
  const auto some = debian_documents(records, {.limit = 1000});
  for (const Document& d : some) test += d.test;
  EXPECT_EQ(some.size(), 1000u);
  EXPECT_NEAR(double(test), 200, 50);
}

TEST(HasteSets, built_ones_drop_rare_labels_and_words) {
  const std::vector<Document> docs = {{"a", "red fish", {"x", "y"}, false},
                                      {"b", "red bird", {"x", "z"}, false},
                                      {"c", "red fish", {"w"}, false},
                                      {"d", "fish fish", {"x", "q"}, true},
                                      {"e", "bird", {"q"}, true}};
  const XmcSet set = build_set("s", docs, {.min_positives = 2, .min_words = 2});
  EXPECT_EQ(set.train.label_names, (std::vector<std::string>{"x"}));
  EXPECT_EQ(set.train.sample_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set.test.sample_names, (std::vector<std::string>{"d"}));
  EXPECT_EQ(set.train.words, (std::vector<std::string>{"red"}));
  EXPECT_EQ(set.test.features.entries(), 0);
  check_data(set.train, "train");
  refused([&] { build_set("s", docs, {.min_positives = 9}); }, "no training sample has a label");
}

TEST(HasteSets, shipped_ones_open_and_their_semantic_groups_are_alike) {
  for (const char* name : {"debian-sample", "debian-sample-tags", "wordnet-sample"}) {
    const XmcSet set = open_set({.name = name});
    EXPECT_EQ(set.train.num_labels(), int64_t(set.train.label_names.size())) << name;
    EXPECT_EQ(set.train.num_features(), int64_t(set.vectorizer.idf.size()));
    for (int64_t r = 0; r < 20; ++r) {
      double squares = 0;
      for (const float v : set.train.features.values(r)) squares += double(v) * v;
      if (squares > 0) {
        EXPECT_NEAR(squares, 1.0, 1e-5);
      }
    }
  }
  const XmcSet set = open_set({.name = "debian-sample"});
  std::map<Grouping, double> mean;
  for (const Grouping m : {Grouping::greedy, Grouping::two_stage, Grouping::random}) {
    const LabelOrder order = order_labels(set.train, {.method = m});
    const std::vector<int32_t> tail(order.label.begin() + order.head, order.label.end());
    std::vector<int32_t> in_order(tail.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    mean[m] = cohesion(label_embeddings(set.train, tail, 128, 1), 128, in_order, 16).mean;
  }
  EXPECT_GT(mean[Grouping::greedy], mean[Grouping::random] + 0.15);
  EXPECT_GT(mean[Grouping::two_stage], mean[Grouping::random] + 0.15);
}

TEST(HasteSets, raw_text_is_read_as_the_set_was_built) {
  const XmcSet set = open_set({.name = "debian-sample"});
  const Csr again = set.vectorizer.vectors({set.test.texts[3]});
  EXPECT_TRUE(std::equal(again.index.begin(), again.index.end(), set.test.features.row(3).begin(),
                         set.test.features.row(3).end()));
}

TEST(HasteSets, names_that_do_not_exist_are_refused_with_what_does) {
  refused([] { open_set({.name = "no-such-set"}); }, "debian-sample");
  refused([] { open_set({.name = "debian-deps:/no/such/file"}); }, "/no/such/file");
  refused([] { open_set({.name = "wordnet:/no/such/file"}); }, "/no/such/file");
  refused([] { open_set({.name = sample_file()}); }, "--test FILE");
}

TEST(HasteWordnet, labels_are_everything_above_and_the_domains) {
  const std::string text =
      "  1 licence\n"
      "00000001 03 n 01 entity 0 000 | all\n"
      "00000002 03 n 02 living_thing 0 being 0 001 @ 00000001 n 0000 | alive\n"
      "00000003 03 n 01 zoology 0 000 | science of animals\n"
      "00000004 03 n 01 dog 0 003 @ 00000002 n 0000 ;c 00000003 n 0000 + 00000009 v 0101 | barks\n";
  const auto docs = parse_wordnet("x", text);
  ASSERT_EQ(docs.size(), 2u);  // those with labels
  EXPECT_EQ(docs[1].name, "dog.n.00000004");
  EXPECT_EQ(docs[1].text, "dog barks");
  std::vector<std::string> labels = docs[1].labels;
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(labels, (std::vector<std::string>{"entity.n.00000001", "living_thing.n.00000002",
                                              "zoology.n.00000003"}));
}

TEST(HasteFolders, raw_text_and_json_lines_give_the_same_set) {
  const Folder raw("raw"), json("json");
  raw.put("train_raw_texts.txt.gz", "red fish\nred bird\nred fish\n");
  raw.put("train_labels.txt", "2 0\n\n1\n");
  raw.put("test_raw_texts.txt", "red\n");
  raw.put("test_labels.txt", "3\n");
  raw.put("filter_labels_test.txt", "0 1\n0 1\n");
  json.put("trn.json.gz",
           "{\"uid\":\"a\",\"title\":\"red\",\"content\":\"fish\",\"target_ind\":[2,0],"
           "\"target_rel\":[1.0,0.5]}\n"
           "{\"uid\":\"b\",\"title\":\"red bird\",\"content\":\"\",\"target_ind\":[]}\n"
           "{\"uid\":\"c\",\"title\":\"red fish\",\"target_ind\":[1,3],\"target_rel\":[1,0]}\n");
  json.put("tst.json", "{\"uid\":\"d\",\"title\":\"red\",\"target_ind\":[3]}\n");
  json.put("lbl.json",
           "{\"title\":\"A\"}\n{\"title\":\"B\"}\n{\"title\":\"C\"}\n{\"title\":\"D\"}\n");
  const XmcSet a = open_set({.name = raw.path.string()}),
               b = open_set({.name = json.path.string()});
  EXPECT_EQ(a.train.num_labels(), 4);
  EXPECT_EQ(a.train.labels.index, b.train.labels.index);
  EXPECT_EQ(a.train.labels.start, (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(a.train.features.value, b.train.features.value);
  EXPECT_EQ(a.vectorizer.words, (std::vector<std::string>{"red"}));
  EXPECT_EQ(b.train.label_names[3], "D");
  EXPECT_EQ(a.filter.index, (std::vector<int32_t>{1}));
  EXPECT_EQ(b.filter.rows(), 0);
}

TEST(HasteFolders, mistakes_are_named_with_file_and_line) {
  const Folder f("bad");
  const auto open = [&] { open_set({.name = f.path.string()}); };
  refused(open, "has no file train.txt");
  f.put("train_raw_texts.txt", "a\nb\n");
  f.put("train_labels.txt", "1\nx\n");
  f.put("test_raw_texts.txt", "a\n");
  f.put("test_labels.txt", "1\n");
  refused(open, "train_labels.txt:2: need labels");
  f.put("train_labels.txt", "1\n");
  refused(open, "1 lines of labels for 2 lines of text");
  f.put("train_labels.txt", "1 1\n2\n");
  refused(open, "train_labels.txt:1: label 1 is there twice");
  f.put("train_labels.txt", "1\n2\n");
  f.put("labels.txt", "one\n");
  refused(open, "labels.txt names 1 labels, label 2 is used");
  f.put("labels.txt", "zero\none\ntwo\n");
  f.put("filter_labels_test.txt", "0 3\n");
  refused(open, "filter_labels_test.txt:1: label 3 is out of range");
  f.put("filter_labels_test.txt", "1 0\n");
  refused(open, "row 1 is out of range");
  f.put("filter_labels_test.txt", "0\n");
  refused(open, "need \"row label\"");
  f.put("trn.json", "{\"title\":\"a\"}\n");
  refused(open, "trn.json:1: has no list of numbers target_ind");
  f.put("trn.json", "{\"target_ind\":[1.5]}\n");
  refused(open, "label 1.5 is not");
  f.put("trn.json", "{\"target_ind\":[1],\"target_rel\":[1,2]}\n");
  refused(open, "2 values in target_rel for 1");
  f.put("trn.json", "{\"target_ind\":[1]\n");
  refused(open, "trn.json:1: is not JSON");
}

TEST(HasteFolders, sparse_files_with_counts_become_tfidf_and_others_stay) {
  const Folder f("sparse");
  f.put("train.txt", "2 2 2\n0 0:2 1:1\n1 0:1\n");
  f.put("test.txt", "1 2 2\n1 1:3\n");
  const XmcSet counts = open_set({.name = f.path.string()});
  EXPECT_EQ(counts.test.features.value[0], 1.f);
  f.put("test.txt", "1 2 2\n1 1:0.3\n");
  EXPECT_EQ(open_set({.name = f.path.string()}).test.features.value[0], 0.3f);
  f.put("test.txt", "1 3 2\n1 1:0.3\n");
  refused([&] { open_set({.name = f.path.string()}); }, "other numbers of features");
  const std::string cut = (f.path / "cut.gz").string();
  io::Bytes packed = io::read_file(sample_file());
  packed.resize(packed.size() / 2);
  io::AtomicFile file(cut);
  file.write(packed.data(), int64_t(packed.size()));
  file.commit();
  refused([&] { read_packages(cut); }, cut + " is cut off");
}

}  // namespace
}  // namespace cutaway::haste
