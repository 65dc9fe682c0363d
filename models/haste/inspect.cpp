#include <cutaway/models/haste/inspect.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <cutaway/core/error.h>

namespace cutaway::haste {
namespace {

// Sum of the vectors of a label's samples, length 1: feature → weight.
std::map<int32_t, double> profile(const Csr& features, std::span<const int32_t> samples) {
  std::map<int32_t, double> sum;
  for (const int32_t s : samples) {
    const auto index = features.row(s);
    for (size_t i = 0; i < index.size(); ++i) {
      sum[index[i]] += features.value.empty() ? 1.0 : double(features.values(s)[i]);
    }
  }
  double squares = 0;
  for (const auto& [feature, weight] : sum) squares += weight * weight;
  for (auto& [feature, weight] : sum) weight /= std::sqrt(std::max(squares, 1e-30));
  return sum;
}

// Mean weight of each word over all tail labels with samples.
std::vector<double> tail_mean(const XmcData& train, const Csr& positives, const LabelOrder& order) {
  std::vector<double> mean(size_t(train.num_features()));
  const auto tail = double(std::max<int64_t>(1, order.seen - order.head));
  for (int64_t i = order.head; i < order.seen; ++i) {
    for (const auto& [f, w] : profile(train.features, positives.row(order.label[size_t(i)]))) {
      mean[size_t(f)] += w / tail;
    }
  }
  return mean;
}

}  // namespace

std::vector<GroupView> view_groups(const XmcData& train, const LabelOrder& order,
                                   const std::vector<int64_t>& numbers, int64_t words) {
  if (order.label.size() != size_t(train.num_labels())) {
    throw ValueError("groups", fmt::format("an order of {} labels for a set with {}",
                                           order.label.size(), train.num_labels()));
  }
  const Csr positives = transpose(train.labels);
  const std::vector<double> usual = tail_mean(train, positives, order);
  std::vector<GroupView> views;
  for (const int64_t g : numbers) {
    if (g < 0 || g >= order.groups()) {
      throw IndexError("groups", fmt::format("no group {}; there are {}", g, order.groups()));
    }
    GroupView view;
    view.number = g;
    const int64_t begin = order.head + g * order.group;
    const int64_t end = std::min<int64_t>(begin + order.group, int64_t(order.label.size()));
    std::map<int32_t, GroupView::Word> found;
    std::map<int32_t, double> mean;
    std::vector<std::map<int32_t, double>> profiles;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t label = order.label[size_t(i)];
      const auto samples = positives.row(label);
      view.labels.push_back(label);
      view.frequency.push_back(int64_t(samples.size()));
      profiles.push_back(profile(train.features, samples));
      for (const auto& [f, w] : profiles.back()) {
        mean[f] += w / double(end - begin);
        ++found[f].labels;
      }
    }
    double squares = 0;
    for (const auto& [f, w] : mean) squares += w * w;
    const double length = std::max(std::sqrt(squares), 1e-30);
    for (const auto& p : profiles) {
      for (const auto& [f, w] : p) view.cohesion += w * mean[f] / length / double(end - begin);
    }
    const int64_t least = end - begin >= 3 ? 2 : 1;
    for (auto& [f, word] : found) {
      word.feature = f;
      const double m = mean[f], u = usual[size_t(f)];
      word.gain = m > 0 && u > 0 ? m * std::log(m / u) : m;
      if (word.labels >= least) view.words.push_back(word);
    }
    const size_t shown = std::min(view.words.size(), size_t(std::max<int64_t>(0, words)));
    std::partial_sort(view.words.begin(), view.words.begin() + int64_t(shown), view.words.end(),
                      [](const auto& x, const auto& y) {
                        return x.gain != y.gain ? x.gain > y.gain : x.feature < y.feature;
                      });
    view.words.resize(shown);
    views.push_back(std::move(view));
  }
  return views;
}

Cohesion order_cohesion(const XmcData& train, const LabelOrder& order,
                        const GroupingOptions& options) {
  const std::vector<int32_t> tail(order.label.begin() + order.head,
                                  order.label.begin() + std::max(order.head, order.seen));
  std::vector<int32_t> as_it_is(tail.size());
  std::iota(as_it_is.begin(), as_it_is.end(), 0);
  return cohesion(label_embeddings(train, tail, options.dim, options.seed), options.dim, as_it_is,
                  order.group);
}

}  // namespace cutaway::haste
