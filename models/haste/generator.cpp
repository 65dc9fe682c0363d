// The synthetic set: structure in the labels, a long tail, noise.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include <cutaway/core/error.h>
#include <cutaway/core/parallel.h>
#include <cutaway/models/haste/data.h>
#include <cutaway/models/haste/draws.h>

namespace cutaway::haste {
namespace {

constexpr int64_t kCluster = 16, kTopic = 24, kPrivate = 6;
constexpr int64_t kTopicDrawn = 8, kPrivateDrawn = 3, kNoise = 6;
constexpr int64_t kChunk = 1024;  // samples of one task

// Streams of the seed; samples of the training part begin at kTrain, of the test part at kTest.
constexpr uint64_t kWorld = 0, kTrain = uint64_t(1) << 40, kTest = uint64_t(2) << 40;

// An index with probability proportional to weights given as running sums.
int64_t pick(const std::vector<double>& sums, int64_t begin, int64_t end, Draws& draws) {
  const double before = begin ? sums[size_t(begin) - 1] : 0.0;
  const double at = before + draws.uniform() * (sums[size_t(end) - 1] - before);
  const auto found = std::upper_bound(sums.begin() + begin, sums.begin() + end, at);
  return std::min<int64_t>(found - sums.begin(), end - 1);
}

// `count` different entries of the n at `from` are moved to its front.
void choose(int32_t* from, int64_t n, int64_t count, Draws& draws) {
  for (int64_t i = 0; i < count; ++i) std::swap(from[i], from[i + draws.below(n - i)]);
}

struct World {
  int64_t labels, words;
  std::vector<double> word_sums;   // Zipf(1)
  std::vector<double> label_sums;  // label order is cluster order
  std::vector<int32_t> topics;     // [clusters, kTopic]
  std::vector<int32_t> own;        // [labels, kPrivate]

  World(const SynthOptions& o) : labels(o.labels), words(o.words) {
    Draws draws(o.seed, kWorld);
    double sum = 0;
    for (int64_t w = 0; w < words; ++w) word_sums.push_back(sum += 1.0 / double(w + 1));
    std::vector<int32_t> ranks(static_cast<size_t>(labels));
    for (int64_t l = 0; l < labels; ++l) ranks[size_t(l)] = int32_t(l);
    choose(ranks.data(), labels, labels, draws);
    sum = 0;
    for (int32_t rank : ranks) label_sums.push_back(sum += std::pow(rank + 1.0, -0.9));
    const int64_t clusters = (labels + kCluster - 1) / kCluster;
    for (int64_t c = 0; c < clusters; ++c) different(topics, kTopic, draws, true);
    for (int64_t l = 0; l < labels; ++l) different(own, kPrivate, draws, false);
  }

  void different(std::vector<int32_t>& to, int64_t count, Draws& draws, bool zipf) const {
    const size_t first = to.size();
    while (int64_t(to.size() - first) < count) {
      const auto word = int32_t(zipf ? pick(word_sums, 0, words, draws) : draws.below(words));
      if (std::find(to.begin() + int64_t(first), to.end(), word) == to.end()) to.push_back(word);
    }
  }

  void sample(Draws& draws, std::vector<int32_t>& labels_out,
              std::vector<std::pair<int32_t, float>>& words_out) const {
    labels_out.clear();
    words_out.clear();
    const int64_t first = pick(label_sums, 0, labels, draws);
    labels_out.push_back(int32_t(first));
    const int64_t begin = first / kCluster * kCluster, end = std::min(begin + kCluster, labels);
    for (int64_t more = draws.poisson(2.0); more > 0; --more) {
      const bool near = draws.uniform() < 0.8;
      const auto label =
          int32_t(near ? pick(label_sums, begin, end, draws) : pick(label_sums, 0, labels, draws));
      if (std::find(labels_out.begin(), labels_out.end(), label) == labels_out.end()) {
        labels_out.push_back(label);
      }
    }
    int32_t some[kTopic];
    for (const int32_t label : labels_out) {
      std::copy_n(&topics[size_t(label / kCluster * kTopic)], kTopic, some);
      choose(some, kTopic, kTopicDrawn, draws);
      for (int64_t i = 0; i < kTopicDrawn; ++i) words_out.emplace_back(some[i], 1.f);
      std::copy_n(&own[size_t(label * kPrivate)], kPrivate, some);
      choose(some, kPrivate, kPrivateDrawn, draws);
      for (int64_t i = 0; i < kPrivateDrawn; ++i) words_out.emplace_back(some[i], 1.f);
    }
    for (int64_t i = 0; i < kNoise; ++i) {
      words_out.emplace_back(int32_t(pick(word_sums, 0, words, draws)), 1.f);
    }
    std::sort(labels_out.begin(), labels_out.end());
  }
};

void append(Csr& all, const Csr& part) {
  const int64_t base = all.entries();
  for (size_t i = 1; i < part.start.size(); ++i) all.start.push_back(base + part.start[i]);
  all.index.insert(all.index.end(), part.index.begin(), part.index.end());
  all.value.insert(all.value.end(), part.value.begin(), part.value.end());
}

XmcData samples(const World& world, uint64_t seed, uint64_t stream, int64_t count) {
  const int64_t chunks = (count + kChunk - 1) / kChunk;
  std::vector<XmcData> parts(static_cast<size_t>(chunks));
  parallel_chunks(chunks, [&](int64_t c) {
    XmcData& part = parts[size_t(c)];
    std::vector<int32_t> labels;
    std::vector<std::pair<int32_t, float>> words;
    for (int64_t i = c * kChunk; i < std::min(count, (c + 1) * kChunk); ++i) {
      Draws draws(seed, stream + uint64_t(i));
      world.sample(draws, labels, words);
      add_row(part.features, words);
      part.labels.index.insert(part.labels.index.end(), labels.begin(), labels.end());
      part.labels.start.push_back(part.labels.entries());
    }
  });
  XmcData all;
  for (const XmcData& part : parts) {
    append(all.features, part.features);
    append(all.labels, part.labels);
  }
  all.features.cols = world.words;
  all.labels.cols = world.labels;
  return all;
}

}  // namespace

XmcSet make_synth(const SynthOptions& o) {
  constexpr int64_t kMost = int64_t(1) << 30;
  if (o.train < 1 || o.test < 1 || o.labels < 1 || std::max({o.train, o.test, o.labels}) > kMost) {
    throw ValueError("xmc synth",
                     fmt::format("need 1 to 2^30 training samples, test samples and labels; got "
                                 "{}, {} and {}",
                                 o.train, o.test, o.labels));
  }
  if (o.words < kTopic || o.words > kMost) {
    throw ValueError("xmc synth", fmt::format("need {} to 2^30 words; got {}", kTopic, o.words));
  }
  const World world(o);
  XmcSet set;
  set.name = "synth-xmc";
  set.train = samples(world, o.seed, kTrain, o.train);
  set.test = samples(world, o.seed, kTest, o.test);
  set.vectorizer = fit_vectorizer(set.train.features);
  set.vectorizer.weigh(set.train.features);
  set.vectorizer.weigh(set.test.features);
  return set;
}

}  // namespace cutaway::haste
