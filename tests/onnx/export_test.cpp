#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/io/npz.h>
#include <cutaway/models/zoo/gpt.h>
#include <cutaway/models/zoo/lstm_lm.h>
#include <cutaway/models/zoo/resnet.h>
#include <cutaway/nn/nn.h>
#include <cutaway/nn/onnx/export.h>
#include <cutaway/nn/onnx/model.h>
#include <tests/paths.h>

namespace cutaway::onnx {
namespace {

std::vector<uint8_t> bytes_of(const File& file) {
  const std::string text = file_bytes(file);
  return {text.begin(), text.end()};
}

double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  return a.sizes() == b.sizes() ? amax(abs(a - b)).item() : 1e30;
}

Tensor tokens(int64_t batch, int64_t length, int64_t vocabulary) {
  return randint(0, vocabulary, {batch, length});
}

// Written, read again, and run with batches of other sizes than those that were watched.
void check_round_trip(nn::Module& model, const Tensor& example, const std::vector<Tensor>& more) {
  const std::string path = testing::TempDir() + "round_trip.onnx";
  export_model(model, {example}, path);
  const Model read = Model::load(path);
  model.eval();
  const NoGradGuard no_grad;
  for (const Tensor& x : more) {
    const Tensor want = model(x), got = read.run(Tensors{x})[0];
    EXPECT_LE(distance(got, want), 1e-4 * std::max(1.0, amax(abs(want)).item()));
  }
}

TEST(OnnxExport, resnet20) {
  manual_seed(1);
  zoo::ResNetOptions o = zoo::resnet_options("resnet20");
  o.classes = 10;
  zoo::ResNet model(o);
  // Running statistics that are not those of a new model.
  model(randn({4, 3, 32, 32}));
  check_round_trip(model, randn({1, 3, 32, 32}), {randn({1, 3, 32, 32}), randn({5, 3, 32, 32})});
}

TEST(OnnxExport, gpt) {
  manual_seed(2);
  zoo::Gpt model({.vocabulary = 50, .context = 16, .layers = 2, .heads = 4, .width = 32});
  check_round_trip(model, tokens(2, 12, 50), {tokens(1, 12, 50), tokens(7, 12, 50)});
}

TEST(OnnxExport, lstm_language_model) {
  manual_seed(3);
  zoo::LstmLm model({.vocabulary = 40, .layers = 2, .width = 24});
  check_round_trip(model, tokens(1, 9, 40), {tokens(1, 9, 40), tokens(6, 9, 40)});
}

// The three models by onnxruntime, where Python has it.
TEST(OnnxExport, onnxruntime_gives_the_same) {
  manual_seed(10);
  zoo::ResNetOptions o = zoo::resnet_options("resnet20");
  o.classes = 10;
  zoo::ResNet resnet(o);
  zoo::Gpt gpt({.vocabulary = 50, .context = 16, .layers = 2, .heads = 4, .width = 32});
  zoo::LstmLm lstm({.vocabulary = 40, .layers = 2, .width = 24});
  const std::string folder = testing::TempDir() + "onnx_peer";
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, nn::Module& model, const Tensor& x) {
    export_model(model, {x}, folder + "/" + name + ".onnx");
    model.eval();
    const NoGradGuard no_grad;
    io::save_npz(folder + "/" + name + ".npz", {{"input", x}, {"output", model(x)}});
  };
  write("resnet20", resnet, randn({3, 3, 32, 32}));
  write("gpt", gpt, tokens(5, 12, 50));
  write("lstm", lstm, tokens(4, 9, 40));
  const char* python = std::getenv("CUTAWAY_PYTHON");
  const std::string command =
      std::string(python ? python : "python3") + " " + kSourceDir + "/tools/onnx_peer.py " + folder;
  const int status = std::system(command.c_str());
  if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) {
    GTEST_SKIP() << "Python has no onnxruntime";
  }
  EXPECT_EQ(status, 0);
}

