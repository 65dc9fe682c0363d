// The trainable models of section 3: shared, affine, atlas, link, token, transformer, mlp.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/bayes_attention/ice.h>

namespace cutaway::bayes {
namespace {

Tensor trainable(const Tensor& x) { return x.detach().clone().set_requires_grad(); }

Tensor quadratic(const Tensor& x, const Tensor& m) { return sum(matmul(x, m) * x, -1); }

// (a) One symmetric M = LLᵀ + εI: scores log(n_k + 1) − ½ |T − μ̂_k|²_M.
class Shared : public IceModel {
 public:
  explicit Shared(const Prompts& train) {
    const double scale = 1 / std(train.query).item();
    factor_ = trainable(eye(train.query.size(1)) * scale);
    add("factor", factor_);
  }
  Tensor metric() const override {
    return matmul(factor_, factor_, {.transpose_b = true}) + eye(factor_.size(0)) * 1e-6;
  }
  Tensor log_probabilities(const Prompts& p) override { return gaussian_head(p, metric()); }

 private:
  Tensor factor_;
};

// (b), (c) In each of H cells of μ̂ a key W μ̂ + a and a bias b + gᵀμ̂ + μ̂ᵀΓμ̂; H = 1 is `affine`.
// Cells are a grid of quantiles of each coordinate. Inputs are standardised, which only changes
// the units of the parameters.
class AffineAtlas : public IceModel {
 public:
  AffineAtlas(const Prompts& train, int64_t heads) {
    const int64_t d = train.query.size(1);
    side_ = std::llround(std::pow(double(heads), 1 / double(d)));
    int64_t product = 1;
    for (int64_t i = 0; i < d; ++i) product *= side_;
    if (product != heads || heads < 1) {
      throw ValueError(
          "ice", fmt::format("--heads {} is no grid in {} dimensions; need g^{}", heads, d, d));
    }
    const Tensor flat = train.mean.reshape({-1, d});
    centre_ = mean(flat, 0);
    scale_ = std(flat, 0);
    for (int64_t i = 0; i < d; ++i) {
      std::vector<double> v = flat.select(1, i).to_vector();
      std::sort(v.begin(), v.end());
      std::vector<double> cuts;
      for (int64_t j = 1; j < side_; ++j) cuts.push_back(v[size_t(j) * v.size() / size_t(side_)]);
      cuts_.push_back(cuts);
    }
    // Rows of θ: W (d²), a (d), b, g (d), Γ (d²); the start is M = I.
    const Tensor unit = eye(d).reshape({d * d});
    const Tensor row = cat({unit, zeros({d}), zeros({1}), zeros({d}), unit * -0.5});
    theta_ = trainable(row.expand({heads, row.size(0)}));
    add("theta", theta_);
  }
  // ⟨W μ̂ + a, T⟩ + b + gᵀμ̂ + μ̂ᵀΓμ̂ is linear in θ: a product with the features of (T, μ̂).
  Tensor log_probabilities(const Prompts& p) override {
    const Tensor mu = (p.mean - centre_) / scale_;
    const Tensor t = ((p.query - centre_) / scale_).unsqueeze(1).expand(mu.sizes());
    const auto products = [&](const Tensor& x) {
      return (x.unsqueeze(3) * mu.unsqueeze(2)).flatten(2);
    };
    const Tensor one = ones({mu.size(0), mu.size(1), 1});
    const Tensor features = cat({products(t), t, one, mu, products(mu)}, 2);
    const Tensor of_key = embedding(theta_, cells(p.mean));
    return log_softmax(p.log_count + sum(features * of_key, 2), 1);
  }

 private:
  Tensor cells(const Tensor& mean) const {
    Tensor cell;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      Tensor at = zeros({mean.size(0), mean.size(1)}, {.dtype = DType::i64});
      for (double cut : cuts_[i]) at = at + (mean.select(2, int64_t(i)) >= cut).to(DType::i64);
      cell = cell.defined() ? cell * side_ + at : at;
    }
    return cell;
  }

  int64_t side_;
  std::vector<std::vector<double>> cuts_;
  Tensor centre_, scale_, theta_;
};

// (d) The learned link: key and bias from μ̂ by a network of 2 × 32 tanh.
class Link : public IceModel {
 public:
  explicit Link(const Prompts& train)
      : first_({.in = train.query.size(1), .out = 32}),
        second_({.in = 32, .out = 32}),
        last_({.in = 32, .out = train.query.size(1) + 1}) {
    add("first", first_);
    add("second", second_);
    add("last", last_);
    const Tensor flat = train.mean.reshape({-1, train.query.size(1)});
    centre_ = median(flat, 0).values;
    scale_ = mean(abs(flat - centre_), 0);
    near_ = median(abs(flat - centre_), 0).values;  // means may be spread unevenly
  }
  Tensor log_probabilities(const Prompts& p) override {
    const int64_t d = p.query.size(1);
    const Tensor mu = (p.mean - centre_) / near_, query = (p.query - centre_) / scale_;
    const Tensor out = last_(tanh(second_(tanh(first_(mu)))));
    const Tensor scores = sum(slice(out, 2, 0, d) * query.unsqueeze(1), 2) + select(out, 2, d);
    return log_softmax(p.log_count + scores, 1);
  }

