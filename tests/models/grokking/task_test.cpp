#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include <cutaway/core/error.h>
#include <cutaway/models/grokking/implied.h>
#include <cutaway/models/grokking/train.h>

namespace cutaway::grokking {
namespace {

// The message of the Error that fn raises; empty when it raises none.
std::string message(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

class GrokkingFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("cutaway_grok_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& text) {
    const std::string path = (folder_ / "f.csv").string();
    std::ofstream(path) << text;
    return path;
  }
  std::string error(const std::string& kind, const std::string& text) {
    const std::string path = file(text);
    return message([&] { make_task({.name = kind + ":" + path}); });
  }
  std::filesystem::path folder_;
};

TEST(GrokkingTask, modular_answers) {
  const auto answer = [](const char* name, int64_t x, int64_t y) {
    const Task t = make_task({.name = name, .p = 7});
    return t.answers[size_t(t.row(x, y))];
  };
  EXPECT_EQ(answer("add", 5, 4), 2);
  EXPECT_EQ(answer("sub", 2, 5), 4);
  EXPECT_EQ(answer("sq", 5, 6), 2);    // 121 mod 7
  EXPECT_EQ(answer("cube", 1, 2), 6);  // 27 mod 7
  EXPECT_EQ(answer("mul", 3, 4), 5);
  EXPECT_EQ(answer("affine", 3, 4), 5);  // 3 + 12 + 4 = 19
  EXPECT_EQ(answer("quad", 2, 3), 5);    // 4 + 6 + 9 = 19
}

TEST(GrokkingTask, circle_order_is_the_discrete_logarithm) {
  const Task t = make_task({.name = "mul", .p = 11});
  ASSERT_EQ(t.order.size(), 10u);
  const int64_t g = primitive_root(11);
  for (size_t i = 0; i + 1 < t.order.size(); ++i) EXPECT_EQ(t.order[i] * g % 11, t.order[i + 1]);
  const Task a = make_task({.name = "affine", .p = 11});
  for (size_t i = 0; i < a.order.size(); ++i) EXPECT_EQ((a.order[i] + 1) % 11, t.order[i] % 11);
}

TEST(GrokkingTask, graphs_have_their_distances) {
  const auto distance = [](const char* name, int64_t a, int64_t b) {
    const Task t = make_task({.name = std::string("graph:") + name});
    return t.answers[size_t(t.row(a, b))];
  };
  EXPECT_EQ(distance("path", 0, 63), 63);
  EXPECT_EQ(distance("cycle", 0, 63), 1);
  EXPECT_EQ(distance("lattice", 0, 48), 12);
  EXPECT_EQ(distance("cylinder", 0, 6), 1);   // the second axis closes
  EXPECT_EQ(distance("cylinder", 0, 42), 6);  // the first does not
  EXPECT_EQ(distance("hypercube", 0, 127), 7);
  EXPECT_EQ(distance("tree", 31, 62), 10);
  EXPECT_EQ(distance("karate", 0, 33), 2);
  const Task big = make_task({.name = "graph:lattice3d"});
  EXPECT_EQ(big.entities, 343);
  EXPECT_EQ(big.pool.size(), 20000u);
  EXPECT_EQ(big.classes.size(), 19u);
}

TEST(GrokkingTask, comparison_has_the_sizes_of_the_paper) {
  EXPECT_EQ(make_task({.name = "compare:2d"}).rows(), 4802);
  EXPECT_EQ(make_task({.name = "compare:3d"}).rows(), 2187);
  const Task binary = make_task({.name = "compare:2d", .binary = true});
  EXPECT_EQ(binary.rows(), 3 * 4802);
  int64_t true_ones = 0;
  for (int64_t a : binary.answers) true_ones += a;
  EXPECT_EQ(true_ones, 4802);  // exactly one relation holds
}

TEST(GrokkingTask, split_keeps_mirror_pairs_together) {
  const Task t = make_task({.name = "graph:lattice"});
  const Split s = split(t, {.fraction = 0.8, .seed = 3, .unordered = true});
  for (int64_t row : t.pool) {
    EXPECT_EQ(s.in_train[size_t(row)], s.in_train[size_t(t.mirror[size_t(row)])]);
  }
  EXPECT_EQ(s.train.size() + s.test.size(), t.pool.size());
  EXPECT_NEAR(double(s.train.size()) / double(t.pool.size()), 0.8, 0.01);
}

TEST(GrokkingTask, sampled_instances_obey_their_law) {
  Generator g{.seed = 1};
  const Task lattice = make_task({.name = "graph:lattice"});
  const Tuples tri = sample(lattice, Law::triangle, g, {.count = 200});
  for (int64_t i = 0; i < 200; ++i) {
    const auto d = [&](int k) { return lattice.answers[size_t(tri.rows[size_t(3 * i + k)])]; };
    EXPECT_EQ(d(0) + d(1), d(2));
  }
  const Task compare = make_task({.name = "compare:3d"});
  const Tuples trans = sample(compare, Law::transitivity, g, {.count = 200});
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 200; ++i) {
    const auto a = [&](int k) { return compare.answers[size_t(trans.rows[size_t(3 * i + k)])]; };
    EXPECT_TRUE(a(0) == a(1) && a(1) == a(2) && a(0) != 1);
    seen.insert(a(0));
  }
  EXPECT_EQ(seen.size(), 2u);
  const Task add = make_task({.name = "add", .p = 13});
  const Split s = split(add, {.fraction = 0.1, .seed = 1});
  const Tuples touching = sample(add, Law::associativity, g, {.count = 100, .touch = &s});
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(s.in_train[size_t(touching.rows[size_t(2 * i)])] ||
                s.in_train[size_t(touching.rows[size_t(2 * i + 1)])]);
  }
}

