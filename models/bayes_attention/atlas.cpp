#include <cutaway/models/bayes_attention/atlas.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/core/tensor_ops.h>
#include <cutaway/nn/optim/optimizer.h>

namespace cutaway::bayes {
namespace {

constexpr Opts kF64{.dtype = DType::f64};

struct Range {
  double low, high;
};
// Means of the codebooks of section 5.
Range usual_range(const Family& f) {
  switch (f.kind) {
    case Kind::gaussian:
      return {-2, 2};
    case Kind::poisson:
      return {0.3, 8};
    default:
      return {0.05, 0.95};
  }
}

Tensor in_cell(const std::vector<int64_t>& cells, int64_t cell) {
  std::vector<int64_t> keys;
  for (size_t k = 0; k < cells.size(); ++k) {
    if (cells[k] == cell) keys.push_back(int64_t(k));
  }
  return index_tensor(keys);
}

}  // namespace

Cells cells_named(const std::string& name) {
  if (name == "arc") return Cells::arc;
  if (name == "uniform") return Cells::uniform;
  throw ValueError("atlas", "--cells is arc or uniform; got " + name);
}

Grid::Grid(const Family& family, Cells cells, int64_t heads, std::vector<double> low,
           std::vector<double> high)
    : family_(family), heads_(heads), low_(std::move(low)), high_(std::move(high)) {
  side_ = std::llround(std::pow(double(heads), 1 / double(dim())));
  int64_t product = 1;
  for (int64_t i = 0; i < dim(); ++i) product *= side_;
  if (heads < 1 || product != heads) {
    throw ValueError("atlas", fmt::format("{} heads are no grid in {} dimensions; need g^{}", heads,
                                          dim(), dim()));
  }
  const auto to = [&](double v) { return cells == Cells::arc ? family.arc(v) : v; };
  const auto back = [&](double s) { return cells == Cells::arc ? family.from_arc(s) : s; };
  for (int64_t i = 0; i < dim(); ++i) {
    const double a = to(low_[size_t(i)]), b = to(high_[size_t(i)]), w = (b - a) / double(side_);
    std::vector<double> edges, anchors;
    for (int64_t j = 0; j <= side_; ++j) edges.push_back(back(a + w * double(j)));
    for (int64_t j = 0; j < side_; ++j) anchors.push_back(back(a + w * (double(j) + 0.5)));
    edges_.push_back(edges);
    anchors_.push_back(anchors);
  }
}

int64_t Grid::cell_of(const double* mu) const {
  int64_t cell = 0;
  for (int64_t i = 0; i < dim(); ++i) {
    const auto& e = edges_[size_t(i)];
    const int64_t at = std::upper_bound(e.begin(), e.end(), mu[i]) - e.begin() - 1;
    cell = cell * side_ + std::clamp<int64_t>(at, 0, side_ - 1);
  }
  return cell;
}

std::vector<int64_t> Grid::cells_of(const Tensor& mu) const {
  const Tensor c = contiguous_raw(mu);
  std::vector<int64_t> cells;
  for (int64_t k = 0; k < c.size(0); ++k) cells.push_back(cell_of(c.data<double>() + k * dim()));
  return cells;
}

std::vector<int64_t> Grid::digits(int64_t cell) const {
  std::vector<int64_t> list(low_.size());
  for (size_t i = list.size(); i-- > 0; cell /= side_) list[i] = cell % side_;
  return list;
}

Tensor Grid::anchor(int64_t cell) const {
  std::vector<double> a;
  const std::vector<int64_t> at = digits(cell);
  for (size_t i = 0; i < at.size(); ++i) a.push_back(anchors_[i][size_t(at[i])]);
  return tensor(a, kF64);
}

double Grid::radius(int64_t cell) const {
  double total = 0;
  const std::vector<int64_t> at = digits(cell);
  for (size_t i = 0; i < at.size(); ++i) {
    const size_t j = size_t(at[i]);
    const double a = anchors_[i][j], far = std::max(a - edges_[i][j], edges_[i][j + 1] - a);
    total += far * far;
  }
  return std::sqrt(total);
}

double Grid::third_derivative(int64_t cell) const {
  double most = 0;
  const std::vector<int64_t> at = digits(cell);
  for (size_t i = 0; i < at.size(); ++i) {
    const size_t j = size_t(at[i]);
    most = std::max(most, family_.third_derivative(edges_[i][j], edges_[i][j + 1]));
  }
  return most;
}

Grid make_grid(const Codebook& c, Cells cells, int64_t heads) {
  const Range usual = usual_range(c.family);
  const std::vector<double> least = amin(c.mu, 0).to_vector(), most = amax(c.mu, 0).to_vector();
  std::vector<double> low, high;
  for (size_t i = 0; i < least.size(); ++i) {
    low.push_back(std::min(usual.low, least[i]));
    high.push_back(std::max(usual.high, most[i]));
  }
  return Grid(c.family, cells, heads, low, high);
}

AtlasHeads taylor_atlas(const Codebook& c, const Grid& grid, int64_t m) {
  AtlasHeads atlas{{}, {}, grid.cells_of(c.mu), grid.heads(), double(m)};
  Tensors anchors;
  for (int64_t cell : atlas.cells) anchors.push_back(grid.anchor(cell));
  const Tensor a = stack(anchors), step = c.mu - a, h = c.family.hessian(a);
  const Tensor bend = matmul(h, step.unsqueeze(2)).squeeze(2), eta = c.family.link(a);
  atlas.keys = eta + bend;
  const Tensor phi = c.family.potential(a) + sum(eta * step, 1) + sum(bend * step, 1) * 0.5;
  atlas.bias = log(c.prior) + (phi - sum(atlas.keys * c.mu, 1)) * double(m);
  return atlas;
}

Tensor atlas_posterior(const AtlasHeads& atlas, const Tensor& t) {
  const int64_t k = atlas.keys.size(0);
  const Tensor q = t * atlas.m, one_hot_keys = eye(k, kF64);
  Tensors outputs, sums;
  for (int64_t cell = 0; cell < atlas.heads; ++cell) {
    const Tensor keys = in_cell(atlas.cells, cell);
    if (keys.numel() == 0) continue;
    const AttentionResult r = attention_with_lse(
        q, index_select(atlas.keys, 0, keys), index_select(one_hot_keys, 0, keys),
        {.mask = index_select(atlas.bias, 0, keys).unsqueeze(0), .scale = 1});
    outputs.push_back(r.output);
    sums.push_back(r.lse);
  }
  const Tensor weights = softmax(stack(sums), 0);  // exp(lse_h − log Σ_h exp(lse_h))
  return sum(stack(outputs) * weights.unsqueeze(2), 0);
}

AtlasError atlas_score_error(const Codebook& c, const Grid& grid, int64_t m, const Tensor& t) {
  const AtlasHeads atlas = taylor_atlas(c, grid, m);
  const Head exact = plain_head(c, m);
  const auto scores = [&](const Tensor& keys, const Tensor& bias) {
    return matmul(t, keys.t()) * double(m) + bias;
  };
  // Both have the term φ(T) and a constant left out. The exact score ⟨η,T⟩ − A(η) and the Taylor
  // score φ(μ) + ⟨η̃, T − μ⟩ agree when η̃ = η, since φ(μ) = ⟨η,μ⟩ − A(η).
  const std::vector<double> delta =
      abs(scores(atlas.keys, atlas.bias) - scores(exact.keys, exact.bias)).to_vector();
  const std::vector<double> distance =
      sqrt(sum(square(t.unsqueeze(1) - c.mu.unsqueeze(0)), 2)).to_vector();
  AtlasError e{grid.heads(), 0, 0};
  const size_t keys = size_t(c.keys());
  std::vector<double> radius, third;
  for (int64_t cell : atlas.cells) {
    radius.push_back(grid.radius(cell));
    third.push_back(grid.third_derivative(cell));
  }
  for (size_t i = 0; i < delta.size(); ++i) {
    const double r = radius[i % keys], l = third[i % keys];
    const double bound = double(m) * (l * r * r * r / 6 + l * r * r / 2 * distance[i]);
    e.sup = std::max(e.sup, delta[i]);
    // Rounding alone: both scores are sums of terms of size 10 at most.
    if (delta[i] > 1e-12 * double(m)) e.worst_ratio = std::max(e.worst_ratio, delta[i] / bound);
  }
  return e;
}

void add_posterior_error(AtlasError& e, const Codebook& c, const Grid& grid, int64_t m,
                         const Tensor& t) {
  const Tensor p = direct_bayes(c, t, m), q = atlas_posterior(taylor_atlas(c, grid, m), t);
  e.kl = mean_kl(p, log(clamp_min(q, 1e-300)));
  e.l1 = mean(sum(abs(p - q), 1)).item();
}

AtlasError line_error(const std::string& family, Cells cells, int64_t heads) {
  constexpr int64_t kKeys = 2000, kStatistics = 41;
  const Family f = Family::named(family, 1);
  const Range range = usual_range(f);
  const Tensor mu = linspace(range.low, range.high, kKeys, kF64).unsqueeze(1);
  const Codebook c = make_codebook(f, mu, full({kKeys}, 1.0 / kKeys, kF64));
  const Tensor t = linspace(range.low, range.high, kStatistics, kF64).unsqueeze(1);
  return atlas_score_error(c, Grid(f, cells, heads, {range.low}, {range.high}), 1, t);
}

double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  double mx = 0, my = 0, xx = 0, xy = 0;
  const double n = double(x.size());
  for (size_t i = 0; i < x.size(); ++i) mx += std::log(x[i]) / n, my += std::log(y[i]) / n;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = std::log(x[i]) - mx;
    xx += u * u;
    xy += u * (std::log(y[i]) - my);
  }
  return xy / xx;
}

