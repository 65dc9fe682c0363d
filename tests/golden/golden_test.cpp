#include <tests/golden/golden.h>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <cutaway/autograd/ops.h>
#include <tests/golden/run.h>
#include <tests/paths.h>

namespace cutaway::golden {
namespace {

// The files of this folder, by name without ending.
std::set<std::string> groups() {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(kSourceDir) + "/tests/golden")) {
    if (entry.path().extension() == ".safetensors") names.insert(entry.path().stem());
  }
  return names;
}

// Every file is compared with the library by the test GoldenFile.<file>, except those of
// optimisers and schedules, which are followed step by step in tests/nn.
TEST(Golden, EveryFileIsCompared) {
  std::set<std::string> compared{"optim", "schedules"};
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    if (std::string(suite.name()) != "GoldenFile") continue;
    for (int t = 0; t < suite.total_test_count(); ++t) {
      EXPECT_TRUE(compared.insert(suite.GetTestInfo(t)->name()).second);
    }
  }
  EXPECT_EQ(groups(), compared);
}

TEST(Golden, EveryFileIsWhole) {
  for (const std::string& group : groups()) {
    const File& file = File::open(group);
    EXPECT_GE(file.cases().size(), 8u) << group;
    for (const Case& c : file.cases()) {
      SCOPED_TRACE(group + " " + c.name());
      EXPECT_TRUE(c.has_option("op") || c.has_option("optimizer") || c.has_option("schedule"));
      EXPECT_FALSE(c.names("output").empty());
      for (const std::string& name : c.names("output")) {
        for (const double v : c.at("output." + name).values) {
          EXPECT_TRUE(std::isfinite(v)) << name;
        }
      }
      for (const std::string& name : c.names("upstream")) {
        EXPECT_EQ(c.at("upstream." + name).shape, c.at("output." + name).shape);
      }
    }
  }
}

TEST(Golden, EveryParameterOfALayerHasAGradientOfItsShape) {
  for (const char* group : {"attention", "conv", "linear", "norm", "recurrent"}) {
    for (const Case& c : File::open(group).cases()) {
      for (const std::string& name : c.names("param")) {
        SCOPED_TRACE(std::string(group) + " " + c.name() + " " + name);
        EXPECT_EQ(c.at("grad." + name).shape, c.at("param." + name).shape);
      }
    }
  }
}

/// y = x Wᵀ + b and its gradients, by plain loops: what is stored means what README.md says.
TEST(Golden, LinearAgreesWithPlainLoops) {
  const Case& c = File::open("linear").at("linear.matrix");
  const Array &x = c.at("input.x"), &w = c.at("param.weight"), &b = c.at("param.bias");
  const Array& g = c.at("upstream.y");
  const size_t n = 4, in = 3, out = 5;
  std::vector<double> y(n * out), dx(n * in), dw(out * in), db(out);
  for (size_t i = 0; i < n; ++i) {
    for (size_t o = 0; o < out; ++o) {
      y[i * out + o] = b.values[o];
      db[o] += g.values[i * out + o];
      for (size_t k = 0; k < in; ++k) {
        y[i * out + o] += x.values[i * in + k] * w.values[o * in + k];
        dx[i * in + k] += g.values[i * out + o] * w.values[o * in + k];
        dw[o * in + k] += g.values[i * out + o] * x.values[i * in + k];
      }
    }
  }
  EXPECT_LT(relative_error(y, c.at("output.y")), 1e-14);
  EXPECT_LT(relative_error(dx, c.at("grad.x")), 1e-14);
  EXPECT_LT(relative_error(dw, c.at("grad.weight")), 1e-14);
  EXPECT_LT(relative_error(db, c.at("grad.bias")), 1e-14);
}

TEST(Golden, PlainSgdAgreesWithItsFormula) {
  const Case& c = File::open("optim").at("sgd.plain");
  const double lr = c.number("lr", 0);
  EXPECT_EQ(c.integer("steps", 0), 10);
  for (const std::string& name : c.names("param")) {
    std::vector<double> x = c.at("param." + name).values, path;
    const std::vector<double>& g = c.at("grad." + name).values;
    for (size_t i = 0; i < g.size(); ++i) {
      double& v = x[i % x.size()];
      v -= lr * g[i];
      path.push_back(v);
    }
    EXPECT_LT(relative_error(path, c.at("output." + name)), 1e-14) << name;
  }
}

