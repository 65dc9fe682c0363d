#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <map>

#include <cutaway/autograd/gradcheck.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/safetensors.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/nn/optim/optimizer.h>
#include <tests/models/zoo/one_thread.h>

namespace cutaway::zoo {
namespace {

GptOptions tiny() { return {.vocabulary = 11, .context = 6, .layers = 2, .heads = 2, .width = 8}; }
Tensor ids(std::initializer_list<double> values, const Shape& sizes) {
  return tensor(values, sizes, {.dtype = DType::i64});
}
Tensor some_tokens() { return ids({3, 1, 4, 1, 5, 9, 2, 6, 5, 10}, {2, 5}); }

// Parameters far from their small start, so that every part matters.
void shake(Gpt& net) {
  for (const nn::Named& p : net.named_parameters()) {
    const bool norm = p.name.find("ln_") != std::string::npos;
    nn::init::normal_(p.value, norm ? 1 : 0, norm ? 0.2 : 0.4);
  }
}

// ---- GPT-2 once more, in plain loops over the state dict

using Rows = std::vector<std::vector<double>>;

struct Plain {
  std::map<std::string, Rows> weights;
  int64_t heads;

  Plain(const Gpt& net) : heads(net.options().heads) {
    for (const nn::Named& t : net.state_dict()) {
      const std::vector<double> flat = t.value.to_vector();
      const size_t columns = size_t(t.value.size(-1));
      Rows& rows = weights[t.name];
      for (size_t i = 0; i < flat.size(); i += columns) {
        rows.emplace_back(flat.begin() + long(i), flat.begin() + long(i + columns));
      }
    }
  }
  Rows affine(const Rows& x, const std::string& name) const {
    const Rows &w = weights.at(name + ".weight"), &b = weights.at(name + ".bias");
    Rows y(x.size(), b[0]);
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < w.size(); ++i) {
        for (size_t o = 0; o < w[i].size(); ++o) y[t][o] += x[t][i] * w[i][o];
      }
    }
    return y;
  }
  Rows norm(const Rows& x, const std::string& name) const {
    Rows y = x;
    for (auto& row : y) {
      double mean = 0, var = 0;
      for (const double v : row) mean += v / double(row.size());
      for (const double v : row) var += (v - mean) * (v - mean) / double(row.size());
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = (row[i] - mean) / std::sqrt(var + 1e-5) * weights.at(name + ".weight")[0][i] +
                 weights.at(name + ".bias")[0][i];
      }
    }
    return y;
  }
  Rows attend(const Rows& qkv) const {
    const size_t width = qkv[0].size() / 3, depth = width / size_t(heads);
    Rows y(qkv.size(), std::vector<double>(width));
    for (size_t head = 0; head < width; head += depth) {
      for (size_t t = 0; t < qkv.size(); ++t) {
        std::vector<double> p(t + 1);
        double sum = 0;
        for (size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (size_t i = head; i < head + depth; ++i) score += qkv[t][i] * qkv[s][width + i];
          p[s] = std::exp(score / std::sqrt(double(depth)));
          sum += p[s];
        }
        for (size_t s = 0; s <= t; ++s) {
          for (size_t i = head; i < head + depth; ++i) {
            y[t][i] += p[s] / sum * qkv[s][2 * width + i];
          }
        }
      }
    }
    return y;
  }
  static void add(Rows& x, const Rows& y) {
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
    }
  }
  Rows logits(const std::vector<int64_t>& tokens, int64_t layers) const {
    const Rows &wte = weights.at("wte.weight"), &wpe = weights.at("wpe.weight");
    Rows x;
    for (const int64_t id : tokens) x.push_back(wte[size_t(id)]);
    add(x, {wpe.begin(), wpe.begin() + long(x.size())});
    for (int64_t layer = 0; layer < layers; ++layer) {
      const std::string h = "h." + std::to_string(layer) + ".";
      add(x, affine(attend(affine(norm(x, h + "ln_1"), h + "attn.c_attn")), h + "attn.c_proj"));
      Rows wide = affine(norm(x, h + "ln_2"), h + "mlp.c_fc");
      for (auto& row : wide) {
        for (double& v : row) {
          v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
        }
      }
      add(x, affine(wide, h + "mlp.c_proj"));
    }
    x = norm(x, "ln_f");
    Rows y(x.size(), std::vector<double>(wte.size()));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t v = 0; v < wte.size(); ++v) {
        for (size_t i = 0; i < x[t].size(); ++i) y[t][v] += x[t][i] * wte[v][i];
      }
    }
    return y;
  }
};

