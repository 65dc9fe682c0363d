#include <cutaway/models/haste/metrics.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>

namespace cutaway::haste {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

bool holds(std::span<const int32_t> sorted, int32_t label) {
  return std::binary_search(sorted.begin(), sorted.end(), label);
}

// Puts a candidate that is better than the last of the k into its place.
void insert(int32_t* labels, float* scores, int64_t k, int32_t label, float score) {
  int64_t at = k - 1;
  for (; at > 0; --at) {
    const bool better = score > scores[at - 1] ||
                        (score == scores[at - 1] && (labels[at - 1] < 0 || label < labels[at - 1]));
    if (!better) break;
    scores[at] = scores[at - 1];
    labels[at] = labels[at - 1];
  }
  scores[at] = score;
  labels[at] = label;
}

}  // namespace

TopK::TopK(int64_t rows, int64_t k) : rows_(rows), k_(k) {
  if (rows < 0 || k < 1) {
    throw ValueError("top k", fmt::format("need k ≥ 1 and rows ≥ 0; got {} and {}", k, rows));
  }
  clear();
}

void TopK::clear() {
  labels_.assign(size_t(rows_ * k_), -1);
  scores_.assign(size_t(rows_ * k_), kNone);
}

void TopK::offer(const float* scores, int32_t label, int64_t begin, int64_t end, const Csr* filter,
                 int64_t first_row) {
  for (int64_t r = begin; r < end; ++r) {
    const float last = scores_[size_t(r * k_ + k_ - 1)];
    if (!(scores[r] >= last)) continue;
    const int32_t held = labels_[size_t(r * k_ + k_ - 1)];
    if (scores[r] == last && held >= 0 && held < label) continue;
    if (filter && holds(filter->row(first_row + r), label)) continue;
    insert(&labels_[size_t(r * k_)], &scores_[size_t(r * k_)], k_, label, scores[r]);
  }
}

void TopK::add(const float* scores, int64_t count, std::span<const int32_t> labels,
               const Csr* filter, int64_t first_row) {
  if (filter && filter->rows() == 0) filter = nullptr;
  parallel_for(rows_, 16, [&](int64_t begin, int64_t end) {
    for (int64_t c = 0; c < count; ++c) {
      offer(scores + c * rows_, labels[size_t(c)], begin, end, filter, first_row);
    }
  });
}

std::vector<int64_t> label_frequencies(const Csr& labels) {
  std::vector<int64_t> frequency(static_cast<size_t>(labels.cols));
  for (const int32_t l : labels.index) ++frequency[size_t(l)];
  return frequency;
}

std::vector<double> propensities(const std::vector<int64_t>& frequency, int64_t samples, double a,
                                 double b) {
  if (samples < 1 || b < 0) {
    throw ValueError("propensities",
                     fmt::format("need at least one sample and b ≥ 0; got {} and {}", samples, b));
  }
  const double c = std::max(0.0, (std::log(double(samples)) - 1) * std::pow(b + 1, a));
  std::vector<double> p;
  for (const int64_t n : frequency) p.push_back(1 / (1 + c * std::pow(double(n) + b, -a)));
  return p;
}

Bands frequency_bands(const std::vector<int64_t>& frequency, int64_t head, int64_t tail) {
  Bands bands;
  bands.names = {fmt::format("head (≥ {})", head), fmt::format("torso ({}–{})", tail, head - 1),
                 fmt::format("tail (< {})", tail)};
  for (const int64_t n : frequency) {
    bands.band.push_back(n < 1       ? int8_t(-1)
                         : n >= head ? int8_t(0)
                         : n >= tail ? int8_t(1)
                                     : int8_t(2));
  }
  return bands;
}

Bands decile_bands(const std::vector<int64_t>& frequency) {
  std::vector<int32_t> order;
  for (size_t l = 0; l < frequency.size(); ++l) {
    if (frequency[l] > 0) order.push_back(int32_t(l));
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t x, int32_t y) {
    return frequency[size_t(x)] > frequency[size_t(y)];
  });
  Bands bands;
  bands.band.assign(frequency.size(), -1);
  const int64_t seen = int64_t(order.size());
  for (int64_t d = 0; d < 10; ++d) {
    const int64_t begin = seen * d / 10, end = seen * (d + 1) / 10;
    for (int64_t i = begin; i < end; ++i) bands.band[size_t(order[size_t(i)])] = int8_t(d);
    bands.names.push_back(begin == end ? fmt::format("decile {}", d + 1)
                                       : fmt::format("decile {} ({}–{})", d + 1,
                                                     frequency[size_t(order[size_t(end) - 1])],
                                                     frequency[size_t(order[size_t(begin)])]));
  }
  return bands;
}

Evaluator::Evaluator(const Csr& truth, const Csr& filter, const std::vector<int64_t>& frequency,
                     int64_t train_samples, const EvaluateOptions& options)
    : truth_(truth), filter_(filter), options_(options) {
  const auto fail = [](const std::string& rule) { throw ValueError("evaluate", rule); };
  if (options.k < 1 || options.k > 1000)
    fail(fmt::format("need k of 1 to 1000; got {}", options.k));
  if (truth.rows() == 0) fail("the test set is empty");
  if (int64_t(frequency.size()) != truth.cols) {
    fail(fmt::format("{} label frequencies for {} labels", frequency.size(), truth.cols));
  }
  if (filter.rows() && (filter.rows() != truth.rows() || filter.cols != truth.cols)) {
    fail(fmt::format("the filter is for {} samples and {} labels, the set has {} and {}",
                     filter.rows(), filter.cols, truth.rows(), truth.cols));
  }
  weight_ = propensities(frequency, train_samples, options.a, options.b);
  for (double& p : weight_) p = 1 / p;
  const auto k = size_t(options.k);
  for (Bands bands :
       {frequency_bands(frequency, options.head, options.tail), decile_bands(frequency)}) {
    Group group;
    group.parts.assign(bands.names.size(), {0, std::vector<int64_t>(k), std::vector<int64_t>(k)});
    group.bands = std::move(bands);
    groups_.push_back(std::move(group));
  }
  hits_.resize(k);
  gained_.resize(k);
  attainable_.resize(k);
}