namespace {

// Heads with affine keys and quadratic biases in standardised coordinates u = (T − centre) / scale,
// where a step of any parameter moves scores by its own size: the potential is
// φ̂(u) = m φ(centre + scale u), its Taylor polynomials are the start.
class FreeHeads {
 public:
  FreeHeads(const Codebook& c, const Grid& grid, double m, const Tensor& t)
      : log_prior_(log(c.prior)),
        centre_(mean(t, 0)),
        scale_(std(t, 0)),
        cells_(index_tensor(grid.cells_of(c.mu))),
        mu_((c.mu - centre_) / scale_) {
    Tensors w, a, b;
    for (int64_t cell = 0; cell < grid.heads(); ++cell) {
      const Tensor mean = grid.anchor(cell), at = (mean - centre_) / scale_;
      const Tensor h = c.family.hessian(mean) * outer(scale_, scale_) * m;
      const Tensor eta = c.family.link(mean) * scale_ * m, bend = mv(h, at);
      w.push_back(h);
      a.push_back(eta - bend);
      b.push_back(dot(eta, at) - c.family.potential(mean) * m - dot(at, bend) * 0.5);
    }
    w_ = parameter("w", stack(w));
    a_ = parameter("a", stack(a));
    b_ = parameter("b", stack(b));
    g_ = parameter("g", zeros({grid.heads(), c.dim()}, kF64));
    gamma_ = parameter("gamma", stack(w) * 0.5);
  }