TEST(GptModel, agrees_with_plain_loops) {
  manual_seed(1);
  Gpt net(tiny());
  net.to(DType::f64);
  shake(net);
  const Tensor y = net(some_tokens());
  ASSERT_EQ(y.sizes(), (Shape{2, 5, 11}));
  for (int64_t n = 0; n < 2; ++n) {
    std::vector<int64_t> tokens;
    for (const double id : some_tokens()[n].to_vector()) tokens.push_back(int64_t(id));
    const Rows expected = Plain(net).logits(tokens, 2);
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t v = 0; v < 11; ++v) {
        const double want = expected[size_t(t)][size_t(v)];
        EXPECT_NEAR(y[n][t][v].item(), want, 1e-10 * (1 + std::abs(want)));
      }
    }
  }
}

TEST(GptModel, gpt2_small_on_meta_has_its_size_and_names) {
  Gpt net({.device = kMeta});
  EXPECT_EQ(net.num_parameters(), 124439808);
  const nn::NamedTensors state = net.state_dict();
  EXPECT_EQ(state.size(), 148u);
  std::map<std::string, Shape> sizes;
  for (const nn::Named& t : state) sizes[t.name] = t.value.sizes();
  const std::pair<const char*, Shape> expected[] = {{"wte.weight", {50257, 768}},
                                                    {"wpe.weight", {1024, 768}},
                                                    {"h.0.ln_1.weight", {768}},
                                                    {"h.0.ln_1.bias", {768}},
                                                    {"h.0.attn.c_attn.weight", {768, 2304}},
                                                    {"h.0.attn.c_attn.bias", {2304}},
                                                    {"h.0.attn.c_proj.weight", {768, 768}},
                                                    {"h.0.attn.c_proj.bias", {768}},
                                                    {"h.0.ln_2.weight", {768}},
                                                    {"h.11.mlp.c_fc.weight", {768, 3072}},
                                                    {"h.11.mlp.c_fc.bias", {3072}},
                                                    {"h.11.mlp.c_proj.weight", {3072, 768}},
                                                    {"h.11.mlp.c_proj.bias", {768}},
                                                    {"ln_f.weight", {768}},
                                                    {"ln_f.bias", {768}}};
  for (const auto& [name, size] : expected) EXPECT_EQ(sizes[name], size) << name;
  const Tensor tokens = empty({2, 1024}, {.dtype = DType::i64, .device = kMeta});
  EXPECT_EQ(net(tokens).sizes(), (Shape{2, 1024, 50257}));
  EXPECT_EQ(net.loss(tokens, tokens).sizes(), Shape{});
}

TEST(GptModel, starts_as_said) {
  const OneThread guard;
  manual_seed(2);
  GptOptions o = tiny();
  o.width = 64;
  o.layers = 8;
  const Gpt net(o);
  for (const nn::Named& p : net.named_parameters()) {
    const bool norm = p.name.find("ln_") != std::string::npos;
    if (p.name.ends_with("bias")) {
      EXPECT_EQ(amax(abs(p.value)).item(), 0) << p.name;
    } else if (norm) {
      EXPECT_EQ(amin(p.value).item(), 1) << p.name;
    } else {
      const double wanted = p.name.ends_with("c_proj.weight") ? 0.02 / 4 : 0.02;
      EXPECT_NEAR(std(p.value).item() / wanted, 1, 0.1) << p.name;
    }
  }
  o.bias = false;
  for (const nn::Named& p : Gpt(o).named_parameters()) {
    EXPECT_TRUE(p.name.ends_with("weight")) << p.name;
  }
}