 private:
  nn::Linear first_, second_, last_;
  Tensor centre_, scale_, near_;
};

// (e) Token-level head: weights ∝ exp(qᵀ C T_i + T_iᵀ Q T_i + rᵀ T_i), values one-hot labels.
class Token : public IceModel {
 public:
  explicit Token(const Prompts& train) {
    const int64_t d = train.query.size(1);
    const double scale = 1 / var(train.query).item();
    c_ = trainable(eye(d) * scale);
    q_ = trainable(eye(d) * (-0.5 * scale));
    r_ = trainable(zeros({d}));
    add("c", c_);
    add("q", q_);
    add("r", r_);
  }
  Tensor metric() const override { return c_; }
  Tensor log_probabilities(const Prompts& p) override {
    return token_head(p, c_, quadratic(p.t, q_) + matmul(p.t, r_));
  }

 private:
  Tensor c_, q_, r_;
};

// (f) Two pre-norm layers, two heads, width 32, over the labelled tokens and the query.
class SmallTransformer : public IceModel {
 public:
  SmallTransformer(const Prompts& train, int64_t keys)
      : embed_({.in = train.query.size(1) + keys + 1, .out = 32}),
        layers_({.d_model = 32,
                 .nhead = 2,
                 .dim_feedforward = 64,
                 .dropout = 0,
                 .batch_first = true,
                 .norm_first = true},
                {.num_layers = 2, .norm = true}),
        head_({.in = 32, .out = keys}) {
    add("embed", embed_);
    add("layers", layers_);
    add("head", head_);
    centre_ = mean(train.query, 0);
    scale_ = std(train.query, 0);
  }
  Tensor log_probabilities(const Prompts& p) override {
    const int64_t b = p.t.size(0), n = p.t.size(1), keys = p.log_count.size(1);
    const Tensor labels = one_hot(p.labels, keys + 1, DType::f32);  // the last column: the query
    const Tensor query_label =
        one_hot(full({b, 1}, keys, {.dtype = DType::i64}), keys + 1, DType::f32);
    const Tensor t = (cat({p.t, p.query.unsqueeze(1)}, 1) - centre_) / scale_;
    const Tensor x = layers_(embed_(cat({t, cat({labels, query_label}, 1)}, 2)));
    return log_softmax(head_(select(x, 1, n)), 1);
  }

 private:
  nn::Linear embed_;
  nn::TransformerEncoder layers_;
  nn::Linear head_;
  Tensor centre_, scale_;
};

// The black box: 2 × 64 on the query and all pooled means.
class BlackBox : public IceModel {
 public:
  BlackBox(const Prompts& train, int64_t keys)
      : first_({.in = train.query.size(1) * (keys + 1), .out = 64}),
        second_({.in = 64, .out = 64}),
        last_({.in = 64, .out = keys}) {
    add("first", first_);
    add("second", second_);
    add("last", last_);
    centre_ = mean(train.query, 0);
    scale_ = std(train.query, 0);
  }
  Tensor log_probabilities(const Prompts& p) override {
    const Tensor all = (cat({p.query.unsqueeze(1), p.mean}, 1) - centre_) / scale_;
    return log_softmax(last_(relu(second_(relu(first_(all.flatten(1)))))), 1);
  }

 private:
  nn::Linear first_, second_, last_;
  Tensor centre_, scale_;
};

}  // namespace

std::unique_ptr<IceModel> make_ice_model(const std::string& name, const Prompts& train,
                                         const IceTask& task, int64_t heads) {
  if (name == "shared") return std::make_unique<Shared>(train);
  if (name == "affine") return std::make_unique<AffineAtlas>(train, 1);
  if (name == "atlas") return std::make_unique<AffineAtlas>(train, heads);
  if (name == "link") return std::make_unique<Link>(train);
  if (name == "token") return std::make_unique<Token>(train);
  if (name == "transformer") return std::make_unique<SmallTransformer>(train, task.keys);
  if (name == "mlp") return std::make_unique<BlackBox>(train, task.keys);
  throw ValueError("ice", "there is no model \"" + name +
                              "\"; known are shared, affine, atlas, link, token, transformer, mlp");
}

}  // namespace cutaway::bayes
