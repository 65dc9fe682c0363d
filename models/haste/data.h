#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cutaway/datasets/sparse_text.h>

namespace cutaway::haste {

using data::add_row;
using data::Csr;
using data::kMostColumns;
using data::take_rows;
using data::transpose;

// Samples with sparse features (tf-idf with rows of length 1, or as the file gives them) and the
// sparse set of their labels, with names.
struct XmcData : data::MultiLabelRows {
  std::vector<std::string> words;         // names of the features; may be empty
  std::vector<std::string> label_names;   // may be empty
  std::vector<std::string> sample_names;  // may be empty
  std::vector<std::string> texts;         // raw text of the samples; may be empty

  int64_t num_features() const { return features.cols; }
  int64_t num_labels() const { return labels.cols; }
};
// The samples with these numbers, in this order.
XmcData take_samples(const XmcData& data, const std::vector<int64_t>& rows);
// Raises ValueError naming `name` unless rows, indices, names and values (finite) agree.
void check_data(const XmcData& data, const std::string& name);

// Words of a text: ASCII lower case, cut at everything but letters, digits and bytes above 127.
std::vector<std::string> words_of(std::string_view text);

// Turns text or word counts into tf-idf vectors: tf·idf with idf = ln(N / n_word) + 1 (N samples,
// n_word of them with the word), then rows of length 1. Kept with a model so that raw text can be
// predicted. O(words).
struct Vectorizer {
  std::vector<std::string> words;  // empty when only counts can be turned
  std::vector<float> idf;          // [words]

  // Replaces counts by tf-idf. ValueError unless the columns agree.
  void weigh(Csr& counts) const;
  // Counts of known words; unknown ones are left out. [texts, words], weighed.
  Csr vectors(const std::vector<std::string>& texts) const;
};
// From the counts of training samples: every column keeps its place.
Vectorizer fit_vectorizer(const Csr& counts, std::vector<std::string> words = {});
// From training texts: words in at least `min_count` samples, the most frequent first, ties by
// spelling.
Vectorizer fit_vectorizer(const std::vector<std::string>& texts, int64_t min_count = 3);
// One line "word<TAB>idf" a feature. Reading raises IoError naming file, line and value.
void save_vectorizer(const Vectorizer& vectorizer, const std::string& path);
Vectorizer load_vectorizer(const std::string& path);

// A training and a test part with the same features and labels.
struct XmcSet {
  std::string name;
  XmcData train, test;
  Csr filter;  // [test samples, labels]: pairs that evaluation leaves out; no rows: none
  Vectorizer vectorizer;
};

// The generator: clusters of labels that share topic words, labels with private words, Zipf noise.
// Label frequency ∝ rank^−0.9 with ranks dealt at random; a sample has a label by frequency and
// Poisson(2) more, each from the cluster of the first with probability 0.8, else by frequency. Its
// words: 8 of 24 topic words for the cluster of each label, 3 of 6 private words of each, 6 of
// noise. The same for every thread count: sample i depends on (seed, i) only.
struct SynthOptions {
  int64_t train = 20000, test = 4000, labels = 8192, words = 8192;
  uint64_t seed = 1;
};
// Raises ValueError for sizes that make no set.
XmcSet make_synth(const SynthOptions& options = {});

}  // namespace cutaway::haste
