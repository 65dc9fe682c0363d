#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <cutaway/models/haste/data.h>

namespace cutaway::haste {

// The k best labels of each row, merged from chunks of labels: the full score matrix never exists.
// Higher scores first, equal ones by the smaller label, whatever the order of the chunks; scores
// that are NaN are never taken.
class TopK {
 public:
  TopK(int64_t rows, int64_t k);
  // scores [count, rows]: row c holds the scores of labels[c]. Labels are skipped for a row whose
  // filter row lists them; filter row first_row + r belongs to row r.
  void add(const float* scores, int64_t count, std::span<const int32_t> labels,
           const Csr* filter = nullptr, int64_t first_row = 0);
  void clear();

  int64_t rows() const { return rows_; }
  int64_t k() const { return k_; }
  // [k]; −1 from the place where labels ran out.
  std::span<const int32_t> labels(int64_t row) const {
    return {labels_.data() + row * k_, size_t(k_)};
  }
  std::span<const float> scores(int64_t row) const {
    return {scores_.data() + row * k_, size_t(k_)};
  }

 private:
  friend class Evaluator;
  // One label with scores [rows], for rows begin … end − 1.
  void offer(const float* scores, int32_t label, int64_t begin, int64_t end, const Csr* filter,
             int64_t first_row);

  int64_t rows_, k_;
  std::vector<int32_t> labels_;
  std::vector<float> scores_;
};

// Number of training samples of each label: column counts of `labels`.
std::vector<int64_t> label_frequencies(const Csr& labels);

// Probability that a relevant label is observed: p = 1 / (1 + C (n + b)^−a) with
// C = (ln N − 1)(b + 1)^a, n samples of N with the label. The usual a, b: 0.55, 1.5; Amazon sets
// 0.6, 2.6; Wikipedia sets 0.5, 0.4 (Jain, Prabhu, Varma, KDD 2016). At most 1: C < 0 for N = 1 or
// 2 counts as 0.
std::vector<double> propensities(const std::vector<int64_t>& frequency, int64_t samples,
                                 double a = 0.55, double b = 1.5);

// Labels sorted by how often they are in training data, cut into bands.
struct Bands {
  std::vector<std::string> names;
  std::vector<int8_t> band;  // [labels]; −1: in none
};
// head (≥ `head` positives), torso, tail (1 … tail−1 positives); labels never seen are in no band.
Bands frequency_bands(const std::vector<int64_t>& frequency, int64_t head = 500, int64_t tail = 50);
// Ten bands of equally many labels, the most frequent first; labels never seen are in no band.
Bands decile_bands(const std::vector<int64_t>& frequency);

struct EvaluateOptions {
  int64_t k = 5;
  double a = 0.55, b = 1.5;       // of the propensities
  int64_t head = 500, tail = 50;  // borders of the bands, in positives
};
// All values are shares, 0 … 1; [k] for k = 1 … k.
struct BandMetrics {
  std::string name;
  int64_t labels = 0;
  int64_t samples = 0;            // test samples with a positive in the band
  std::vector<double> precision;  // of the best k labels of the band, over those samples
  std::vector<double> hits;       // Σ over deciles or over head, torso, tail: P@k of all labels
};
struct Metrics {
  int64_t samples = 0;
  std::vector<double> precision;  // P@k = hits among the best k / k, mean of all samples
  std::vector<double> psp;        // Σ hits/p over the best that could be had; 0 when there is none
  std::vector<BandMetrics> bands;  // head, torso, tail
  std::vector<BandMetrics> deciles;
};

// Compares scores with the truth, batch by batch, labels in chunks:
//   evaluator.begin(first, rows); for each chunk evaluator.add(scores, count, labels);
//   evaluator.end(); …; evaluator.metrics()
// Pairs of the filter are ignored: neither predicted nor true. A sample without any label counts
// as one without hits.
class Evaluator {
 public:
  // truth [samples, labels] and filter (no rows: none) stay alive as long as the evaluator.
  // ValueError when frequency or filter do not fit the truth, for k < 1, and for a set without
  // samples.
  Evaluator(const Csr& truth, const Csr& filter, const std::vector<int64_t>& frequency,
            int64_t train_samples, const EvaluateOptions& options = {});

  void begin(int64_t first, int64_t rows);
  // scores [count, rows] of `labels`, numbered as in the truth.
  void add(const float* scores, int64_t count, std::span<const int32_t> labels);
  void end();
  Metrics metrics() const;

 private:
  struct Part {  // a band: its best labels of the batch and what was found so far
    int64_t samples = 0;
    std::vector<int64_t> found, in_all;  // [k]: hits within the band; within the ranking of all
  };
  struct Group {
    Bands bands;
    std::vector<TopK> best;  // one a band
    std::vector<Part> parts;
  };
  void count(int64_t row, std::span<const int32_t> truth);
  std::vector<BandMetrics> summary(const Group& group) const;

  const Csr& truth_;
  const Csr& filter_;
  EvaluateOptions options_;
  std::vector<double> weight_;  // 1/p of each label
  std::vector<Group> groups_;   // head/torso/tail, deciles
  std::vector<TopK> best_;      // of all labels: one element once a batch began
  int64_t first_ = 0, rows_ = 0, samples_ = 0;
  std::vector<int64_t> hits_;
  std::vector<double> gained_, attainable_;
};

}  // namespace cutaway::haste