TEST(OnnxExport, weights_keep_their_names_and_values) {
  manual_seed(4);
  zoo::LstmLm model({.vocabulary = 11, .layers = 1, .width = 8});
  const auto forward = [&](const Tensors& in) { return Tensors{model(in[0])}; };
  const File file = export_graph(model, forward, {tokens(2, 4, 11)});
  EXPECT_EQ(file.opsets.at(""), 17);
  EXPECT_EQ(file.producer, "cutaway");
  for (const char* name :
       {"encoder.weight", "rnn.weight_ih_l0", "rnn.bias_hh_l0", "decoder.bias"}) {
    Tensor want, got;
    for (const auto& p : model.named_parameters()) {
      if (p.name == name) want = p.value;
    }
    for (const auto& t : file.graph.initializers) {
      if (t.name == name) got = t.value;
    }
    ASSERT_TRUE(want.defined() && got.defined()) << name;
    EXPECT_EQ(distance(got, want), 0) << name;
  }
  EXPECT_EQ(file.graph.inputs[0].dims[0].name, "batch");
  EXPECT_EQ(file.graph.inputs[0].dims[1].value, 4);
}

// One op of a function of x [N,6], exported and evaluated.
void check_function(const char* what, const std::function<Tensor(const Tensor&)>& fn,
                    const Tensor& x) {
  struct Nothing : nn::Module {
  } nothing;
  const auto forward = [&](const Tensors& in) { return Tensors{fn(in[0])}; };
  try {
    const File file = export_graph(nothing, forward, {x});
    const File again = parse_file("bytes", bytes_of(file));
    EXPECT_LE(distance(Model(again).run(Tensors{x})[0].to(DType::f64), fn(x).to(DType::f64)), 2e-5)
        << what;
  } catch (const Error& e) {
    ADD_FAILURE() << what << ": " << e.what();
  }
}
#define CHECK(x, expression) \
  check_function(            \
      #expression, [&](const Tensor& t) { return expression; }, x)

TEST(OnnxExport, elementwise_ops) {
  manual_seed(5);
  const Tensor x = randn({3, 6}), p = rand({3, 6}) * 0.8 + 0.1, b = randn({6});
  for (const auto fn :
       {exp,         exp2,      expm1,      sin,   cos,       tan,         atan,  sinh,    cosh,
        tanh,        asinh,     sigmoid,    floor, ceil,      round,       trunc, frac,    erf,
        erfc,        neg,       reciprocal, abs,   sign,      square,      relu,  selu,    relu6,
        hardsigmoid, hardswish, silu,       gelu,  gelu_tanh, log_sigmoid, mish,  softsign}) {
    CHECK(x, fn(t));
  }
  for (const auto fn : {log, log2, log10, log1p, sqrt, rsqrt, asin, acos, atanh}) CHECK(p, fn(t));
  CHECK(p, acosh(t + 1.5));
  CHECK(x, leaky_relu(t, 0.2) + elu(t, 0.7) + celu(t, 1.3) + hardtanh(t, -0.5, 2) + softplus(t, 2));
  CHECK(x, add(t, b) * sub(t, b) / (square(b) + 1.0));
  CHECK(x, add_scaled(t, b, 0.3) + (2.0 - t) + 1.0 / (square(t) + 1.0));
  CHECK(p, pow(t, b) + pow(t, 1.5) + pow(2.0, t));
  CHECK(x, floor_divide(t, 0.3) + remainder(t, 0.7) + remainder(t, b));
  CHECK(x, floor_divide((t * 10.0).to(DType::i64), 3) + remainder((t * 10.0).to(DType::i64), 4));
  CHECK(x, lerp(t, b, 0.25) + addcmul(t, t, b, 0.5) + addcdiv(t, t, square(b) + 1.0, 0.5));
  CHECK(x, maximum(t, b) + minimum(t, b) + clamp(t, -0.5, 0.5) + clamp_min(t, 0.1));
  CHECK(x, where(gt(t, b), t, b) + masked_fill(t, le(t, 0), 3.0));
  CHECK(x, logical_and(lt(t, b), ge(t, -1)).to(DType::f32) + logical_not(ne(t, b)).to(DType::f32));
  CHECK(x, logical_or(eq(t, b), isnan(t)).to(DType::f32) + isfinite(t).to(DType::f32));
}

TEST(OnnxExport, reductions_and_order) {
  manual_seed(6);
  const Tensor x = randn({3, 4, 5});
  CHECK(x, sum(t, {1}) + mean(t, {1}) + amax(t, {1}) + amin(t, {1}) + prod(t, {1}));
  CHECK(x, sum(t, {1, 2}, {.keepdim = true}) + logsumexp(t, {1, 2}, {.keepdim = true}));
  CHECK(x, var(t, {1}) + std(t, {1}) + norm(t, {1}) + norm(t, Shape{1}, {.p = 1}));
  CHECK(x, argmax(t, 1) + argmin(t, -1, {.keepdim = true}).slice(1, 0, 1));
  CHECK(x, max(t, 1).values + any(gt(t, 1), 1).to(DType::f32) + all(gt(t, -1), 1).to(DType::f32));
  CHECK(x, softmax(t, 1) + log_softmax(t, -1) + cumsum(t, 1, {.reverse = true}));
  CHECK(x, sort(t, -1).values + sort(t, 2, {.descending = true}).values);
  CHECK(x, topk(t, 2, 1).values + topk(t, 2, 1, {.largest = false}).indices);
}

TEST(OnnxExport, shapes_and_pieces) {
  manual_seed(7);
  const Tensor x = randn({3, 4, 6});
  CHECK(x, reshape(t, {t.size(0) * 4, 6}));
  CHECK(x, permute(t, {2, 0, 1}) + 0.0);
  CHECK(x, movedim(unflatten(t, 2, {2, 3}), 1, 3).flatten(1));
  CHECK(x, squeeze(unsqueeze(t, 1), 1) + t.unsqueeze(-1).squeeze());
  CHECK(x, cat({t, t * 2.0}, 1));
  CHECK(x, stack({t, t}, -1));
  CHECK(x, split(t, 3, 1)[0] + unbind(t, 1)[3].unsqueeze(1));
  CHECK(x, chunk(t, 2, 2)[1] + slice(t, 2, 1, -1, 2).slice(2, 0, 1));
  CHECK(x, narrow(t, 1, 1, 2) + select(t, 1, -1).unsqueeze(1));
  CHECK(x, tril(t, 1) + triu(t));
  CHECK(x, flip(t, {1, 2}) + roll(t, {1, -2}, {1, 2}));
  CHECK(x, pad(t, {1, 2, 0, 1}, {.value = 2}).slice(1, 0, 4).slice(2, 1, 7));
  CHECK(x,
        pad(t, {2, 1}, {.mode = PadMode::reflect}) + pad(t, {2, 1}, {.mode = PadMode::replicate}));
  CHECK(x, repeat(t, {1, 1, 1, 2}));
  CHECK(x, expand(t.unsqueeze(1), {t.size(0), 2, 4, 6}) + zeros({t.size(0), 2, 1, 1}));
  const Tensor index = randint(0, 4, {5});
  const std::vector<int64_t> segments = {2, 0, 2, 0};
  CHECK(x, index_select(t, 1, index));
  CHECK(x, gather(t, 2, topk(t, 3, 2).indices));
  CHECK(x, scatter_add(zeros_like(t), 1, argsort(t, 1), t));
  CHECK(x, one_hot(argmax(t, 1), 4).to(DType::f32));
  CHECK(x, segment_sum(transpose(t, 0, 1).contiguous(), index_tensor(segments), 3));
}

TEST(OnnxExport, layers) {
  manual_seed(8);
  const Tensor x = randn({2, 6, 8, 8}), v = randn({2, 6, 9});
  const Tensor scale = rand({9}), seen = gt(randn({6, 6}), 0);
  const Tensor w = randn({4, 3, 3, 3}) * 0.2, b = randn({4}), wt = randn({6, 2, 3, 3}) * 0.2;
  CHECK(x, conv2d(t, w, b, {.stride = 2, .padding = {1, 0}, .groups = 2}));
  CHECK(x,
        conv_transpose2d(t, wt, {}, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}));
  CHECK(x, max_pool2d(t, {.kernel = 3, .stride = 2, .padding = 1}));
  CHECK(x, max_pool2d(t, {.kernel = 3, .stride = 2, .ceil_mode = true}));
  CHECK(x, avg_pool2d(t, {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false}));
  CHECK(x, adaptive_avg_pool2d(t, 2) + adaptive_max_pool2d(t, 1));
  CHECK(x, group_norm(t, 3, b.slice(0, 0, 1).expand({6}).contiguous(), ones({6})));
  CHECK(x, interpolate(t, {.size = Dims{16, 12}, .mode = Resize::linear}));
  CHECK(x, interpolate(t, {.size = Dims{16, 16}}));
  CHECK(v, layer_norm(t, {9}) + rms_norm(t, {9}, scale));
  CHECK(v, linear(t, w.reshape({12, 9}).slice(0, 0, 9).contiguous(), ones({9})));
  CHECK(v, matmul(t, t, {.transpose_b = true}));
  CHECK(v, scaled_dot_product_attention(t, t, t, {.causal = true}));
  CHECK(v, scaled_dot_product_attention(t, t, t, {.mask = seen}));
}

