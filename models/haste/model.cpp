#include <cutaway/models/haste/model.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>

namespace cutaway::haste {
namespace {

// Streams of the generators: what is drawn for one purpose does not move the others.
constexpr uint64_t kInitStream = 11, kDropoutStream = 12, kRewireStream = 13;

OutputKind kind_of(const std::string& layer) {
  if (layer == "ffi") return OutputKind::ffi;
  if (layer == "dense" || layer == "bottleneck") return OutputKind::dense;
  if (layer == "block") return OutputKind::block;
  return OutputKind::haste;
}

// b_ℓ = log(π_ℓ / (1 − π_ℓ)) for labels [first, first + count).
std::vector<float> log_odds(const std::vector<double>& prior, int64_t first, int64_t count) {
  std::vector<float> bias;
  for (int64_t l = first; l < first + count; ++l) {
    const double p = std::clamp(prior[size_t(l)], 1e-9, 1 - 1e-3);
    bias.push_back(float(std::log(p / (1 - p))));
  }
  return bias;
}

// The labels of a batch that lie in [first, last), counted from `first`.
Csr part(const Csr& all, int64_t first, int64_t last) {
  Csr p{.cols = last - first};
  for (int64_t row = 0; row < all.rows(); ++row) {
    for (int32_t l : all.row(row)) {
      if (l >= first && l < last) p.index.push_back(int32_t(l - first));
    }
    p.start.push_back(p.entries());
  }
  return p;
}

// Meta-labels: `groups` runs of neighbouring labels; a sample has those of its labels.
Csr meta_labels(const Csr& all, int64_t groups) {
  Csr m{.cols = groups};
  for (int64_t row = 0; row < all.rows(); ++row) {
    int32_t before = -1;
    for (int32_t l : all.row(row)) {  // ascending, so that equal meta-labels meet
      const auto meta = int32_t(int64_t(l) * groups / all.cols);
      if (meta != before) m.index.push_back(meta);
      before = meta;
    }
    m.start.push_back(m.entries());
  }
  return m;
}

// Tensors of one part under its name.
void append(nn::NamedTensors& list, const std::string& prefix, const nn::NamedTensors& part) {
  for (const nn::Named& t : part) list.push_back({prefix + t.name, t.value});
}

nn::NamedTensors below(const nn::NamedTensors& list, const std::string& prefix) {
  nn::NamedTensors part;
  for (const nn::Named& t : list) {
    if (t.name.starts_with(prefix)) part.push_back({t.name.substr(prefix.size()), t.value});
  }
  return part;
}

}  // namespace

Model::Model(const RunOptions& o, const ModelSizes& sizes)
    : options_(o),
      sizes_(sizes),
      branches_(branches_of(o)),
      random_{.seed = o.seed, .stream = kDropoutStream} {
  Generator init{.seed = o.seed, .stream = kInitStream};
  encoder_ = make_encoder(o, sizes.words, init);
  if (o.features == "proj" && branches_.head_begin > 0) {
    project_ = std::make_unique<nn::Linear>(
        nn::LinearOptions{.in = o.hidden, .out = o.hidden, .bias = false});
    NoGradGuard off;
    project_->weight.copy_(randn(project_->weight.sizes(), {}, &init) /
                           std::sqrt(double(o.hidden)));
  }
  if (o.layer == "bottleneck") {
    bottleneck_ = std::make_unique<nn::Linear>(
        nn::LinearOptions{.in = branches_.tail_width, .out = o.fan_in});
    NoGradGuard off;
    bottleneck_->weight.copy_(randn(bottleneck_->weight.sizes(), {}, &init) /
                              std::sqrt(double(branches_.tail_width)));
    bottleneck_->bias.zero_();
  }
  if (sizes.head > 0) head_ = make_layer(OutputKind::dense, 0, sizes.head, branches_.head_width);
  const int64_t inputs = bottleneck_ ? o.fan_in : branches_.tail_width;
  tail_ = make_layer(kind_of(o.layer), sizes.head, sizes.labels - sizes.head, inputs);
  if (o.aux_weight > 0) {
    const int64_t groups =
        o.aux_groups > 0 ? std::min(o.aux_groups, sizes.labels) : (sizes.labels + 15) / 16;
    meta_ = std::make_unique<OutputLayer>(OutputOptions{.kind = OutputKind::dense,
                                                        .labels = groups,
                                                        .features = inputs,
                                                        .seed = o.seed + 2,
                                                        .momentum = o.momentum > 0});
  }
  nn::NamedTensors matrices, vectors;
  for (const nn::Named& p : encoder_parameters()) {
    (p.value.dim() >= 2 ? matrices : vectors).push_back(p);
  }
  adam_.emplace_back(std::make_unique<optim::AdamW>(
      matrices, optim::AdamWOptions{.lr = o.lr_encoder, .weight_decay = o.encoder_decay}));
  adam_.emplace_back(std::make_unique<optim::AdamW>(
      vectors, optim::AdamWOptions{.lr = o.lr_encoder, .weight_decay = 0}));
}

std::unique_ptr<OutputLayer> Model::make_layer(OutputKind kind, int64_t first, int64_t count,
                                               int64_t width) const {
  OutputOptions o{.kind = kind,
                  .labels = count,
                  .features = width,
                  .group = options_.group,
                  .fan_in = options_.fan_in,
                  .dtype = options_.dtype == "bf16" ? DType::bf16 : DType::f32,
                  .seed = options_.seed + (first == 0 ? 0 : 1),
                  .index_replace = options_.index_replace,
                  .chunk = options_.chunk,
                  .loss = options_.loss == "hinge" ? OutputLoss::hinge : OutputLoss::bce,
                  .momentum = options_.momentum > 0};
  if (options_.bias_init == "prior") o.bias = log_odds(sizes_.prior, first, count);
  return std::make_unique<OutputLayer>(o);
}

nn::NamedTensors Model::encoder_parameters() const {
  nn::NamedTensors list = encoder_->named_parameters();
  if (project_) append(list, "project.", project_->named_parameters());
  if (bottleneck_) append(list, "bottleneck.", bottleneck_->named_parameters());
  return list;
}

Tensor Model::encode(const Batch& batch) {
  const Tensor h = encoder_->encode(batch);
  return project_ ? (*project_)(h) : h;
}

Tensor Model::branch(const Tensor& h, int64_t begin, int64_t width, double p) {
  Tensor x = width == h.size(1) ? h : h.slice(1, begin, begin + width);
  if (p > 0) x = dropout(x, p, &random_);
  return x.t().contiguous();
}

Tensor Model::tail_branch(const Tensor& h, double p) {
  if (!bottleneck_) return branch(h, branches_.tail_begin, branches_.tail_width, p);
  Tensor x = h.slice(1, branches_.tail_begin, branches_.tail_begin + branches_.tail_width);
  if (p > 0) x = dropout(x, p, &random_);
  return (*bottleneck_)(x).t().contiguous();
}

double Model::step(const Batch& batch, const Csr& labels, const StepOptions& o) {
  const Branches& b = branches_;
  const Tensor h = encode(batch);
  Tensors x = {tail_branch(h, options_.dropout)};
  // Shared features have one dropout, private ones each their own.
  const bool shared = !bottleneck_ && b.head_begin == b.tail_begin && b.head_width == b.tail_width;
  if (head_ && !shared) {
    x.push_back(branch(h, b.head_begin, b.head_width, options_.head_dropout));
  }
  NoGradGuard off;
  SgdOptions sgd{.lr = o.lr_out,
                 .momentum = options_.momentum,
                 .weight_decay = options_.weight_decay,
                 .seed = options_.seed,
                 .step = o.step,
                 .want_loss = o.want_loss,
                 .scale = 1 - o.aux};
  Tensors dx;
  double loss = 0;
  const auto run = [&](OutputLayer& layer, const Tensor& in, const Csr& positives) {
    const auto result = layer.step(in.detach(), positives, sgd);
    loss += result.loss;
    return result.dx;
  };
  dx.push_back(run(*tail_, x[0], part(labels, sizes_.head, sizes_.labels)));
  if (head_) {
    const Tensor d = run(*head_, x.back(), part(labels, 0, sizes_.head));
    shared ? dx[0].add_(d), void() : dx.push_back(d);
  }
  if (meta_ && o.aux > 0) {
    sgd.scale = o.aux;
    dx[0].add_(run(*meta_, x[0], meta_labels(labels, meta_->labels())));
  }
  backward(x, dx);
  if (o.keep_gradients) return loss;
  for (auto& adam : adam_) {
    adam->set_lr(o.lr_encoder);
    adam->step_and_zero();
  }
  return o.want_loss ? loss : NAN;
}

Model::Features Model::features(const Batch& batch) {
  NoGradGuard off;
  const Branches& b = branches_;
  const Tensor h = encode(batch);
  return {tail_branch(h, 0), branch(h, b.head_begin, b.head_width, 0)};
}

Tensor Model::scores(const Features& x, int64_t first, int64_t count) {
  NoGradGuard off;
  if (first < sizes_.head) return head_->scores(x.head, first, count);
  return tail_->scores(x.tail, first - sizes_.head, count);
}

bool Model::can_rewire() const { return options_.layer == "haste" || options_.layer == "ffi"; }

int64_t Model::rewire_tail(int64_t step, double progress) {
  if (!can_rewire()) return 0;
  const std::string& score = options_.rewire_score;
  const RewireOptions o{
      .fraction = options_.rewire_fraction,
      .threshold = options_.rewire_mode == "threshold" ? rewire_threshold(progress) : -1,
      .score = score == "max"    ? SlotScore::max
               : score == "grad" ? SlotScore::grad
                                 : SlotScore::mean,
      .uniform_init = options_.rewire_init == "uniform",
      .keep_momentum = options_.keep_momentum,
      .replace = options_.index_replace};
  // Each step draws from a stretch of its own.
  const Generator random{
      .seed = options_.seed, .stream = kRewireStream, .offset = uint64_t(step) << 36};
  return int64_t(rewire({.index = tail_->index(),
                         .weight = tail_->weight(),
                         .momentum = tail_->momentum(),
                         .group = tail_->group(),
                         .features = branches_.tail_width},
                        o, random)
                     .size());
}

std::vector<std::pair<std::string, int64_t>> Model::memory() const {
  std::vector<std::pair<std::string, int64_t>> list;
  for (const nn::Named& p : encoder_parameters()) {
    list.push_back({"encoder." + p.name, p.value.numel() * size_of(p.value.dtype())});
  }
  for (const auto& adam : adam_) {
    for (const nn::Named& t : adam->state_dict()) {
      list.push_back({"adam." + t.name, t.value.numel() * size_of(t.value.dtype())});
    }
  }
  const auto add = [&](const char* name, const OutputLayer& layer) {
    for (const auto& [tensor, bytes] : layer.memory()) list.push_back({name + tensor, bytes});
  };
  if (head_) add("head.", *head_);
  add("tail.", *tail_);
  if (meta_) add("meta.", *meta_);
  return list;
}

nn::NamedTensors Model::tensors() const {
  nn::NamedTensors list;
  append(list, "encoder.", encoder_parameters());
  if (head_) append(list, "head.", head_->tensors());
  append(list, "tail.", tail_->tensors());
  if (meta_) append(list, "meta.", meta_->tensors());
  return list;
}

nn::NamedTensors Model::training_state() const {
  nn::NamedTensors list = tensors();
  if (head_) append(list, "momentum.head.", head_->momenta());
  append(list, "momentum.tail.", tail_->momenta());
  if (meta_) append(list, "momentum.meta.", meta_->momenta());
  for (const auto& adam : adam_) append(list, "adam.", adam->state_dict());
  return list;
}

void Model::load(const nn::NamedTensors& state, bool training) {
  std::map<std::string, Tensor> given;
  for (const nn::Named& t : state) given[t.name] = t.value;
  nn::NamedTensors own = tensors();
  if (training) {
    for (const nn::Named& t : training_state()) {
      if (t.name.starts_with("momentum.")) own.push_back(t);
    }
  }
  for (const nn::Named& t : own) {
    const auto found = given.find(t.name);
    if (found == given.end()) throw ValueError("xmc", "the checkpoint lacks " + t.name);
    const Tensor& value = found->second;
    if (value.sizes() != t.value.sizes() || value.dtype() != t.value.dtype()) {
      throw ShapeError("xmc", fmt::format("{} of the checkpoint is {} {}; the model has {} {}",
                                          t.name, to_string(value.sizes()), name_of(value.dtype()),
                                          to_string(t.value.sizes()), name_of(t.value.dtype())));
    }
  }
  if (training) {
    for (auto& adam : adam_) {
      nn::NamedTensors moments;
      for (const nn::Named& p : adam->parameters()) {
        append(moments, p.name + ".", below(state, "adam." + p.name + "."));
      }
      adam->load_state_dict(moments);
    }
  }
  NoGradGuard off;
  for (nn::Named& t : own) t.value.copy_(given[t.name]);
}

}  // namespace cutaway::haste
