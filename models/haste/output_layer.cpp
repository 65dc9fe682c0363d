#include <cutaway/models/haste/output_layer.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/kernels/labels.h>
#include <cutaway/core/kernels/optim.h>
#include <cutaway/core/math/half.h>
#include <cutaway/core/math/philox.h>
#include <cutaway/core/parallel.h>
#include <cutaway/core/rng.h>

namespace cutaway::haste {
namespace {

constexpr uint64_t kIndexStream = 21, kWeightStream = 22, kRoundStream = 23;

void check(const OutputOptions& o) {
  const auto need = [](bool holds, const std::string& rule) {
    if (!holds) throw ValueError("output layer", rule);
  };
  need(o.labels >= 1 && o.features >= 1 && o.group >= 1 && o.fan_in >= 1 && o.chunk >= 1,
       "labels, features, group, fan_in and chunk must be at least 1");
  need(o.kind == OutputKind::dense || o.kind == OutputKind::bottleneck || o.fan_in <= o.features,
       fmt::format("fan_in {} is more than {} features", o.fan_in, o.features));
  need(o.dtype == DType::f32 || o.dtype == DType::bf16,
       fmt::format("weights must be f32 or bf16; got {}", name_of(o.dtype)));
  need(o.bias.empty() || int64_t(o.bias.size()) == o.labels,
       fmt::format("got {} biases for {} labels", o.bias.size(), o.labels));
}

// F of H features for every group, each once unless `replace`. Group k depends on (seed, k) alone.
Tensor draw_indices(const OutputOptions& o, int64_t groups) {
  const int64_t F = o.fan_in, H = o.features;
  Tensor index = empty({groups, F}, {.dtype = DType::i32});
  parallel_for(groups, 256, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> deck(static_cast<size_t>(H));
    for (int64_t k = begin; k < end; ++k) {
      int32_t* row = index.data<int32_t>() + k * F;
      for (int64_t h = 0; h < H; ++h) deck[size_t(h)] = int32_t(h);
      for (int64_t j = 0; j < F; ++j) {
        const uint32_t word =
            math::random_u32(o.seed, kIndexStream, uint64_t(k * F + j), uint64_t(j % 4));
        const auto below = [&](int64_t n) { return int64_t((uint64_t(word) * uint64_t(n)) >> 32); };
        if (o.index_replace) {
          row[j] = int32_t(below(H));
        } else {
          std::swap(deck[size_t(j)], deck[size_t(j + below(H - j))]);
          row[j] = deck[size_t(j)];
        }
      }
    }
  });
  return index;
}

Tensor draw_blocks(const OutputOptions& o, int64_t groups) {
  Tensor index = empty({groups}, {.dtype = DType::i32});
  const int64_t places = o.features / o.fan_in;
  for (int64_t k = 0; k < groups; ++k) {
    const uint32_t word = math::random_u32(o.seed, kIndexStream, 0, uint64_t(k));
    index.data<int32_t>()[k] =
        int32_t(int64_t((uint64_t(word) * uint64_t(places)) >> 32) * o.fan_in);
  }
  return index;
}

// g ← g + wd·w; m ← μ m + g; w ← w − lr·m for `count` elements of a tensor from `first` on, with
// stochastic rounding for bf16.
void sgd(const Tensor& weight, int64_t first, const Tensor& gradient, int64_t count,
         const Tensor& momentum, const SgdOptions& o) {
  float* buffer = momentum.defined() ? momentum.data<float>() + first : nullptr;
  if (weight.dtype() == DType::bf16) {
    kernels::rounded_sgd(kCpu, DType::bf16,
                         {.n = count,
                          .first = first,
                          .param = weight.data<BFloat16>() + first,
                          .grad = gradient.data<float>(),
                          .buffer = buffer,
                          .lr = float(o.lr),
                          .momentum = float(o.momentum),
                          .weight_decay = float(o.weight_decay),
                          .seed = o.seed,
                          .stream = kRoundStream,
                          .block = uint64_t(o.step) << 36});
    return;
  }
  OptimArgs a{.n = count, .param = weight.data<float>() + first, .grad = gradient.data<float>()};
  a.state[0] = buffer;
  a.lr = o.lr, a.weight_decay = o.weight_decay, a.momentum = o.momentum;
  kernels::sgd_step(kCpu, DType::f32, {.list = &a, .count = 1});
}

// The labels of a batch, chunk after chunk.
class Cursor {
 public:
  explicit Cursor(const Csr& positives) : positives_(positives), at_(size_t(positives.rows()), 0) {}
  // Calls visit(label − first, row) for the positives in [first, last).
  template <class Visit>
  void chunk(int64_t first, int64_t last, Visit visit) {
    for (int64_t row = 0; row < positives_.rows(); ++row) {
      const auto labels = positives_.row(row);
      size_t& i = at_[size_t(row)];
      for (; i < labels.size() && labels[i] < last; ++i) visit(labels[i] - first, row);
    }
  }