TEST(OnnxExport, recurrent_layers) {
  manual_seed(9);
  nn::LSTM lstm({.input_size = 5,
                 .hidden_size = 7,
                 .num_layers = 2,
                 .batch_first = true,
                 .bidirectional = true});
  nn::GRU gru({.input_size = 5, .hidden_size = 7, .batch_first = true});
  const Tensor x = randn({3, 4, 5});
  CHECK(x, lstm.forward(t));
  CHECK(x, gru.forward(t));
}

TEST(OnnxExport, ops_without_an_equivalent_are_named) {
  struct Net : nn::Module {
    nn::Linear fc{{.in = 4, .out = 4}};
    Net() { add("fc", fc); }
    Tensor forward(const Tensor& x) override { return lgamma(fc(x)); }
  } net;
  struct Outer : nn::Module {
    Net net;
    Outer() { add("inner", net); }
    Tensor forward(const Tensor& x) override { return net(x); }
  } outer;
  try {
    export_model(outer, {randn({2, 4})}, testing::TempDir() + "none.onnx");
    FAIL();
  } catch (const ValueError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("lgamma has no equivalent in ONNX; in module inner"), std::string::npos)
        << text;
  }
}

// What a model computes on the host would silently stay as it was.
TEST(OnnxExport, numbers_computed_past_the_ops_are_found) {
  struct Sly : nn::Module {
    Tensor forward(const Tensor& x) override { return x + amax(x).item(); }
  } sly;
  EXPECT_THROW(export_model(sly, {randn({2, 4})}, testing::TempDir() + "sly.onnx"), ValueError);
}

TEST(OnnxExport, the_mode_of_the_model_comes_back) {
  zoo::LstmLm model({.vocabulary = 11, .layers = 1, .width = 8, .dropout = 0.5});
  model.train();
  model.drop.eval();
  export_model(model, {tokens(2, 4, 11)}, testing::TempDir() + "mode.onnx");
  EXPECT_TRUE(model.training());
  EXPECT_TRUE(model.rnn.training());
  EXPECT_FALSE(model.drop.training());
}

}  // namespace
}  // namespace cutaway::onnx
