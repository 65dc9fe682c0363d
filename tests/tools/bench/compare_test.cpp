#include <gtest/gtest.h>
#include <cmath>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>
#include <tools/bench/compare.h>

namespace cutaway::tools {
namespace {

// A side with known answers.
class FakeSide : public Side {
 public:
  FakeSide(double ms, double value) : ms_(ms), value_(value) {}
  std::vector<double> values(const BenchCase&, int n) override {
    return std::vector<double>(size_t(n), value_);
  }
  RunResult run(const BenchCase&, int64_t) override {
    ++runs;
    return {ms_, 1000};
  }
  int runs = 0;

 private:
  double ms_, value_;
};

std::vector<CompareRow> rows_of(Side& ours, Side* peer, int rounds = 7) {
  CompareOptions o{.workloads = {"mlp1"}, .threads = {1, 2}, .rounds = rounds};
  return compare(o, ours, peer, [](const CompareRow&) {});
}

TEST(Compare, rows_have_medians_ratio_and_verdict) {
  FakeSide ours(2, 0.5), peer(6, 0.50002);
  const auto rows = rows_of(ours, &peer);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].ratio(), 3);
  EXPECT_TRUE(rows[0].valid);
  EXPECT_EQ(rows[1].what.threads, 2);
  EXPECT_GE(ours.runs, 2 * 7);
  EXPECT_GE(peer.runs, 2 * 7);
}

TEST(Compare, different_losses_make_a_row_invalid) {
  FakeSide ours(2, 0.5), peer(6, 0.5003);
  const auto rows = rows_of(ours, &peer);
  EXPECT_FALSE(rows[0].valid);
  EXPECT_NE(table_line(rows[0]).find("INVALID"), std::string::npos);
  EXPECT_TRUE(values_agree(100, 100.009, DType::f32));
  EXPECT_FALSE(values_agree(100, 100.02, DType::f32));
  EXPECT_FALSE(values_agree(1, NAN, DType::f32));
  EXPECT_TRUE(values_agree(1, 1.01, DType::bf16));
}

TEST(Compare, json_has_its_fixed_form) {
  FakeSide ours(2, 0.5), peer(6, 0.5);
  const auto j = nlohmann::json::parse(compare_json(rows_of(ours, &peer), "9.9"));
  EXPECT_TRUE(j.at("machine").is_string());
  EXPECT_EQ(j.at("torch_version"), "9.9");
  const auto& row = j.at("rows").at(0);
  EXPECT_EQ(row.at("name"), "mlp1");
  EXPECT_EQ(row.at("dtype"), "f32");
  EXPECT_EQ(row.at("threads"), 1);
  EXPECT_EQ(row.at("ours_ms"), 2);
  EXPECT_EQ(row.at("torch_ms"), 6);
  EXPECT_EQ(row.at("ratio"), 3);
  EXPECT_EQ(row.at("valid"), true);
  EXPECT_GT(row.at("floor_share").get<double>(), 0);
  EXPECT_NE(compare_svg(rows_of(ours, &peer), "9.9").find("3.00 x"), std::string::npos);
}

TEST(Compare, without_a_peer_its_numbers_are_null) {
  FakeSide ours(2, 0.5);
  const auto rows = rows_of(ours, nullptr);
  const auto j = nlohmann::json::parse(compare_json(rows, ""));
  EXPECT_TRUE(j.at("torch_version").is_null());
  EXPECT_TRUE(j.at("rows").at(0).at("ratio").is_null());
  EXPECT_EQ(best_table(rows), "");
  EXPECT_THROW(rows_of(ours, nullptr, 0), ValueError);
}

TEST(Compare, both_sides_count_at_their_better_number_of_threads) {
  FakeSide ours(2, 0.5), peer(6, 0.5);
  auto rows = rows_of(ours, &peer);
  rows[1].ours_ms = 1;
  rows[1].torch_ms = 8;
  EXPECT_NE(best_table(rows).find("6.00 x"), std::string::npos);
}

// A peer that answers without PyTorch.
constexpr const char* kFakePeer = R"(
import sys
print("torch fake", flush=True)
for line in sys.stdin:
    w = line.split()
    if w == ["quit"]: break
    if w[1] == "tiny": print("error no such thing", flush=True)
    elif w[1] == "mlp": break
    elif w[1] == "add16": print("what", flush=True)
    elif w[0] == "losses": print("losses " + " ".join(["0.25"] * int(w[4])), flush=True)
    else: print("0.5 4096" if w[2:4] == ["f32", "2"] else "1.5 -1", flush=True)
)";

TEST(Peer, answers_line_by_line) {
  Peer peer({.python = "python3", .script = kFakePeer});
  EXPECT_EQ(peer.version(), "torch fake");
  const BenchCase c{"mlp1", DType::f32, 2};
  EXPECT_EQ(peer.values(c, 3), (std::vector<double>{0.25, 0.25, 0.25}));
  EXPECT_EQ(peer.run(c, 10).ms, 0.5);
  EXPECT_EQ(peer.run(c, 10).peak, 4096);
  EXPECT_EQ(peer.run({"mlp1", DType::bf16, 2}, 10).peak, -1);
}

TEST(Peer, failures_are_errors_that_say_what) {
  Peer peer({.python = "python3", .script = kFakePeer});
  try {
    peer.run({"tiny", DType::f32, 1}, 1);
    ADD_FAILURE();
  } catch (const IoError& e) {
    EXPECT_NE(std::string(e.what()).find("no such thing"), std::string::npos);
  }
  EXPECT_THROW(peer.run({"add16", DType::f32, 1}, 1), IoError);
  EXPECT_THROW(peer.values({"add16", DType::f32, 1}, 1), IoError);
  EXPECT_THROW(peer.run({"mlp", DType::f32, 1}, 1), IoError);   // it ends
  EXPECT_THROW(peer.run({"mlp1", DType::f32, 1}, 1), IoError);  // and stays so
  EXPECT_THROW(Peer({.python = "/no/such/python", .script = kFakePeer}), IoError);
  EXPECT_THROW(Peer({.python = "python3", .script = "raise SystemExit(3)"}), IoError);
}

TEST(Peer, a_row_that_the_peer_cannot_run_keeps_our_time) {
  FakeSide ours(2, 0.5);
  Peer peer({.python = "python3", .script = kFakePeer});
  CompareOptions o{.workloads = {"tiny"}, .threads = {1}, .rounds = 1};
  const auto rows = compare(o, ours, &peer, [](const CompareRow&) {});
  EXPECT_EQ(rows[0].ours_ms, 2);
  EXPECT_TRUE(std::isnan(rows[0].torch_ms));
  EXPECT_FALSE(rows[0].failure.empty());
}

TEST(Peer, our_side_answers_like_one) {
  const auto ours = make_own_side();
  const BenchCase c{"mlp1", DType::f32, 1};
  EXPECT_EQ(ours->values(c, 4).size(), 4u);
  EXPECT_GT(ours->run(c, 5).ms, 0);
}

}  // namespace
}  // namespace cutaway::tools