 private:
  const Csr& positives_;
  std::vector<size_t> at_;
};

// Replaces logits by the gradient of the loss; returns the loss when wanted.
// BCE: σ(z) − y; squared hinge: −2 s (1 − s z)₊ with s = ±1.
double loss_gradient(Tensor& z, int64_t first, Cursor& positives, OutputLoss kind,
                     const SgdOptions& o) {
  const int64_t rows = z.size(1);
  const bool bce = kind == OutputLoss::bce;
  std::vector<std::pair<int64_t, float>> own;  // place, logit
  positives.chunk(first, first + z.size(0), [&](int64_t label, int64_t row) {
    own.push_back({label * rows + row, z.data<float>()[label * rows + row]});
  });
  double loss = 0;
  const float scale = float(o.scale);
  kernels::negative_loss(kCpu, DType::f32,
                         {.n = z.numel(),
                          .hinge = !bce,
                          .scale = scale,
                          .z = z.data<float>(),
                          .loss = o.want_loss ? &loss : nullptr});
  float* dz = z.data<float>();
  for (const auto& [place, logit] : own) {
    const float below = std::max(0.0f, 1 - logit), over = std::max(0.0f, 1 + logit);
    dz[place] = bce ? dz[place] - scale : -2 * scale * below;
    loss += bce ? -double(logit) : double(below * below) - double(over * over);
  }
  return o.want_loss ? o.scale * loss : 0;
}

}  // namespace

OutputLayer::OutputLayer(const OutputOptions& options) : options_(options) {
  check(options);
  OutputOptions& o = options_;
  Generator random{.seed = o.seed, .stream = kWeightStream};
  const auto with_momentum = [&](const Tensor& t) {
    return o.momentum ? zeros(t.sizes()) : Tensor();
  };
  if (o.kind == OutputKind::bottleneck) {
    const double bound = 1 / std::sqrt(double(o.features));
    projection_ = (rand({o.fan_in, o.features}, {}, &random) * 2.0 - 1.0) * bound;
    projection_momentum_ = with_momentum(projection_);
  }
  const bool all = o.kind == OutputKind::dense || o.kind == OutputKind::bottleneck;
  if (o.kind == OutputKind::dense) o.fan_in = o.features;
  if (o.kind == OutputKind::ffi) o.group = 1;
  if (all) o.group = 16;  // labels whose weights pass over a tile of features together
  o.chunk = std::max(o.group, o.chunk / o.group * o.group);
  const int64_t groups = (o.labels + o.group - 1) / o.group;
  if (all) {
    zeros_ = zeros({(std::min(o.chunk, o.labels) + o.group - 1) / o.group}, {.dtype = DType::i32});
  } else {
    index_ = o.kind == OutputKind::block ? draw_blocks(o, groups) : draw_indices(o, groups);
  }
  const Shape sizes{o.labels, o.fan_in};
  Tensor w = o.kind == OutputKind::dense
                 ? randn(sizes, {}, &random) * 0.02
                 : (rand(sizes, {}, &random) * 2.0 - 1.0) * (1 / std::sqrt(double(o.fan_in)));
  weight_ = o.dtype == DType::f32 ? w : w.to(o.dtype);
  momentum_ = with_momentum(weight_);
  bias_ = zeros({o.labels});
  std::copy(o.bias.begin(), o.bias.end(), bias_.data<float>());
  bias_momentum_ = with_momentum(bias_);
  o.bias.clear();
}

GroupSharedShape OutputLayer::shape(const Tensor& x, int64_t first, int64_t count) const {
  const OutputOptions& o = options_;
  const bool all = zeros_.defined();
  const bool block = all || o.kind == OutputKind::block;
  GroupSharedShape s{.batch = x.size(1),
                     .features = x.size(0),
                     .labels = count,
                     .fan_in = o.fan_in,
                     .group = o.group,
                     .block = block,
                     .weight_type = o.dtype,
                     .x_row = x.size(1),
                     .z_row = x.size(1)};
  s.index = all ? zeros_.data<int32_t>()
                : index_.data<int32_t>() + first / o.group * (block ? 1 : o.fan_in);
  return s;
}

