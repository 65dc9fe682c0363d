#include <cutaway/models/grokking/geometry.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>

#include <cutaway/autograd/autograd.h>
#include <cutaway/autograd/ops.h>

namespace cutaway::grokking {
namespace {

Eigen::MatrixXd matrix(const Tensor& E) {
  const auto values = E.detach().to_vector();
  return Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>(values.data(), E.size(0),
                                                                          E.size(1));
}

// Powers at frequencies 1 … ⌊n/2⌋ of the columns of x [n, columns], summed over columns.
std::vector<double> powers(const Eigen::MatrixXd& x) {
  const Eigen::Index n = x.rows();
  std::vector<double> power;
  for (Eigen::Index k = 1; k <= n / 2; ++k) {
    Eigen::VectorXd cosine(n), sine(n);
    for (Eigen::Index t = 0; t < n; ++t) {
      const double angle = 2 * std::numbers::pi * double(k * t % n) / double(n);
      cosine[t] = std::cos(angle);
      sine[t] = std::sin(angle);
    }
    const double whole =
        (cosine.transpose() * x).squaredNorm() + (sine.transpose() * x).squaredNorm();
    power.push_back(2 * k == n ? whole / 2 : whole);  // n/2 is its own mirror image
  }
  return power;
}

std::vector<double> shares_of(std::vector<double> power) {
  double total = 0;
  for (double p : power) total += p;
  for (double& p : power) p = total > 0 ? p / total : 0;
  return power;
}

}  // namespace

Tensor nuclear_prior(const Tensor& E) {
  return linalg::matrix_norm(E, linalg::MatrixNorm::nuclear) * (1 / double(E.size(0)));
}

Tensor entropy_prior(const Tensor& E) {
  const Tensor power = square(linalg::svdvals(E));
  const Tensor pi = power / sum(power);
  return -sum(pi * log(clamp_min(pi, 1e-12)));
}

Tensor lipschitz_prior(Network& net, const Tensor& ids, Generator& generator) {
  const int64_t n = ids.size(0), length = ids.size(1), d = net.E.size(1);
  const Tensor x = index_select(net.E, 0, ids.reshape({-1})).reshape({n, length, d});
  double epsilon = 0;
  {
    NoGradGuard off;
    epsilon = 0.01 * mean(norm(net.entities(), -1)).item();
  }
  const Tensor u = normalize(randn({n, length * d}, {}, &generator), 1).reshape({n, length, d});
  const Tensor change = net.from_embedded(x + u * epsilon) - net.from_embedded(x);
  return sum(square(change)) * (1 / (epsilon * epsilon * double(n)));
}

Components principal_components(const Tensor& E) {
  Eigen::MatrixXd x = matrix(E);
  x.rowwise() -= x.colwise().mean().eval();
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(x, Eigen::ComputeThinU);
  Components c;
  const Eigen::VectorXd& s = svd.singularValues();
  const double total = s.squaredNorm();
  const Eigen::MatrixXd y = svd.matrixU() * s.asDiagonal();
  for (Eigen::Index i = 0; i < s.size(); ++i) {
    c.share.push_back(total > 0 ? s[i] * s[i] / total : 0);
  }
  for (Eigen::Index row = 0; row < y.rows(); ++row) {
    c.coordinates.emplace_back();
    for (Eigen::Index i = 0; i < y.cols(); ++i) c.coordinates.back().push_back(y(row, i));
  }
  return c;
}

int effective_dimension(const std::vector<double>& share) {
  return int(std::count_if(share.begin(), share.end(), [](double s) { return s > 0.01; }));
}

std::vector<double> fourier_shares(const Tensor& E, const std::vector<int64_t>& order) {
  const Eigen::MatrixXd all = matrix(E);
  Eigen::MatrixXd x(Eigen::Index(order.size()), all.cols());
  for (size_t i = 0; i < order.size(); ++i) x.row(Eigen::Index(i)) = all.row(order[i]);
  return shares_of(powers(x));
}

double strongest(std::vector<double> shares, size_t count) {
  std::sort(shares.rbegin(), shares.rend());
  double sum = 0;
  for (size_t i = 0; i < std::min(count, shares.size()); ++i) sum += shares[i];
  return sum;
}

Circle circle_fit(const Components& c, const std::vector<int64_t>& order, size_t first) {
  Eigen::MatrixXd x(Eigen::Index(order.size()), 2);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& row = c.coordinates[size_t(order[i])];
    for (size_t k = 0; k < 2; ++k) {
      x(Eigen::Index(i), Eigen::Index(k)) = first + k < row.size() ? row[first + k] : 0;
    }
  }
  const auto share = shares_of(powers(x));
  const auto best = std::max_element(share.begin(), share.end());
  if (best == share.end()) return {};
  return {best - share.begin() + 1, *best};
}

double place_fit(const Components& c, const std::vector<std::vector<double>>& places,
                 size_t count) {
  const auto n = Eigen::Index(places.size());
  count = std::min(count, c.share.size());
  Eigen::MatrixXd x(n, Eigen::Index(count) + 1);
  for (Eigen::Index i = 0; i < n; ++i) {
    x(i, 0) = 1;
    for (size_t k = 0; k < count; ++k) x(i, Eigen::Index(k) + 1) = c.coordinates[size_t(i)][k];
  }
  double smallest = 1;
  for (size_t axis = 0; axis < places[0].size(); ++axis) {
    Eigen::VectorXd y(n);
    for (Eigen::Index i = 0; i < n; ++i) y[i] = places[size_t(i)][axis];
    const Eigen::VectorXd rest = y - x * x.colPivHouseholderQr().solve(y);
    const double total = (y.array() - y.mean()).square().sum();
    smallest = std::min(smallest, total > 0 ? 1 - rest.squaredNorm() / total : 1);
  }
  return smallest;
}

double parameter_norm(const nn::Module& module) {
  NoGradGuard off;
  double total = 0;
  for (const auto& p : module.named_parameters()) total += sum(square(p.value)).item();
  return std::sqrt(total);
}

}  // namespace cutaway::grokking