TEST(GrokkingTask, chains_settle_comparisons) {
  Task t{.name = "order", .entities = 4, .tokens = {"a", "b", "c", "d", "size"}, .length = 3};
  t.laws = {Law::transitivity};
  const auto add = [&](int64_t i, int64_t j, int64_t answer) {
    t.inputs.insert(t.inputs.end(), {i, 4, j});
    t.answers.push_back(answer);
    t.pool.push_back(t.rows() - 1);
  };
  add(0, 1, 0), add(1, 2, 1), add(3, 2, 2);                // known: a < b = c < d
  add(0, 2, 0), add(3, 0, 2), add(2, 1, 1), add(3, 1, 2);  // all follow
  const Split known{.train = {0, 1, 2}, .test = {3, 4, 5, 6}};
  EXPECT_EQ(open_comparisons(t, known), 0);
  EXPECT_EQ(open_comparisons(t, {.train = {0, 2}, .test = {1, 3, 5, 6}}), 4);
  EXPECT_THROW(open_comparisons(make_task({.name = "add"}), known), ValueError);
}

TEST(GrokkingTask, laws_of_tables_are_found) {
  EXPECT_FALSE(make_task({.name = "random", .p = 11}).has(Law::associativity));
  const Task s5 = make_task({.name = "s5"});
  EXPECT_TRUE(s5.has(Law::associativity));
  EXPECT_FALSE(s5.has(Law::commutativity));
  EXPECT_EQ(s5.entities, 120);
  const Task quad = make_task({.name = "quad", .p = 11});
  EXPECT_TRUE(quad.has(Law::commutativity));
  EXPECT_FALSE(quad.has(Law::associativity));
}

TEST(GrokkingTask, bad_input_says_what_and_how) {
  EXPECT_TRUE(has(message([] { make_task({.name = "mul", .p = 15}); }), "15 is none"));
  EXPECT_TRUE(has(message([] { make_task({.name = "add", .p = 2}); }), "between 3 and 1000"));
  EXPECT_TRUE(has(message([] { make_task({.name = "nothing"}); }), "there is no task"));
  const Task t = make_task({.name = "add", .p = 5});
  EXPECT_TRUE(has(message([&] { split(t, {.fraction = 0}); }), "between 0 and 1"));
  EXPECT_TRUE(has(message([&] { split(t, {.fraction = 0.001}); }), "0 training"));
  const auto check = [](RunOptions o) { return message([&] { check_options(o, task_of(o)); }); };
  EXPECT_TRUE(has(check({.d = 66}), "not divisible by 4 heads"));
  EXPECT_TRUE(has(check({.prompt = "triangle"}), "triangle does not belong"));
  EXPECT_TRUE(has(check({.task = "graph:lattice", .prompt = "both"}), "does not belong"));
  EXPECT_TRUE(has(check({.task = "s5", .prompt = "comm"}), "does not belong"));
  EXPECT_TRUE(has(check({.task = "random", .p = 5, .prompt = "assoc"}), "for x, y, z ="));
  EXPECT_TRUE(has(check({.task = "quad", .prompt = "assoc"}), "for x, y, z ="));
  EXPECT_TRUE(has(check({.prompt = "nothing"}), "must be one of"));
  EXPECT_EQ(check({.prompt = "both", .assoc = "soft"}), "");
  EXPECT_TRUE(has(check({.task = "sq", .prompt = "both", .assoc = "soft"}), "--assoc soft"));
}

TEST_F(GrokkingFiles, tables) {
  EXPECT_TRUE(has(error("table", "0,1\n1\n"), "row 2 has 1 fields"));
  EXPECT_TRUE(has(error("table", "0,1,2\n1,2,0\n"), "square"));
  EXPECT_TRUE(has(error("table", "0,1\n1,-4\n"), "out of range"));
  EXPECT_TRUE(has(error("table", "0,1\n1,x\n"), "\"x\" is not a whole number"));
  EXPECT_TRUE(has(error("table", ""), "holds no line"));
  const Task t = make_task({.name = "table:" + file("0,1,2\n1,2,0\n2,0,1\n")});
  EXPECT_TRUE(t.has(Law::commutativity) && t.has(Law::associativity));
}

TEST_F(GrokkingFiles, graphs) {
  EXPECT_TRUE(has(error("graph", "a b\nc d\n"), "no way from node a to node c"));
  EXPECT_TRUE(has(error("graph", "a\n"), "1 fields"));
  EXPECT_TRUE(has(error("graph", "a b 0\n"), "out of range"));
  const Task t = make_task({.name = "graph:" + file("a b 2\nb c 3\n")});
  EXPECT_EQ(t.answers[size_t(t.row(0, 2))], 5);
}

TEST_F(GrokkingFiles, entities) {
  EXPECT_TRUE(has(error("compare", "name,age\na,1\nb,2\nc,x\n"), "\"x\" is not a number"));
  EXPECT_TRUE(has(error("compare", "name,age\na,1\nb\nc,3\n"), "has 1 fields"));
  const Task t = make_task({.name = "compare:" + file("name,age\na,1\nb,2\nc,2\n")});
  EXPECT_EQ(t.answers[1], 0);  // a < b
  EXPECT_EQ(t.answers[5], 1);  // b = c
}

}  // namespace
}  // namespace cutaway::grokking
