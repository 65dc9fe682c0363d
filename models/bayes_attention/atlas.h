#pragma once
#include <string>
#include <vector>

#include <cutaway/models/bayes_attention/heads.h>

namespace cutaway::bayes {

enum class Cells { uniform, arc };

// A grid of H = g^d cells over a box of mean space: edges are evenly spaced in μ or in Fisher arc
// length, anchors are the middles in the same coordinate.
class Grid {
 public:
  // Raises ValueError unless heads is g^d for a whole number g.
  Grid(const Family& family, Cells cells, int64_t heads, std::vector<double> low,
       std::vector<double> high);
  int64_t heads() const { return heads_; }
  int64_t dim() const { return int64_t(low_.size()); }
  const std::vector<std::vector<double>>& edges() const { return edges_; }  // d lists of g + 1
  int64_t cell_of(const double* mu) const;
  std::vector<int64_t> cells_of(const Tensor& mu) const;  // mu [K,d]
  Tensor anchor(int64_t cell) const;                      // [d]
  // Distance from the anchor to the farthest corner, and sup |φ'''| over the cell.
  double radius(int64_t cell) const;
  double third_derivative(int64_t cell) const;

 private:
  std::vector<int64_t> digits(int64_t cell) const;
  Family family_;
  int64_t heads_, side_;
  std::vector<double> low_, high_;
  std::vector<std::vector<double>> edges_, anchors_;
};
// The box of the family's codebooks (section 5), or the range of the keys when they leave it.
Grid make_grid(const Codebook& codebook, Cells cells, int64_t heads);
Cells cells_named(const std::string& name);  // "arc" or "uniform", else ValueError

// (T5) Heads of the atlas: keys η̃_k and biases log π_k + m(φ_c(μ_k) − ⟨η̃_k, μ_k⟩).
struct AtlasHeads {
  Tensor keys;                 // η̃ [K,d]
  Tensor bias;                 // [K]
  std::vector<int64_t> cells;  // the cell of each key
  int64_t heads = 1;
  double m = 1;
};
AtlasHeads taylor_atlas(const Codebook& codebook, const Grid& grid, int64_t m);
// Each head runs apart by the framework's attention; they are joined under one softmax by their
// log-sum-exp. t [N,d] → posterior [N,K].
Tensor atlas_posterior(const AtlasHeads& atlas, const Tensor& t);

// How far the atlas is from Bayes.
struct AtlasError {
  int64_t heads;
  double sup;          // largest |Δ_k| over keys and statistics
  double worst_ratio;  // largest |Δ_k| / bound of T5
  double kl = 0, l1 = 0;
};
// Scores over all pairs of keys μ [K,d] and statistics t [N,d].
AtlasError atlas_score_error(const Codebook& codebook, const Grid& grid, int64_t m,
                             const Tensor& t);
// E KL and mean L1 of the posterior on statistics.
void add_posterior_error(AtlasError& e, const Codebook& codebook, const Grid& grid, int64_t m,
                         const Tensor& t);
// One coordinate, keys on a fine grid over the domain, statistics over the same range: the setting
// of statement 5.
AtlasError line_error(const std::string& family, Cells cells, int64_t heads);
// Slope of log y against log x.
double log_slope(const std::vector<double>& x, const std::vector<double>& y);

// Heads with free affine keys and quadratic biases in each cell, started from the Taylor atlas and
// fitted to the posterior by Adam: E KL on fresh statistics.
struct LearnedAtlasOptions {
  int64_t steps = 700, draws = 4000, m = 16;
  double lr = 0.05;
  uint64_t seed = 0;
};
double learned_atlas_kl(const Codebook& codebook, int64_t heads, const LearnedAtlasOptions& o);

}  // namespace cutaway::bayes