  // log π_k + ⟨W_c μ_k + a_c, T⟩ − (b_c + g_cᵀ μ_k + μ_kᵀ Γ_c μ_k), c the cell of key k.
  Tensor scores(const Tensor& t) const {
    const auto of_key = [&](const Tensor& p) { return index_select(p, 0, cells_); };
    const auto times_mu = [&](const Tensor& p) {
      return matmul(of_key(p), mu_.unsqueeze(2)).squeeze(2);
    };
    const Tensor keys = times_mu(w_) + of_key(a_);
    const Tensor bias = of_key(b_) + sum((of_key(g_) + times_mu(gamma_)) * mu_, 1);
    return log_prior_ + matmul((t - centre_) / scale_, keys, {.transpose_b = true}) - bias;
  }
  const nn::NamedTensors& parameters() const { return parameters_; }

 private:
  Tensor parameter(const char* name, const Tensor& value) {
    parameters_.push_back({name, value.detach().set_requires_grad()});
    return parameters_.back().value;
  }
  Tensor log_prior_, centre_, scale_, cells_, mu_;
  Tensor w_, a_, b_, g_, gamma_;
  nn::NamedTensors parameters_;
};

}  // namespace

double learned_atlas_kl(const Codebook& c, int64_t heads, const LearnedAtlasOptions& o) {
  const Tensor train = draw_statistics(c, o.draws, o.m, o.seed + 1000).t;
  const Tensor test = draw_statistics(c, o.draws, o.m, o.seed + 2000).t;
  const Tensor target = direct_bayes(c, train, o.m);
  const FreeHeads model(c, make_grid(c, Cells::arc, heads), double(o.m), train);
  optim::Adam adam(model.parameters(), {.lr = o.lr});
  for (int64_t step = 0; step < o.steps; ++step) {
    adam.set_lr(o.lr * (1 - 0.9 * double(step) / double(o.steps)));
    cross_entropy(model.scores(train), target).backward();
    adam.step_and_zero();
  }
  NoGradGuard no_grad;
  return mean_kl(direct_bayes(c, test, o.m), log_softmax(model.scores(test), 1));
}

}  // namespace cutaway::bayes