TEST(Golden, OptionsAreTyped) {
  const Case& pool = File::open("pool").at("max_pool1d.ceil");
  EXPECT_EQ(pool.integers("stride"), std::vector<int64_t>{2});
  EXPECT_TRUE(pool.flag("ceil_mode", false));
  EXPECT_EQ(pool.integers("dilation", {7, 8}), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(pool.text("op"), "max_pool1d");
  EXPECT_EQ(pool.at("output.indices").dtype, "I64");
  EXPECT_THROW(pool.number("op", 0), std::runtime_error);
  EXPECT_THROW(pool.at("input.none"), std::runtime_error);

  const Case& norm = File::open("norm").at("batch_norm.2d_cumulative_train");
  EXPECT_TRUE(norm.options().contains("momentum"));
  EXPECT_FALSE(norm.has_option("momentum"));
  EXPECT_EQ(norm.number("momentum", -1), -1);

  const Case& sgd = File::open("optim").at("sgd.lr_changes");
  EXPECT_EQ(sgd.numbers("lr").size(), 10u);
  EXPECT_EQ(sgd.numbers("momentum"), std::vector<double>{0.9});
  EXPECT_EQ(File::open("conv").of_op("conv3d").size(), 4u);
  EXPECT_THROW(File::open("conv").of_op("conv9d"), std::runtime_error);
  EXPECT_THROW(File::open("conv").at("none"), std::runtime_error);
  EXPECT_THROW(File::open("none"), std::runtime_error);
}

std::vector<unsigned char> file_of(const std::string& header, const std::vector<float>& data) {
  const uint64_t length = header.size();
  std::vector<unsigned char> bytes(8 + header.size() + 4 * data.size());
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  std::memcpy(bytes.data() + 8 + header.size(), data.data(), 4 * data.size());
  return bytes;
}

TEST(Golden, ParsesAndRefuses) {
  const std::string meta = R"({"__metadata__":{"c":"{\"op\":\"f\"}"},)";
  const std::string tensor = R"("c/input.x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const File file = File::parse("made", file_of(meta + tensor, {1.5f, -2.0f}));
  EXPECT_EQ(file.at("c").at("input.x").values, (std::vector<double>{1.5, -2.0}));
  const auto refuses = [](const std::vector<unsigned char>& bytes) {
    EXPECT_THROW(File::parse("made", bytes), std::runtime_error);
  };
  refuses({1, 2, 3});
  refuses(file_of(meta + tensor, {1.5f}));
  refuses(file_of(meta + R"("d/input.x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", {1}));
  refuses(file_of(meta + R"("c/input.x":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", {1}));
  std::vector<unsigned char> cut = file_of(meta + tensor, {1.5f, -2.0f});
  cut.resize(20);
  refuses(cut);
}

// y = x² of x = {1.5, -2}, upstream {1, 1}, under the op's name.
File square_case(const std::string& op) {
  const auto entry = [](const std::string& name, int at) {
    return ",\"c/" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[)" +
           std::to_string(at) + "," + std::to_string(at + 8) + "]}";
  };
  const std::string header = R"({"__metadata__":{"c":"{\"op\":\")" + op + R"(\"}"})" +
                             entry("input.x", 0) + entry("output.y", 8) + entry("upstream.y", 16) +
                             entry("grad.x", 24) + "}";
  return File::parse("made", file_of(header, {1.5f, -2, 2.25f, 4, 1, 1, 3, -4}));
}

// What compare_file reports for the case above.
std::vector<std::string> reports(const Comparisons& by_op, const std::string& op = "square") {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    compare_file(square_case(op), by_op);
  }
  std::vector<std::string> texts;
  for (int i = 0; i < results.size(); ++i) {
    texts.push_back(results.GetTestPartResult(i).message());
  }
  return texts;
}

TEST(Golden, WhatIsNotComparedFails) {
  const auto right = [](auto& r) { r.finish({{"y", square(r.input("x"))}}); };
  EXPECT_EQ(reports({{"square", right}}), std::vector<std::string>{});
  const auto expect = [](const std::vector<std::string>& texts, size_t count, const char* part) {
    ASSERT_EQ(texts.size(), count) << part;
    for (const std::string& text : texts) EXPECT_NE(text.find(part), text.npos) << text;
  };
  expect(reports({{"square", right}, {"cube", right}}), 1, "no case of cube");
  expect(reports({}, "cube"), 1, "no comparison for cube");
  // In f64 and in f32 each:
  expect(reports({{"square", [](auto& r) { r.compare(square(r.input("x")), "output.y"); }}}), 4,
         "is not compared");
  expect(reports({{"square", [](auto& r) { r.finish({{"y", r.input("x") * 2}}); }}}), 4, "in f");
}

TEST(Golden, RelativeErrorIsOverTheWholeTensor) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Array want{"F64", {3}, {0.0, -4.0, 1.0}};
  const auto error = [](std::vector<double> got, const Array& a) { return relative_error(got, a); };
  EXPECT_EQ(error({0.0, -4.0, 1.0}, want), 0.0);
  EXPECT_EQ(error({0.5, -4.0, 1.0}, want), 0.125);
  EXPECT_EQ(error({0.0, -4.0}, want), inf);
  EXPECT_EQ(error({nan, -4.0, 1.0}, want), inf);
  EXPECT_EQ(error({0.0, -inf, 1.0}, want), inf);
  EXPECT_EQ(error({nan, -inf}, Array{"F64", {2}, {nan, -inf}}), 0.0);
  EXPECT_EQ(error({1e-12}, Array{"F64", {1}, {0.0}}), 1.0);
}

}  // namespace
}  // namespace cutaway::golden
