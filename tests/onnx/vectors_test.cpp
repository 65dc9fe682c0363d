// The cases of Debian's libonnx-testdata: a model each, inputs and the results that it must give.
// docs/onnx_cases.txt lists those that are not passed, with the reason; all others must be, and
// those listed must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include <cutaway/core/error.h>
#include <cutaway/core/io/file.h>
#include <cutaway/nn/onnx/model.h>
#include <tests/paths.h>

namespace cutaway::onnx {
namespace {
namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";

// The reason for each listed case.
std::map<std::string, std::string> listed() {
  std::map<std::string, std::string> all;
  std::ifstream in(std::string(kSourceDir) + "/docs/onnx_cases.txt");
  std::string reason;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      reason = line.substr(1);
    } else {
      EXPECT_TRUE(all.emplace(line, reason).second) << line << " is listed twice";
    }
  }
  return all;
}

Tensor read(const fs::path& path) {
  return parse_tensor(path.string(), io::read_file(path.string())).value;
}

// What is wrong with a result, or nothing.
std::string difference(const Tensor& got, const Tensor& want) {
  if (got.sizes() != want.sizes()) return "sizes " + to_string(got.sizes());
  if (got.dtype() != want.dtype()) return std::string("type ") + name_of(got.dtype());
  const auto a = got.to_vector(), b = want.to_vector();
  const bool half = is_half(want.dtype());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double bound = half ? 2e-3 * std::abs(b[i]) + 1e-3 : 1e-3 * std::abs(b[i]) + 1e-6;
    if (!(std::abs(a[i] - b[i]) <= bound)) {
      return "element " + std::to_string(i) + ": " + std::to_string(a[i]) + ", need " +
             std::to_string(b[i]);
    }
  }
  return "";
}

std::string run_set(const Model& model, const fs::path& set) {
  Tensors inputs, want;
  for (int i = 0; fs::exists(set / ("input_" + std::to_string(i) + ".pb")); ++i) {
    inputs.push_back(read(set / ("input_" + std::to_string(i) + ".pb")));
  }
  for (int i = 0; fs::exists(set / ("output_" + std::to_string(i) + ".pb")); ++i) {
    want.push_back(read(set / ("output_" + std::to_string(i) + ".pb")));
  }
  const Tensors got = model.run(inputs);
  if (got.size() != want.size() || want.empty()) return "another number of results";
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string wrong = difference(got[i], want[i]);
    if (!wrong.empty()) return "result " + std::to_string(i) + ": " + wrong;
  }
  return "";
}

// Why the case fails, or nothing.
std::string failure(const fs::path& folder) {
  try {
    const Model model = Model::load((folder / "model.onnx").string());
    int sets = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_directory()) continue;
      ++sets;
      const std::string wrong = run_set(model, entry.path());
      if (!wrong.empty()) return wrong;
    }
    return sets > 0 ? "" : "has no data";
  } catch (const Error& e) {
    return e.what();
  }
}

void check_folder(const std::string& group) {
  if (!fs::exists(kData / group)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto exceptions = listed();
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(kData / group)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  int passed = 0;
  for (const fs::path& folder : folders) {
    const std::string name = group + "/" + folder.filename().string();
    const std::string why = failure(folder);
    passed += why.empty();
    if (exceptions.contains(name)) {
      EXPECT_FALSE(why.empty()) << name << " passes; take it from docs/onnx_cases.txt";
    } else {
      EXPECT_TRUE(why.empty()) << name << "\n  " << why;
    }
  }
  testing::Test::RecordProperty("passed", passed);
  std::printf("%s: %d of %zu cases pass\n", group.c_str(), passed, folders.size());
}

TEST(OnnxVectors, nodes) { check_folder("node"); }
TEST(OnnxVectors, simple_models) { check_folder("simple"); }
TEST(OnnxVectors, converted_layers) { check_folder("pytorch-converted"); }
TEST(OnnxVectors, converted_operators) { check_folder("pytorch-operator"); }

}  // namespace
}  // namespace cutaway::onnx