TEST(GptModel, later_tokens_do_not_matter) {
  manual_seed(3);
  Gpt net(tiny());
  shake(net);
  const Tensor a = net(ids({1, 2, 3, 4, 5}, {1, 5})), b = net(ids({1, 2, 3, 9, 0}, {1, 5}));
  EXPECT_EQ(slice(a, 1, 0, 3).to_vector(), slice(b, 1, 0, 3).to_vector());
  EXPECT_NE(a[0][3].to_vector(), b[0][3].to_vector());
  EXPECT_NE(net(ids({2, 1, 3}, {1, 3}))[0][2].to_vector(), a[0][2].to_vector());
}

TEST(GptModel, gradients_agree_with_differences) {
  manual_seed(4);
  Gpt net({.vocabulary = 4, .context = 3, .layers = 1, .heads = 2, .width = 4});
  net.to(DType::f64);
  shake(net);
  const nn::NamedTensors parameters = net.named_parameters();
  Tensors inputs;
  for (const nn::Named& p : parameters) inputs.push_back(p.value.detach().clone());
  for (Tensor& t : inputs) t.set_requires_grad();
  const Tensor tokens = ids({0, 3, 3, 1, 2, 0}, {2, 3});
  const auto report = gradcheck(
      [&](const Tensors& in) {
        nn::NamedTensors values;
        for (size_t i = 0; i < parameters.size(); ++i)
          values.push_back({parameters[i].name, in[i]});
        return Tensors{nn::functional_call(net, values, tokens)};
      },
      inputs);
  EXPECT_TRUE(report.ok) << report.message;
}

TEST(GptModel, learns_a_small_batch) {
  manual_seed(5);
  GptOptions o = tiny();
  o.dropout = 0.05;
  Gpt net(o);
  optim::AdamW adam(net.parameters(), {.lr = 0.02});
  const Tensor tokens = some_tokens(), next = ids({1, 4, 1, 5, 9, 6, 5, 10, 0, -100}, {2, 5});
  net.eval();
  EXPECT_NEAR(net.loss(tokens, next).item(), std::log(11.0), 0.1);
  net.train();
  for (int step = 0; step < 60; ++step) {
    net.loss(tokens, next).backward();
    adam.step_and_zero();
  }
  net.eval();
  EXPECT_LT(net.loss(tokens, next).item(), 0.2);
}

TEST(GptModel, runs_in_bf16) {
  manual_seed(6);
  Gpt net(tiny());
  const Tensor full = net(some_tokens());
  net.to(DType::bf16);
  const Tensor low = net(some_tokens());
  EXPECT_EQ(low.dtype(), DType::bf16);
  EXPECT_LT(norm(low.to(DType::f32) - full).item(), 0.03 * norm(full).item());
}

TEST(GptModel, generates) {
  manual_seed(7);
  Gpt net(tiny());
  shake(net);
  const Generator before = default_generator();
  const Tensor start = some_tokens();
  const Tensor greedy = net.generate(start, 4, {.temperature = 0});
  ASSERT_EQ(greedy.sizes(), (Shape{2, 9}));
  for (int64_t i = 0; i < 4; ++i) {  // the last three steps see the newest six tokens only
    const Tensor seen = slice(greedy, 1, std::max<int64_t>(0, i - 1), 5 + i);
    const Tensor likeliest = argmax(select(net(seen), 1, -1), -1);
    EXPECT_EQ(select(greedy, 1, 5 + i).to_vector(), likeliest.to_vector()) << i;
  }
  EXPECT_EQ(net.generate(start, 4, {.top_k = 1}).to_vector(), greedy.to_vector());
  const Tensor drawn = net.generate(start, 30, {.top_k = 3, .seed = 1});
  EXPECT_EQ(drawn.to_vector(), net.generate(start, 30, {.top_k = 3, .seed = 1}).to_vector());
  EXPECT_NE(drawn.to_vector(), net.generate(start, 30, {.top_k = 3, .seed = 2}).to_vector());
  EXPECT_EQ(slice(drawn, 1, 0, 5).to_vector(), start.to_vector());
  for (int64_t i = 1; i < 30; ++i) {
    const int64_t end = 5 + i, begin = std::max<int64_t>(0, end - 6);
    const Tensor scores = select(net(slice(drawn, 1, begin, end)), 1, -1);
    const Tensor best = topk(scores, 3).indices;
    EXPECT_TRUE(all(any(eq(best, select(drawn, 1, end).unsqueeze(1)), 1)).item<bool>()) << i;
  }
  EXPECT_TRUE(net.training());
  EXPECT_EQ(default_generator(), before);
  EXPECT_EQ(net.generate(start, 0).to_vector(), start.to_vector());
}

