#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/models/reproduce/reproduce.h>

namespace cutaway::reproduce {
namespace {

TEST(Reproduce, statements_hold_on_the_right_side_of_their_bound) {
  EXPECT_EQ(at_least({.id = "1", .text = "x", .value = 3, .bound = 3}).status, Status::pass);
  EXPECT_EQ(at_least({.id = "1", .text = "x", .value = 2.9, .bound = 3}).status, Status::fail);
  EXPECT_EQ(at_most({.id = "1", .text = "x", .value = 2.9, .bound = 3}).status, Status::pass);
  EXPECT_EQ(at_most({.id = "1", .text = "x", .value = NAN, .bound = 3}).status, Status::fail);
  EXPECT_EQ(at_least({.id = "1", .text = "x", .value = NAN, .bound = 3}).status, Status::fail);
  EXPECT_EQ(at_least({.id = "1", .text = "x", .value = 2.5, .bound = 2}).bound, "≥ 2");
}

TEST(Reproduce, median_and_spread) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_EQ(mean_spread({1, 2, 3}), "2 ± 1");
}

TEST(Reproduce, run_counts_writes_json_and_a_report) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("cutaway_reproduce_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  int seen = 0;
  reproduce::Run run(
      {.seed = 4, .folder = folder, .command = "x", .on_statement = [&](auto&) { ++seen; }});
  run.add(at_least(
      {.id = "1", .text = "a < b", .value = 5, .bound = 1, .seeds = run.seeds(2), .note = "n"}));
  run.add(at_most({.id = "2", .text = "c", .value = 5, .bound = 1}));
  run.skip("3", "d", "needs --full");
  run.picture("p", "a picture", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>");
  run.write_report({"slug", "title", "1 min", nullptr}, 1);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(run.count(Status::pass), 1);
  EXPECT_EQ(run.count(Status::fail), 1);
  const auto json = nlohmann::json::parse(run.json("slug"));
  EXPECT_EQ(json["mode"], "quick");
  EXPECT_EQ(json["statements"][0]["seeds"], nlohmann::json({4, 5}));
  EXPECT_EQ(json["statements"][1]["status"], "FAIL");
  EXPECT_EQ(json["statements"][2]["measured"], "needs --full");
  EXPECT_TRUE(json["statements"][2]["value"].is_null());
  const io::Bytes bytes = io::read_file(folder + "/report.html");
  const std::string html(bytes.begin(), bytes.end());
  EXPECT_NE(html.find("a &lt; b"), std::string::npos);
  EXPECT_NE(html.find("a picture"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder + "/plots/p.svg"));
  std::filesystem::remove_all(folder);
}

TEST(Reproduce, unknown_study_names_the_known_ones) {
  try {
    study("nothing");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("there is no study \"nothing\""), std::string::npos);
  }
}

}  // namespace
}  // namespace cutaway::reproduce