void Evaluator::begin(int64_t first, int64_t rows) {
  if (first < 0 || rows < 1 || first > truth_.rows() - rows) {
    throw IndexError("evaluate", fmt::format("rows {} to {} of a set of {}", first, first + rows,
                                             truth_.rows()));
  }
  first_ = first;
  if (rows_ == rows && !best_.empty()) {
    best_[0].clear();
    for (Group& g : groups_) {
      for (TopK& t : g.best) t.clear();
    }
    return;
  }
  rows_ = rows;
  best_.assign(1, TopK(rows, options_.k));
  for (Group& g : groups_) g.best.assign(g.bands.names.size(), TopK(rows, options_.k));
}

void Evaluator::add(const float* scores, int64_t count, std::span<const int32_t> labels) {
  if (int64_t(labels.size()) != count || best_.empty()) {
    throw ValueError("evaluate",
                     fmt::format("{} labels for {} rows of scores", labels.size(), count));
  }
  for (const int32_t l : labels) {
    if (l < 0 || l >= truth_.cols) {
      throw IndexError("evaluate", fmt::format("label {} of {} labels", l, truth_.cols));
    }
  }
  const Csr* filter = filter_.rows() ? &filter_ : nullptr;
  parallel_for(rows_, 16, [&](int64_t begin, int64_t end) {
    for (int64_t c = 0; c < count; ++c) {
      const float* of_label = scores + c * rows_;
      const int32_t label = labels[size_t(c)];
      best_[0].offer(of_label, label, begin, end, filter, first_);
      for (Group& g : groups_) {
        const int8_t band = g.bands.band[size_t(label)];
        if (band >= 0) g.best[size_t(band)].offer(of_label, label, begin, end, filter, first_);
      }
    }
  });
}

void Evaluator::count(int64_t row, std::span<const int32_t> truth) {
  const int64_t k = options_.k;
  std::vector<double> could;
  for (const int32_t l : truth) could.push_back(weight_[size_t(l)]);
  std::sort(could.rbegin(), could.rend());
  const auto all = best_[0].labels(row);
  double gained = 0, attainable = 0;
  int64_t hits = 0;
  for (int64_t j = 0; j < k; ++j) {
    if (all[size_t(j)] >= 0 && holds(truth, all[size_t(j)])) {
      ++hits;
      gained += weight_[size_t(all[size_t(j)])];
    }
    if (size_t(j) < could.size()) attainable += could[size_t(j)];
    hits_[size_t(j)] += hits;
    gained_[size_t(j)] += gained;
    attainable_[size_t(j)] += attainable;
  }
  for (Group& g : groups_) {
    for (size_t p = 0; p < g.parts.size(); ++p) {
      const auto in_band = [&](int32_t l) { return g.bands.band[size_t(l)] == int8_t(p); };
      if (std::none_of(truth.begin(), truth.end(), in_band)) continue;
      Part& part = g.parts[p];
      ++part.samples;
      const auto own = g.best[p].labels(row);
      int64_t found = 0, in_all = 0;
      for (size_t j = 0; j < size_t(k); ++j) {
        found += own[j] >= 0 && holds(truth, own[j]);
        in_all += all[j] >= 0 && in_band(all[j]) && holds(truth, all[j]);
        part.found[j] += found;
        part.in_all[j] += in_all;
      }
    }
  }
}

void Evaluator::end() {
  std::vector<int32_t> left;
  for (int64_t r = 0; r < rows_; ++r) {
    const auto truth = truth_.row(first_ + r);
    left.assign(truth.begin(), truth.end());
    if (filter_.rows()) {
      const auto ignored = filter_.row(first_ + r);
      std::erase_if(left, [&](int32_t l) { return holds(ignored, l); });
    }
    count(r, left);
  }
  samples_ += rows_;
}

std::vector<BandMetrics> Evaluator::summary(const Group& group) const {
  std::vector<BandMetrics> out;
  for (size_t p = 0; p < group.parts.size(); ++p) {
    const Part& part = group.parts[p];
    BandMetrics m;
    m.name = group.bands.names[p];
    m.labels = std::count(group.bands.band.begin(), group.bands.band.end(), int8_t(p));
    m.samples = part.samples;
    for (size_t j = 0; j < part.found.size(); ++j) {
      const double k = double(j + 1);
      m.precision.push_back(part.samples ? double(part.found[j]) / k / double(part.samples) : 0);
      m.hits.push_back(samples_ ? double(part.in_all[j]) / k / double(samples_) : 0);
    }
    out.push_back(std::move(m));
  }
  return out;
}

Metrics Evaluator::metrics() const {
  Metrics m;
  m.samples = samples_;
  for (size_t j = 0; j < hits_.size(); ++j) {
    m.precision.push_back(samples_ ? double(hits_[j]) / double(j + 1) / double(samples_) : 0);
    m.psp.push_back(attainable_[j] > 0 ? gained_[j] / attainable_[j] : 0);
  }
  m.bands = summary(groups_[0]);
  m.deciles = summary(groups_[1]);
  return m;
}

}  // namespace cutaway::haste
