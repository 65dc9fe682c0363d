// What the groups of a trained model read.
#include <fmt/format.h>
#include <algorithm>
#include <numeric>

#include <cutaway/autograd/ops.h>
#include <cutaway/core/error.h>
#include <cutaway/models/haste/inspect.h>
#include <cutaway/models/haste/metrics.h>

namespace cutaway::haste {
namespace {

// The `count` words with the highest value of each feature: [features][count].
std::vector<std::vector<int32_t>> strongest_words(Model& model, int64_t words, int64_t count) {
  constexpr int64_t kBatch = 512;
  std::vector<TopK> best;  // rows are features
  for (int64_t first = 0; first < words; first += kBatch) {
    const int64_t rows = std::min(kBatch, words - first);
    Csr alone;
    alone.cols = words;
    std::vector<int64_t> all(static_cast<size_t>(rows));
    std::iota(all.begin(), all.end(), 0);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < rows; ++i) {
      alone.index.push_back(int32_t(first + i));
      alone.value.push_back(1.f);
      alone.start.push_back(i + 1);
      ids.push_back(int32_t(first + i));
    }
    const Tensor x = model.features(make_batch(alone, all)).tail;  // [features, rows]
    const int64_t features = x.size(0);
    if (best.empty()) best.emplace_back(features, count);
    const Tensor turned = x.transpose(0, 1).contiguous();  // a row of values for each word
    best[0].add(turned.data<float>(), rows, ids);
  }
  std::vector<std::vector<int32_t>> strongest;
  for (int64_t f = 0; !best.empty() && f < best[0].rows(); ++f) {
    const auto found = best[0].labels(f);
    strongest.emplace_back(found.begin(), std::find(found.begin(), found.end(), -1));
  }
  return strongest;
}

}  // namespace

std::vector<std::vector<SharedFeature>> shared_features(Model& model, int64_t words_known,
                                                        const std::vector<int64_t>& numbers,
                                                        int64_t count, int64_t words) {
  OutputLayer& tail = model.tail();
  if (!tail.index().defined() || tail.index().dim() != 2 || tail.group() < 2) {
    throw ValueError("groups", "the tail of this model shares no features within groups",
                     "train with --layer haste");
  }
  const int64_t fan_in = tail.index().size(1);
  const std::vector<float> scores = slot_scores(
      {.index = tail.index(), .weight = tail.weight(), .group = tail.group()}, SlotScore::mean);
  const auto strongest = strongest_words(model, words_known, std::max<int64_t>(1, words));
  std::vector<std::vector<SharedFeature>> out;
  for (const int64_t g : numbers) {
    if (g < 0 || g >= tail.index().size(0)) {
      throw IndexError("groups", fmt::format("no group {}; there are {}", g, tail.index().size(0)));
    }
    std::vector<SharedFeature> all;
    for (int64_t j = 0; j < fan_in; ++j) {
      const int32_t f = tail.index().data<int32_t>()[g * fan_in + j];
      all.push_back({f, scores[size_t(g * fan_in + j)], strongest.at(size_t(f))});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& x, const auto& y) { return x.score > y.score; });
    all.resize(std::min(all.size(), size_t(std::max<int64_t>(0, count))));
    out.push_back(std::move(all));
  }
  return out;
}

}  // namespace cutaway::haste