TEST(GptModel, reads_published_names) {
  manual_seed(8);
  Gpt from(tiny()), to(tiny());
  nn::NamedTensors file;
  for (const nn::Named& t : from.state_dict()) file.push_back({"transformer." + t.name, t.value});
  file.push_back({"transformer.h.0.attn.bias", ones({1, 1, 6, 6})});
  file.push_back({"transformer.h.0.attn.masked_bias", scalar_tensor(-1e4)});
  file.push_back({"lm_head.weight", from.wte.weight});
  to.load_state_dict(gpt2_state(file));
  EXPECT_EQ(to(some_tokens()).to_vector(), from(some_tokens()).to_vector());
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("cutaway_gpt_" + std::to_string(::getpid()) + ".safetensors"))
                               .string();
  nn::save(from, path);
  const io::TensorFile saved = io::load_safetensors(path);
  EXPECT_EQ(saved.tensors.size(), 28u);
  EXPECT_EQ(saved.at("h.1.attn.c_attn.weight").sizes(), (Shape{8, 24}));
  std::filesystem::remove(path);
}

TEST(GptModel, errors_say_what_is_wrong) {
  Gpt net(tiny());
  EXPECT_THROW(net(ids({1, 2}, {2})), ShapeError);
  EXPECT_THROW(net(zeros({1, 7}, {.dtype = DType::i64})), ShapeError);
  EXPECT_THROW(net(zeros({1, 0}, {.dtype = DType::i64})), ShapeError);
  EXPECT_THROW(net(ids({11}, {1, 1})), IndexError);
  EXPECT_THROW(net.loss(some_tokens(), ids({1}, {1, 1})), ShapeError);
  EXPECT_THROW(net.generate(some_tokens(), -1), ValueError);
  EXPECT_THROW(net.generate(some_tokens(), 1, {.temperature = -1}), ValueError);
  EXPECT_THROW(net.generate(ids({1, 2}, {2}), 1), ShapeError);
  GptOptions o = tiny();
  o.heads = 3;
  EXPECT_THROW(Gpt{o}, ValueError);
  o.heads = 0;
  EXPECT_THROW(Gpt{o}, ValueError);
}

TEST(GptModel, emulated_gpu_gives_the_same_scores) {
  manual_seed(9);
  Gpt net(tiny());
  shake(net);
  const Tensor tokens = some_tokens(), next = ids({1, 4, 1, 5, 9, 6, 5, 10, 0, 3}, {2, 5});
  const Tensor scores = net(tokens), loss = net.loss(tokens, next);
  const Tensor text = net.generate(tokens, 2, {.seed = 3});
  const Device emu{DeviceKind::emu, 0};
  net.to(emu);
  const Tensor y = net(tokens.to(emu)).to(kCpu);
  EXPECT_LT(amax(abs(y - scores)).item(), 1e-5 * amax(abs(scores)).item());
  EXPECT_NEAR(net.loss(tokens.to(emu), next.to(emu)).item(), loss.item(), 1e-5);
  const Tensor same = net.generate(tokens.to(emu), 2, {.seed = 3});
  EXPECT_EQ(same.device(), emu);
  EXPECT_EQ(same.to_vector(), text.to_vector());
}

}  // namespace
}  // namespace cutaway::zoo
