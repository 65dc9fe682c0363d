#include <cutaway/models/report/statistics.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cutaway::report {
namespace {

std::vector<double> ranks(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> rank(x.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && x[order[end]] == x[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) rank[order[k]] = double(i + end - 1) / 2;
    i = end;
  }
  return rank;
}

}  // namespace

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  const auto a = ranks(x), b = ranks(y);
  const double middle = (double(a.size()) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : NAN;
}

double auc(const std::vector<double>& positive, const std::vector<double>& negative) {
  if (positive.empty() || negative.empty()) return NAN;
  std::vector<double> sorted = negative;
  std::sort(sorted.begin(), sorted.end());
  double wins = 0;
  for (double p : positive) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), p);
    wins += double(low - sorted.begin()) + double(high - low) / 2;
  }
  return wins / double(positive.size()) / double(negative.size());
}

Threshold best_threshold(const std::vector<double>& positive, const std::vector<double>& negative) {
  std::vector<std::pair<double, int>> all;
  for (double p : positive) all.push_back({p, 1});
  for (double n : negative) all.push_back({n, 0});
  std::sort(all.begin(), all.end());
  Threshold best;
  double widest = -1;
  size_t below = 0, wrong = 0;  // positives and negatives up to here
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    all[i].second ? ++below : ++wrong;
    const double gap = all[i + 1].first - all[i].first;
    if (gap <= 0) continue;
    const double accuracy = (double(below) / double(std::max<size_t>(positive.size(), 1)) + 1 -
                             double(wrong) / double(std::max<size_t>(negative.size(), 1))) /
                            2;
    if (accuracy > best.accuracy + 1e-12 || (accuracy > best.accuracy - 1e-12 && gap > widest)) {
      best = {(all[i].first + all[i + 1].first) / 2, accuracy};
      widest = gap;
    }
  }
  return best;
}

}  // namespace cutaway::report