void OutputLayer::forward(const Tensor& x, int64_t first, int64_t count, float* z) const {
  GroupSharedForwardArgs a{shape(x, first, count)};
  a.x = x.data<float>();
  a.weight =
      static_cast<const char*>(weight_.raw()) + first * options_.fan_in * size_of(options_.dtype);
  a.bias = bias_.data<float>() + first;
  a.z = z;
  kernels::group_shared_forward(kCpu, DType::f32, a);
}

void OutputLayer::backward(const Tensor& x, int64_t first, const Tensor& dz,
                           const Tensor& dx) const {
  const int64_t count = dz.size(0);
  GroupSharedInputGradArgs a{shape(x, first, count)};
  a.accumulate = true;
  a.weight =
      static_cast<const char*>(weight_.raw()) + first * options_.fan_in * size_of(options_.dtype);
  a.dz = dz.data<float>();
  a.dx = dx.data<float>();
  kernels::group_shared_input_grad(kCpu, DType::f32, a);
  GroupSharedWeightGradArgs g{shape(x, first, count)};
  g.x = x.data<float>();
  g.dz = dz.data<float>();
  g.dweight = dweight_.data<float>();
  g.dbias = dbias_.data<float>();
  kernels::group_shared_weight_grad(kCpu, DType::f32, g);
}

void OutputLayer::update(int64_t first, int64_t count, const SgdOptions& o) {
  sgd(weight_, first * options_.fan_in, dweight_, count * options_.fan_in, momentum_, o);
  SgdOptions plain = o;
  plain.weight_decay = 0;
  sgd(bias_, first, dbias_, count, bias_momentum_, plain);
}

OutputLayer::Result OutputLayer::step(const Tensor& features, const Csr& positives,
                                      const SgdOptions& o) {
  NoGradGuard off;
  const int64_t batch = features.size(1), most = std::min(options_.chunk, options_.labels);
  const Tensor x = projection_.defined() ? matmul(projection_, features) : features;
  if (!dweight_.defined()) {
    dweight_ = empty({most, options_.fan_in});
    dbias_ = empty({most});
  }
  Tensor room = empty({most, batch});
  Result result{.dx = zeros(x.sizes())};
  Cursor cursor(positives);
  for (int64_t first = 0; first < options_.labels; first += options_.chunk) {
    const int64_t count = std::min(options_.chunk, options_.labels - first);
    Tensor z = room.slice(0, 0, count);
    forward(x, first, count, z.data<float>());
    result.loss += loss_gradient(z, first, cursor, options_.loss, o);
    backward(x, first, z, result.dx);
    update(first, count, o);
  }
  if (projection_.defined()) {
    const Tensor gradient = matmul(result.dx, features.t());
    result.dx = matmul(projection_.t(), result.dx);
    sgd(projection_, 0, gradient.contiguous(), projection_.numel(), projection_momentum_, o);
  }
  return result;
}

Tensor OutputLayer::scores(const Tensor& features, int64_t first, int64_t count) const {
  NoGradGuard off;
  const Tensor x = projection_.defined() ? matmul(projection_, features) : features;
  const int64_t begin = first / options_.group * options_.group;
  Tensor z = empty({first + count - begin, x.size(1)});
  // Where all features are read, the index has room for one chunk.
  for (int64_t at = begin; at < first + count; at += options_.chunk) {
    const int64_t n = std::min(options_.chunk, first + count - at);
    forward(x, at, n, z.data<float>() + (at - begin) * x.size(1));
  }
  return begin == first ? z : z.slice(0, first - begin, first - begin + count).contiguous();
}

std::vector<std::pair<std::string, int64_t>> OutputLayer::memory() const {
  std::vector<std::pair<std::string, int64_t>> list;
  for (const nn::Named& t : tensors()) {
    list.push_back({t.name, t.value.numel() * size_of(t.value.dtype())});
  }
  for (const nn::Named& t : momenta()) {
    list.push_back({t.name + ".momentum", t.value.numel() * size_of(t.value.dtype())});
  }
  return list;
}

nn::NamedTensors OutputLayer::tensors() const {
  nn::NamedTensors list;
  if (index_.defined()) list.push_back({"index", index_});
  list.push_back({"weight", weight_});
  list.push_back({"bias", bias_});
  if (projection_.defined()) list.push_back({"projection", projection_});
  return list;
}

nn::NamedTensors OutputLayer::momenta() const {
  nn::NamedTensors list;
  if (!momentum_.defined()) return list;
  list.push_back({"weight", momentum_});
  list.push_back({"bias", bias_momentum_});
  if (projection_.defined()) list.push_back({"projection", projection_momentum_});
  return list;
}

}  // namespace cutaway::haste
