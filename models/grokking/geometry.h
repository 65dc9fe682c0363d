#pragma once
#include <cutaway/models/grokking/model.h>
#include <cutaway/models/grokking/task.h>

namespace cutaway::grokking {

// ---- geometry prompts: priors on the embedding of the entities, E [n,d]

// Σ σ_i(E) / n.
Tensor nuclear_prior(const Tensor& E);
// Spectral entropy −Σ π_i ln π_i, π_i = σ_i² / Σ σ².
Tensor entropy_prior(const Tensor& E);
// Mean of ‖f(E_x + εu) − f(E_x)‖² / ε² over inputs x, u a random unit direction of the embedding
// space at each place, ε = 0.01 · mean ‖row of E‖. ids [B, length].
Tensor lipschitz_prior(Network& net, const Tensor& ids, Generator& generator);

// ---- inspection of learnt geometry; all in f64, without history

// Principal components of centred rows: shares of the variance, descending, and coordinates
// [n][components].
struct Components {
  std::vector<double> share;
  std::vector<std::vector<double>> coordinates;
};
Components principal_components(const Tensor& E);
// Number of components with more than 1 % of the variance.
int effective_dimension(const std::vector<double>& share);

// Share of the variance of rows order[0], order[1], … of E at frequencies 1 … ⌊n/2⌋ of the cyclic
// group of their number; sums to 1.
std::vector<double> fourier_shares(const Tensor& E, const std::vector<int64_t>& order);
// Sum of the `count` largest.
double strongest(std::vector<double> shares, size_t count = 10);
// The largest share of the variance of two coordinates at one frequency, and which.
struct Circle {
  int64_t frequency = 0;
  double share = 0;
};
Circle circle_fit(const Components& c, const std::vector<int64_t>& order, size_t first = 0);
// R² of the least-squares fit of true coordinates from the leading `count` components, smallest
// over the coordinates.
double place_fit(const Components& c, const std::vector<std::vector<double>>& places,
                 size_t count = 4);

// √ of the sum of squares of all parameters.
double parameter_norm(const nn::Module& module);

}  // namespace cutaway::grokking
