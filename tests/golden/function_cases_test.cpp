// Functions of single tensors and losses against stored values: forward and gradients.
#include <gtest/gtest.h>

#include <cutaway/autograd/ops.h>
#include <tests/golden/run.h>

namespace cutaway::golden {
namespace {

using Unary = Tensor (*)(TensorArg);
using AlongDim = Tensor (*)(TensorArg, int64_t);

auto plain(Unary f) {
  return [f](Run& r) { r.finish({{"y", f(r.input("x"))}}); };
}
auto along(AlongDim f) {
  return [f](Run& r) { r.finish({{"y", f(r.input("x"), r.data().integer("dim", 0))}}); };
}
// An activation with one number.
auto with(const char* option, Tensor (*f)(TensorArg, double)) {
  return [f, option](Run& r) { r.finish({{"y", f(r.input("x"), r.data().number(option, 1))}}); };
}

void gelu_of(Run& r) {
  const bool tanh = r.data().text("approximate", "none") == "tanh";
  r.finish({{"y", tanh ? gelu_tanh(r.input("x")) : gelu(r.input("x"))}});
}
// PyTorch's is the identity above a threshold, this library's is exact everywhere.
void softplus_of(Run& r) {
  const double beta = r.data().number("beta", 1), threshold = r.data().number("threshold", 20);
  const Tensor x = r.input("x");
  r.finish({{"y", where(x * beta > threshold, x, softplus(x, beta))}});
}
void hardtanh_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", hardtanh(r.input("x"), c.number("min_val", -1), c.number("max_val", 1))}});
}
void glu_of(Run& r) {
  const Tensors halves = chunk(r.input("x"), 2, r.data().integer("dim", -1));
  r.finish({{"y", halves[0] * sigmoid(halves[1])}});
}

TEST(GoldenFile, activation) {
  compare_file("activation",
               {
                   {"celu", with("alpha", celu)},
                   {"cumprod", along([](TensorArg x, int64_t d) { return cumprod(x, d); })},
                   {"cumsum", along([](TensorArg x, int64_t d) { return cumsum(x, d); })},
                   {"elu", with("alpha", elu)},
                   {"gelu", gelu_of},
                   {"glu", glu_of},
                   {"hardsigmoid", plain(hardsigmoid)},
                   {"hardswish", plain(hardswish)},
                   {"hardtanh", hardtanh_of},
                   {"leaky_relu", with("negative_slope", leaky_relu)},
                   {"log_softmax", along(log_softmax)},
                   {"logcumsumexp", along(logcumsumexp)},
                   {"logsigmoid", plain(log_sigmoid)},
                   {"logsumexp", along([](TensorArg x, int64_t d) { return logsumexp(x, d); })},
                   {"mish", plain(mish)},
                   {"prod", along([](TensorArg x, int64_t d) { return prod(x, d); })},
                   {"relu", plain(relu)},
                   {"relu6", plain(relu6)},
                   {"selu", plain(selu)},
                   {"sigmoid", plain(sigmoid)},
                   {"silu", plain(silu)},
                   {"softmax", along(softmax)},
                   {"softmin", along(softmin)},
                   {"softplus", softplus_of},
                   {"softsign", plain(softsign)},
                   {"tanh", plain(tanh)},
               });
}

Reduction reduction_of(const Case& c) {
  const std::string text = c.text("reduction", "mean");
  return text == "none" ? Reduction::none : text == "sum" ? Reduction::sum : Reduction::mean;
}
MarginOptions margin_of(const Case& c) { return {c.number("margin", 0), reduction_of(c)}; }

void cross_entropy_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", cross_entropy(r.input("logits"), r.input("target"),
                                {.weight = r.input("weight"),
                                 .ignore_index = c.integer("ignore_index", -100),
                                 .label_smoothing = c.number("label_smoothing", 0),
                                 .reduction = reduction_of(c)})}});
}
void nll_of(Run& r) {
  r.finish({{"y", nll_loss(r.input("logits"), r.input("target"),
                           {.weight = r.input("weight"), .reduction = reduction_of(r.data())})}});
}
void mse_of(Run& r) {
  r.finish({{"y", mse_loss(r.input("x"), r.input("target"), {reduction_of(r.data())})}});
}
void l1_of(Run& r) {
  r.finish({{"y", l1_loss(r.input("x"), r.input("target"), {reduction_of(r.data())})}});
}
void smooth_l1_of(Run& r) {
  const SmoothL1Options o{r.data().number("beta", 1), reduction_of(r.data())};
  r.finish({{"y", smooth_l1_loss(r.input("x"), r.input("target"), o)}});
}
void huber_of(Run& r) {
  const HuberOptions o{r.data().number("delta", 1), reduction_of(r.data())};
  r.finish({{"y", huber_loss(r.input("x"), r.input("target"), o)}});
}
void kl_div_of(Run& r) {
  const KlDivOptions o{.log_target = r.data().flag("log_target", false),
                       .batch_mean = r.data().text("reduction") == "batchmean",
                       .reduction = reduction_of(r.data())};
  r.finish({{"y", kl_div(r.input("x"), r.input("target"), o)}});
}
void bce_of(Run& r) {
  r.finish({{"y", binary_cross_entropy_with_logits(r.input("logits"), r.input("target"),
                                                   {.weight = r.input("weight"),
                                                    .pos_weight = r.input("pos_weight"),
                                                    .reduction = reduction_of(r.data())})}});
}
void cosine_of(Run& r) {
  const CosineOptions o{r.data().integer("dim", 1), r.data().number("eps", 1e-8)};
  r.finish({{"y", cosine_similarity(r.input("x1"), r.input("x2"), o)}});
}
void cosine_embedding_of(Run& r) {
  r.finish({{"y", cosine_embedding_loss(r.input("x1"), r.input("x2"), r.input("target"),
                                        margin_of(r.data()))}});
}
void margin_ranking_of(Run& r) {
  r.finish({{"y", margin_ranking_loss(r.input("x1"), r.input("x2"), r.input("target"),
                                      margin_of(r.data()))}});
}
void triplet_of(Run& r) {
  const Case& c = r.data();
  r.finish({{"y", triplet_margin_loss(r.input("anchor"), r.input("positive"), r.input("negative"),
                                      {.margin = c.number("margin", 1),
                                       .p = c.number("p", 2),
                                       .swap = c.flag("swap", false),
                                       .reduction = reduction_of(c)})}});
}

TEST(GoldenFile, loss) {
  compare_file("loss", {
                           {"binary_cross_entropy_with_logits", bce_of},
                           {"cosine_embedding_loss", cosine_embedding_of},
                           {"cosine_similarity", cosine_of},
                           {"cross_entropy", cross_entropy_of},
                           {"huber_loss", huber_of},
                           {"kl_div", kl_div_of},
                           {"l1_loss", l1_of},
                           {"margin_ranking_loss", margin_ranking_of},
                           {"mse_loss", mse_of},
                           {"nll_loss", nll_of},
                           {"smooth_l1_loss", smooth_l1_of},
                           {"triplet_margin_loss", triplet_of},
                       });
}

}  // namespace
}  // namespace cutaway::golden
