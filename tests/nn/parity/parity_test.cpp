// What docs/layers.md promises beside torch.nn holds, and says something of every argument there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include <cutaway/autograd/autograd.h>
#include <cutaway/core/error.h>
#include <tests/nn/parity/table.h>
#include <tests/paths.h>

namespace cutaway::parity {

std::string described(const Tensor& t) {
  std::string text = to_string(t.sizes());
  for (const double v : t.to_vector()) text += fmt::format(" {:.6g}", v);
  return text;
}

Fingerprint observe(nn::Module& layer, const std::function<Tensors()>& call) {
  Fingerprint seen;
  for (const nn::Named& s : layer.state_dict()) {
    seen.push_back(s.name + " " + described(s.value.detach()));
  }
  for (const bool training : {true, false}) {
    layer.train(training);
    layer.zero_grad();
    try {
      Tensor total = zeros({});
      for (const Tensor& y : call()) {
        seen.push_back("result " + described(y.detach()));
        total = total + sum(y * numbers(y.sizes(), 0.5));
      }
      if (total.requires_grad()) total.backward();
    } catch (const Error& e) {
      seen.push_back(std::string("raises ") + e.what());
    }
    for (const nn::Named& s : layer.state_dict()) {
      seen.push_back(s.name + " " + described(s.value.detach()));
      if (s.value.grad().defined()) seen.push_back("gradient " + described(s.value.grad()));
    }
  }
  return seen;
}

namespace {

const Sections& table() {
  static const Sections all = [] {
    Sections list;
    for (const Sections& part :
         {layers_of_images(), layers_of_elements(), layers_of_sequences(), layers_of_losses()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

// Arguments that many layers of torch.nn have, answered once.
const std::map<std::string, std::string>& common() {
  static const std::map<std::string, std::string> answers{
      {"device", "`layer.to(device)` once it is made"},
      {"dtype", "`layer.to(DType::f64)` once it is made"},
      {"inplace", "no: an operation takes the memory of a temporary by itself"},
      {"size_average", "no: PyTorch's old form of `reduction`"},
      {"reduce", "no: PyTorch's old form of `reduction`"},
      {"_weight", "no: `layer.weight.copy_(values)` once it is made"},
  };
  return answers;
}

// Lines of torch_layers.tsv: a layer and its arguments.
std::map<std::string, std::vector<std::string>> torch_layers() {
  std::ifstream in(std::string(kSourceDir) + "/tests/nn/parity/torch_layers.tsv");
  std::map<std::string, std::vector<std::string>> layers;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    std::string name, argument;
    std::getline(fields, name, '\t');
    auto& list = layers[name];
    while (std::getline(fields, argument, '\t')) list.push_back(argument);
  }
  return layers;
}

bool is_lazy(const std::string& layer) {
  return layer.starts_with("Lazy") || layer == "DataParallel";
}

TEST(Parity, every_layer_and_argument_of_torch_is_answered) {
  std::map<std::string, std::set<std::string>> answered;
  for (const Section& s : table()) {
    EXPECT_FALSE(answered.contains(s.layer)) << s.layer << " twice";
    auto& names = answered[s.layer];
    for (const Row& r : s.rows) names.insert(r.argument);
  }
  const auto layers = torch_layers();
  ASSERT_GT(layers.size(), 140u);
  for (const auto& [layer, arguments] : layers) {
    if (is_lazy(layer)) continue;
    ASSERT_TRUE(answered.contains(layer)) << layer;
    for (const Section& s : table()) {
      if (s.layer != layer || s.here.empty()) continue;
      for (const std::string& a : arguments) {
        EXPECT_TRUE(answered[layer].contains(a) || common().contains(a)) << layer << " " << a;
      }
      for (const Row& r : s.rows) {
        EXPECT_NE(std::find(arguments.begin(), arguments.end(), r.argument), arguments.end())
            << layer << " has no " << r.argument;
      }
    }
  }
  for (const auto& [layer, unused] : answered) EXPECT_TRUE(layers.contains(layer)) << layer;
}

TEST(Parity, promised_layers_run_and_promised_arguments_show) {
  for (const Section& s : table()) {
    SCOPED_TRACE(s.layer);
    if (s.here.empty()) {
      EXPECT_FALSE(s.reason.empty());
      continue;
    }
    const Fingerprint plain = s.of();
    ASSERT_FALSE(plain.empty());
    for (const std::string& line : plain) EXPECT_FALSE(line.starts_with("raises")) << line;
    EXPECT_EQ(plain, s.of()) << "the layer itself is not the same twice";
    for (const Row& r : s.rows) {
      SCOPED_TRACE(r.argument + " " + r.here);
      EXPECT_NE(r.here.empty(), r.reason.empty());
      if (r.of) {
        EXPECT_NE(r.of(), plain) << "makes no difference";
      }
      if (r.holds) {
        EXPECT_TRUE(r.holds());
      }
    }
  }
}

// Rows of the page: an argument and how it is written, or why it is not there.
std::string page_rows(const Section& s) {
  std::string text;
  std::string last;
  for (const Row& r : s.rows) {
    const std::string answer = r.here.empty() ? "no: " + r.reason : "`" + r.here + "`";
    if (r.argument == last) {
      text.insert(text.size() - 3, ", " + answer);
      continue;
    }
    text += fmt::format("| | `{}` | {} |\n", r.argument, answer);
    last = r.argument;
  }
  return text;
}

std::string page() {
  std::string text =
      "# Layers beside torch.nn\n\n"
      "Every layer of `torch.nn` (PyTorch 1.13) with every argument of its constructor, and how "
      "it is\nwritten here. Arguments are members of an option struct, as in\n"
      "`nn::Conv2d conv{{.in = 3, .out = 16, .kernel = 3}}`; parameters have PyTorch's names in\n"
      "`state_dict()`. The page is written by the test `Parity.*` in `tests/nn/parity` from the "
      "table that it\nchecks: each layer is made with each of these arguments and must differ "
      "from one made without. Values\nand gradients of the layers are compared with PyTorch's in "
      "`tests/golden`.\n\n"
      "Not in `torch.nn` but here: `RMSNorm`, `LPPool3d`, `ZeroPad1d`, `ZeroPad3d`, "
      "`CircularPad1d` to `3d`,\n`LearnedPositions`, `SinusoidalPositions`, `rotary()`, "
      "`WeightNorm<Layer>`, `SpectralNorm<Layer>` (the\nnames of "
      "`torch.nn.utils.weight_norm` and `spectral_norm`), `PackedSequence` with\n"
      "`pack_padded_sequence()` and its kin; `MultiheadAttention` and the transformer layers take\n"
      "`.num_kv_heads` (grouped-query attention), `.rotary` and `.bias`.\n\n"
      "Arguments that many layers have:\n\n| Argument | Here |\n|---|---|\n";
  for (const auto& [argument, answer] : common()) {
    text += fmt::format("| `{}` | {} |\n", argument, answer);
  }
  text += "\n| torch.nn | Argument | Here |\n|---|---|---|\n";
  std::set<std::string> written;
  for (const Section& s : table()) {
    if (!written.insert(s.family).second) continue;
    if (s.here.empty()) {
      text += fmt::format("| {} | | no: {} |\n", s.family, s.reason);
      continue;
    }
    text += fmt::format("| {} | | {} |\n", s.family,
                        s.family == s.layer ? "`" + s.here + "`" : "in `nn::`");
    text += page_rows(s);
  }
  text += "| Lazy… | | no: sizes are given; a layer without them has nothing to initialise |\n";
  text += "| DataParallel | | no: one process |\n";
  return text;
}

// CUTAWAY_WRITE_PAGES=1 writes the page anew.
TEST(Parity, the_page_is_the_table) {
  const std::string path = std::string(kSourceDir) + "/docs/layers.md";
  if (std::getenv("CUTAWAY_WRITE_PAGES")) std::ofstream(path) << page();
  std::ifstream in(path);
  const std::string stored{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(stored, page()) << "CUTAWAY_WRITE_PAGES=1 build/test_nn --gtest_filter=Parity.*";
}

}  // namespace
}  // namespace cutaway::parity
